/** Peers that are not ours, well behaved and otherwise. What they say is taken as said; where they send us is not. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { generateAgentCardSignature } from '@a2a-js/sdk';
import { exportJWK, generateKeyPair } from 'jose';
import { describe, expect, onTestFinished, test } from 'vitest';
import { a2aBackend } from '../../../../adapters/a2a/client/backend.ts';
import type { A2aBackendConfig } from '../../../../adapters/a2a/client/config.ts';
import { createMetrics } from '../../../../adapters/harn/server/metrics.ts';
import { cardFor, openOldPeer, openRawPeer, openSdkPeer } from '../../../support/a2a/peers.ts';
import { openEditor } from '../../../support/acp/client.ts';
import { of, openTestGateway, says, states } from '../../../support/gateway/test-gateway.ts';

const FAST = { poll_ms: 5, silence_ms: 500, cancel_ms: 500 };

async function runtime(url: A2aBackendConfig['url'], more: Partial<A2aBackendConfig> = {}) {
  const deps = {
    log: { info() {}, warn() {}, error() {} },
    clock: { now: () => new Date().toISOString() },
    secret: async () => 'the-peer-token',
  };
  const at = await openTestGateway({ agents: [a2aBackend('peer', { url, timeouts: FAST, ...more }, deps)] });
  const room = await at.room();
  return {
    at,
    async run(text = 'go') {
      const task = await room.task({ input: says(text) });
      const ended = await at.until(task.id);
      const events = await at.events(task.id);
      const said = of(events, 'agent.message').map(({ payload }) => {
        const { parts } = payload.message as unknown as { parts: { text?: string; value?: unknown }[] };
        return parts.map(({ text, value }) => text ?? JSON.stringify(value)).join('');
      });
      return { ended, events, said };
    },
    room,
  };
}
/** An address where nothing listens any more. */
async function nobodyAt(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

const status = (state: string, more: object = {}) => ({ state, timestamp: '2026-01-01T00:00:00Z', ...more });
const task = (state: string, more: object = {}) => ({ id: 't1', contextId: 'c1', status: status(state), ...more });
const message = (text: string, messageId = 'm1') => ({ messageId, role: 'ROLE_AGENT', parts: [{ text }] });
const artifact = (text: string) => ({ artifactId: 'a1', name: 'answer', parts: [{ text }] });

describe.each([
  ['SDK 1.3 over JSONRPC', () => openSdkPeer(), 'JSONRPC'],
  ['SDK 1.3 over HTTP+JSON', () => openSdkPeer(), 'HTTP+JSON'],
  ['SDK 1.3 without streams', () => openSdkPeer({ streaming: false }), 'JSONRPC'],
  ['SDK 0.3 over JSONRPC', openOldPeer, 'JSONRPC'],
  ['SDK 0.3 over HTTP+JSON', openOldPeer, 'HTTP+JSON'],
] as const)('%s', (_, open, binding) => {
  test('does the work', async () => {
    const { run } = await runtime(await open(), { binding });
    const { ended, said } = await run('work');
    expect([ended.status, said]).toEqual(['COMPLETED', ['work: done']]);
  });

  test('asks, and is answered', async () => {
    const { at, room } = await runtime(await open(), { binding });
    const input = await room.task({ input: says('ask') });
    const [ask] = await at.asks(input.id);
    expect(ask?.question).toBe('How many?');
    await at.answer(ask!.id, { value: 'seven' });
    expect((await at.until(input.id)).status).toBe('COMPLETED');
    const events = await at.events(input.id);
    expect(JSON.stringify(of(events, 'agent.message').at(-1)?.payload)).toContain('seven: done');
  });
});

describe('what they say', () => {
  test('a bare message is the whole answer', async () => {
    const peer = await openRawPeer({ SendStreamingMessage: [{ stream: [{ message: message('hi') }] }] });
    const { at, run } = await runtime(peer.url);
    const { ended, said } = await run();
    expect([ended.status, said]).toEqual(['COMPLETED', ['hi']]);
    const [receipt] = await at.receipts(ended.id);
    expect(receipt?.side_effects.a2a_handoffs[0]).toMatchObject({ task_id: 'message:m1', status: 'completed' });
  });

  test('a jump from submitted to completed is two steps here', async () => {
    const done = { statusUpdate: { taskId: 't1', contextId: 'c1', status: status('TASK_STATE_COMPLETED') } };
    const stream = [
      { task: task('TASK_STATE_SUBMITTED') },
      { artifactUpdate: { taskId: 't1', contextId: 'c1', artifact: artifact('x') } },
      done,
    ];
    const peer = await openRawPeer({ SendStreamingMessage: [{ stream }] });
    const { run } = await runtime(peer.url);
    const { events, said } = await run();
    expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
    expect(said).toEqual(['x']);
  });

  test('an answer that stands only in the last status, or only in the history, is not lost', async () => {
    const last = task('TASK_STATE_COMPLETED', {
      status: status('TASK_STATE_COMPLETED', { message: message('last words') }),
    });
    const first = await runtime((await openRawPeer({ SendStreamingMessage: [{ stream: [{ task: last }] }] })).url);
    expect((await first.run()).said).toEqual(['last words']);
    const history = [{ ...message('q'), role: 'ROLE_USER' }, message('in the history', 'm2')];
    const past = task('TASK_STATE_COMPLETED', { history });
    const second = await runtime((await openRawPeer({ SendStreamingMessage: [{ stream: [{ task: past }] }] })).url);
    expect((await second.run()).said).toEqual(['in the history']);
  });

  test('a stream that just ends is taken up again by subscribing, or by looking', async () => {
    const part = { artifactUpdate: { taskId: 't1', contextId: 'c1', artifact: artifact('one ') } };
    const whole = task('TASK_STATE_COMPLETED', { artifacts: [artifact('one two')] });
    const peer = await openRawPeer({
      SendStreamingMessage: [{ stream: [{ task: task('TASK_STATE_WORKING') }, part] }],
      SubscribeToTask: [{ error: { code: -32004, message: 'ended' } }],
      GetTask: [{ result: task('TASK_STATE_WORKING') }, { result: whole }],
    });
    const { run } = await runtime(peer.url);
    const { said, events } = await run();
    expect(said).toEqual(['one two']);
    expect(of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text)).toEqual(['one ', 'two']);
  });

  test('a state nobody knows is never success', async () => {
    const peer = await openRawPeer({
      SendStreamingMessage: [{ stream: [{ task: task('TASK_STATE_JUBILANT') }] }],
      SubscribeToTask: [{ error: { code: -32004, message: 'no' } }],
      GetTask: [{ result: task('TASK_STATE_JUBILANT') }],
    });
    const { run } = await runtime(peer.url);
    const { ended } = await run();
    expect([ended.status, ended.failure?.message]).toEqual([
      'FAILED',
      expect.stringContaining('a state we do not know'),
    ]);
  });

  test('an answer under another id is no answer', async () => {
    const peer = await openRawPeer({
      SendStreamingMessage: [{ result: { task: task('TASK_STATE_COMPLETED') }, id: 'other' } as never],
    });
    const { run } = await runtime(peer.url);
    expect((await run()).ended.status).toBe('FAILED');
  });

  test('a refusal is passed on as one', async () => {
    const peer = await openRawPeer({ SendStreamingMessage: [{ error: { code: -32005, message: 'no such type' } }] });
    const { at, run } = await runtime(peer.url);
    const { ended } = await run();
    expect(ended.failure?.message).toContain('no such type');
    const [receipt] = await at.receipts(ended.id);
    expect(receipt?.side_effects.a2a_handoffs[0]?.status).toBe('rejected');
  });

  test('a wish for authorisation is put to people, and never to us for a credential', async () => {
    const asks = task('TASK_STATE_AUTH_REQUIRED', {
      status: status('TASK_STATE_AUTH_REQUIRED', { message: message('log in at x') }),
    });
    const peer = await openRawPeer({
      SendStreamingMessage: [{ stream: [{ task: asks }] }],
      GetTask: [...Array.from({ length: 40 }, () => ({ result: asks })), { result: task('TASK_STATE_COMPLETED') }],
    });
    const { at, room } = await runtime(peer.url);
    const input = await room.task();
    const [ask] = await at.asks(input.id);
    // The peer's words are shown as the peer's, and never as the question.
    expect([ask?.kind, ask?.question]).toEqual(['approval', 'May agent:peer use peer on peer?']);
    expect(JSON.stringify(ask?.action.claims)).toContain('log in at x');
    await at.answer(ask!.id, { approved: true });
    expect((await at.until(input.id)).status).toBe('COMPLETED');
    // A peer that has not moved by itself is told, once, and is sent no credential.
    const reported = peer.calls.filter(({ body }) => body?.method === 'SendStreamingMessage').slice(1);
    expect(reported.map(({ body }) => [body.params.message.taskId, body.params.message.parts])).toEqual([
      ['t1', [{ text: 'The authorization you asked for was given. Please continue.', mediaType: 'text/plain' }]],
    ]);
    const events = await at.events(input.id);
    expect(of(events, 'tool.completed').map(({ payload }) => payload.status)).toEqual(['ok']);
    expect(of(events, 'tool.failed')).toEqual([]);
  });

  test('an answer that comes as a message and then as an artifact is one answer', async () => {
    const at = { taskId: 't1', contextId: 'c1' };
    const stream = [
      { task: task('TASK_STATE_SUBMITTED') },
      { statusUpdate: { ...at, status: status('TASK_STATE_WORKING', { message: message('Hello, world.') }) } },
      { artifactUpdate: { ...at, artifact: artifact('Hello, world.'), lastChunk: true } },
      { statusUpdate: { ...at, status: status('TASK_STATE_COMPLETED') } },
    ];
    const peer = await openRawPeer({ SendStreamingMessage: [{ stream }] });
    const { said, events } = await (await runtime(peer.url)).run();
    expect(said).toEqual(['Hello, world.']);
    expect(of(events, 'vendor.tollbridge.message_delta')).toEqual([]);
    // The same in a snapshot, by polling.
    const whole = task('TASK_STATE_COMPLETED', { artifacts: [artifact('Hello, world.')] });
    const quiet = await openRawPeer({
      SendStreamingMessage: [{ stream: stream.slice(0, 2) }],
      SubscribeToTask: [{ error: { code: -32004, message: 'no' } }],
      GetTask: [{ result: whole }],
    });
    expect((await (await runtime(quiet.url)).run()).said).toEqual(['Hello, world.']);
    // Another text is another answer.
    const other = [
      ...stream.slice(0, 2),
      { artifactUpdate: { ...at, artifact: artifact('Bye.'), lastChunk: true } },
      stream.at(-1),
    ];
    const two = await openRawPeer({ SendStreamingMessage: [{ stream: other as object[] }] });
    expect((await (await runtime(two.url)).run()).said).toEqual(['Hello, world.', 'Bye.']);
  });

  describe('a request to confirm a call', () => {
    const call = { name: 'pay', args: { sum: 7 }, id: 'call-1' };
    const data = {
      id: 'confirm-1',
      name: 'adk_request_confirmation',
      args: { originalFunctionCall: call, toolConfirmation: { hint: 'Pay seven?', confirmed: false } },
    };
    const parts = [{ data, metadata: { adk_type: 'function_call', adk_is_long_running: true } }];
    const asks = task('TASK_STATE_INPUT_REQUIRED', {
      status: status('TASK_STATE_INPUT_REQUIRED', { message: { messageId: 'q', role: 'ROLE_AGENT', parts } }),
    });
    const done = task('TASK_STATE_COMPLETED', { artifacts: [artifact('paid')] });

    test.each([true, false])('is put to approvers as that call, and answered as it wants: %s', async (approved) => {
      const peer = await openRawPeer({
        SendStreamingMessage: [{ stream: [{ task: asks }] }, { stream: [{ task: done }] }],
        GetTask: [{ result: asks }],
      });
      const { at, room } = await runtime(peer.url);
      const input = await room.task();
      const [ask] = await at.asks(input.id);
      expect([ask?.kind, ask?.action.tool, ask?.action.arguments]).toEqual(['approval', 'pay', { sum: 7 }]);
      await at.answer(ask!.id, { approved });
      expect((await at.until(input.id)).status).toBe('COMPLETED');
      const answers = peer.calls.filter(({ body }) => body?.method === 'SendStreamingMessage').slice(1);
      expect(answers.map(({ body }) => body.params.message.parts)).toEqual([
        [
          {
            data: { id: 'confirm-1', name: 'adk_request_confirmation', response: { confirmed: approved } },
            mediaType: 'application/json',
            metadata: { adk_type: 'function_response' },
          },
        ],
      ]);
      const ends = (await at.events(input.id)).filter(({ event }) => /^tool\.(completed|failed)$/.test(event));
      expect(ends.map(({ event, payload }) => [event, payload.name])).toEqual(
        approved ? [['tool.completed', 'pay']] : [],
      );
    });

    test('an editor that is asked sees the call, and after its yes the call as completed', async () => {
      const peer = await openRawPeer({
        SendStreamingMessage: [{ stream: [{ task: asks }] }, { stream: [{ task: done }] }],
        GetTask: [{ result: asks }],
      });
      const { at } = await runtime(peer.url);
      const editor = await openEditor(at);
      const turn = editor.prompt(await editor.session('/w'), 'pay seven');
      const question = await editor.next(({ method }) => method === 'session/request_permission');
      expect(question.params.toolCall).toMatchObject({ name: 'pay', rawInput: { sum: 7 } });
      editor.answer(question.id, { outcome: { outcome: 'selected', optionId: 'approve' } });
      expect((await turn).stopReason).toBe('end_turn');
      const states = editor.updates().flatMap(({ toolCallId, status: state }) => (toolCallId && state ? [state] : []));
      expect([states.at(-1), states.includes('failed')]).toEqual(['completed', false]);
    });
  });

  test('data beside a question is shown with it', async () => {
    const parts = [{ text: 'Which of these?' }, { data: { options: ['a', 'b'] } }];
    const asks = task('TASK_STATE_INPUT_REQUIRED', {
      status: status('TASK_STATE_INPUT_REQUIRED', { message: { messageId: 'q', role: 'ROLE_AGENT', parts } }),
    });
    const peer = await openRawPeer({
      SendStreamingMessage: [{ stream: [{ task: asks }] }],
      GetTask: [{ result: asks }],
    });
    const { at, room } = await runtime(peer.url);
    const [ask] = await at.asks((await room.task()).id);
    expect(ask?.question).toBe('Which of these?\n{"options":["a","b"]}');
  });

  test('work that is only a text is sent as one', async () => {
    const peer = await openRawPeer({ SendStreamingMessage: [{ stream: [{ message: message('hi') }] }] });
    const { at, room } = await runtime(peer.url);
    await at.until((await room.task({ input: { text: 'go' } })).id);
    await at.until((await room.task({ input: { text: 'go', more: 1 } })).id);
    const sent = peer.calls.flatMap(({ body }) => (body?.params ? [body.params.message.parts[0]] : []));
    expect(sent.map(({ text, data }) => text ?? data)).toEqual(['go', { text: 'go', more: 1 }]);
  });

  test('an error says at which host', async () => {
    const gone = await nobodyAt();
    const dead = await runtime(gone);
    expect((await dead.run()).ended.failure?.message).toBe(
      `peer at ${new URL(gone).host} cannot be reached: ECONNREFUSED`,
    );
    const peer = await openRawPeer({ SendStreamingMessage: [{ error: { code: -32005, message: 'no such type' } }] });
    const { host } = new URL(peer.url);
    expect((await (await runtime(peer.url)).run()).ended.failure?.message).toContain(`peer at ${host} said: `);
  });
});

