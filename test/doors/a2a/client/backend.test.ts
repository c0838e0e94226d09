/** A peer as an agent of this gateway: another gateway of ours behind the wire, asked, answered, stopped, found again. */
import { describe, expect, test } from 'vitest';
import { a2aBackend } from '../../../../adapters/a2a/client/backend.ts';
import type { A2aBackendConfig } from '../../../../adapters/a2a/client/config.ts';
import { Fault } from '../../../../src/model/faults.ts';
import type { AgentBackend } from '../../../../src/ports/index.ts';
import { openPeer, type Peer, speech } from '../../../support/a2a/gateway.ts';
import { cardFor, openRawPeer } from '../../../support/a2a/peers.ts';
import { latch, scriptedAgent, untilAborted } from '../../../support/gateway/agents.ts';
import { kinds, of, openTestGateway, says } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';
import { openRelay } from '../../../support/wire/relay.ts';

const SILENT = { info() {}, warn() {}, error() {} };
const FAST = { poll_ms: 5, silence_ms: 2_000, cancel_ms: 1_000 };
const textsOf = (events: readonly { event: string; payload: object }[]) =>
  events.flatMap(({ event, payload }) => {
    const { message } = payload as { message?: { parts: { text?: string }[] } };
    return event === 'agent.message' ? [message?.parts.map(({ text }) => text).join('')] : [];
  });

function peerAgent(url: string, more: Partial<A2aBackendConfig> = {}, secrets = { token: 'ana' }): AgentBackend {
  const config = { url, secret: 'token', timeouts: FAST, ...more };
  return a2aBackend('peer', config, {
    log: SILENT,
    clock: { now: () => new Date().toISOString() },
    secret: async (name) => {
      const value = (secrets as Record<string, string>)[name];
      if (!value) throw new Fault('not_found', `no secret ${name}`);
      return value;
    },
  });
}

async function handed(peer: Peer, more: Partial<A2aBackendConfig> = {}) {
  const runtime = await openTestGateway({ agents: [peerAgent(peer.base(), more)] });
  const room = await runtime.room();
  return { runtime, room };
}

