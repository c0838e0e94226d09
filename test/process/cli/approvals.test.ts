/** The inbox from a terminal: what waits, in words and as data, and every change to it while it is watched. */
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { answer, listApprovals } from '../../../src/cli/commands/approvals/approvals.ts';
import { replayTask } from '../../../src/cli/commands/history/replay.ts';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import { hashOf } from '../../../src/receipt/seal/canonical-json.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { FIRST_RULES } from '../../../src/runtime/config/config.ts';
import { aDirectory, aLog, program, ran, typed } from '../../support/process/cli.ts';

const WORK = 'send the plan to ana';

test('a question shows the act as it would run, why it is asked, until when, and how to answer', async () => {
  const { dir } = await aLog([WORK], { approve: 'leave open' });
  const { out } = await typed(() => listApprovals({ data: dir }));
  const id = /approve (ask_\w+)/.exec(out)?.[1] ?? '';
  expect(out.split('\n').slice(0, 8)).toEqual([
    `${id.slice(-6)}  May agent:demo use send_mail on ana?`,
    '    Proposed by: agent:demo',
    '    Act: send_mail of demo',
    '    Effect: send (held: it runs through this gateway)',
    '    On: ana',
    '    Asked because: data leaves this host, so a person decides [rule outside-needs-a-human]',
    expect.stringMatching(/^ {4}Answer until: 20\S+Z \(\d+ min left\)$/),
    '    Arguments:',
  ]);
  expect(out).toContain('\n      to: ana\n      text: the plan\n');
  const [ask] = (await typed(() => listApprovals({ data: dir, json: true }))).out.trimEnd().split('\n');
  expect(JSON.parse(ask ?? '')).toMatchObject({
    ...{ id, object: 'ask', state: 'open', action: { tool: 'send_mail' } },
    act: { tool: 'send_mail', arguments: { to: 'ana', text: 'the plan' } },
  });
});

test('nothing waiting is said to people, and is nothing to programs', async () => {
  const { dir } = await aLog(['hello']);
  expect((await typed(() => listApprovals({ data: dir }))).out).toBe('Nothing is waiting for an answer.\n');
  expect((await typed(() => listApprovals({ data: dir, json: true }))).out).toBe('');
});