describe('several addresses', () => {
  const answers = (text: string) => ({ SendStreamingMessage: [{ stream: [{ message: message(text) }] }] });
  const sent = (peer: { calls: readonly { body?: { method?: string } }[] }) =>
    peer.calls.filter(({ body }) => body?.method === 'SendStreamingMessage').length;

  test('the next one has the work when one cannot be reached, and is then asked first', async () => {
    const second = await openRawPeer(answers('second'));
    const { run } = await runtime([await nobodyAt(), second.url]);
    const { ended, said, events } = await run();
    expect([ended.status, said]).toEqual(['COMPLETED', ['second']]);
    expect(of(events, 'agent.handoff').map(({ payload }) => payload.status)).toEqual(['accepted', 'completed']);
    expect((await run()).said).toEqual(['second']);
  });

  test('one that dies between its card and the work loses nothing', async () => {
    const second = await openRawPeer(answers('second'));
    const gone = await nobodyAt();
    const first = await openRawPeer({}, () => cardFor(gone));
    const { run } = await runtime([first.url, second.url], { allow_origins: [gone] });
    expect((await run()).said).toEqual(['second']);
  });

  test('work that one may have is given to no other', async () => {
    const second = await openRawPeer(answers('second'));
    for (const first of [
      // Taken, and then silent.
      await openRawPeer({
        SendStreamingMessage: [{ stream: [{ task: task('TASK_STATE_WORKING') }] }],
        SubscribeToTask: [{ error: { code: -32004, message: 'no' } }],
        GetTask: [{ error: { code: -32001, message: 'gone' } }],
      }),
      // The connection broke before a word came back.
      await openRawPeer({ SendStreamingMessage: [{ stream: [] }] }),
      // It says that it failed.
      await openRawPeer({ SendStreamingMessage: [{ error: { code: -32603, message: 'broken' } }] }),
    ]) {
      const { run } = await runtime([first.url, second.url]);
      expect((await run()).ended.status).toBe('FAILED');
      expect([sent(first), sent(second)]).toEqual([1, 0]);
    }
  });

  test('which of them answer is known as far as they were used, to who looks after the gateway', async () => {
    const [gone, second] = [await nobodyAt(), await openRawPeer(answers('second'))];
    const { at, run } = await runtime([gone, second.url]);
    const operator = { id: 'op', kind: 'service', scopes: ['metrics:read'] } as const;
    const states = async () => (await at.bridge.agentAddresses(operator)).map(({ since: _, ...each }) => each);
    const [first, other] = [new URL(gone).host, new URL(second.url).host];
    const unused = { agent: 'peer', state: 'unknown' };
    expect(await states()).toEqual([first, other].map((address) => ({ ...unused, address })));
    await run();
    const reason = `peer at ${first} cannot be reached: ECONNREFUSED`;
    expect(await states()).toEqual([
      { agent: 'peer', address: first, state: 'unavailable', reason },
      { agent: 'peer', address: other, state: 'ready' },
    ]);
    const lines = createMetrics().text([], [], await at.bridge.agentAddresses(operator));
    expect(lines).toContain(`tollbridge_agent_address_up{agent="peer",address="${first}"} 0\n`);
    expect(lines).toContain(`tollbridge_agent_address_up{agent="peer",address="${other}"} 1\n`);
    const peer = { id: 'p', kind: 'service', scopes: ['tasks:write', 'skills:read'] } as const;
    await expect(at.bridge.agentAddresses(peer)).rejects.toMatchObject({ kind: 'permission_denied' });
  });

  test('when none can be reached, all are named', async () => {
    const gone = [await nobodyAt(), await nobodyAt()];
    const { run } = await runtime(gone);
    const hosts = gone.map((url) => new URL(url).host).join(', ');
    expect((await run()).ended.failure?.message).toBe(`peer cannot be reached at any of its addresses: ${hosts}`);
  });

  test('a context stays with the address that gave it', async () => {
    const said = { task: task('TASK_STATE_COMPLETED', { artifacts: [artifact('x')] }) };
    const second = await openRawPeer({ SendStreamingMessage: [{ stream: [said] }] });
    const { run } = await runtime([await nobodyAt(), second.url]);
    await run();
    await run();
    const contexts = second.calls.flatMap(({ body }) => (body?.params ? [body.params.message.contextId ?? ''] : []));
    expect(contexts).toEqual(['', 'c1']);
  });
});

