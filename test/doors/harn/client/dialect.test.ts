/** Our client against a server that keeps less of the protocol than it should, as real ones do. */
import { describe, expect, test } from 'vitest';
import { harnBackend } from '../../../../adapters/harn/client/backend.ts';
import type { HarnBackendConfig } from '../../../../adapters/harn/client/config.ts';
import { readUpdate } from '../../../../adapters/harn/client/session-updates.ts';
import { createUpdateReader, toCoreEnd } from '../../../../adapters/harn/client/translate.ts';
import type { Message } from '../../../../src/model/resources.ts';
import type { AgentBackend, Row } from '../../../../src/ports/index.ts';
import { readSse } from '../../../../src/transport/sse/read.ts';
import { of, openTestGateway, says, states, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { type Dialect, openDialect } from '../../../support/harn/dialect.ts';

const OPEN = '[{ id: all, then: allow }]';
const ASK = '[{ id: all, then: allow }, { id: writes, when: { tool: "write*" }, then: ask, say: a person decides }]';
const real = { now: () => new Date().toISOString() };
const quiet = { info() {}, warn() {}, error() {} };

function remoteAgent(url: string, more: Partial<HarnBackendConfig> = {}): AgentBackend {
  const timeouts = { poll_ms: 50, silence_ms: 2000, cancel_ms: 1000, ...more.timeouts };
  const config = { url, name: 'far', ...more, timeouts };
  return harnBackend(config, { log: quiet, clock: real, secret: async () => 'x' });
}

async function open({ rules = OPEN, client = {} }: { rules?: string; client?: Partial<HarnBackendConfig> } = {}) {
  const far = await openDialect();
  const near = await openTestGateway({ agents: [remoteAgent(far.url, client)], rules, clock: real });
  const room = await near.room();
  const give = async (text: string) => {
    const { id } = await room.task({ input: says(text) });
    await far.input();
    return id;
  };
  return { far, near, room, give };
}

const chunk = (text: string) => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
const call = (toolCallId: string, title: string, more = {}) => ({
  sessionUpdate: 'tool_call',
  toolCallId,
  title,
  ...more,
});
const ended = (toolCallId: string, status: string, more = {}) => ({
  sessionUpdate: 'tool_call_update',
  toolCallId,
  status,
  ...more,
});

async function said(near: TestGateway, session: string): Promise<string[]> {
  const messages = await near.runtime.store.list<Message & Row>({ object: 'message', where: { session_id: session } });
  return messages.filter(({ role }) => role !== 'user').map(({ parts }) => (parts[0] as { text: string }).text);
}

const answers = (far: Dialect) => far.posted.filter(({ path }) => path.endsWith('/respond')).map(({ body }) => body);

describe('work', () => {
  test('what its agent streams becomes pieces and then messages; thoughts are not kept', async () => {
    const { far, near, room, give } = await open();
    const id = await give('hello');
    far.update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'hmm' } });
    for (const text of ['Hel', 'lo ', 'there']) far.update(chunk(text));
    far.update(call('c1', 'read_file', { kind: 'read', rawInput: { path: 'a.txt' } }));
    far.update(ended('c1', 'completed', { title: 'read_file', rawOutput: { text: 'A' } }));
    far.update(chunk('Done.'));
    far.becomes('COMPLETED');
    expect((await near.until(id)).status).toBe('COMPLETED');
    expect(await said(near, room.session)).toEqual(['Hello there', 'Done.']);
    const events = await near.events(id);
    expect(JSON.stringify(events)).not.toContain('hmm');
    expect(of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text)).toEqual([
      'Hel',
      'lo ',
      'there',
      'Done.',
    ]);
    expect(of(events, 'tool.requested').map(({ payload }) => payload)).toMatchObject([
      { tool_call_id: 'c1', name: 'read_file', input: { path: 'a.txt' }, evidence: 'observed', effect: 'unknown' },
    ]);
    expect(of(events, 'tool.completed').map(({ payload }) => payload.output)).toEqual([{ text: 'A' }]);
    expect(of(events, 'agent.handoff').map(({ payload }) => payload.status)).toEqual(['accepted', 'completed']);
  });

  test('whole messages and plans are taken as they are', async () => {
    const { far, near, room, give } = await open();
    const id = await give('hello');
    far.update({ sessionUpdate: 'plan', entries: [{ content: 'look', status: 'pending' }] });
    const parts = [{ type: 'text', text: 'whole', visibility: 'public' }];
    far.tell('message.created', { id: 'm1', object: 'message', role: 'assistant', parts });
    far.tell('message.created', { id: 'm2', object: 'message', role: 'user', parts });
    far.tell('session.updated', { id: 's1' });
    far.becomes('COMPLETED');
    await near.until(id);
    expect(await said(near, room.session)).toEqual(['whole']);
    expect(of(await near.events(id), 'vendor.tollbridge.plan')).toHaveLength(1);
  });

  test('a failure without words is still a failure', async () => {
    const { far, near, give } = await open();
    const id = await give('hello');
    far.becomes('FAILED');
    expect((await near.until(id)).failure).toMatchObject({ code: 'remote_failed' });
  });

  test('a state we have never met is not success, and does not last forever', async () => {
    const { far, near, give } = await open({ client: { timeouts: { silence_ms: 400 } } });
    const id = await give('hello');
    far.becomes('SPLENDID');
    const task = await near.until(id);
    expect([task.status, task.failure?.message]).toEqual(['FAILED', 'the remote stayed in the unknown state SPLENDID']);
    expect(of(await near.events(id), 'vendor.tollbridge.note')[0]?.payload.status).toBe('SPLENDID');
  });

  test('a task that vanished has failed', async () => {
    const { far, near, give } = await open();
    const id = await give('hello');
    far.tasks.clear();
    far.cut();
    expect((await near.until(id)).failure?.code).toBe('not_found');
  });

  test('history reported again after a break is not reported twice', async () => {
    const { far, near, room, give } = await open();
    const id = await give('hello');
    far.update(chunk('one '));
    await near.seen(id, 'vendor.tollbridge.message_delta');
    far.cut();
    far.update(chunk('two'));
    far.becomes('COMPLETED');
    await near.until(id);
    expect(await said(near, room.session)).toEqual(['one two']);
  });

  test('cancel', async () => {
    const { far, near, give } = await open();
    const id = await give('hello');
    await near.send('task.cancel', { task_id: id });
    expect((await near.until(id)).status).toBe('CANCELED');
    expect([...far.tasks.values()].map(({ status }) => status)).toEqual(['CANCELED']);
  });

  test('steering falls back to the session where the task takes none', async () => {
    const { far, near, give } = await open();
    const id = await give('hello');
    const message = { role: 'user' as const, parts: [{ type: 'text', text: 'faster', visibility: 'public' }] };
    await near.send('task.message', { task_id: id, kind: 'interrupt', message });
    await expect.poll(() => far.posted.some(({ path }) => /^\/v1\/sessions\/\w+\/messages$/.test(path))).toBe(true);
    far.becomes('COMPLETED');
    await near.until(id);
  });

  test('there is no receipt to be had: the task completes, unless one is required', async () => {
    for (const [receipts, status] of [
      ['checked', 'COMPLETED'],
      ['required', 'FAILED'],
    ] as const) {
      const { far, near, give } = await open({ client: { receipts } });
      const id = await give('hello');
      far.becomes('COMPLETED');
      expect((await near.until(id)).status).toBe(status);
    }
  });
});

