/** Peers that are not ours, well behaved and otherwise. What they say is taken as said; where they send us is not. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { generateAgentCardSignature } from '@a2a-js/sdk';
import { exportJWK, generateKeyPair } from 'jose';
import { describe, expect, onTestFinished, test } from 'vitest';
import { a2aBackend } from '../../../../adapters/a2a/client/backend.ts';
import type { A2aBackendConfig } from '../../../../adapters/a2a/client/config.ts';
import { cardFor, openOldPeer, openRawPeer, openSdkPeer } from '../../../support/a2a/peers.ts';
import { of, openTestGateway, says, states } from '../../../support/gateway/test-gateway.ts';

const FAST = { poll_ms: 5, silence_ms: 500, cancel_ms: 500 };

async function runtime(url: string, more: Partial<A2aBackendConfig> = {}) {
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
    expect(peer.calls.filter(({ body }) => body?.method === 'SendMessage')).toEqual([]);
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