describe('credentials', () => {
  test('headers carry secrets to the peer, and stand in no event, error or log', async () => {
    const peer = await openRawPeer({ SendStreamingMessage: [{ error: { code: -32603, message: 'no' } }] });
    const { at, run } = await runtime(peer.url, { headers: { 'X-Api-Key': 'their-key', authorization: 'basic' } });
    await run();
    for (const { headers } of peer.calls) {
      expect([headers['x-api-key'], headers.authorization]).toEqual(['the-peer-token', 'the-peer-token']);
    }
    expect(JSON.stringify(await at.all())).not.toContain('the-peer-token');
  });

  test("a header that is not the configuration's to set is refused", () => {
    const deps = { log: { info() {}, warn() {}, error() {} }, clock: { now: () => '' }, secret: async () => '' };
    const make = (more: Partial<A2aBackendConfig>) => () =>
      a2aBackend('p', { url: 'https://p.example', ...more }, deps);
    expect(make({ headers: { Host: 'x' } })).toThrow('the header host cannot be set here');
    expect(make({ headers: { 'a2a-version': 'x' } })).toThrow('cannot be set here');
    expect(make({ headers: { Authorization: 'x' }, secret: 'y' })).toThrow('write one of them');
    make({ headers: { 'x-team': 'x' } })();
  });
});

