/** Looking back: the log for people and for programs, one task with its proof, and a task lived through again. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { showLog } from '../../../src/cli/commands/history/log.ts';
import { replayTask } from '../../../src/cli/commands/history/replay.ts';
import { showTask } from '../../../src/cli/commands/history/task.ts';
import { createNarrator } from '../../../src/cli/output/event-lines.ts';
import { folded } from '../../../src/cli/output/folding.ts';
import { systemClock } from '../../../src/core/clock.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import { createCheckpoints } from '../../../src/receipt/seal/checkpoints.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { forPeople } from '../../../src/runtime/logger.ts';
import { aDirectory, aLog, program, typed } from '../../support/process/cli.ts';

const WORK = 'read plan then send the plan to ana';
const nameless = (text: string) =>
  text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/(?:[0-9A-HJKMNP-TV-Z]{26}|replay_[0-9a-f]{26}(?:_\d+)?)/g, 'ID');

test('the log is lines for people: when, which event, whose, what', async () => {
  const { dir, tasks } = await aLog([WORK]);
  const { out, code } = await typed(() => showLog({ data: dir }));
  expect(code).toBe(0);
  const end = tasks[0]?.slice(-6);
  const lines = out.trimEnd().split('\n');
  expect(lines.every((line) => /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}#\d+ /.test(line))).toBe(true);
  expect(lines.filter((line) => line.includes(`${end}  `)).map((line) => line.slice(36))).toContain(
    'allowed    read_note (name: plan)  [rule reads-are-fine: reading changes nothing]',
  );
});

test('programs get every event, the last so many, or those of one task by the end of its name', async () => {
  const { dir, tasks } = await aLog(['hello', 'read plan']);
  const events = async (more: object) =>
    (await typed(() => showLog({ data: dir, json: true, ...more }))).out
      .trimEnd()
      .split('\n')
      .map((line): CoreEvent => JSON.parse(line));
  const all = await events({});
  expect(all.map(({ id }) => id)).toEqual(all.map((_, index) => `evt_${String(index + 1).padStart(16, '0')}`));
  expect(await events({ last: '3' })).toEqual(all.slice(-3));
  const second = all.filter(({ task_id }) => task_id === tasks[1]);
  expect(await events({ task: tasks[1]?.slice(-8) })).toEqual(second);
  expect(await events({ task: tasks[1], last: '2' })).toEqual(second.slice(-2));
});

test('people get the newest fifty lines, the page before them when they ask for it, and everything with --all', async () => {
  const { dir, tasks } = await aLog(Array.from({ length: 30 }, (_, index) => `hello ${index}`));
  const lines = async (more: object) => {
    const { out, err } = await typed(() => showLog({ data: dir, ...more }));
    return { lines: out.trimEnd().split('\n'), err };
  };
  const all = (await lines({ all: true })).lines;
  expect(all.length).toBeGreaterThan(100);
  const newest = await lines({});
  expect(newest.lines).toEqual(all.slice(-50));
  const pages = [newest];
  for (;;) {
    const before = /--before (\d+)/.exec(pages[0]!.err)?.[1];
    if (!before) break;
    pages.unshift(await lines({ before }));
  }
  expect(pages.flatMap((page) => page.lines)).toEqual(all);
  expect(await lines({ last: '1000' })).toEqual({ lines: all, err: '' });
  const own = await lines({ task: tasks[3], last: '1' });
  expect(own.lines).toEqual([(await lines({ task: tasks[3], all: true })).lines.at(-1)]);
  expect(own.err).toContain(`--task ${tasks[3]}`);
});

test('of a log whose beginning was pruned the rest is shown, and what is missing is said', async () => {
  const { dir, tasks } = await aLog(['hello', 'read plan', 'hello again'], { apart: true });
  const runtime = await openCoreRuntime({ dataDir: dir });
  const { store, log, keyring } = runtime;
  await createCheckpoints({ store, log, signer: keyring.signer(), clock: systemClock }).take();
  let middle = '';
  for await (const { task_id, created_at } of store.read({ stream: { of: 'all' } }))
    if (task_id === tasks[1]) middle = created_at;
  expect((await store.retain(middle)).dropped).toBeGreaterThan(0);
  await runtime.close();
  for (const more of [{}, { all: true }, { task: tasks[2]!, all: true }]) {
    const { out, err, code } = await typed(() => showLog({ data: dir, ...more }));
    expect(code).toBe(0);
    expect(out).toContain('hello again');
    expect(err).toMatch(/^events up to \d+ are no longer kept\n$/);
  }
});

test('what is asked for wrongly, or is not there, is said', async () => {
  const { dir } = await aLog([]);
  expect(await typed(() => showLog({ data: dir, last: 'many' }))).toMatchObject({ code: 2 });
  expect(await typed(() => showLog({ data: dir, before: '0' }))).toMatchObject({ code: 2 });
  expect(await typed(() => showLog({ data: dir, before: '3', follow: true }))).toMatchObject({ code: 2 });
  expect(await typed(() => showLog({ data: dir, task: 'ABCDEF' }))).toEqual({
    code: 3,
    out: '',
    err: 'tollbridge: there is no task ABCDEF\n  fix: "tollbridge log" shows what there is; --data says where\n',
  });
  const empty = await aDirectory();
  expect(await typed(() => showLog({ data: empty }))).toEqual({
    code: 3,
    out: '',
    err: `tollbridge: there is no log in ${empty}\n  fix: name the directory with --data DIR, or begin one: tollbridge demo, tollbridge serve\n`,
  });
});

test('a log that is followed shows what another process writes, until it is stopped', async () => {
  const { dir } = await aLog(['hello'], {});
  const following = program(['--data', dir, 'log', '--follow']);
  await following.says(/completed/);
  const { answered, ask } = await openQuestion(dir);
  await following.says(new RegExp(`question .*\\(${ask.slice(-6)}\\)`));
  await answered();
  await following.says(new RegExp(`denied .*: no mail today {2}\\(${ask.slice(-6)}\\)`));
  following.child.kill('SIGINT');
  expect((await following.ended).code).toBe(0);
});

/** A question raised by another gateway on the same log, and a way to answer it. */
async function openQuestion(dir: string) {
  const { openCoreRuntime } = await import('../../../src/runtime/assemble.ts');
  const runtime = await openCoreRuntime({ dataDir: dir });
  const actor = { id: 'ana', kind: 'person', scopes: ['*'], interactive: true } as const;
  const session = await runtime.bridge.submit({
    kind: 'session.create',
    actor,
    body: { workspace_id: 'workspace_1' },
  });
  const task = await runtime.bridge.submit({
    kind: 'task.submit',
    actor,
    body: { session_id: session.resource.id, input: { text: 'outside' }, agent: 'none' },
  });
  const action = { kind: 'tool', tool: 'mail', effect: 'send', arguments: {} } as const;
  const body = { task_id: task.resource.id, action, wait_ms: 0 };
  await runtime.bridge.submit({ kind: 'action.propose', actor, body });
  const { data } = await runtime.bridge.list(actor, { object: 'ask', where: { state: 'open' } });
  const ask = data[0]?.id ?? '';
  return {
    ask,
    async answered() {
      const answer = { ask_id: ask, approved: false, reason: 'no mail today' };
      await runtime.bridge.submit({ kind: 'ask.answer', actor, body: answer });
      await runtime.close();
    },
  };
}

