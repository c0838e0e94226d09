/** Frames of A2A that no peer should send. Each is refused in the protocol's own words, and no work begins. */
import { expect, test } from 'vitest';
import { openPeer } from '../support/a2a.ts';
import { scriptedAgent } from '../support/agents.ts';

async function peerWith() {
  let started = 0;
  const agent = scriptedAgent(async () => {
    started += 1;
    return undefined;
  });
  const peer = await openPeer({ agents: [agent] });
  const post = async (body: string | object, version = '1.0') =>
    await peer.call('POST', peer.base(), body, { 'a2a-version': version });
  return { peer, post, started: () => started };
}
const speech = (text: string) => ({ messageId: 'm1', role: 'ROLE_USER', parts: [{ text }] });
const sending = { message: speech('go'), configuration: { returnImmediately: true } };

test('SendMessage without an id is refused, and nothing is carried out', async () => {
  const { post, started } = await peerWith();
  const refused = await post({ jsonrpc: '2.0', method: 'SendMessage', params: sending });
  expect(refused.body).toMatchObject({
    id: null,
    error: { code: -32600, message: expect.stringContaining('needs an id') },
  });
  const older = await post({ jsonrpc: '2.0', method: 'message/send', params: {} }, '0.3');
  expect(older.body).toMatchObject({ id: null, error: { code: -32600 } });
  expect(started()).toBe(0);
});

test('H11: batches, empty, nested or mixed, are refused whole', async () => {
  const { post, started } = await peerWith();
  const call = { jsonrpc: '2.0', id: 'r', method: 'SendMessage', params: sending };
  for (const batch of [[], [call], [[call]], [call, { jsonrpc: '2.0', method: 'GetTask', params: {} }]]) {
    const { body } = await post(JSON.stringify(batch));
    expect(body).toMatchObject({ error: { code: -32600 } });
  }
  expect(started()).toBe(0);
});

test('a body that can be read in two ways, or that is no JSON of ours, is a parse error', async () => {
  const { post, started } = await peerWith();
  const params = JSON.stringify(sending);
  for (const body of [
    `{"jsonrpc":"2.0","id":"r","method":"GetTask","method":"SendMessage","params":${params}}`,
    `{"jsonrpc":"2.0","id":"r","method":"GetTask","\\u006dethod":"SendMessage","params":${params}}`,
    `\ufeff{"jsonrpc":"2.0","id":"r","method":"SendMessage","params":${params}}`,
    `{"jsonrpc":"2.0","id":"r","method":"SendMessage","params":${params}}{}`,
  ]) {
    expect((await post(body)).body).toMatchObject({ error: { code: -32700 } });
  }
  expect(started()).toBe(0);
});

test('methods of another revision, of the language, and answers nobody asked for are no methods', async () => {
  const { post, started } = await peerWith();
  for (const method of ['message/send', '__proto__', 'constructor', 'toString', 'sendmessage', 'SendMessage ']) {
    const { body } = await post({ jsonrpc: '2.0', id: 'r', method, params: sending });
    expect(body, method).toMatchObject({ id: 'r', error: { code: -32601 } });
  }
  const answer = { jsonrpc: '2.0', id: 'r', method: 'SendMessage', params: sending, result: {} };
  expect((await post(answer)).body).toMatchObject({ error: { code: -32600 } });
  expect(started()).toBe(0);
});

test('members that are not what the method takes are wrong parameters, not a failure of ours', async () => {
  const { post } = await peerWith();
  for (const parts of [[null], [[]], [7], null]) {
    const params = { message: { ...speech('go'), parts } };
    const { body } = await post({ jsonrpc: '2.0', id: 'r', method: 'SendMessage', params });
    expect(body).toMatchObject({ id: 'r', error: { code: -32602 } });
  }
});