describe('questions', () => {
  const permission = {
    source: 'acp',
    request: { toolCall: { toolCallId: 'c1', title: 'write_file', rawInput: { path: 'a' } }, options: [] },
  };

  test.each([true, false])('a relayed permission question is a question for us: %s', async (approved) => {
    const { far, near, give } = await open({ rules: ASK });
    const id = await give('hello');
    far.update(call('c1', 'write_file', { rawInput: { path: 'a' } }));
    far.asks('p1', permission);
    const [ask] = await near.asks(id);
    expect(ask).toMatchObject({ kind: 'approval', tool_call_id: 'c1', action: { tool: 'write_file' } });
    await near.answer(ask!.id, { approved, reason: 'so be it' });
    await expect.poll(() => answers(far)).toMatchObject([{ approved, reviewer: 'ana', reason: 'so be it' }]);
    far.becomes('COMPLETED');
    await near.until(id);
    const events = await near.events(id);
    expect(of(events, 'tool.requested')).toHaveLength(1);
    expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'WORKING', 'COMPLETED']);
  });

  test('a person’s question is a question for us', async () => {
    const { far, near, give } = await open();
    const id = await give('hello');
    far.asks('p1', { source: 'hitl', request: { kind: 'ask_user', prompt: 'How many?' } });
    const [ask] = await near.asks(id);
    expect(ask).toMatchObject({ kind: 'input', question: 'How many?' });
    await near.answer(ask!.id, { value: 3 });
    await expect.poll(() => answers(far)).toEqual([{ answer: 3, reviewer: 'ana' }]);
    far.becomes('COMPLETED');
    await near.until(id);
  });

  test('a request for approval by a person is one here', async () => {
    const rules = '[{ id: all, then: allow }, { id: deploys, when: { tool: deploy }, then: ask, say: people decide }]';
    const { far, near, give } = await open({ rules });
    const id = await give('hello');
    far.asks('p1', {
      source: 'hitl',
      request: { kind: 'request_approval' },
      action: { tool: 'deploy', arguments: { to: 'x' } },
    });
    const [ask] = await near.asks(id);
    expect(ask?.action).toMatchObject({ tool: 'deploy', arguments: { to: 'x' } });
    await near.answer(ask!.id, { approved: false, reason: 'no' });
    await expect.poll(() => answers(far)).toMatchObject([{ approved: false, reason: 'no' }]);
    far.becomes('COMPLETED');
    await near.until(id);
  });

  test('without a list of questions the task is answered by a message', async () => {
    const { far, near, give } = await open();
    far.permissions = false;
    const id = await give('hello');
    far.becomes('INPUT_REQUIRED');
    const [ask] = await near.asks(id);
    await near.answer(ask!.id, { value: 'forty-two' });
    await expect
      .poll(() => far.posted.filter(({ path }) => /^\/v1\/tasks\/\w+\/messages$/.test(path)).map(({ body }) => body))
      .toEqual([
        {
          kind: 'input',
          message: { role: 'user', parts: [{ type: 'text', text: 'forty-two', visibility: 'public' }] },
        },
      ]);
    far.becomes('COMPLETED');
    await near.until(id);
  });
});