test('nothing an agent says can move the cursor or colour the screen', () => {
  const event = {
    event: 'agent.message',
    actor: 'agent:\u001b[2Jdemo',
    payload: { message: { parts: [{ type: 'text', text: 'fine\u001b]0;owned\u0007\r\n\u202eapproved' }] } },
  } as unknown as CoreEvent;
  expect(createNarrator()(event)).toEqual({
    word: 'says',
    text: 'agent:\\u{1b}[2Jdemo: fine\\u{1b}]0;owned\\u{7}\\r \\u{202e}approved',
  });
});

test('the end of a call that an agent ran itself says what ran, and whether it was only observed', () => {
  const narrate = createNarrator();
  const event = (kind: string, payload: object) =>
    narrate({ event: kind, payload, created_at: '2026-01-01T00:00:00Z', id: 'evt_1' } as unknown as CoreEvent);
  const call = (tool_call_id: string, evidence: string, input: object) =>
    event('tool.requested', { tool_call_id, name: 'execute', kind: 'tool', evidence, input, effect: 'execute' });
  const end = (tool_call_id: string) =>
    event('tool.completed', { tool_call_id, name: 'execute', status: 'ok', output: 'built' })?.text;
  call('a', 'asked', { command: 'make' });
  expect(end('a')).toBe('execute (command: make): "built"');
  call('b', 'observed', { command: 'make' });
  expect(end('b')).toBe('execute (command: make) [observed]: "built"');
  // Some agents put the command into the title, and nowhere else.
  event('agent.tool_use', { tool_call_id: 'c', name: 'execute', input: {}, title: 'make all' });
  call('c', 'observed', {});
  expect(end('c')).toBe('execute (make all) [observed]: "built"');
});

