/** Our client against our own server: every way the demo agent can go, over broken lines and restarts on both sides. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { harnBackend } from '../adapters/harn/client.ts';
import type { HarnBackendConfig } from '../adapters/harn/client-config.ts';
import { createDemoAgent } from '../src/demo/agent.ts';
import { createDemoTools, type DemoTools } from '../src/demo/tools.ts';
import type { CoreEvent } from '../src/model/events.ts';
import type { Artifact, Message } from '../src/model/resources.ts';
import type { AgentBackend, Row } from '../src/ports.ts';
import { type Door, type DoorOptions, openDoor } from './support/door.ts';
import { kinds, of, openTestHouse, says, states, type TestHouse, type TestHouseOptions } from './support/house.ts';
import { openRelay, type Relay } from './support/relay.ts';

/** There: sending mail is asked about, the rest is allowed. */
const RULES = `
- { id: all, then: allow }
- { id: mail, when: { tool: send_mail }, then: ask, say: mail is asked about }
`;
const OPEN = '[{ id: all, then: allow }]';
const real = { now: () => new Date().toISOString() };
const quiet = { info() {}, warn() {}, error() {} };

interface Two {
  readonly far: Door;
  readonly near: TestHouse;
  readonly tools: DemoTools;
  readonly relay: Relay;
  /** Gives the remote work through our house. */
  give(text: string): Promise<{ id: string; session: string }>;
  /** The remote's own record of its only task. */
  there(): Promise<{ id: string; status: string; events: string[] }>;
}

interface TwoOptions {
  readonly far?: DoorOptions;
  readonly near?: TestHouseOptions;
  readonly client?: Partial<HarnBackendConfig>;
  readonly stepMs?: number;
}

function demoAgent(stepMs = 5): AgentBackend {
  return createDemoAgent({ pause: (ms, signal) => sleep(ms, undefined, { signal }), stepMs });
}

function remoteAgent(url: string, more: Partial<HarnBackendConfig> = {}): AgentBackend {
  const config = {
    url,
    name: 'far',
    secret: 'far-token',
    ...more,
    timeouts: { poll_ms: 100, silence_ms: 5000, cancel_ms: 2000, ...more.timeouts },
  };
  return harnBackend(config, { log: quiet, clock: real, secret: async () => 'ana' });
}

async function openTwo({ far = {}, near = {}, client = {}, stepMs }: TwoOptions = {}): Promise<Two> {
  const tools = createDemoTools();
  const door = await openDoor({ agents: [demoAgent(stepMs)], tools: [tools], rules: RULES, clock: real, ...far });
  const relay = await openRelay(door.url);
  const house = await openTestHouse({ agents: [remoteAgent(relay.url, client)], rules: OPEN, clock: real, ...near });
  return {
    far: door,
    near: house,
    tools,
    relay,
    async give(text) {
      const room = await house.room();
      const { id } = await room.task({ input: says(text) });
      return { id, session: room.session };
    },
    async there() {
      const { body } = await door.call('GET', '/v1/tasks');
      const [task] = body.data;
      const events = (await door.call('GET', `/v1/tasks/${task.id}/events?limit=200`)).body.data as CoreEvent[];
      return { id: task.id, status: task.status, events: kinds(events) };
    },
  };
}

async function said({ near }: Two, session: string): Promise<string[]> {
  const list = { object: 'message', where: { session_id: session } };
  const messages = await near.house.store.list<Message & Row>(list);
  return messages.filter(({ role }) => role === 'assistant').map(({ parts }) => (parts[0] as { text: string }).text);
}

