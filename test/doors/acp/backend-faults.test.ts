/** Agents that misbehave, go away or never answer: the task ends, says why, and nothing of them is left. */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { ToolResult } from '../../../src/model/actions.ts';
import { openAgentGateway } from '../../support/acp/agent-gateway.ts';
import { openEditor } from '../../support/acp/client.ts';
import { ana } from '../../support/gateway/actors.ts';
import { latch } from '../../support/gateway/agents.ts';
import { of } from '../../support/gateway/test-gateway.ts';
import { countingTools } from '../../support/gateway/tools.ts';

const say = (text: string) => ({ say: text });

test('an agent that dies at work fails its task, with what it had said, and the next one starts another', async () => {
  const at = await openAgentGateway();
  const task = await at.run([say('so far'), { exit: 3 }]);
  expect(task.failure).toEqual({ code: 'upstream_unavailable', message: 'the agent scripted exited with 3' });
  const events = await at.t.events(task.id);
  expect(of(events, 'agent.message')).toHaveLength(1);
  expect((await at.run('again')).status).toBe('COMPLETED');
  expect(at.notes('pid')).toHaveLength(2);
  expect(at.alive()).toHaveLength(1);
});

test('one killed from outside is the same', async () => {
  const at = await openAgentGateway();
  const task = await at.run([{ kill: 'SIGKILL' }, { hang: true }]);
  expect(task.failure).toEqual({
    code: 'upstream_unavailable',
    message: 'the agent scripted was ended by SIGKILL',
  });
  expect(at.alive()).toEqual([]);
});

test('a question still open when its agent dies is withdrawn', async () => {
  const at = await openAgentGateway();
  const toolCall = { toolCallId: 'x', title: 'x', kind: 'execute' };
  const options = [{ optionId: 'go', name: 'Allow', kind: 'allow_once' }];
  const task = await at.task([{ ask: 'session/request_permission', params: { toolCall, options } }]);
  await at.t.asks(task.id);
  process.kill(Number(at.notes('pid')[0]), 'SIGKILL');
  expect((await at.t.until(task.id)).status).toBe('FAILED');
  const [closed] = of(await at.t.events(task.id), 'vendor.tollbridge.ask_closed');
  expect(closed?.payload).toMatchObject({ state: 'canceled' });
});

describe('a question the agent takes back', () => {
  const file = (dir: string, name: string) => join(dir, name);
  const toolCall = { toolCallId: 'x', title: 'x', kind: 'execute' };
  const options = [{ optionId: 'go', name: 'Allow', kind: 'allow_once' }];
  const called = { outcome: { outcome: 'cancelled' }, _meta: { tollbridge: { reason: expect.any(String) } } };

  test.each([
    ['a permission', () => ['session/request_permission', { toolCall, options }], called],
    ['a form', () => ['elicitation/create', { mode: 'form', message: 'which?' }], { action: 'cancel' }],
    ['a file', (dir: string) => ['fs/write_text_file', { path: file(dir, 'a'), content: 'x' }], { code: 1403 }],
  ] as const)('%s: closed at once, everywhere, and the turn goes on', async (_, step, answer) => {
    const at = await openAgentGateway();
    const [ask, params] = step(at.dir) as [string, object];
    const now = file(at.dir, 'now');
    const editor = await openEditor(at.t);
    const sessionId = await editor.session(at.dir);
    const done = editor.prompt(sessionId, JSON.stringify([{ ask, params, takeBackWhen: now }, { say: 'on' }]));
    const question = await editor.next(({ id, method }) => id !== undefined && method !== undefined);
    writeFileSync(now, '');
    expect((await editor.next(({ method }) => method === '$/cancel_request')).params).toEqual({
      requestId: question.id,
    });
    const { stopReason, _meta } = await done;
    expect(stopReason).toBe('end_turn');
    expect(at.notes('answer').map((text) => JSON.parse(text))).toMatchObject([answer]);
    const events = await at.t.events(_meta.tollbridge.taskId);
    expect(of(events, 'vendor.tollbridge.ask_closed')).toMatchObject([
      {
        actor: 'agent:scripted',
        payload: { state: 'canceled', reason: 'the client that asked took the question back' },
      },
    ]);
    expect(existsSync(file(at.dir, 'a'))).toBe(false);
  });
});

