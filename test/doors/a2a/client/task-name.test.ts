/** A peer that asks without naming its task, or names another one later: an answer reaches the task that asked, or nobody. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { a2aBackend } from '../../../../adapters/a2a/client/backend.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import { openTestGateway, says } from '../../../support/gateway/test-gateway.ts';

const SILENT = { info() {}, warn() {}, error() {} };
const question = {
  askId: 'q1',
  kind: 'approval',
  question: 'May it?',
  action: { tool: 'touch', arguments: { word: 'yes' }, effect: 'write' },
};
const working = { state: 'TASK_STATE_WORKING' };
const asking = {
  state: 'TASK_STATE_INPUT_REQUIRED',
  message: { messageId: 'm-q', role: 'ROLE_AGENT', parts: [{ data: question }] },
};
const done = { state: 'TASK_STATE_COMPLETED' };

/** Polled, so that each answer of ours is one request. `reported` is what it says, request after request; the last stays. */
async function openPeer(reported: readonly { id: string; status: JsonObject }[]) {
  const sent: JsonObject[] = [];
  const looked: unknown[] = [];
  let at = 0;
  const server = createServer(async (request, response) => {
    const say = (body: object) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    if (request.method === 'GET') return void say(cardOf(`http://${request.headers.host}/rpc`));
    const { id, method, params } = (await json(request)) as { id: string; method: string; params: JsonObject };
    if (method === 'SendMessage') sent.push(params.message as JsonObject);
    else looked.push(params.id);
    const task = { contextId: 'c', artifacts: [], history: [], ...reported[Math.min(at++, reported.length - 1)] };
    say({ jsonrpc: '2.0', id, result: method === 'SendMessage' ? { task } : task });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent, looked };
}

function cardOf(url: string): JsonObject {
  return {
    name: 'peer',
    description: 'a peer',
    version: '1',
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
    capabilities: { streaming: false, pushNotifications: false },
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  };
}

async function give(url: string, poll_ms: number) {
  const clock = { now: () => new Date().toISOString() };
  const config = { url, timeouts: { poll_ms, silence_ms: 2_000, cancel_ms: 200 } };
  const peer = a2aBackend('peer', config, { log: SILENT, clock, secret: async () => 'x' });
  const runtime = await openTestGateway({ agents: [peer], rules: '[{ id: all, then: allow }]' });
  const room = await runtime.room();
  const { id } = await room.task({ input: says('go') });
  return await runtime.until(id);
}

test('a question about a task without a name is not answered: that would be new work', async () => {
  const { url, sent } = await openPeer([{ id: '', status: asking }]);
  expect(await give(url, 5_000)).toMatchObject({
    status: 'FAILED',
    failure: { message: expect.stringMatching(/name/) },
  });
  expect(sent).toHaveLength(1);
});

test('a task that is called otherwise later: the answer and every look go to the one that was given the work', async () => {
  const { url, sent, looked } = await openPeer([
    { id: 't1', status: working },
    { id: 't2', status: asking },
    { id: 't3', status: working },
    { id: '', status: done },
  ]);
  expect((await give(url, 5)).status).toBe('COMPLETED');
  expect(sent.map(({ taskId }) => taskId)).toEqual([undefined, 't1']);
  expect(new Set(looked)).toEqual(new Set(['t1']));
});