describe.each(['JSONRPC', 'HTTP+JSON'] as const)('over %s', (binding) => {
  test('work goes out and comes back with its text, its files, and both receipts', async () => {
    const agent = scriptedAgent(async (sink) => {
      for (const fact of speech('m1', ['Hel', 'lo.'])) await sink.emit(fact);
      await sink.artifact({ kind: 'file', name: 'a.txt', mime_type: 'text/plain', bytes: Buffer.from('file') });
      return { state: 'COMPLETED', summary: 'greeted' };
    });
    const peer = await openPeer({ agents: [agent] });
    const { runtime, room } = await handed(peer, { binding });
    const task = await room.task({ input: says('hi') });
    expect((await runtime.until(task.id)).status).toBe('COMPLETED');
    const events = await runtime.events(task.id);
    expect(textsOf(events)).toEqual(['Hello.']);
    expect(of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text)).toEqual(['Hel', 'lo.']);
    const [file] = of(events, 'artifact.created');
    expect(file?.payload.artifact).toMatchObject({ metadata: { name: 'a.txt', bytes: 4 } });
    const statuses = of(events, 'agent.handoff').map(({ payload }) => payload.status);
    expect(statuses).toEqual(['accepted', 'completed']);
    const [receipt] = await runtime.receipts(task.id);
    const [theirs] = await peer.at.runtime.store.receipts({});
    expect(receipt?.side_effects.a2a_handoffs).toEqual([
      {
        receipt_id: theirs?.receipt.receipt_id,
        status: 'completed',
        target_agent: 'peer',
        task_id: theirs?.receipt.subject.id,
      },
    ]);
    const [egress] = receipt?.side_effects.network_egress ?? [];
    expect(egress?.destination).toBe(new URL(peer.url).host);
    expect(egress?.metadata).toMatchObject({
      request_hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      card_hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      card: 'not verified',
      interface: `${binding} 1.0`,
    });
  });

  test('a question of the peer is put to our people, and their answer goes back', async () => {
    const agent = scriptedAgent(async (sink) => {
      const answer = await sink.ask({ kind: 'input', key: 'k', question: 'Which colour?' });
      for (const fact of speech('m1', [answer.kind === 'value' ? `got ${answer.value}` : 'nothing']))
        await sink.emit(fact);
      return undefined;
    });
    const { runtime, room } = await handed(await openPeer({ agents: [agent] }), { binding });
    const task = await room.task();
    const [ask] = await runtime.asks(task.id);
    expect([ask?.kind, ask?.question]).toEqual(['input', 'Which colour?']);
    await runtime.answer(ask!.id, { value: 'blue' });
    expect((await runtime.until(task.id)).status).toBe('COMPLETED');
    expect(textsOf(await runtime.events(task.id))).toEqual(['got blue']);
  });

  test('an approval is asked here as what it is, and is given or refused there', async () => {
    const rules = "- id: ask\n  when: { tool: pay }\n  then: ask\n  say: money is people's business\n";
    for (const approved of [true, false]) {
      const tools = countingTools({ pay: { effect: 'pay' } });
      const agent = scriptedAgent(async (sink) => {
        await sink.act({ kind: 'tool', tool: 'pay', tool_call_id: 'c1', arguments: { sum: 7 } });
        return undefined;
      });
      const { runtime, room } = await handed(await openPeer({ agents: [agent], tools: [tools], rules }), { binding });
      const task = await room.task();
      const [ask] = await runtime.asks(task.id);
      expect(ask?.action).toMatchObject({ tool: 'pay', server: 'peer', arguments: { sum: 7 }, effect: 'pay' });
      await runtime.answer(ask!.id, { approved, reason: 'as said' });
      expect((await runtime.until(task.id)).status).toBe('COMPLETED');
      expect(tools.calls.length).toBe(approved ? 1 : 0);
    }
  });

  test('a stop here is a stop there', async () => {
    const stopped = latch();
    const agent = scriptedAgent(async (_sink, _work, signal) => {
      await untilAborted(signal);
      stopped.open();
      return undefined;
    });
    const { runtime, room } = await handed(await openPeer({ agents: [agent] }), { binding });
    const task = await room.task();
    await runtime.seen(task.id, 'agent.handoff');
    await runtime.send('task.cancel', { task_id: task.id });
    await stopped.promise;
    expect((await runtime.until(task.id)).status).toBe('CANCELED');
  });

  test('a stream that is cut is taken up again, and nothing is said twice', async () => {
    const cut = latch();
    const agent = scriptedAgent(async (sink) => {
      const [first, ...rest] = speech('m1', ['before ', 'after']);
      await sink.emit(first!);
      await cut.promise;
      for (const fact of rest) await sink.emit(fact);
      return undefined;
    });
    const relay = await openRelay('http://127.0.0.1:9');
    const peer = await openPeer({ agents: [agent], config: { public_url: relay.url } });
    relay.to(peer.url);
    const runtime = await openTestGateway({ agents: [peerAgent(`${relay.url}/a2a/agent`, { binding })] });
    const task = await (await runtime.room()).task();
    await runtime.seen(task.id, 'vendor.tollbridge.message_delta');
    relay.cut();
    cut.open();
    expect((await runtime.until(task.id)).status).toBe('COMPLETED');
    const events = await runtime.events(task.id);
    expect(textsOf(events)).toEqual(['before after']);
    const pieces = of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text);
    expect(pieces.join('')).toBe('before after');
  });
});