describe('where they send us', () => {
  test('an address on another origin is not used, and the token stays here', async () => {
    const elsewhere = await openRawPeer({ SendStreamingMessage: [{ stream: [{ message: message('gotcha') }] }] });
    const peer = await openRawPeer({}, () => cardFor(elsewhere.url));
    const { run } = await runtime(peer.url, { secret: 'token' });
    const { ended } = await run();
    expect([ended.status, ended.failure?.message]).toEqual([
      'FAILED',
      expect.stringContaining('names no address we may use'),
    ]);
    expect(elsewhere.calls).toEqual([]);
    expect(peer.calls[0]?.headers.authorization).toBe('Bearer the-peer-token');
  });

  test('a card that is elsewhere is not followed there', async () => {
    const elsewhere = await openRawPeer({});
    const moved = createServer((_request, response) => {
      response.writeHead(302, { location: `${elsewhere.url}/.well-known/agent-card.json` }).end();
    });
    await new Promise<void>((resolve) => moved.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void moved.close());
    const { run } = await runtime(`http://127.0.0.1:${(moved.address() as AddressInfo).port}`, { secret: 'token' });
    expect((await run()).ended.status).toBe('FAILED');
    expect(elsewhere.calls).toEqual([]);
  });

  test('unless the configuration allows it by name', async () => {
    const elsewhere = await openRawPeer({ SendStreamingMessage: [{ stream: [{ message: message('welcome') }] }] });
    const peer = await openRawPeer({}, () => cardFor(elsewhere.url));
    const { run } = await runtime(peer.url, { allow_origins: [elsewhere.url] });
    expect((await run()).said).toEqual(['welcome']);
  });

  test('a peer that is not on this machine has to be https', () => {
    const deps = { log: { info() {}, warn() {}, error() {} }, clock: { now: () => '' }, secret: async () => '' };
    expect(() => a2aBackend('p', { url: 'http://peer.example/' }, deps)).toThrow('has to be https');
    expect(() => a2aBackend('p', { url: 'https://u:p@peer.example/' }, deps)).toThrow('has no user');
    expect(() => a2aBackend('p', { url: 'nonsense' }, deps)).toThrow('is not an address');
  });
});