test('a cancel reaches the agent, and its answer ends the task', async () => {
  const at = await openAgentGateway();
  const task = await at.task([{ untilCanceled: true }]);
  await at.t.seen(task.id, 'vendor.acp.connected');
  await at.t.send('task.cancel', { task_id: task.id, reason: 'enough' });
  expect((await at.t.until(task.id)).status).toBe('CANCELED');
  expect(at.notes()).toContain('cancel');
  expect(at.alive()).toHaveLength(1);
});

test('an agent that answers a cancel with an error was canceled all the same', async () => {
  const at = await openAgentGateway({ agent: { cancelError: true } });
  const task = await at.task([{ untilCanceled: true }]);
  await at.t.seen(task.id, 'vendor.acp.connected');
  await at.t.send('task.cancel', { task_id: task.id });
  const ended = await at.t.until(task.id);
  expect([ended.status, ended.failure]).toEqual(['CANCELED', null]);
});

test('one that does not heed a cancel is ended with everything it started', async () => {
  const at = await openAgentGateway({
    agent: { ignoreCancel: true, ignoreEnd: true, ignoreTerm: true },
    config: { timeouts: { cancel_ms: 50, grace_ms: 50 } },
  });
  const task = await at.task([{ spawn: 'here' }, { spawn: 'detached' }, say('spawned'), { hang: true }]);
  await at.t.seen(task.id, 'vendor.tollbridge.message_delta');
  expect(at.alive()).toHaveLength(3);
  await at.t.send('task.cancel', { task_id: task.id });
  expect((await at.t.until(task.id)).status).toBe('CANCELED');
  await at.backend.close?.();
  expect(at.alive()).toEqual([]);
});

test('one that ignores the end of its input and SIGTERM is killed when its session is over', async () => {
  const at = await openAgentGateway({
    agent: { ignoreEnd: true, ignoreTerm: true },
    config: { timeouts: { grace_ms: 50 } },
  });
  await at.run([{ spawn: 'detached' }, say('done')]);
  expect(at.alive()).toHaveLength(2);
  await at.backend.release?.(at.room.session);
  expect(at.alive()).toEqual([]);
});

/** Longer than a busy machine takes from one step of these tests to the next: only the silence they are about is a stall. */
const STALL_MS = 800;
const timeouts = { stall_ms: STALL_MS, grace_ms: 50 };
/** Once this is over, silence that counted would have ended the task. */
const outlastTheStall = () => new Promise((resolve) => setTimeout(resolve, STALL_MS * 1.6));

test('silence while it works is a stall; silence while something is done for it is not', async () => {
  const rules = '- { id: t, when: { kind: terminal }, then: allow, say: fine }';
  const at = await openAgentGateway({ rules, config: { timeouts } });
  const task = await at.run([{ terminal: { command: 'sleep', args: ['1.5'] } }, { hang: true }]);
  expect(of(await at.t.events(task.id), 'tool.completed')).toHaveLength(1);
  expect(task.failure).toEqual({
    code: 'upstream_unavailable',
    message: 'the agent scripted has not said a word for too long',
  });
  await at.backend.close?.();
  expect(at.alive()).toEqual([]);
});

test('a question about its work that came through another door is waited for, and silence after it is a stall', async () => {
  const at = await openAgentGateway({ config: { timeouts } });
  const task = await at.task([{ hang: true }]);
  await at.t.seen(task.id, 'vendor.acp.connected');
  const action = { kind: 'tool', tool: 'mail', tool_call_id: 'm1', effect: 'send' } as const;
  const proposed = at.t.send('action.propose', { task_id: task.id, action });
  const [ask] = await at.t.asks(task.id);
  await outlastTheStall();
  expect(await at.t.bridge.view(ana, 'task', task.id)).toMatchObject({ status: 'AUTH_REQUIRED' });
  await at.t.answer(ask!.id, { approved: true });
  expect((await proposed).decision?.verdict).toBe('allow');
  expect((await at.t.until(task.id)).failure?.message).toContain('has not said a word');
});

