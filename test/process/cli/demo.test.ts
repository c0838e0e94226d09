/** The first minute, as a script or a person behind a pipe has it: the real program, from the question to the proof. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aDirectory, aLog, program, ran } from '../../support/process/cli.ts';

const NO_NAMES = /[0-9A-HJKMNP-TV-Z]{26}|\b[0-9A-HJKMNP-TV-Z]{6}\b/g;
const story = (out: string) =>
  out
    .split('\n')
    .filter((line) => /^ {2}event /.test(line))
    .map((line) =>
      line
        .replace(NO_NAMES, '…')
        .replace(/local:\S+/g, 'local:me')
        .trim(),
    );

test('a read passes by rule, mail asks, a yes lets it through, and the proof breaks when it is touched', async () => {
  const dir = await aDirectory();
  const demo = await ran(['demo', '--yes', '--data', dir]);
  expect(demo).toMatchObject({ code: 0, err: '' });
  expect(story(demo.out)).toEqual([
    'event 4    task       local:me asks demo: read plan then send the plan to ana',
    'event 11   allowed    read_note (name: plan)  [rule reads-are-fine: reading changes nothing]',
    'event 13   succeeded  read_note: plan says: First look, then leap.',
    'event 17   says       agent:demo: plan says: First look, then leap.',
    'event 23   ASKS       send_mail (to: ana, text: "the plan")  [rule outside-needs-a-human: data leaves this host, so a person decides]',
    'event 24   question   May agent:demo use send_mail on ana?  (…)',
    'event 29   approved   by local:me  (…)',
    'event 33   effect     outbox.demo.invalid mail to ana (held)',
    'event 34   succeeded  send_mail: Mail to ana is sent.',
    'event 38   says       agent:demo: Mail to ana is sent.',
    'event 41   receipt    receipt_…',
    'event 42   completed  read plan, then send mail to ana',
  ]);
  const files = join(dir, 'receipts');
  expect(demo.out).toContain(`verify ${files}\n`);
  expect((await ran(['verify', files])).out).toMatch(/^ok {3}1 receipt, nothing missing, nothing changed\n/);

  const file = join(files, 'receipts.jsonl');
  const text = await readFile(file, 'utf8');
  const { receipt_id } = JSON.parse(text);
  await writeFile(file, text.replace('send_mail', 'send_nail'));
  const touched = await ran(['verify', files]);
  expect(touched).toMatchObject({ code: 1, err: '' });
  expect(touched.out).toContain(receipt_id);
  expect(touched.out).toMatch(/^BAD {2}.*its content does not match its hash\n$/);
});

test('a no is reported to the agent, and the receipt says so', async () => {
  const dir = await aDirectory();
  const demo = await ran(['demo', '--no', '--data', dir, '--json']);
  expect(demo.code).toBe(0);
  const lines = demo.out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ event }) => event)).toContain('tool.denied');
  expect(lines.at(-1)).toMatchObject({ object: 'demo', data: dir, files: join(dir, 'receipts') });
  const receipt = JSON.parse(await readFile(join(dir, 'receipts', 'receipts.jsonl'), 'utf8'));
  expect(receipt.approvals).toMatchObject([{ action: 'tool:send_mail', decision: 'denied' }]);
  expect(receipt.side_effects.network_egress).toEqual([]);
});

test('a person who types something else is asked again', async () => {
  const demo = await ran(['demo', '--data', await aDirectory()], 'perhaps\n\nYES\n');
  expect(demo.out.split('Please answer y or n.')).toHaveLength(3);
  expect(demo.out).toContain('Mail to ana is sent.');
});

test('where nobody can answer, nothing is sent and the output says why', async () => {
  const demo = await ran(['demo', '--data', await aDirectory()]);
  expect(demo.code).toBe(0);
  expect(demo.out).toContain(
    'Standard input is not a terminal, so the question is denied. Use --yes, --no or --wait in scripts.',
  );
  expect(demo.out).not.toContain('Mail to ana is sent.');
});

test('the question can be answered from another terminal by the end of its name, and only once', async () => {
  const dir = await aDirectory();
  const { says, ended } = program(['demo', '--wait', '--data', dir]);
  const [, ask = ''] = await says(/approve (ask_\w+)/);
  expect((await ran(['--data', dir, 'approvals'])).out).toContain(`--data ${dir} approve ${ask}\n`);
  expect(await ran(['--data', dir, 'approve', ask.slice(-6).toLowerCase()])).toMatchObject({
    code: 0,
    out: `Approved: ${ask}\n`,
  });
  expect((await ended).out).toContain('Mail to ana is sent.');
  const late = await ran(['--data', dir, 'deny', ask]);
  expect(late.code).toBe(4);
  expect(late.err).toMatch(/^tollbridge: .*already/);
});

test('a person who is asked here is notified when another approver was quicker', async () => {
  const dir = await aDirectory();
  const { says, ended } = program(['demo', '--data', dir]);
  const [, ask = ''] = await says(/approve (ask_\w+)[\s\S]*\[y\/n\] $/);
  await ran(['--data', dir, 'deny', ask, 'not today']);
  const { out, code } = await ended;
  expect(code).toBe(0);
  expect(out).toContain('Answered elsewhere.');
  expect(out).toContain('I was not allowed to send mail to ana: not today');
});

test('with a port the question can be answered over HTTP, with the token that was printed', async () => {
  const { says, ended } = program(['demo', '--port', '0', '--wait', '--data', await aDirectory()]);
  const [, url = '', token = ''] = await says(/listens on (\S+) {2}\(token (\S+)\)/);
  const [, path = ''] = await says(/\d(\/v1\/permission-requests\/ask_\w+\/respond)/);
  const headers = {
    authorization: `Bearer ${token}`,
    'harn-agents-protocol-version': 'agents-protocol-2026-04-25',
    'content-type': 'application/json',
  };
  const respond = (body: object, more = headers) =>
    fetch(`${url}${path}`, { method: 'POST', headers: more, body: JSON.stringify(body) });
  expect((await respond({ approved: true }, { ...headers, authorization: 'Bearer guess' })).status).toBe(401);
  expect((await respond({ approved: true })).status).toBe(200);
  expect((await ended).out).toContain('Mail to ana is sent.');
});

test('a person who is asked is offered the console, without asking for a port', async () => {
  const { child, says, ended } = program(['demo', '--wait', '--data', await aDirectory()]);
  const [, url = '', code = ''] = await says(/(http:\/\/\S+)\/sign-in#(\S+)/);
  await says(/approve ask_\w+/);
  const answer = await fetch(`${url}/console/session`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  expect([answer.status, ((await answer.json()) as { role: string }).role]).toEqual([201, 'admin']);
  child.kill('SIGINT');
  await ended;
});

test('stopped at the question nothing is lost: the next start goes on with the same task', async () => {
  const dir = await aDirectory();
  const { child, says, ended } = program(['demo', '--data', dir]);
  const [, ask = ''] = await says(/approve (ask_\w+)[\s\S]*\[y\/n\] $/);
  child.kill('SIGINT');
  const stopped = await ended;
  expect(stopped.code).toBe(130);
  expect(stopped.out).toContain(`demo --data ${dir}\n`);
  const again = await ran(['demo', '--yes', '--data', dir]);
  expect(again.out).toContain(ask);
  expect(story(again.out).filter((line) => line.includes(' task '))).toHaveLength(1);
  expect(again.out).toContain('Mail to ana is sent.');
  expect((await ran(['verify', join(dir, 'receipts')])).out).toMatch(/^ok {3}1 receipt,/);
});

test('it does not touch a log that is not its own, and two answers are none', async () => {
  const { dir } = await aLog([]);
  expect(await ran(['demo', '--yes', '--data', dir])).toEqual({
    code: 4,
    out: '',
    err: `tollbridge: ${dir} holds a log that is not a demo's\n  fix: name an empty directory with --data, or none at all\n`,
  });
  expect((await ran(['demo', '--yes', '--no'])).code).toBe(2);
});
