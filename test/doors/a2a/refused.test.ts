/** Work that policy forbids: a task on record that ended before it began, on every binding and in both revisions. */
import { Task } from '@a2a-js/sdk';
import { describe, expect, test } from 'vitest';
import { a2aBackend } from '../../../adapters/a2a/client/backend.ts';
import type { PolicyEngine } from '../../../src/ports/index.ts';
import { openPeer, openPeerOn, type Peer, sdkClient, sending, wire } from '../../support/a2a/gateway.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { kinds, of, openTestGateway } from '../../support/gateway/test-gateway.ts';

const RULES = '- id: closed\n  when: { kind: prompt }\n  then: block\n  say: no work today\n';

async function closed(rules = RULES, engines: readonly PolicyEngine[] = []) {
  const begun: string[] = [];
  const agent = scriptedAgent(async (_, { task, transcript }) => {
    begun.push(task.id);
    for await (const { parts } of transcript()) begun.push(JSON.stringify(parts));
    return undefined;
  });
  return { peer: await openPeer({ agents: [agent], rules, engines, config: { grpc: { port: 0 } } }), begun };
}

const older = { message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'go' }] } };
const olderRest = { message: { messageId: 'm', role: 'ROLE_USER', content: [{ text: 'go' }] } };
const LEGACY = { 'a2a-version': '' };

const WAYS: Readonly<Record<string, (peer: Peer) => Promise<{ state: string; words: unknown }>>> = {
  'JSON-RPC 1.0': async (peer) => {
    const { status, body } = await peer.rpc('SendMessage', wire('go'));
    expect(status).toBe(200);
    return reported(body.result.task.status);
  },
  'HTTP+JSON 1.0': async (peer) => {
    const { status, body } = await peer.call('POST', '/a2a/agent/message:send', wire('go'));
    expect(status).toBe(200);
    return reported(body.task.status);
  },
  'JSON-RPC 0.3': async (peer) => reported((await peer.rpc('message/send', older, LEGACY)).body.result.status),
  'HTTP+JSON 0.3': async (peer) =>
    reported((await peer.call('POST', '/a2a/agent/v1/message:send', olderRest, LEGACY)).body.task.status),
  'gRPC 1.0': async (peer) => {
    const task = await (await sdkClient(`${peer.base()}/`, 'GRPC', 'ana')).sendMessage(sending('go'));
    return reported((Task.toJSON(task as Task) as { status: object }).status);
  },
};

// biome-ignore lint/suspicious/noExplicitAny: as it came
function reported({ state, message }: any): { state: string; words: unknown } {
  return { state: state.replace('TASK_STATE_', '').toUpperCase(), words: (message.parts ?? message.content)[0].text };
}

describe('work that policy forbids', () => {
  test.each(Object.entries(WAYS))('is a REJECTED task with the reason over %s', async (_, send) => {
    const { peer, begun } = await closed();
    expect(await send(peer)).toEqual({ state: 'REJECTED', words: 'no work today' });
    expect(begun).toEqual([]);
  });

  test('streams its end, and is there to be looked up, listed and proven', async () => {
    const { peer } = await closed();
    const streamed = await peer.call('POST', '/a2a/agent/message:stream', wire('a secret wish'));
    const said = [...streamed.body.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json));
    expect(said.map((each) => (each.task ?? each.statusUpdate).status.state)).toEqual([
      'TASK_STATE_SUBMITTED',
      'TASK_STATE_REJECTED',
    ]);
    const [{ task }] = said;
    const found = (await peer.rpc('GetTask', { id: task.id })).body.result;
    expect(found.status.state).toBe('TASK_STATE_REJECTED');
    const filter = { status: 'TASK_STATE_REJECTED' };
    expect((await peer.rpc('ListTasks', filter)).body.result.tasks.map(({ id }: { id: string }) => id)).toEqual([
      task.id,
    ]);
    expect((await peer.rpc('ListTasks', { status: 'TASK_STATE_FAILED' })).body.result.totalSize).toBe(0);
    const events = await peer.at.events(task.id);
    expect(kinds(events)).toEqual(['task.submitted', 'vendor.tollbridge.decided', 'receipt.issued', 'task.failed']);
    expect(of(events, 'vendor.tollbridge.decided')[0]?.payload.decision).toMatchObject({
      verdict: 'block',
      rule_id: 'closed',
    });
    expect(JSON.stringify(events)).not.toContain('a secret wish');
    const [receipt] = await peer.at.receipts(task.id);
    expect(receipt?.lifecycle.final_state).toBe('FAILED');
    expect(found.metadata['urn:tollbridge:a2a:record:v1'].receiptId).toBe(receipt?.receipt_id);
  });

  test('never reaches an agent with the next work of the conversation', async () => {
    const picky: PolicyEngine = {
      name: 'picky',
      decide: async ({ arguments: args }) => ({
        verdict: JSON.stringify(args).includes('forbidden') ? 'block' : 'allow',
        reason: 'some words are not for agents',
        engine: 'picky',
      }),
    };
    const { peer, begun } = await closed('- { id: open, then: allow }', [picky]);
    const contextId = 'c1';
    const states = [];
    for (const text of ['the forbidden words', 'go on']) {
      states.push((await peer.rpc('SendMessage', wire(text, { contextId }))).body.result.task.status.state);
    }
    expect(states).toEqual(['TASK_STATE_REJECTED', 'TASK_STATE_COMPLETED']);
    expect(begun.join()).toContain('go on');
    expect(begun.join()).not.toContain('forbidden');
  });

  test('is one task under one key', async () => {
    const { peer } = await closed();
    const key = { 'idempotency-key': 'k1' };
    const input = wire('go');
    const [one, two] = [await peer.rpc('SendMessage', input, key), await peer.rpc('SendMessage', input, key)];
    expect(two.body.result.task.id).toBe(one.body.result.task.id);
  });

  test('is REJECTED too when a person says no before it begins', async () => {
    const { peer, begun } = await closed('- id: ask\n  when: { kind: prompt }\n  then: ask\n');
    const { task } = (await peer.rpc('SendMessage', wire('go'))).body.result;
    expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    const { askId } = task.status.message.parts.find(({ data }: { data?: object }) => data).data;
    const no = { taskId: task.id, parts: [{ data: { askId, approved: false, reason: 'not today' } }] };
    const after = (await peer.rpc('SendMessage', wire('', no))).body.result.task;
    expect(after.status.state).toBe('TASK_STATE_REJECTED');
    expect(begun).toEqual([]);
  });

  test('comes back to a gateway that handed it on as a refusal, with the code it had there', async () => {
    const { peer } = await closed();
    const deps = {
      log: { info() {}, warn() {}, error() {} },
      clock: { now: () => new Date().toISOString() },
      secret: async () => 'ana',
    };
    const runtime = await openTestGateway({ agents: [a2aBackend('peer', { url: peer.base(), secret: 't' }, deps)] });
    const ended = await runtime.until((await (await runtime.room()).task()).id);
    expect(ended.failure).toMatchObject({
      code: 'rejected',
      message: 'no work today',
      details: { state: 'TASK_STATE_REJECTED', code: 'policy_violation' },
    });
    const [receipt] = await runtime.receipts(ended.id);
    expect(receipt?.side_effects.a2a_handoffs[0]?.status).toBe('rejected');
  });
});

