/** The inbox from a terminal: what waits, in words and as data, and every change to it while it is watched. */
import { expect, test } from 'vitest';
import { answer, listApprovals } from '../src/cli/approvals.ts';
import { aLog, program, typed } from './support/cli.ts';

const WORK = 'send the plan to ana';

test('a question shows the act as it would run, why it is asked, until when, and how to answer', async () => {
  const { dir } = await aLog([WORK], { approve: 'leave open' });
  const { out } = await typed(() => listApprovals({ data: dir }));
  const id = /approve (ask_\w+)/.exec(out)?.[1] ?? '';
  expect(out.split('\n').slice(0, 3)).toEqual([
    `${id.slice(-6)}  May agent:demo use send_mail on ana?`,
    '    what:  send_mail (to: ana, text: "the plan")',
    '    why:   this leaves the house, so a person decides  [rule outside-needs-a-human]',
  ]);
  const [ask] = (await typed(() => listApprovals({ data: dir, json: true }))).out.trimEnd().split('\n');
  expect(JSON.parse(ask ?? '')).toMatchObject({ id, object: 'ask', state: 'open', action: { tool: 'send_mail' } });
});

test('nothing waiting is said to people, and is nothing to programs', async () => {
  const { dir } = await aLog(['hello']);
  expect((await typed(() => listApprovals({ data: dir }))).out).toBe('Nothing is waiting for an answer.\n');
  expect((await typed(() => listApprovals({ data: dir, json: true }))).out).toBe('');
});

test('an answer counts once; one for a question that never was is told so', async () => {
  const { dir } = await aLog([WORK], { approve: 'leave open' });
  const { out } = await typed(() => listApprovals({ data: dir, json: true }));
  const { id } = JSON.parse(out);
  const denied = await typed(() => answer(id.slice(-6), false, 'not today', { data: dir, json: true }));
  expect(JSON.parse(denied.out)).toMatchObject({ id, state: 'denied' });
  expect(await typed(() => answer(id, true, undefined, { data: dir }))).toMatchObject({ code: 4, out: '' });
  expect(await typed(() => answer('ask_nobody', true, undefined, { data: dir }))).toEqual({
    code: 3,
    out: '',
    err: 'tollbridge: there is no question ask_nobody\n  fix: "tollbridge approvals" shows what there is; --data says where\n',
  });
});

test('watched, it tells of answers given elsewhere, until it is stopped', async () => {
  const { dir } = await aLog([WORK], { approve: 'leave open' });
  const watching = program(['--data', dir, 'approvals', '--watch']);
  const [, id = ''] = await watching.says(/deny (ask_\w+) /);
  await typed(() => answer(id, false, 'too late for mail', { data: dir }));
  await watching.says(new RegExp(`^${id.slice(-6)} {2}denied by local:\\S+: too late for mail$`, 'm'));
  watching.child.kill('SIGINT');
  expect((await watching.ended).code).toBe(0);
});