describe('without keys nothing is done twice', () => {
  test('a task whose fate is unknown is not given again', async () => {
    const { far, near, room } = await open();
    let tries = 0;
    far.instead((request, response) => {
      if (!request.url?.endsWith('/tasks') || request.method !== 'POST') return false;
      tries += 1;
      request.resume();
      request.on('end', () => response.destroy());
      return true;
    });
    const { id } = await room.task({ input: says('hello') });
    expect((await near.until(id)).failure?.code).toBe('upstream_unavailable');
    expect(tries).toBe(1);
  });

  test('after a restart of ours the task is found by our name for it', async () => {
    const { far, near, give } = await open();
    const id = await give('hello');
    far.update(chunk('one '));
    await near.seen(id, 'vendor.tollbridge.message_delta');
    const again = await near.reopen({ agents: [remoteAgent(far.url)] });
    far.update(chunk('two'));
    far.becomes('COMPLETED');
    expect((await again.until(id)).status).toBe('COMPLETED');
    expect(far.tasks.size).toBe(1);
    const events = await again.events(id);
    expect(of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text)).toEqual(['one ', 'two']);
  });

  test('a task that cannot be found again after a restart is not given again', async () => {
    const { far, near, give } = await open();
    const id = await give('hello');
    await near.seen(id, 'agent.handoff');
    for (const task of far.tasks.values()) task.metadata = {};
    const again = await near.reopen({ agents: [remoteAgent(far.url)] });
    const task = await again.until(id);
    expect([task.status, far.tasks.size]).toEqual(['FAILED', 1]);
    expect(task.failure?.message).toContain('is unknown');
  });
});

describe('reading', () => {
  test.each(['\n', '\r\n', '\r'])('an event stream with lines ended by %j', async (end) => {
    const text = [
      ': hi',
      'id: 1',
      'event: a',
      'data: {"x":',
      'data: 1}',
      '',
      'retry: 5',
      '',
      'data: last',
      '',
      '',
    ].join(end);
    for (const size of [1, 3, 1000]) {
      async function* bytes() {
        for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size));
      }
      const seen: unknown[] = [];
      for await (const message of readSse(bytes())) seen.push(message);
      expect(seen).toEqual([
        { id: '1', event: 'a', data: '{"x":\n1}' },
        { id: '1', event: 'message', data: 'last' },
      ]);
    }
  });

  test('updates that mean nothing here are passed over', () => {
    for (const sessionUpdate of ['agent_thought_chunk', 'user_message_chunk', 'available_commands_update', 'x_new']) {
      expect(readUpdate({ update: { sessionUpdate, content: { type: 'text', text: 't' } } })).toEqual({
        kind: 'other',
      });
    }
    expect(readUpdate({})).toEqual({ kind: 'other' });
  });

  test('a call that comes already ended is one that ended', () => {
    expect(readUpdate({ update: call('c', 't', { status: 'failed', rawOutput: 'broken' }) as never })).toEqual({
      kind: 'ended',
      id: 'c',
      ok: false,
      name: 't',
      output: 'broken',
      error: 'broken',
    });
  });

  test('events only a bridge may write are not repeated as facts', () => {
    const { read, end } = createUpdateReader({ id: 'task_1' });
    for (const event of [
      'task.started',
      'receipt.issued',
      'vendor.tollbridge.decided',
      'vendor.tollbridge.ask_opened',
      'tool.approved',
      'tool.denied',
      'user.message',
      'session.created',
      'replay.started',
      'branch.created',
    ]) {
      expect(read({ event, payload: {} }), event).toEqual([]);
    }
    expect(end()).toEqual([]);
  });

  test('what another vendor says is reported as theirs', () => {
    const { read } = createUpdateReader({ id: 'task_1' });
    expect(read({ id: 'e1', event: 'vendor.acme.mood', payload: { is: 'good' } })).toEqual([
      { do: 'emit', fact: { event: 'vendor.acme.mood', payload: { is: 'good' }, ext: { harn: { event_id: 'e1' } } } },
    ]);
  });
});

test.each([
  [undefined],
  [null],
  ['broken'],
  [{}],
  [{ code: 7, message: false, details: 'all of it' }],
  [{ code: '', message: '', details: [] }],
  [{ code: ['x'], message: { text: 'x' }, details: null }],
])('a failure reported as %j is one with a reason of ours', (failure) => {
  const reported = { id: 't', status: 'FAILED', failure } as unknown as Parameters<typeof toCoreEnd>[0];
  const reason = { code: 'remote_failed', message: 'the remote did not say why it failed' };
  expect(toCoreEnd(reported)).toEqual({ state: 'FAILED', failure: reason });
});