/** A gateway whose quota another caller uses up while the rules look at what a peer wants: there was room, and there is none. */
async function overtaken(period: object = {}) {
  const begun: string[] = [];
  const agent = scriptedAgent(async (_, { task }) => {
    begun.push(task.id);
    return undefined;
  });
  const slow: PolicyEngine = {
    name: 'slow',
    async decide({ kind, actor }) {
      if (kind === 'prompt' && actor.door === 'a2a') await room.task({ agent: 'none' });
      return { verdict: 'allow', reason: 'fine', engine: 'slow' };
    },
  };
  const at = await openTestGateway({ agents: [agent], rules: '- { id: open, then: allow }', engines: [slow] });
  const limits = { scope: 'workspace', limits: { tasks: 1 }, ...period };
  const quota = (await at.send('resource.create', { object: 'quota', body: limits })).resource.id;
  const room = await at.room({ workspace: { quota_id: quota } });
  return { peer: await openPeerOn(at, { config: { grpc: { port: 0 } } }), begun, quota };
}

describe('work that a quota has no room for any more', () => {
  test.each(Object.entries(WAYS))('is a REJECTED task over %s', async (_, send) => {
    const { peer, begun, quota } = await overtaken();
    const words = `limit tasks (1) of quota ${quota}: 1 used, this needs 1`;
    expect(await send(peer)).toEqual({ state: 'REJECTED', words });
    expect(begun).toEqual([]);
  });

  test('is on record with the decision of the quota, and charged to nobody', async () => {
    const { peer } = await overtaken();
    const { task } = (await peer.rpc('SendMessage', wire('a secret wish'), { 'idempotency-key': 'k1' })).body.result;
    const events = await peer.at.events(task.id);
    expect(kinds(events)).toEqual(['task.submitted', 'vendor.tollbridge.decided', 'receipt.issued', 'task.failed']);
    expect(of(events, 'vendor.tollbridge.decided')[0]?.payload.decision).toMatchObject({
      verdict: 'block',
      code: 'quota_exhausted',
      engine: 'quota',
    });
    expect(JSON.stringify(await peer.at.all())).not.toContain('a secret wish');
  });

  test('is an error when the quota opens again shortly', async () => {
    const { peer } = await overtaken({ reset_at: '2026-01-01T00:00:30.000Z', metadata: { window_ms: 30_000 } });
    const { status, headers, body } = await peer.rpc('SendMessage', wire('go'));
    expect([status, body.error.data[0].reason]).toEqual([429, 'RATE_LIMITED']);
    expect(headers.get('retry-after')).toBe('30');
  });
});

describe('what stays an error', () => {
  test('a caller who may not come in at all', async () => {
    const rules = '- id: shut\n  when: { kind: session.open }\n  then: block\n  say: nobody comes in\n';
    const { peer } = await closed(rules);
    const { status, body } = await peer.rpc('SendMessage', wire('go'));
    expect([status, body.error.message, body.error.data[0].reason]).toEqual([
      403,
      'nobody comes in',
      'POLICY_VIOLATION',
    ]);
  });

  test('work that may be tried again later', async () => {
    const { peer } = await closed('- id: later\n  when: { kind: prompt }\n  then: defer\n  say: later\n');
    const { status, body } = await peer.rpc('SendMessage', wire('go'));
    expect([status, body.error.data[0].reason]).toEqual([429, 'RATE_LIMITED']);
  });
});
