/** One JSON-RPC peer for all protocols: ids return as they were spelled, answers find their questions, order is kept. */
import { expect, test } from 'vitest';
import type { Json } from '../../../src/index.ts';
import { envelopeOf, RpcError } from '../../../src/transport/json-rpc/messages.ts';
import { type Asked, createPeer, type PeerOptions } from '../../../src/transport/json-rpc/peer.ts';
import { createPendingRequests, RequestAbandoned } from '../../../src/transport/json-rpc/pending-requests.ts';

function peerOf(options: Partial<PeerOptions> = {}) {
  const sent: string[] = [];
  const peer = createPeer({
    send: async (text) => void sent.push(text),
    parse(text) {
      try {
        return JSON.parse(text);
      } catch {
        return undefined;
      }
    },
    refuses: (kind, method) => (method === 'refused' ? `no ${kind} of this name` : undefined),
    request: async () => null,
    notification: async () => {},
    errorOf: () => ({ code: -32603, message: 'failed' }),
    cancel: '$/cancel_request',
    log: { info() {}, warn() {}, error() {} },
    strict: true,
    ...options,
  });
  return { peer, sent };
}

/** Requests run beside each other: their answers are sent a few turns later. */
async function until(done: () => boolean): Promise<void> {
  await expect.poll(done, { interval: 1 }).toBe(true);
}

test.each(['7', '"7"', '1.0', '-0', '1e2', '9007199254740993', '"\\u0041"', 'null'])(
  'the id %s returns as it came',
  async (id) => {
    const { peer, sent } = peerOf({ request: async () => ({ id: 1.5 }) });
    await peer.receive(`{"params":{"id":2.0},"id": ${id} ,"jsonrpc":"2.0","method":"do"}`);
    await until(() => sent.length > 0);
    const spelled = id === '"\\u0041"' ? '"A"' : id;
    expect(sent).toEqual([`{"jsonrpc":"2.0","id":${spelled},"result":{"id":1.5}}`]);
  },
);

test('a request can be canceled under any spelling of its id, and errors are sent as they were thrown', async () => {
  const { peer, sent } = peerOf({
    request: ({ signal }: Asked) =>
      new Promise<Json>((_, reject) => {
        const error = { code: -32800, message: 'canceled', data: { by: 'peer' } };
        signal.addEventListener('abort', () => reject(new RpcError(error)));
      }),
  });
  await peer.receive('{"jsonrpc":"2.0","id":5.0,"method":"long"}');
  await peer.receive('{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}');
  await until(() => sent.length > 0);
  expect(sent).toEqual([
    '{"jsonrpc":"2.0","id":5.0,"error":{"code":-32800,"message":"canceled","data":{"by":"peer"}}}',
  ]);
});

test('a notification behind a response is read after the requester has seen the response', async () => {
  const order: string[] = [];
  const { peer, sent } = peerOf({ notification: async (method) => void order.push(method) });
  const asked = (async () => {
    await peer.request('session/new', {});
    order.push('answered');
  })();
  await until(() => sent.length > 0);
  await peer.receive('{"jsonrpc":"2.0","id":"tb-1","result":{}}');
  await peer.receive('{"jsonrpc":"2.0","method":"session/update"}');
  await asked;
  expect(order).toEqual(['answered', 'session/update']);
});

test('a canceled request is canceled on the wire, and a late answer to it is for nobody', async () => {
  const stop = new AbortController();
  const { peer, sent } = peerOf();
  const asked = peer.request('ask', {}, stop.signal);
  await until(() => sent.length > 0);
  stop.abort();
  await expect(asked).rejects.toThrow(RequestAbandoned);
  await peer.receive('{"jsonrpc":"2.0","id":"tb-1","result":{}}');
  expect(sent.map((text) => JSON.parse(text).method)).toEqual(['ask', '$/cancel_request']);
});

test('the end of a connection rejects what is pending with its cause, and everything asked later', async () => {
  const { peer, sent } = peerOf();
  const asked = peer.request('ask', {});
  await until(() => sent.length > 0);
  peer.cut(new Error('the program has exited'));
  await expect(asked).rejects.toThrow('the program has exited');
  await expect(peer.request('ask', {})).rejects.toThrow('the program has exited');
});

test('input that is no message is answered where the peer is strict, and is never a call', async () => {
  const calls: string[] = [];
  const { peer, sent } = peerOf({ request: async ({ method }) => void calls.push(method) as unknown as Json });
  for (const text of [
    '{',
    '[]',
    '{}',
    '{"id":1}',
    '{"method":5}',
    '{"id":{},"method":"do"}',
    '{"id":1,"method":"do","result":1}',
  ]) {
    await peer.receive(text);
  }
  await peer.receive('{"jsonrpc":"2.0","id":8,"method":"refused"}');
  expect(sent.map((text) => JSON.parse(text)).map(({ id, error }) => [id, error.code, error.message])).toEqual([
    [null, -32700, 'this is not JSON, or too much of it'],
    [null, -32600, 'one JSON-RPC object at a time'],
    [null, -32600, 'neither a request nor an answer'],
    [null, -32600, 'neither a request nor an answer'],
    [null, -32600, 'method must be a text'],
    [null, -32600, 'an id is a string, a number or null'],
    [null, -32600, 'a call has no result and no error'],
    [8, -32600, 'no request of this name'],
  ]);
  expect(calls).toEqual([]);
});

test('a response is handed on whole, with members that JSON-RPC does not know', async () => {
  const pending = createPendingRequests(async () => {});
  const asked = pending.request({ jsonrpc: '2.0', id: 'a', method: 'do' }, undefined, undefined);
  const response = { jsonrpc: '2.0', id: 'a', result: { _meta: { x: 1 } }, 'x-extra': [1] };
  expect(pending.deliver({ ...response, id: 'b' })).toBe(false);
  expect(pending.deliver(response)).toBe(true);
  expect(pending.deliver(response)).toBe(false);
  expect(await asked).toBe(response);
  expect(pending.size).toBe(0);
});

test('a request that cannot be sent fails with the reason, and one that is not read still obeys its signal', async () => {
  const broken = createPendingRequests(async () => Promise.reject(new Error('the pipe is closed')));
  await expect(broken.request({ jsonrpc: '2.0', id: 'a', method: 'do' }, undefined, undefined)).rejects.toThrow(
    'the pipe is closed',
  );
  const stop = new AbortController();
  const unread = createPendingRequests(() => new Promise(() => {}));
  const asked = unread.request({ jsonrpc: '2.0', id: 'a', method: 'do' }, stop.signal, undefined);
  stop.abort();
  await expect(asked).rejects.toThrow(RequestAbandoned);
});

test('a message that could be two kinds is none', () => {
  expect(envelopeOf({ method: 'do', error: {} })).toMatchObject({ kind: 'invalid' });
  expect(envelopeOf({ id: null, error: {} })).toEqual({ kind: 'response', id: null });
  expect(envelopeOf({ method: '' })).toEqual({ kind: 'notification', method: '' });
});
