/**
 * Unmodified clients of both generations of the SDK, on every binding, doing the same four things: read a stream,
 * approve, cancel, and go on reading after the line was cut.
 */
import { describe, expect, test } from 'vitest';
import { newClient, oldClient, type Received } from '../../support/a2a/clients.ts';
import { openPeer, type Peer, speech } from '../../support/a2a/gateway.ts';
import { latch, scriptedAgent, untilAborted } from '../../support/gateway/agents.ts';
import { countingTools } from '../../support/gateway/tools.ts';
import { openPipe, type Pipe } from '../../support/wire/pipe.ts';
import { openRelay, type Relay } from '../../support/wire/relay.ts';

const CLIENTS = [
  ['1.3', 'JSONRPC', newClient],
  ['1.3', 'HTTP+JSON', newClient],
  ['1.3', 'GRPC', newClient],
  ['0.3', 'JSONRPC', oldClient],
  ['0.3', 'HTTP+JSON', oldClient],
  ['0.3', 'GRPC', oldClient],
] as const;
const config = { grpc: { port: 0 } };
const ASK = "- id: ask\n  when: { tool: pay }\n  then: ask\n  say: money is people's business\n";

async function all(stream: AsyncGenerator<Received>): Promise<Received[]> {
  const received: Received[] = [];
  for await (const each of stream) received.push(each);
  return received;
}

/** gRPC has a port of its own; the card that clients read here names a pipe before it that can be cut. */
async function throughPipe(peer: Peer, relay: Relay): Promise<Pipe> {
  const path = '/a2a/agent/.well-known/agent-card.json';
  const { supportedInterfaces } = (await peer.call('GET', path)).body;
  const { url } = supportedInterfaces.find((each: { protocolBinding: string }) => each.protocolBinding === 'GRPC');
  const pipe = await openPipe(url);
  relay.answerWith((request, response) => {
    if (request.url !== path) return false;
    const version = String(request.headers['a2a-version'] ?? '');
    void peer.call('GET', path, undefined, { 'a2a-version': version }).then(({ body }) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(body).replaceAll(url, pipe.at));
    });
    return true;
  });
  return pipe;
}

describe.each(CLIENTS)('a client of SDK %s over %s', (_, binding, open) => {
  test('reads a stream from its first to its last word', async () => {
    const agent = scriptedAgent(async (sink) => {
      for (const fact of speech('m1', ['One. ', 'Two.'])) await sink.emit(fact);
      return undefined;
    });
    const peer = await openPeer({ agents: [agent], config });
    const received = await all((await open(`${peer.base()}/`, binding)).stream('go'));
    expect(received[0]).toMatchObject({ kind: 'task', state: 'SUBMITTED' });
    expect(received.at(-1)).toMatchObject({ kind: 'status', state: 'COMPLETED' });
    expect(received.flatMap(({ kind, text = '' }) => (kind === 'artifact' ? [text] : [])).join('')).toBe('One. Two.');
    expect(peer.logged).toEqual([]);
  });

  test('approves what it is asked, and only that runs', async () => {
    const tools = countingTools({ pay: { effect: 'pay' } });
    const agent = scriptedAgent(async (sink) => {
      await sink.act({ kind: 'tool', tool: 'pay', tool_call_id: 'c1', arguments: { sum: 7 } });
      return undefined;
    });
    const peer = await openPeer({ agents: [agent], tools: [tools], rules: ASK, config });
    const client = await open(`${peer.base()}/`, binding);
    const states: (string | undefined)[] = [];
    let [id, askId] = ['', ''];
    for await (const { kind, taskId, state, data } of client.stream('go')) {
      if (kind === 'status') states.push(state);
      if (state !== 'INPUT_REQUIRED') continue;
      expect(data).toMatchObject({ kind: 'approval', action: { tool: 'pay', arguments: { sum: 7 } } });
      id = taskId;
      ({ askId } = data as { askId: string });
    }
    // The turn ends with the question, and the answer is a turn of its own.
    expect(states).toEqual(['WORKING', 'INPUT_REQUIRED']);
    expect(tools.calls).toEqual([]);
    const after = await all(client.stream('', { taskId: id, data: { askId, approved: true } }));
    expect(after.at(-1)).toMatchObject({ kind: 'status', state: 'COMPLETED' });
    expect(tools.calls.map(({ tool }) => tool)).toEqual(['pay']);
  });

  test('cancels work under way', async () => {
    const agent = scriptedAgent((_sink, _work, signal) => untilAborted(signal).then(() => undefined));
    const peer = await openPeer({ agents: [agent], config });
    const client = await open(`${peer.base()}/`, binding);
    const states: (string | undefined)[] = [];
    for await (const { kind, taskId, state } of client.stream('go')) {
      if (kind === 'status') states.push(state);
      if (state === 'WORKING') expect(await client.cancel(taskId)).toBe('CANCELED');
    }
    expect(states).toEqual(['WORKING', 'CANCELED']);
  });

  test('subscribes again after the line was cut, and misses nothing', async () => {
    const [begun, cut] = [latch(), latch()];
    const agent = scriptedAgent(async (sink) => {
      const [first, ...rest] = speech('m1', ['before ', 'after']);
      await sink.emit(first!);
      begun.open();
      await cut.promise;
      for (const fact of rest) await sink.emit(fact);
      return undefined;
    });
    const relay = await openRelay('http://127.0.0.1:9');
    const peer = await openPeer({ agents: [agent], config: { ...config, public_url: relay.url } });
    relay.to(peer.url);
    const pipe = await throughPipe(peer, relay);
    const client = await open(`${relay.url}/a2a/agent/`, binding);
    let id = '';
    const broken = (async () => {
      for await (const { taskId, kind } of client.stream('go')) {
        id = taskId;
        if (kind !== 'status') continue;
        await begun.promise;
        relay.cut();
        pipe.cut();
      }
    })();
    await expect(broken).rejects.toThrow();
    expect(await client.state(id)).toBe('WORKING');
    let text = '';
    const states: (string | undefined)[] = [];
    for await (const each of client.subscribe(id)) {
      if (each.kind === 'task') cut.open();
      else if (each.kind === 'status') states.push(each.state);
      text += each.text ?? '';
    }
    expect(text).toBe('before after');
    expect(states).toEqual(['COMPLETED']);
  });
});
