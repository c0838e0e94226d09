/** An agent of the Agent Client Protocol as an agent of the gateway: real processes, real lines. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openAgentGateway } from '../../support/acp/agent-gateway.ts';
import { kinds, of, states } from '../../support/gateway/test-gateway.ts';

const chunk = (text: string, more = {}) => ({
  update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, ...more },
});

test('a prompt goes out, text streams back, and the task completes', async () => {
  const at = await openAgentGateway();
  const task = await at.run([chunk('Hel'), chunk('lo.')]);
  const events = await at.t.events(task.id);
  expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
  expect(of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text)).toEqual(['Hel', 'lo.']);
  const [message] = of(events, 'agent.message').map(({ payload }) => payload.message);
  expect(message).toMatchObject({
    id: `${task.id}.m1`,
    role: 'assistant',
    parts: [{ type: 'text', text: 'Hello.', visibility: 'public' }],
  });
  expect(of(events, 'vendor.acp.connected')[0]?.payload).toMatchObject({
    agent: 'scripted',
    name: 'scripted',
    version: '1.2.3',
    remembers: false,
  });
  const [opened] = at.notes('new').map((line) => JSON.parse(line));
  expect(opened).toEqual({ cwd: at.dir, mcpServers: [] });
});

test('one process serves all tasks of a session, and ends with it', async () => {
  const at = await openAgentGateway();
  await at.run('one');
  await at.run('two');
  expect(at.notes('pid')).toHaveLength(1);
  expect(at.notes('prompt').map((line) => JSON.parse(line))).toEqual([
    [{ type: 'text', text: 'one' }],
    [{ type: 'text', text: 'two' }],
  ]);
  expect(at.alive()).toHaveLength(1);
  await at.t.send('session.close', { session_id: at.room.session });
  await at.backend.close?.();
  expect(at.alive()).toEqual([]);
});

test('updates that precede the result are in the log before the end, however many', async () => {
  const at = await openAgentGateway();
  const many = Array.from({ length: 200 }, (_, n) => chunk(`${n} `));
  const task = await at.run(many);
  const events = await at.t.events(task.id);
  const texts = of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text);
  expect(texts).toEqual(Array.from({ length: 200 }, (_, n) => `${n} `));
  expect(kinds(events).at(-1)).toBe('task.completed');
});

test('a tool nobody was asked about is on record as reported', async () => {
  const at = await openAgentGateway();
  const id = 'call-1';
  const task = await at.run([
    { update: { sessionUpdate: 'tool_call', toolCallId: id, title: 'Look around', kind: 'search', name: 'grep' } },
    {
      update: { sessionUpdate: 'tool_call_update', toolCallId: id, status: 'in_progress', rawInput: { pattern: 'x' } },
    },
    { update: { sessionUpdate: 'tool_call_update', toolCallId: id, status: 'completed', rawOutput: { hits: 3 } } },
  ]);
  const events = await at.t.events(task.id);
  expect(of(events, 'tool.requested').map(({ payload }) => payload)).toEqual([
    { tool_call_id: id, name: 'grep', kind: 'tool', input: { pattern: 'x' }, effect: 'read', evidence: 'observed' },
  ]);
  expect(of(events, 'tool.completed').map(({ payload }) => payload)).toEqual([
    { tool_call_id: id, name: 'grep', status: 'ok', output: { hits: 3 }, outcome: 'succeeded' },
  ]);
  const [receipt] = await at.t.receipts(task.id);
  expect(receipt?.side_effects.tool_calls[0]).toMatchObject({
    tool: 'grep',
    status: 'succeeded',
    metadata: { evidence: 'observed' },
  });
});

const OPTIONS = [
  { optionId: 'forever', name: 'Always', kind: 'allow_always' },
  { optionId: 'go', name: 'Allow', kind: 'allow_once' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
];
const ask = (toolCall: object, options: object[] = OPTIONS) => ({
  ask: 'session/request_permission',
  params: { toolCall, options },
});
const shell = { toolCallId: 'sh', title: 'rm -rf build', kind: 'execute', rawInput: { command: 'rm -rf build' } };

test('what a rule allows is allowed once, never for good, and nobody is asked', async () => {
  const rules = '- { id: shell, when: { effect: execute }, then: allow, say: shells are fine }';
  const at = await openAgentGateway({ rules });
  const task = await at.run([
    ask(shell),
    { update: { sessionUpdate: 'tool_call_update', toolCallId: 'sh', status: 'completed' } },
  ]);
  expect(at.notes('answer').map((line) => JSON.parse(line))).toEqual([
    { outcome: { outcome: 'selected', optionId: 'go' }, _meta: { tollbridge: { reason: 'shells are fine' } } },
  ]);
  const events = await at.t.events(task.id);
  expect(of(events, 'tool.requested').map(({ payload }) => [payload.name, payload.evidence])).toEqual([
    ['execute', 'asked'],
  ]);
  expect(of(events, 'vendor.tollbridge.ask_opened')).toEqual([]);
  expect(of(events, 'tool.completed')).toHaveLength(1);
});

test('what a rule blocks is rejected, and an agent that never mentions it again leaves nothing open', async () => {
  const rules = '- { id: shell, when: { effect: execute }, then: block, say: no shells here }';
  const at = await openAgentGateway({ rules });
  const task = await at.run([ask(shell)]);
  const said =
    '{"outcome":{"outcome":"selected","optionId":"no"},"_meta":{"tollbridge":{"reason":"no shells here","rule":"shell"}}}';
  expect(at.notes('answer')).toEqual([said]);
  const events = await at.t.events(task.id);
  expect(of(events, 'tool.denied').map(({ payload }) => payload.reason)).toEqual(['no shells here']);
  expect(of(events, 'tool.failed')).toEqual([]);
  expect(task.status).toBe('COMPLETED');
  // Its model was told that the user refused; with the next prompt it is told who did.
  await at.run('and now?');
  const [, next = ''] = at.notes('prompt');
  expect(next).toContain(
    'the user did not refuse these calls.\\n- rm -rf build: Refused by rule shell: no shells here',
  );
  expect(next).toContain('and now?');
});

test('an agent that passes errors on to its model gets a refusal as one, with rule and reason', async () => {
  const rules = '- { id: shell, when: { effect: execute }, then: block, say: no shells here }';
  const at = await openAgentGateway({ rules, agent: { info: { name: 'gemini-cli', version: '1' } } });
  await at.run([ask(shell)]);
  await at.run('and now?');
  expect(at.notes('answer').map((line) => JSON.parse(line))).toMatchObject([
    { code: 1403, message: 'Refused by rule shell: no shells here' },
  ]);
  expect(at.notes('prompt').at(-1)).not.toContain('did not refuse');
});

test('a person is asked when no rule says, with what the agent reported of the call before', async () => {
  const at = await openAgentGateway();
  const task = await at.task([
    { update: { sessionUpdate: 'tool_call', ...shell, status: 'pending' } },
    ask({ toolCallId: 'sh' }),
  ]);
  const [question] = await at.t.asks(task.id);
  expect(question?.action).toMatchObject({
    tool: 'execute',
    target: 'rm -rf build',
    effect: 'execute',
    arguments: { command: 'rm -rf build' },
  });
  await at.t.answer(question!.id, { approved: true });
  await at.t.until(task.id);
  expect(at.notes('answer')).toEqual(['{"outcome":{"outcome":"selected","optionId":"go"}}']);
});

test('a no of a person is a rejection; without an option for it, the question is called off', async () => {
  const at = await openAgentGateway();
  const task = await at.task([
    ask(shell),
    ask({ ...shell, toolCallId: 'sh2' }, [{ optionId: 'go', name: 'Allow', kind: 'allow_once' }]),
  ]);
  for (const _ of [1, 2]) {
    const [question] = await at.t.asks(task.id);
    await at.t.answer(question!.id, { approved: false, reason: 'not today' });
  }
  await at.t.until(task.id);
  expect(at.notes('answer').map((line) => JSON.parse(line).outcome)).toEqual([
    { outcome: 'selected', optionId: 'no' },
    { outcome: 'cancelled' },
  ]);
});

test('a yes that only a lasting grant could carry is a no, whatever the rules say', async () => {
  const rules = '- { id: shell, when: { effect: execute }, then: allow, say: shells are fine }';
  const at = await openAgentGateway({ rules });
  const lasting = OPTIONS.filter(({ kind }) => kind !== 'allow_once');
  const task = await at.run([ask(shell, lasting)]);
  expect(at.notes('answer')).toEqual(['{"outcome":{"outcome":"selected","optionId":"no"}}']);
  const [failed] = of(await at.t.events(task.id), 'tool.failed');
  expect(failed?.payload).toMatchObject({ tool_call_id: 'sh', code: 'lasting_grant_only' });
});

test('files go through the gate: read by hash, written whole, and reported once', async () => {
  const rules = '- { id: files, when: { kind: [fs.read, fs.write] }, then: allow, say: files are fine }';
  const at = await openAgentGateway({ rules });
  const note = join(at.dir, 'note.txt');
  writeFileSync(note, 'one\ntwo\nthree\n');
  const task = await at.run([
    { ask: 'fs/read_text_file', params: { path: note, line: 2, limit: 1 } },
    { ask: 'fs/write_text_file', params: { path: join(at.dir, 'new', 'b.txt'), content: 'hi' } },
    {
      update: {
        sessionUpdate: 'tool_call',
        toolCallId: 'w',
        title: 'write',
        kind: 'edit',
        status: 'completed',
        content: [{ type: 'diff', path: join(at.dir, 'new', 'b.txt'), oldText: null, newText: 'hi' }],
      },
    },
  ]);
  expect(at.notes('answer')).toEqual(['{"content":"two"}', '{}']);
  expect(readFileSync(join(at.dir, 'new', 'b.txt'), 'utf8')).toBe('hi');
  const events = await at.t.events(task.id);
  expect(of(events, 'tool.completed')[0]?.payload).toMatchObject({
    name: 'fs.read',
    output: { sha256: 'sha256:b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2', bytes: 14 },
  });
  expect(JSON.stringify(events)).not.toContain('three');
  const [receipt] = await at.t.receipts(task.id);
  expect(receipt?.side_effects.fs_writes).toEqual([
    {
      path: 'new/b.txt',
      operation: 'create',
      before_sha256: null,
      after_sha256: 'sha256:8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4',
    },
  ]);
});

test('a command runs through the gate and its output is kept; one that is not let through says why', async () => {
  const rules = `
- { id: echo, when: { kind: terminal, target: 'echo*' }, then: allow, say: echoes are fine }
- { id: rest, when: { kind: terminal, target: 'rm*' }, then: block, say: nothing is removed }`;
  const at = await openAgentGateway({ rules });
  const task = await at.run([
    { terminal: { command: 'echo', args: ['out', 'and out'] } },
    { terminal: { command: 'echo said >&2; exit 3' } },
    { terminal: { command: 'rm', args: ['-rf', '/'] } },
  ]);
  const said = of(await at.t.events(task.id), 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text);
  expect(said.map((text) => JSON.parse(String(text)))).toEqual([
    { exitCode: 0, signal: null, output: 'out and out\n', truncated: false },
    { exitCode: 3, signal: null, output: 'said\n', truncated: false },
    { exitCode: 126, signal: null, output: 'not allowed: nothing is removed\n', truncated: false },
  ]);
  const [receipt] = await at.t.receipts(task.id);
  expect(receipt?.side_effects.tool_calls.map(({ status, metadata }) => [status, metadata?.evidence])).toEqual([
    ['succeeded', 'held'],
    ['failed', 'held'],
    ['canceled', 'held'],
  ]);
  expect(receipt?.final_artifacts.map(({ kind }) => kind)).toEqual(['log', 'log']);
});
