/** gRPC where it is configured: the same handler, the same answers, both revisions, and our own client over it. */

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type StreamResponse, TaskState } from '@a2a-js/sdk';
import { TaskNotFoundError } from '@a2a-js/sdk/errors';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { describe, expect, test } from 'vitest';
import { a2aBackend } from '../../../adapters/a2a/client/backend.ts';
import { createTraces } from '../../../src/telemetry/traces.ts';
import { createTraced } from '../../../src/telemetry/wrap.ts';
import { callGrpc } from '../../conformance/a2a/grpc.ts';
import { openPeer, openPeerOn, type Peer, sdkClient, sending, speech, wire } from '../../support/a2a/gateway.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { of, openTestGateway } from '../../support/gateway/test-gateway.ts';

const talker = scriptedAgent(async (sink) => {
  for (const fact of speech('m1', ['One. ', 'Two.'])) await sink.emit(fact);
  return undefined;
});
const config = { grpc: { port: 0 } };

async function cardOf(peer: Peer) {
  return (await peer.call('GET', '/.well-known/agent-card.json')).body;
}

function clientOf(peer: Peer, token: string) {
  return sdkClient(`${peer.base()}/`, 'GRPC', token);
}

test('the card names it, for the agent that answers there', async () => {
  const peer = await openPeer({ agents: [talker, scriptedAgent(async () => undefined, { name: 'other' })], config });
  const bindings = async (path: string) =>
    (await peer.call('GET', path)).body.supportedInterfaces.map(
      (each: { protocolBinding: string }) => each.protocolBinding,
    );
  expect(await bindings('/a2a/agent/.well-known/agent-card.json')).toContain('GRPC');
  expect(await bindings('/a2a/other/.well-known/agent-card.json')).not.toContain('GRPC');
});