describe('what the demo agent can do, done by a remote', () => {
  test('hello: streamed, said, completed, and both receipts lead to each other', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('hello');
    const task = await two.near.until(id);
    expect(task.status).toBe('COMPLETED');
    const events = await two.near.events(id);
    expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
    expect(of(events, 'vendor.tollbridge.message_delta').length).toBeGreaterThan(3);
    expect(await said(two, session)).toEqual([
      'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.',
    ]);
    const there = await two.there();
    const handoffs = of(events, 'agent.handoff').map(({ payload }) => payload);
    expect(handoffs).toEqual([
      { target_agent: 'far', task_id: there.id, status: 'accepted' },
      { target_agent: 'far', task_id: there.id, status: 'completed', receipt_id: expect.any(String) },
    ]);
    const [note] = of(events, 'vendor.tollbridge.note');
    expect(note?.payload).toMatchObject({
      note: 'the receipt of the remote is sound',
      remote_receipt: { valid: true, receipt_id: handoffs[1]?.receipt_id },
    });
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.side_effects.a2a_handoffs).toEqual([
      { target_agent: 'far', task_id: there.id, status: 'completed', receipt_id: handoffs[1]?.receipt_id },
    ]);
    expect(of(events, 'vendor.tollbridge.usage')).toHaveLength(1);
    expect(of(events, 'span.completed')).toHaveLength(1);
  });

  test('read: what its tools did is written down as observed, once', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('read plan');
    await two.near.until(id);
    const events = await two.near.events(id);
    expect(of(events, 'tool.requested').map(({ payload }) => payload)).toMatchObject([
      { name: 'read_note', input: { name: 'plan' }, effect: 'read', evidence: 'observed' },
    ]);
    expect(of(events, 'tool.completed').map(({ payload }) => payload.status)).toEqual(['ok']);
    expect(await said(two, session)).toEqual(['plan says: First look, then leap.']);
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.side_effects.tool_calls).toMatchObject([{ tool: 'read_note', status: 'succeeded' }]);
  });

  test.each([
    [true, 'Mail to bo is sent.', ['bo']],
    [false, 'I was not allowed to send mail to bo: not today', []],
  ] as const)('approval, answered here with %s', async (approved, words, outbox) => {
    const two = await openTwo({ near: { rules: RULES } });
    const { id, session } = await two.give('send the plan to bo');
    const [ask] = await two.near.asks(id);
    expect(ask).toMatchObject({ kind: 'approval', action: { tool: 'send_mail', target: 'bo', evidence: 'asked' } });
    expect((await two.there()).status).toBe('AUTH_REQUIRED');
    await two.near.answer(ask!.id, approved ? { approved } : { approved, reason: 'not today' });
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual([words]);
    expect(two.tools.outbox.map(({ to }) => to)).toEqual(outbox);
    const events = await two.near.events(id);
    expect(of(events, 'tool.requested')).toHaveLength(1);
    expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'WORKING', 'COMPLETED']);
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.approvals).toMatchObject([{ actor: 'ana', decision: approved ? 'approved' : 'denied' }]);
  });

  test('approval by rule: policy here answers what is asked there, and nobody is bothered', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('send the plan to bo');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual(['Mail to bo is sent.']);
    expect(states(await two.near.events(id))).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
  });

  test('a rule here can forbid what was asked there', async () => {
    const rules = '[{ id: all, then: allow }, { id: no, when: { tool: send_mail }, then: block, say: never }]';
    const two = await openTwo({ near: { rules } });
    const { id } = await two.give('send the plan to bo');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(two.tools.outbox).toEqual([]);
    expect(kinds(await two.near.events(id))).toContain('tool.denied');
  });

  test('input: asked there, answered here', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('ask which colour?');
    const [ask] = await two.near.asks(id);
    expect(ask).toMatchObject({ kind: 'input', question: 'which colour?' });
    await two.near.answer(ask!.id, { value: 'blue' });
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual(['You said: blue']);
    expect(states(await two.near.events(id))).toEqual([
      'SUBMITTED',
      'WORKING',
      'INPUT_REQUIRED',
      'WORKING',
      'COMPLETED',
    ]);
  });

  test('two questions one after the other', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('ask one? then ask two?');
    for (const value of ['first', 'second']) {
      const [ask] = await two.near.asks(id);
      await two.near.answer(ask!.id, { value });
    }
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual(['You said: first', 'You said: second']);
  });

  test('cancel here stops the work there', async () => {
    const two = await openTwo();
    const { id } = await two.give('wait 10000');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    await two.near.send('task.cancel', { task_id: id, reason: 'enough' });
    expect((await two.near.until(id)).status).toBe('CANCELED');
    await expect.poll(async () => (await two.there()).status).toBe('CANCELED');
  });

  test('cancel while a question is open', async () => {
    const two = await openTwo();
    const { id } = await two.give('ask which colour?');
    await two.near.asks(id);
    await two.near.send('task.cancel', { task_id: id });
    expect((await two.near.until(id)).status).toBe('CANCELED');
    await expect.poll(async () => (await two.there()).status).toBe('CANCELED');
  });

  test('artifact: files are fetched, kept by their hash, and referred to by our names', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('artifact');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    const files = await two.near.house.store.list<Artifact & Row>({ object: 'artifact', where: { task_id: id } });
    const shown = await Promise.all(
      files.map(async ({ sha256, metadata }) => [
        metadata.name,
        String(await two.near.house.store.blob(sha256!).then((b) => Buffer.from(b!))),
      ]),
    );
    expect(shown).toEqual([
      ['report.md', '# Report\n\nNothing went wrong.\n'],
      ['report.patch', '--- a/report.md\n+++ b/report.md\n@@ -1 +1,3 @@\n # Report\n+\n+Nothing went wrong.\n'],
    ]);
    const list = { object: 'message', where: { session_id: session } };
    const last = (await two.near.house.store.list<Message & Row>(list)).at(-1);
    expect(last?.parts.slice(1).map((part) => (part as { artifact_id?: string }).artifact_id)).toEqual(
      files.map((file) => file.id),
    );
    expect((await two.near.receipts(id))[0]?.final_artifacts.map(({ sha256 }) => sha256)).toEqual(
      files.map(({ sha256 }) => `sha256:${sha256}`),
    );
  });

  test('fail: the failure there is the failure here', async () => {
    const two = await openTwo();
    const { id } = await two.give('fail out_of_paper');
    const task = await two.near.until(id);
    expect([task.status, task.failure?.code]).toEqual(['FAILED', 'out_of_paper']);
    expect(of(await two.near.events(id), 'agent.handoff').at(-1)?.payload).toMatchObject({ status: 'failed' });
  });

  test('long: every step is told, in order', async () => {
    const two = await openTwo({ stepMs: 1 });
    const { id, session } = await two.give('wait 60');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual([Array.from({ length: 60 }, (_, n) => `step ${n + 1} of 60\n`).join('')]);
  });

  test('steer: what is said while it works is heard there', async () => {
    const two = await openTwo({ stepMs: 20 });
    const { id } = await two.give('wait 10000');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    const message = { role: 'user' as const, parts: [{ type: 'text', text: 'please stop', visibility: 'public' }] };
    await two.near.send('task.message', { task_id: id, kind: 'interrupt', message });
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect((await two.there()).events.filter((kind) => kind === 'user.message')).toHaveLength(2);
  });

  test('one session there for one session here, with what was said before', async () => {
    const two = await openTwo();
    const room = await two.near.room();
    await two.near.send('message.append', { session_id: room.session, message: says('by the way') as never });
    for (const text of ['hello', 'read plan']) {
      const { id } = await room.task({ input: says(text) });
      await two.near.until(id);
    }
    const sessions = (await two.far.call('GET', '/v1/sessions')).body.data;
    expect(sessions).toHaveLength(1);
    const { body } = await two.far.call('GET', `/v1/sessions/${sessions[0].id}/messages`);
    expect(body.data.map((m: Message) => [m.role, (m.parts[0] as { text: string }).text.slice(0, 12)])).toEqual([
      ['user', 'by the way'],
      ['user', 'hello'],
      ['assistant', 'Hello! I am '],
      ['user', 'read plan'],
      ['assistant', 'plan says: F'],
    ]);
  });

  test('what is for receipts only does not leave the house', async () => {
    const two = await openTwo();
    const room = await two.near.room();
    const parts = [
      { type: 'text', text: 'hello', visibility: 'public' },
      { type: 'text', text: 'between us', visibility: 'receipt_only' },
    ];
    const { id } = await room.task({ input: { role: 'user', parts } });
    await two.near.until(id);
    const { body } = await two.far.call('GET', '/v1/tasks');
    expect(JSON.stringify(body)).not.toContain('between us');
  });
});