describe('a call it made through another door', () => {
  async function hanging() {
    const at = await openAgentGateway({
      rules: '- { id: slow, when: { tool: slow }, then: allow }',
      config: { timeouts },
    });
    const done = latch<ToolResult>();
    const run = () => done.promise;
    // Opened before the agent has its work: a gateway takes a while to open, and the silence meanwhile would count.
    const other = await at.t.second({ agents: [], tools: [countingTools({ slow: { run } })] });
    const task = await at.task([{ hang: true }]);
    await at.t.seen(task.id, 'vendor.acp.connected');
    const action = { kind: 'tool', tool: 'slow', tool_call_id: 'c1' } as const;
    const called = other.send('tool.call', { task_id: task.id, action });
    called.catch(() => {});
    await at.t.seen(task.id, 'tool.requested');
    await outlastTheStall();
    expect(await at.t.bridge.view(ana, 'task', task.id)).toMatchObject({ status: 'WORKING' });
    return { at, task, done, other, called };
  }

  test('is no silence while it runs, and silence after it is a stall', async () => {
    const { at, task, done, called } = await hanging();
    done.open({ status: 'ok', output: 'done' });
    expect((await called).act).toMatchObject({ kind: 'done' });
    expect((await at.t.until(task.id)).failure?.message).toContain('has not said a word');
  });

  test('is silence once the process that ran it is gone', async () => {
    const { at, task, other } = await hanging();
    await other.close();
    expect((await at.t.until(task.id)).failure?.message).toContain('has not said a word');
  });
});

test.each([
  ['there is no such program', { command: ['/nowhere/at/all'] }, {}, /could not start \/nowhere\/at\/all/],
  ['it speaks another version', {}, { version: 7 }, /speaks version 7/],
  ['it never says hello', { timeouts: { start_ms: 300, grace_ms: 50 } }, { hangAtStart: true }, /in time/],
  ['it wants a login', {}, { wantsLogin: true, authMethods: [{ id: 'key', name: 'Key' }] }, /set auth_method.*key/],
  ['it has no such mode', { mode: 'yolo' }, {}, /has no mode yolo/],
])('%s: the task fails and says so', async (_, config, agent, message) => {
  const at = await openAgentGateway({ config, agent });
  const task = await at.run('hello');
  expect(task.failure?.code).toBe('upstream_unavailable');
  expect(task.failure?.message).toMatch(message);
  await at.backend.close?.();
  expect(at.alive()).toEqual([]);
});

test('a login and a mode the configuration names are used', async () => {
  const at = await openAgentGateway({
    agent: {
      wantsLogin: true,
      authMethods: [{ id: 'key', name: 'Key' }],
      modes: { currentModeId: 'default', availableModes: [{ id: 'plan', name: 'Plan' }] },
    },
    config: { auth_method: 'key', mode: 'plan' },
  });
  expect((await at.run('hello')).status).toBe('COMPLETED');
  expect(at.notes('mode')).toEqual(['plan']);
});

test.each([
  ['max_tokens', 'FAILED', 'budget_exhausted'],
  ['max_turn_requests', 'FAILED', 'budget_exhausted'],
  ['refusal', 'FAILED', 'refused'],
  ['cancelled', 'CANCELED', undefined],
  ['completed', 'COMPLETED', undefined],
  ['went_well_i_think', 'FAILED', 'unknown_stop_reason'],
])('a turn that stops as %s is %s', async (stopReason, status, code) => {
  const at = await openAgentGateway();
  const task = await at.run([say('x'), { result: { stopReason } }]);
  expect([task.status, task.failure?.code]).toEqual([status, code]);
});

test('an error of the agent is recorded in its words, without the data it attached', async () => {
  const at = await openAgentGateway();
  const task = await at.run([{ error: { code: 1001, message: 'out of luck', data: { token: 'hush' } } }]);
  expect(task.failure).toEqual({ code: 'upstream_error', message: 'out of luck', details: { code: 1001 } });
});

test('stray output, nonsense frames and answers to nobody are passed over', async () => {
  const at = await openAgentGateway({ agent: { stray: true } });
  const task = await at.run([
    { line: '{"jsonrpc":"2.0"' },
    { line: '[{"jsonrpc":"2.0","method":"session/update"}]' },
    { frame: { jsonrpc: '2.0', id: 77, result: {} } },
    { frame: { jsonrpc: '2.0', method: 'session/update', params: { update: 'not an object' } } },
    { frame: { jsonrpc: '2.0', method: '_someone/else', params: {} } },
    { ask: '_someone/asks' },
    say(' and on'),
  ]);
  expect(task.status).toBe('COMPLETED');
  expect(at.notes('answer')).toEqual(['{"code":-32601,"message":"there is no method _someone/asks here"}']);
});