test('a configuration that is read again is a line of its own: what changed, what waits, what was refused and why', () => {
  const narrate = createNarrator();
  const line = (event: string, payload: object) => {
    const reported = narrate({ event: `vendor.tollbridge.${event}`, payload } as never);
    return `${reported?.word}: ${reported?.text}`;
  };
  const loaded = {
    outcome: 'loaded',
    changed: ['agents.far', 'quotas.daily'],
    waits_for_restart: ['listen'],
    error: null,
  };
  expect(line('config_loaded', loaded)).toBe(
    'config: loaded: agents.far, quotas.daily changed, listen at the next start',
  );
  expect(line('config_loaded', { outcome: 'refused', changed: [], error: 'a.yaml:3:1: quots is not known here' })).toBe(
    'config: refused, the one before stays in force: a.yaml:3:1: quots is not known here',
  );
  const errors = [
    { file: 'a.cedar', line: 2, message: 'unexpected end' },
    { file: 'b', message: 'x' },
  ];
  expect(line('policy_loaded', { outcome: 'refused', rules: 2, version: 'sha256:1', errors })).toBe(
    'rules: refused, the ones before stay in force: a.cedar:2: unexpected end, and 1 more',
  );
});

test('a terminal gets warnings and errors as sentences, and no information lines', () => {
  const lines: string[] = [];
  const out = forPeople(
    'warn',
    () => 'Fault: gone',
    (line) => lines.push(line),
  );
  out.info({}, 'listening');
  out.warn({ sections: ['listen'] }, 'some of it waits');
  out.error({ err: new Error('x'), part: 'a\u001b[2Jb' }, 'a part did not close');
  expect(lines).toEqual([
    'tollbridge: some of it waits (sections: ["listen"])\n',
    'tollbridge: a part did not close (err: Fault: gone, part: a\\u{1b}[2Jb)\n',
  ]);
});

test('on a narrow terminal lines are folded between words, and columns stay columns', () => {
  expect(folded('  event 21   ASKS       send_mail (to: ana)  [rule out: data leaves this host]', 44, 24)).toBe(
    [
      '  event 21   ASKS       send_mail (to: ana)',
      '                        [rule out: data',
      '                        leaves this host]',
    ].join('\n'),
  );
  expect(folded('as it   is', undefined)).toBe('as it   is');
});

test('one task is shown from beginning to end, with who answered and what checking its receipt gave', async () => {
  const { dir, tasks } = await aLog([WORK]);
  const { out } = await typed(() => showTask(tasks[0]?.slice(-6) ?? '', { data: dir }));
  const lines = nameless(out).split('\n');
  expect(lines.slice(0, 3)).toEqual([
    'task_ID  COMPLETED',
    '  for local:ana, done by demo',
    '  begun TIME, ended TIME',
  ]);
  expect(lines).toContain('question ask_ID: May agent:demo use send_mail on ana?');
  expect(lines).toContain('  what:    send_mail (to: ana, text: "the plan")');
  expect(lines).toContain('  answer:  approved by local:ana at TIME');
  expect(lines).toContain('receipt receipt_ID  ok: unchanged, in order, signed');
  const whole = JSON.parse((await typed(() => showTask(tasks[0] ?? '', { data: dir, json: true }))).out);
  expect(whole).toMatchObject({
    task: { id: tasks[0], status: 'COMPLETED' },
    asks: [{ state: 'approved', answered_by: 'local:ana' }],
    receipt: { subject: { id: tasks[0] } },
    verification: { valid: true },
  });
});

test('a task that waits says how to answer it', async () => {
  const { dir, tasks } = await aLog([WORK], { approve: 'leave open' });
  const { out } = await typed(() => showTask(tasks[0] ?? '', { data: dir }));
  expect(nameless(out)).toMatch(/^ {2}answer: {2}none yet; .* --data \S+ approve ask_ID$/m);
  expect(out).toContain('its receipt is written when it ends\n');
  const again = await typed(() => replayTask(tasks[0] ?? '', { data: dir }));
  expect(again).toMatchObject({ code: 4, out: '' });
});