describe('broken lines', () => {
  test('a stream that keeps breaking is taken up from its cursor: nothing lost, nothing twice', async () => {
    const two = await openTwo({ stepMs: 25 });
    two.relay.breakStreamsAfter(4000);
    const { id, session } = await two.give('wait 60');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual([Array.from({ length: 60 }, (_, n) => `step ${n + 1} of 60\n`).join('')]);
    const deltas = of(await two.near.events(id), 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text);
    expect(deltas).toEqual(Array.from({ length: 60 }, (_, n) => `step ${n + 1} of 60\n`));
    const resumed = two.relay.calls.filter(({ path, headers }) => path.endsWith('/stream') && headers['last-event-id']);
    expect(resumed.length).toBeGreaterThan(2);
  });

  test('without any stream it is polled', async () => {
    const two = await openTwo();
    two.relay.answerWith((request, response) => {
      if (!request.url?.includes('/stream')) return false;
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"code":"not_found"}}');
      return true;
    });
    const { id, session } = await two.give('read plan then hello');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toHaveLength(2);
    expect(of(await two.near.events(id), 'tool.completed')).toHaveLength(1);
  });

  test('a question survives a broken line', async () => {
    const two = await openTwo();
    const { id } = await two.give('ask which colour?');
    const [ask] = await two.near.asks(id);
    two.relay.cut();
    two.relay.to(undefined);
    const answered = two.near.answer(ask!.id, { value: 'blue' });
    await sleep(300);
    two.relay.to(two.far.url);
    await answered;
    expect((await two.near.until(id)).status).toBe('COMPLETED');
  });

  test('out of reach for too long, the task has failed', async () => {
    const two = await openTwo({ client: { timeouts: { silence_ms: 600 } } });
    const { id } = await two.give('wait 10000');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    two.relay.to(undefined);
    two.relay.cut();
    const task = await two.near.until(id);
    expect([task.status, task.failure?.code]).toEqual(['FAILED', 'upstream_unavailable']);
  });

  test('a remote that is not there at all is a failure that says so', async () => {
    const two = await openTwo({ client: { timeouts: { silence_ms: 600 } } });
    two.relay.to(undefined);
    const { id } = await two.give('hello');
    const task = await two.near.until(id);
    expect([task.status, task.failure?.code]).toEqual(['FAILED', 'upstream_unavailable']);
  });

  test('events that are no longer kept are admitted to be missing', async () => {
    const two = await openTwo({ stepMs: 20 });
    let expired = false;
    two.relay.answerWith((request, response) => {
      if (expired || !request.url?.endsWith('/stream') || !request.headers['last-event-id']) return false;
      expired = true;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end('id: x\nevent: error\ndata: {"error":{"code":"cursor_expired","message":"gone"}}\n\n');
      return true;
    });
    const { id } = await two.give('wait 20');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    two.relay.cut();
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    const end = of(await two.near.events(id), 'task.completed')[0];
    expect(JSON.stringify(end?.payload.not_reported)).toContain('no longer kept');
  });
});