describe('how it ends', () => {
  test.each([
    ['rejected', 'rejected', 'rejected'],
    ['out_of_paper', 'out_of_paper', 'failed'],
  ])('a peer that ends with %s', async (code, ours, status) => {
    const agent = scriptedAgent(async () => ({ state: 'FAILED', failure: { code, message: 'sorry' } }));
    const { runtime, room } = await handed(await openPeer({ agents: [agent] }));
    const ended = await runtime.until((await room.task()).id);
    expect([ended.status, ended.failure?.code, ended.failure?.message]).toEqual(['FAILED', ours, 'sorry']);
    const [receipt] = await runtime.receipts(ended.id);
    expect(receipt?.side_effects.a2a_handoffs[0]?.status).toBe(status);
  });

  test('a peer that cannot be reached', async () => {
    const runtime = await openTestGateway({ agents: [peerAgent('http://127.0.0.1:9/agent')] });
    const ended = await runtime.until((await (await runtime.room()).task()).id);
    expect(ended.status).toBe('FAILED');
  });

  test('the conversation there goes on with the conversation here', async () => {
    const agent = scriptedAgent(async (sink, work) => {
      let count = 0;
      for await (const { role } of work.transcript()) if (role === 'user') count += 1;
      for (const fact of speech(`${work.task.id}.m`, [`${count}`])) await sink.emit(fact);
      return undefined;
    });
    const { runtime, room } = await handed(await openPeer({ agents: [agent] }));
    for (const count of ['1', '2']) {
      const task = await room.task();
      await runtime.until(task.id);
      expect(textsOf(await runtime.events(task.id))).toEqual([count]);
    }
  });

  test('a restart of ours finds the task again, and the work is done once', async () => {
    let begun = 0;
    const gate = latch();
    const agent = scriptedAgent(async (sink) => {
      begun += 1;
      await gate.promise;
      for (const fact of speech('m1', ['once'])) await sink.emit(fact);
      return undefined;
    });
    const peer = await openPeer({ agents: [agent] });
    const { runtime, room } = await handed(peer);
    const task = await room.task();
    await runtime.seen(task.id, 'agent.handoff');
    const again = await runtime.reopen({ agents: [peerAgent(peer.base())] });
    gate.open();
    expect((await again.until(task.id)).status).toBe('COMPLETED');
    expect(begun).toBe(1);
    const events = await again.events(task.id);
    expect(textsOf(events)).toEqual(['once']);
    expect(kinds(events)).toContain('vendor.tollbridge.recovered');
  });
});

describe('what a peer says of itself', () => {
  const skill = { id: 'translate', name: 'Translate', description: 'Into French.', tags: ['words'], examples: ['Hi'] };
  const publicCard = { authorization: '' };
  const cardOf = async (peer: Peer) =>
    (await peer.call('GET', '/a2a/peer/.well-known/agent-card.json', undefined, publicCard)).body;

  test('its skills are on our card, its address is not', async () => {
    const raw = await openRawPeer({}, (url) =>
      cardFor(url, {
        description: `Translates, at ${new URL(url).host}.`,
        version: '7',
        provider: { organization: 'Inside', url },
        skills: [skill, { ...skill, id: 'two', tags: [], examples: [] }],
      }),
    );
    const front = await openPeer({ agents: [peerAgent(raw.url)] });
    const card = await cardOf(front);
    expect(card.skills).toEqual([skill, { ...skill, id: 'two', tags: ['peer'], examples: undefined }]);
    expect([card.description, card.version]).toEqual(['Translates, at peer.', '7']);
    expect(JSON.stringify(card)).not.toContain(new URL(raw.url).host);
    expect(card.provider).toBeUndefined();
    // One card is read for many readers.
    await cardOf(front);
    expect(raw.calls.filter(({ path }) => path.includes('agent-card'))).toHaveLength(1);
  });

  test('of a peer that is not there our card says what is known', async () => {
    const front = await openPeer({ agents: [peerAgent('http://127.0.0.1:9')] });
    const card = await cardOf(front);
    expect(card.skills[0].name).toBe('Run a task');
    expect(JSON.stringify(card)).not.toContain('127.0.0.1:9');
  });
});