test('an answer counts once; one for a question that never was is refused', async () => {
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

/** Somewhere with rules of its own, and a log elsewhere. */
async function elsewhere(rules: string): Promise<string> {
  const cwd = await aDirectory();
  await writeFile(join(cwd, 'tollbridge.yaml'), rules);
  return cwd;
}

async function rulesNoted(dir: string): Promise<number> {
  const { out } = await ran(['--data', dir, 'log', '--json']);
  return out.split('\n').filter((line) => line.includes('"vendor.tollbridge.policy_loaded"')).length;
}

test('an answer from a directory with other rules is not judged by those rules, nor are they written down', async () => {
  const { dir } = await aLog([WORK], { approve: 'leave open' });
  const cwd = await elsewhere(
    'rules:\n  - { id: nobody-answers, when: { kind: answer }, then: block, say: not here }\n',
  );
  const [, id = ''] = /approve (ask_\w+)/.exec((await typed(() => listApprovals({ data: dir }))).out) ?? [];
  expect(await ran(['--data', dir, 'approve', id], '', { cwd })).toMatchObject({ code: 0, out: `Approved: ${id}\n` });
  expect(await rulesNoted(dir)).toBe(1);
});

test('an answer from elsewhere is judged by the rules of the gateway', async () => {
  const rules = `${FIRST_RULES}- { id: nobody-answers, when: { kind: answer }, then: block, say: only at the terminal }\n`;
  const { dir } = await aLog([WORK], { approve: 'leave open', rules });
  const cwd = await elsewhere('rules:\n  - { id: fine, when: { kind: answer }, then: allow }\n');
  const [, id = ''] = /approve (ask_\w+)/.exec((await typed(() => listApprovals({ data: dir }))).out) ?? [];
  const refused = await ran(['--data', dir, 'approve', id], '', { cwd });
  expect(refused).toMatchObject({
    code: 5,
    out: '',
    err: expect.stringContaining('may not answer this: only at the terminal'),
  });
});

test('where the rules in force are not kept no answer from elsewhere counts, and the error says what to do', async () => {
  const { dir } = await aLog([WORK], { approve: 'leave open' });
  const [, id = ''] = /approve (ask_\w+)/.exec((await typed(() => listApprovals({ data: dir }))).out) ?? [];
  const [kept = ''] = await readdir(join(dir, 'rules'));
  const refused = {
    code: 4,
    out: '',
    err: `tollbridge: the rules in force are not kept in ${join(dir, 'rules')}\n  fix: start it once where its configuration is, or answer at one of its doors\n`,
  };
  await writeFile(join(dir, 'rules', kept), JSON.stringify({ files: [] }));
  expect(await typed(() => answer(id, true, undefined, { data: dir }))).toEqual(refused);
  await rm(join(dir, 'rules', kept));
  expect(await typed(() => answer(id, true, undefined, { data: dir }))).toEqual(refused);
});

test('a replay from a directory with other rules leaves none of them in the log', async () => {
  const { dir, tasks } = await aLog(['read plan']);
  const cwd = await elsewhere('rules:\n  - { id: no-reading, when: { effect: read }, then: block }\n');
  expect(await ran(['--data', dir, 'replay', tasks[0] ?? ''], '', { cwd })).toMatchObject({ code: 0 });
  expect(await rulesNoted(dir)).toBe(1);
  expect(await typed(() => replayTask(tasks[0] ?? '', { data: dir }))).toMatchObject({ code: 0 });
});

test.each(['as JSON', 'from a file'])(
  'a yes with other arguments, %s: they run, and what may not run is refused',
  async (how) => {
    const rules = `${FIRST_RULES}- { id: no-eve, when: { tool: send_mail, arguments: { to: eve } }, then: block, say: not to eve }\n`;
    const { dir } = await aLog([WORK], { approve: 'leave open', rules });
    const { id, task_id } = JSON.parse((await typed(() => listApprovals({ data: dir, json: true }))).out);
    const input = async (text: string) => {
      if (how === 'as JSON') return text;
      const file = join(await aDirectory(), 'arguments.json');
      await writeFile(file, text);
      return `@${file}`;
    };
    const say = async (text: string) =>
      typed(async () => answer(id, true, undefined, { data: dir, json: true, arguments: await input(text) }));
    for (const [text, why] of [
      ['{"to":"eve","text":"hi"}', 'not to eve'],
      ['["cy"]', 'has to be a JSON object'],
      ['{"to":"cy","to":"eve","text":"hi"}', '--arguments'],
      ['{"to":', '--arguments'],
    ] as const) {
      const refused = await say(text);
      expect(refused.code, text).not.toBe(0);
      expect(refused.err).toContain(why);
    }
    expect((await typed(() => listApprovals({ data: dir, json: true }))).out).toContain(id);
    expect(JSON.parse((await say('{"to":"cy","text":"hi"}')).out)).toMatchObject({ id, state: 'approved' });

    const tools = createDemoTools();
    const policy = { load: async () => ({ rules, files: [] }) };
    const backends = [createDemoAgent({ pause: async () => {} })];
    const runtime = await openCoreRuntime({ dataDir: dir, policy, backends, tools: [tools] });
    onTestFinished(() => runtime.close());
    await runtime.start();
    await expect.poll(async () => (await runtime.store.receipts({ task: task_id })).length).toBe(1);
    expect(tools.outbox).toEqual([{ to: 'cy', text: 'hi' }]);
    const [found] = await runtime.store.receipts({ task: task_id });
    const changed_by = expect.stringMatching(/^local:/);
    const metadata = { requested_input_hash: hashOf({ to: 'ana', text: 'the plan' }), changed_by };
    expect(found?.receipt.side_effects.tool_calls).toMatchObject([
      { input_hash: hashOf({ to: 'cy', text: 'hi' }), metadata },
    ]);
  },
);