describe('restarts', () => {
  test('of the remote: its work goes on, and so do we', async () => {
    const two = await openTwo({ stepMs: 20 });
    const { id, session } = await two.give('wait 30 then hello');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    await two.far.close();
    await two.far.at.close();
    const again = await openDoor({
      agents: [demoAgent()],
      tools: [createDemoTools()],
      rules: RULES,
      clock: real,
      dir: two.far.at.dir,
    });
    two.relay.to(again.url);
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toHaveLength(2);
    const tasks = (await again.call('GET', '/v1/tasks')).body.data;
    expect(tasks).toHaveLength(1);
  });

  test('of ours: the remote is left at work and found again, and nothing is told twice', async () => {
    const two = await openTwo({ stepMs: 30 });
    const { id, session } = await two.give('read plan then wait 30 then hello');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    const near = await two.near.reopen({ agents: [remoteAgent(two.relay.url)] });
    onTestFinished(() => near.close());
    expect((await near.until(id)).status).toBe('COMPLETED');
    expect(await said({ ...two, near }, session)).toHaveLength(3);
    const events = await near.events(id);
    expect(of(events, 'tool.requested')).toHaveLength(1);
    expect(of(events, 'tool.completed')).toHaveLength(1);
    const steps = of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => String(payload.text));
    expect(steps.filter((text) => text.startsWith('step'))).toEqual(
      Array.from({ length: 30 }, (_, n) => `step ${n + 1} of 30\n`),
    );
    expect(of(events, 'agent.handoff').map(({ payload }) => payload.status)).toEqual(['accepted', 'completed']);
    expect((await two.far.call('GET', '/v1/tasks')).body.data).toHaveLength(1);
  });

  test('of ours while a question is open: it is still the same question', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('ask which colour?');
    const [before] = await two.near.asks(id);
    const near = await two.near.reopen({ agents: [remoteAgent(two.relay.url)] });
    const [after] = await near.asks(id);
    expect(after?.id).toBe(before?.id);
    await near.answer(after!.id, { value: 'green' });
    expect((await near.until(id)).status).toBe('COMPLETED');
    expect(await said({ ...two, near }, session)).toEqual(['You said: green']);
  });
});