describe('pinned keys', () => {
  async function signer(kid: string) {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), kid, alg: 'ES256' };
    const sign = generateAgentCardSignature(privateKey, { alg: 'ES256', kid, typ: 'JOSE' });
    return { jwk, sign };
  }
  const says = { SendStreamingMessage: [{ stream: [{ message: message('signed') }] }] };

  test('a card signed with one of them is used, and the receipt says it was verified', async () => {
    const { jwk, sign } = await signer('k1');
    const cards = new Map<string, object>();
    const peer = await openRawPeer(says, (url) => cards.get(url) ?? {});
    cards.set(peer.url, await sign(cardFor(peer.url) as never));
    const { at, run } = await runtime(peer.url, { keys: [jwk] });
    const { ended, said } = await run();
    expect(said).toEqual(['signed']);
    const [receipt] = await at.receipts(ended.id);
    expect(receipt?.side_effects.network_egress[0]?.metadata).toMatchObject({ card: 'verified' });
  });

  test('a card signed otherwise, changed, or not signed is refused before anything is sent', async () => {
    const { jwk, sign } = await signer('k1');
    const other = await signer('k1');
    for (const make of [
      async (url: string) => cardFor(url),
      async (url: string) => (await other.sign(cardFor(url) as never)) as object,
      async (url: string) => ({ ...(await sign(cardFor(url) as never)), description: 'changed' }),
    ]) {
      const cards = new Map<string, object>();
      const peer = await openRawPeer(says, (url) => cards.get(url) ?? {});
      cards.set(peer.url, await make(peer.url));
      const { run } = await runtime(peer.url, { keys: [jwk] });
      const { ended } = await run();
      expect(ended.failure?.message).toContain('is not signed with a key we pinned');
      expect(peer.calls.every(({ path }) => path.includes('agent-card'))).toBe(true);
    }
  });
});