test('no card names it where the configuration says so: every address is on the origin of the card, and it answers all the same', async () => {
  const port = await freePort();
  const peer = await openPeer({ agents: [talker], config: { grpc: { port, card: false } } });
  const at = (path: string, version: string) => peer.call('GET', path, undefined, { 'a2a-version': version });
  const cards = [
    await at('/.well-known/agent-card.json', ''),
    await at('/.well-known/agent-card.json', '1.0'),
    await at('/a2a/agent/extendedAgentCard', '1.0'),
  ];
  for (const { body } of cards) {
    const named = [...body.supportedInterfaces, ...(body.additionalInterfaces ?? [])];
    const origins = named.map(({ url }: { url: string }) => new URL(url).origin);
    expect([named.length > 1, new Set(origins)]).toEqual([true, new Set([new URL(peer.url).origin])]);
  }
  const came = await callGrpc(`127.0.0.1:${port}`, 'send', wire('go'), { authorization: 'Bearer ana' });
  expect([came.message, came.result?.task?.status?.state]).toEqual(['', 'TASK_STATE_COMPLETED']);
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

test('sends, streams, gets, lists and refuses as the other bindings do', async () => {
  const peer = await openPeer({ agents: [talker], config });
  const client = await clientOf(peer, 'ana');
  const task = await client.sendMessage(sending('go'));
  if ('messageId' in task) throw new Error('a message came back');
  expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
  const http = await (await peer.client()).getTask({ id: task.id, tenant: '' });
  const plain = (value: unknown) => JSON.parse(JSON.stringify(value));
  expect(plain(await client.getTask({ id: task.id, tenant: '' }))).toEqual(plain(http));
  const reported: unknown[] = [];
  for await (const { payload } of client.sendMessageStream(sending('go'))) reported.push(payload?.$case);
  expect(reported).toEqual(['task', 'statusUpdate', 'artifactUpdate', 'statusUpdate']);
  const list = {
    tenant: '',
    contextId: '',
    status: 0,
    pageToken: '',
    includeArtifacts: false,
    statusTimestampAfter: undefined,
  };
  expect((await client.listTasks(list)).totalSize).toBe(2);
  await expect(client.getTask({ id: 'task_nobody', tenant: '' })).rejects.toThrow(TaskNotFoundError);
});

test('refuses a call without a valid token, and shows a task to its owner only', async () => {
  const peer = await openPeer({ agents: [talker], config });
  for (const token of ['', 'wrong']) {
    const client = await clientOf(peer, token);
    await expect(client.getTask({ id: 'x', tenant: '' })).rejects.toMatchObject({ status: 16 });
  }
  const theirs = await clientOf(peer, 'bo');
  const mine = await (await clientOf(peer, 'ana')).sendMessage(sending('go'));
  await expect(theirs.getTask({ id: (mine as { id: string }).id, tenant: '' })).rejects.toThrow(TaskNotFoundError);
});

test('a refusal for a reason of ours names it', async () => {
  for (const [rule, status, reason] of [
    ['when: { kind: session.open }\n  then: block', 7, 'POLICY_VIOLATION'],
    ['when: { kind: prompt }\n  then: defer', 8, 'RATE_LIMITED'],
  ] as const) {
    const peer = await openPeer({ agents: [talker], config, rules: `- id: no\n  ${rule}\n` });
    const [{ url }] = (await cardOf(peer)).supportedInterfaces.filter(
      (each: { protocolBinding: string }) => each.protocolBinding === 'GRPC',
    );
    for (const operation of ['send', 'stream']) {
      const came = await callGrpc(url, operation, wire('go'), { authorization: 'Bearer ana' });
      expect([operation, came.status, came.reason]).toEqual([operation, status, reason]);
    }
    const nobody = await callGrpc(url, 'get', { id: 'x' }, {});
    expect([nobody.status, nobody.reason]).toEqual([16, 'UNAUTHENTICATED']);
  }
});

test('a stream nobody reads piles up nowhere: it ends, and the task does not mind', async () => {
  const piece = 'x'.repeat(48 * 1024);
  const agent = scriptedAgent(async (sink, { task }) => {
    for (let n = 0; n < 200; n += 1) {
      const payload = { message_id: `${task.id}.m`, role: 'assistant', text: piece };
      await sink.emit({ event: 'vendor.tollbridge.message_delta', payload });
    }
    return undefined;
  });
  const peer = await openPeer({ agents: [agent], config: { ...config, stream: { stall_ms: 100 } } });
  // Text in pieces, as a client gets it that asks for it: one whole update would not fill a connection.
  const pieces = { serviceParameters: { 'A2A-Extensions': 'urn:tollbridge:a2a:pieces:v1' } };
  const reading = (await clientOf(peer, 'ana')).sendMessageStream(sending('go'), pieces);
  const first = await reading.next();
  const { payload } = first.value as StreamResponse;
  const id = payload?.$case === 'task' ? payload.value.id : '';
  expect((await peer.at.until(id)).status).toBe('COMPLETED');
  await expect.poll(() => peer.logged).toContain('a gRPC stream was ended: its client stopped reading');
  let received = 1;
  for await (const _ of reading) received += 1;
  expect(received).toBeLessThan(200);
});

describe('a call that says where it stands in a trace', () => {
  const TRACE = '0af7651916cd43dd8448eb211c80319c';
  const SPAN = 'b7ad6b7169203331';
  const traceparent = `00-${TRACE}-${SPAN}-01`;
  const asAna = { authorization: 'Bearer ana' };

  async function grpcOf(peer: Peer): Promise<string> {
    const { supportedInterfaces } = await cardOf(peer);
    return supportedInterfaces.find((each: { protocolBinding: string }) => each.protocolBinding === 'GRPC').url;
  }

  test('is found by it in the log and in the receipt', async () => {
    const peer = await openPeer({ agents: [talker], config });
    const at = await grpcOf(peer);
    const traceOf = async (headers: Record<string, string>) => {
      const { result } = await callGrpc(at, 'send', wire('go'), { ...asAna, ...headers });
      const [submitted] = of(await peer.at.events(result.task.id), 'task.submitted');
      const [receipt] = await peer.at.receipts(result.task.id);
      return [submitted?.trace_id ?? null, JSON.stringify(receipt).includes(TRACE)];
    };
    expect(await traceOf({ traceparent })).toEqual([TRACE, true]);
    expect(await traceOf({ traceparent: `${traceparent}0` })).toEqual([null, false]);
    expect(await traceOf({})).toEqual([null, false]);
  });

  test.each(['send', 'stream'])('has its spans there: %s', async (operation) => {
    const exporter = new InMemorySpanExporter();
    const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
    const traced = createTraced(createTraces(provider.getTracer('test')));
    const runtime = await openTestGateway({ agents: [talker] });
    const at = { ...runtime, bridge: traced.bridge(runtime.bridge) };
    const peer = await openPeerOn(at, { config, deps: { inTrace: traced.inTrace } });
    await callGrpc(await grpcOf(peer), operation, wire('go'), { ...asAna, traceparent });
    const [span] = exporter.getFinishedSpans().filter(({ name }) => name === 'command task.submit');
    expect([span?.spanContext().traceId, span?.parentSpanContext?.spanId]).toEqual([TRACE, SPAN]);
  });
});

test('a peer can be reached over it', async () => {
  const peer = await openPeer({ agents: [talker], config });
  const [at] = (await cardOf(peer)).supportedInterfaces
    .filter((each: { protocolBinding: string }) => each.protocolBinding === 'GRPC')
    .map((each: { url: string }) => each.url);
  const deps = {
    log: { info() {}, warn() {}, error() {} },
    clock: { now: () => new Date().toISOString() },
    secret: async () => 'ana',
  };
  const backend = a2aBackend('peer', { url: peer.base(), secret: 't', binding: 'GRPC', allow_origins: [at] }, deps);
  const runtime = await openTestGateway({ agents: [backend] });
  const task = await (await runtime.room()).task();
  expect((await runtime.until(task.id)).status).toBe('COMPLETED');
  const [said] = of(await runtime.events(task.id), 'agent.message');
  expect(JSON.stringify(said?.payload)).toContain('One. Two.');
});