describe('trust', () => {
  test('the token goes to the configured place and nowhere else; redirects are not followed', async () => {
    const two = await openTwo();
    const elsewhere = await openRelay(two.far.url);
    two.relay.answerWith((request, response) => {
      if (request.url !== '/v1') return false;
      response.writeHead(307, { location: `${elsewhere.url}/v1` }).end();
      return true;
    });
    const { id } = await two.give('hello');
    const task = await two.near.until(id);
    expect([task.status, task.failure?.message]).toEqual([
      'FAILED',
      'the remote answers with a redirect, which is not followed',
    ]);
    expect(elsewhere.calls).toEqual([]);
  });

  test('a token is refused plainly over http to another machine', () => {
    const make =
      (url: string, more = {}) =>
      () =>
        remoteAgent(url, more);
    expect(make('http://far.example')).toThrow('a remote has to be https');
    expect(make('https://far.example')).not.toThrow();
    expect(make('http://far.example', { insecure: true })).not.toThrow();
    expect(make('http://localhost:1')).not.toThrow();
    expect(make('https://me:secret@far.example')).toThrow('has no user');
    expect(make('ftp://far.example')).toThrow('a remote has to be https');
  });

  test('a wrong token is a failure that names it', async () => {
    const two = await openTwo({ far: { people: { ana: undefined as never } } });
    const { id } = await two.give('hello');
    const task = await two.near.until(id);
    expect([task.status, task.failure?.message]).toEqual([
      'FAILED',
      'the remote answered 401 unauthenticated: the token is not valid',
    ]);
  });

  test.each([
    ['checked', 'COMPLETED', undefined],
    ['required', 'FAILED', 'remote_receipt_invalid'],
  ] as const)('a receipt that was tampered with is seen, when receipts are %s', async (receipts, status, code) => {
    const two = await openTwo({ client: { receipts } });
    two.relay.answerWith((request, response) => {
      if (!request.url?.startsWith('/v1/receipts/')) return false;
      two.far.call('GET', request.url).then(({ body }) => {
        body.wire.payload.lifecycle.final_state = 'FAILED';
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      });
      return true;
    });
    const { id } = await two.give('hello');
    const task = await two.near.until(id);
    expect([task.status, task.failure?.code]).toEqual([status, code]);
    expect(of(await two.near.events(id), 'vendor.tollbridge.note')[0]?.payload).toMatchObject({
      note: 'the receipt of the remote proves nothing',
      remote_receipt: { valid: false, reason: 'hash_mismatch' },
    });
  });

  test('a good receipt of another task proves nothing', async () => {
    const two = await openTwo();
    const other = await two.far.task('hello');
    await two.far.at.until(other.task);
    const { body } = await two.far.call('GET', `/v1/tasks/${other.task}`);
    two.relay.answerWith((request, response) => {
      if (!request.url?.startsWith('/v1/receipts/')) return false;
      two.far.call('GET', `/v1/receipts/${body.receipt_id}`).then((found) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found.body));
      });
      return true;
    });
    const { id } = await two.give('hello');
    await two.near.until(id);
    expect(of(await two.near.events(id), 'vendor.tollbridge.note')[0]?.payload).toMatchObject({
      remote_receipt: { valid: false, reason: 'another_receipt' },
    });
  });

  test('a file that is not what its hash says stays a reference', async () => {
    const two = await openTwo();
    two.relay.answerWith((request, response) => {
      if (!request.url?.endsWith('/content')) return false;
      response.writeHead(200, { 'content-type': 'text/plain' }).end('something else');
      return true;
    });
    const { id } = await two.give('artifact');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    const files = await two.near.house.store.list<Artifact & Row>({ object: 'artifact', where: { task_id: id } });
    expect(files).toHaveLength(2);
    for (const { uri, metadata } of files) {
      expect(uri).toContain('/v1/artifacts/');
      expect(metadata.bytes).toBeUndefined();
    }
  });
});