test.each([
  ['data', false],
  ['a message of the conversation', true],
])('a replay without changes of work that was given as %s comes out as it did, and says so', async (_, messages) => {
  const { dir, tasks } = await aLog([WORK], { messages });
  const { out, code } = await typed(() => replayTask(tasks[0] ?? '', { data: dir }));
  expect(code).toBe(0);
  expect(nameless(out)).toBe(
    'replayed task_ID as task_ID: COMPLETED\nnothing was replaced\neverything came out as it did then\nreceipt receipt_ID\n',
  );
});

test('a replaced answer leaves a delta, and what came out otherwise is shown beside what was', async () => {
  const { dir, tasks } = await aLog([WORK]);
  const [task = ''] = tasks;
  const keys = (await typed(() => replayTask(task, { data: dir, keys: true }))).out;
  const key = /^mcp:demo:\S+call1/m.exec(keys)?.[0] ?? '';
  const override = [`${key}={"text":"plan says: leap."}`];
  const visibility = 'public';
  const { out, code } = await typed(() => replayTask(task, { data: dir, override, visibility, reason: 'what if' }));
  expect(code).toBe(0);
  const lines = out.split('\n');
  expect(lines[1]).toBe('1 replaced:');
  expect(lines[2]).toMatch(new RegExp(`^ {2}replace ${key} {2}sha256:[0-9a-f]{12} → sha256:[0-9a-f]{12}$`));
  expect(lines).toContain('  - #13  succeeded read_note: plan says: First look, then leap.');
  expect(lines).toContain('  + #13  succeeded read_note: plan says: leap.');
  // And what follows from it.
  expect(out).toMatch(/^ {2}- #\d+ {2}says agent:demo: plan says: First look, then leap\.$/m);
  expect(out).toMatch(/^ {2}\+ #\d+ {2}says agent:demo: plan says: leap\.$/m);
  const report = JSON.parse((await typed(() => replayTask(task, { data: dir, override, json: true }))).out);
  expect(report).toMatchObject({ source_task_id: task, status: 'COMPLETED', deltas: [{ override_key: key }] });
  const odd = await typed(() => replayTask(task, { data: dir, override: ['llm:nobody=1'] }));
  expect(odd).toMatchObject({ code: 2, out: '' });
  expect(odd.err).toContain('the record has no answer called llm:nobody');
});

test('a value from a file is not shown unless it is public', async () => {
  const { dir, tasks } = await aLog([WORK]);
  const [task = ''] = tasks;
  const file = join(dir, 'answer.json');
  await writeFile(file, JSON.stringify({ text: 'plan says: CANARY.' }));
  const override = [`mcp:demo:${task}.call1=@${file}`];
  for (const json of [false, true]) {
    const { out, err, code } = await typed(() => replayTask(task, { data: dir, override, json }));
    expect([code, err]).toEqual([0, '']);
    expect(out).not.toContain('CANARY');
    expect(out).toContain('withheld');
  }
  const shown = await typed(() => replayTask(task, { data: dir, override, visibility: 'public' }));
  expect(shown.out).toContain('plan says: CANARY.');
  expect(await typed(() => replayTask(task, { data: dir, override, visibility: 'secret' }))).toMatchObject({ code: 2 });
  const gone = await typed(() => replayTask(task, { data: dir, override: [`mcp:demo:${task}.call1=@${file}.gone`] }));
  expect(gone).toMatchObject({ code: 3, out: '' });
});

test('a replay that cannot follow its override says where it stopped, and exits with 1', async () => {
  const { dir, tasks } = await aLog([WORK]);
  const [task = ''] = tasks;
  const override = [`llm:${task}.llm1={"text":"read readme"}`];
  const { out, code } = await typed(() => replayTask(task, { data: dir, override, visibility: 'public' }));
  expect(code).toBe(1);
  expect(out).toContain(`replay_dependency_unavailable: the replay depends on host mcp:demo:${task}.call1`);
  const from = await typed(() => replayTask(task, { data: dir, from: 'evt_0000000000000012' }));
  expect([from.code, from.err]).toEqual([0, '']);
});