test('files outside the workspace are refused, also through a link and by way of dots', async () => {
  const at = await openAgentGateway();
  mkdirSync(join(at.dir, 'in'));
  writeFileSync(join(at.dir, 'in', 'a.txt'), 'a');
  symlinkSync('/etc', join(at.dir, 'in', 'etc'));
  const read = (path: string) => ({ ask: 'fs/read_text_file', params: { path }, quiet: true });
  await at.run([
    read('/etc/hostname'),
    read(`${at.dir}/in/etc/hostname`),
    read(`${at.dir}/../../etc/hostname`),
    read('relative.txt'),
    read(join(at.dir, 'in', 'absent.txt')),
    read(join(at.dir, 'in', 'a.txt')),
  ]);
  const answers = at.notes('answer').map((line) => JSON.parse(line));
  expect(answers.map(({ code, content }) => code ?? content)).toEqual([1403, 1403, 1403, -32602, -32002, 'a']);
});

test('a terminal left running ends with its task', async () => {
  const rules = '- { id: t, when: { kind: terminal }, then: allow, say: fine }';
  const at = await openAgentGateway({ rules, config: { timeouts: { grace_ms: 50 } } });
  const task = await at.run([
    { terminal: { command: 'sh', args: ['-c', 'echo $$ > pid; exec sleep 60'] }, abandon: true },
  ]);
  expect(task.status).toBe('COMPLETED');
  const [receipt] = await at.t.receipts(task.id);
  expect(receipt?.side_effects.tool_calls).toHaveLength(1);
  await at.backend.close?.();
  expect(at.alive()).toEqual([]);
});

test('only the variables that are named reach the agent, and secrets by their names in a vault', async () => {
  process.env.TOLLBRIDGE_TEST_SECRET = 'ours alone';
  const hidden = await openAgentGateway({ agent: { env: 'TOLLBRIDGE_TEST_SECRET' } });
  await hidden.run('x');
  delete process.env.TOLLBRIDGE_TEST_SECRET;
  expect(hidden.notes('env')).toEqual(['TOLLBRIDGE_TEST_SECRET=']);
  const at = await openAgentGateway({
    agent: { env: 'API_KEY' },
    config: { env: { API_KEY: 'model-key' } },
    secrets: { 'model-key': 'sk-123' },
  });
  await at.run('x');
  expect(at.notes('env')).toEqual(['API_KEY=sk-123']);
});

test('after a restart an agent that can load is given its session back; one that cannot receives the past messages', async () => {
  const memory = join((await openAgentGateway()).dir, 'memory');
  const able = await openAgentGateway({ agent: { memory, can: { loadSession: true } } });
  await able.run('first');
  await able.backend.release?.(able.room.session);
  const second = await able.run('second');
  expect(able.notes('session/load')).toHaveLength(1);
  expect(able.notes('prompt').map((line) => JSON.parse(line))[1]).toEqual([{ type: 'text', text: 'second' }]);
  // What it replayed while it loaded was written down the first time.
  expect(JSON.stringify(await able.t.events(second.id))).not.toContain('an old word');

  const unable = await openAgentGateway();
  await unable.run('first');
  await unable.backend.release?.(unable.room.session);
  await unable.run('second');
  expect(unable.notes('prompt').map((line) => JSON.parse(line))[1]).toEqual([
    { type: 'text', text: 'What was said before in this conversation:\n\nuser: first\n\nassistant: you said: first' },
    { type: 'text', text: 'second' },
  ]);
});

test('a session that is quiet for long lets its process go', async () => {
  const at = await openAgentGateway({ config: { timeouts: { idle_ms: 50, grace_ms: 50 } } });
  await at.run('x');
  await vi.waitFor(() => expect(at.alive()).toEqual([]), { timeout: 5_000 });
  expect((await at.run('y')).status).toBe('COMPLETED');
});
