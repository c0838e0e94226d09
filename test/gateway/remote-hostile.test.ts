/** Gateways behind ours that go wrong or lie: what is recorded is still true, and nothing of theirs is trusted. */
import { describe, expect, test } from 'vitest';
import { checkLinks, linksOf } from '../../src/receipt/verify/linked.ts';
import { verifyReceipt } from '../../src/receipt/verify/verify.ts';
import { scriptedAgent, untilAborted } from '../support/gateway/agents.ts';
import { of, openTestGateway, says } from '../support/gateway/test-gateway.ts';
import { openGateways, WORK_PROTOCOLS } from '../support/gateway/two-gateways.ts';
import { openDoor } from '../support/harn/gateway.ts';
import { OPEN, real, remoteAgent } from '../support/harn/two-gateways.ts';

const SPEAKS = (facts: readonly { event: string; payload: object }[]) =>
  scriptedAgent(async (sink) => {
    for (const fact of facts) await sink.emit(fact as never);
    return { state: 'COMPLETED' };
  });
const call = { tool_call_id: 'c1', name: 'send', kind: 'tool', input: { to: 'bo' } };

describe.each(WORK_PROTOCOLS)('over %s', (protocol) => {
  test('it dies after it has accepted: the work fails, the handoff says so, and no receipt is made up', async () => {
    const stuck = scriptedAgent(async (_sink, _work, signal) => {
      await untilAborted(signal);
      return undefined;
    });
    const far = { agents: [stuck], rules: OPEN };
    const two = await openGateways(protocol, { far, near: { rules: OPEN }, silenceMs: 1_000 });
    const id = await two.give('hello');
    await two.near.seen(id, 'agent.handoff');
    two.relay.to(undefined);
    two.relay.cut();
    expect((await two.near.until(id)).status).toBe('FAILED');
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.side_effects.a2a_handoffs.map(({ status }) => status)).toEqual(['failed']);
    expect(linksOf(receipt!)).toEqual([]);
  });

  test('it answers a call twice: the first answer stands', async () => {
    const done = { tool_call_id: 'c1', name: 'send', status: 'ok', output: 'first' };
    const agent = SPEAKS([
      { event: 'tool.requested', payload: call },
      { event: 'tool.completed', payload: done },
      { event: 'tool.failed', payload: { ...done, status: 'error', error: 'second' } },
    ]);
    const two = await openGateways(protocol, { far: { agents: [agent], rules: OPEN }, near: { rules: OPEN } });
    const id = await two.give('go');
    await two.near.until(id);
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.side_effects.tool_calls.map(({ status }) => status)).toEqual(['succeeded']);
  });
});

describe('over the Agents Protocol', () => {
  async function lied(change: (receipt: Record<string, unknown>) => unknown) {
    const two = await openGateways('harn', { far: { rules: OPEN }, near: { rules: OPEN } });
    const honest = new Map<string, unknown>();
    two.relay.answerWith((request, response) => {
      const [, path] = /^(\/v1\/receipts\/[^/?]+)$/.exec(request.url ?? '') ?? [];
      if (!path) return false;
      const id = path.split('/').at(-1) as string;
      void two.far.runtime.store.receipt(id).then((stored) => {
        honest.set(id, stored?.receipt);
        const payload = change(structuredClone(stored?.receipt) as never);
        response
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify({ id, object: 'receipt', wire: { payload } }));
      });
      return true;
    });
    const id = await two.give('hello');
    await two.near.until(id);
    const [receipt] = await two.near.receipts(id);
    return { two, receipt: receipt!, link: linksOf(receipt!)[0] };
  }

  test.each([
    ['without a signature', (receipt: Loose) => ({ ...receipt, signatures: [] }), 'signature_absent'],
    ['changed', (receipt: Loose) => ({ ...receipt, issued_at: '2020-01-01T00:00:00.000Z' }), 'hash_mismatch'],
    ['that is none', () => ({ nothing: true }), 'schema_invalid'],
  ] as const)('a receipt %s is recorded as invalid, and the link does not hold', async (_, change, reason) => {
    const { receipt, link } = await lied(change);
    expect(link).toMatchObject({ checked: 'invalid', reason });
    expect(checkLinks([receipt], { receipts: [] })).toMatchObject([{ state: 'not_available' }]);
  });

  test('a receipt of another task is no receipt of this one', async () => {
    let first: unknown;
    const { two, link } = await lied((receipt) => receipt);
    expect(link).toMatchObject({ checked: 'valid' });
    [first] = (await two.far.runtime.store.receipts({})).map(({ receipt }) => receipt);
    two.relay.answerWith((request, response) => {
      if (!/^\/v1\/receipts\/[^/?]+$/.test(request.url ?? '')) return false;
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ object: 'receipt', wire: { payload: first } }));
      return true;
    });
    const id = await two.give('hello');
    await two.near.until(id);
    const [second] = await two.near.receipts(id);
    expect(linksOf(second!)).toMatchObject([{ checked: 'invalid', reason: 'another_receipt' }]);
    const [check] = checkLinks([second!], { receipts: [{ receipt: first as never }] });
    expect(check?.state).not.toBe('linked');
  });

  test('a call denied there after it was approved, and run all the same: refused, ran, and an alarm', async () => {
    const agent = scriptedAgent(async (sink) => {
      await sink.emit({ event: 'tool.requested', payload: call });
      const reported = { tool_call_id: 'c1', name: 'send', remote: 'far' };
      await sink.emit({
        event: 'vendor.tollbridge.remote_decided',
        payload: { ...reported, verdict: 'approved', ask_id: 'a', by: 'bo' },
      });
      await sink.emit({
        event: 'vendor.tollbridge.remote_decided',
        payload: { ...reported, verdict: 'denied', by: 'cy', reason: 'no after all' },
      });
      await sink.emit({
        event: 'tool.completed',
        payload: { tool_call_id: 'c1', name: 'send', status: 'ok', output: 1 },
      });
      return { state: 'COMPLETED' };
    });
    const near = await openTestGateway({ agents: [agent], rules: OPEN });
    const { id } = await (await near.room()).task();
    await near.until(id);
    const [receipt] = await near.receipts(id);
    expect(receipt?.side_effects.tool_calls).toMatchObject([
      {
        status: 'succeeded',
        metadata: { denied: true, ran_though_denied: true, remote: { decision: 'denied', by: 'cy' } },
      },
    ]);
    expect(of(await near.events(id), 'vendor.tollbridge.alarm')).toHaveLength(1);
  });

  test('work that comes back to the gateway it came from is refused, with the reason', async () => {
    const door = await openDoor({ agents: [scriptedAgent(async () => undefined)], rules: OPEN, clock: real as never });
    const { key_id } = { key_id: door.at.runtime.keyring.signer().keyId };
    const { session } = await door.room();
    const give = (hops: readonly string[]) =>
      door.call('POST', `/v1/sessions/${session}/tasks`, {
        input: says('go'),
        metadata: { tollbridge: { caller: { task_id: 'task_x', hops } } },
      });
    const back = await give([`${key_id}/agent`, 'other/x']);
    expect([back.status, back.body.error?.code]).toEqual([422, 'policy_violation']);
    expect(back.body.error.message).toContain('come back to a gateway it came from');
    const far = await give(Array.from({ length: 9 }, (_, at) => `k${at}/a`));
    expect(far.body.error.message).toContain('more than 8 gateways');
    expect((await give([`${key_id}/another`])).status).toBe(202);
  });

  test('two gateways whose agents are each other: the circle ends with an error that says so', async () => {
    const urls = { a: '', b: '' };
    const lazily = (of: 'a' | 'b') => ({
      name: 'far',
      abilities: { resume: false, evidence: 'observed' as const },
      start: (...args: Parameters<ReturnType<typeof remoteAgent>['start']>) => remoteAgent(urls[of]).start(...args),
    });
    const a = await openDoor({ agents: [lazily('b')], rules: OPEN, clock: real as never });
    const b = await openDoor({ agents: [lazily('a')], rules: OPEN, clock: real as never });
    Object.assign(urls, { a: a.url, b: b.url });
    const { task } = await a.task('round');
    const ended = await a.at.until(task);
    expect(ended).toMatchObject({ status: 'FAILED' });
    expect(ended.failure?.message).toContain('come back to a gateway it came from');
  });

  test('what a caller says about itself is bounded, and what is malformed is nothing', async () => {
    const door = await openDoor({ agents: [scriptedAgent(async () => undefined)], rules: OPEN, clock: real as never });
    const { session } = await door.room();
    for (const caller of [
      7,
      [],
      { task_id: 3 },
      { task_id: 'x'.repeat(300) },
      { task_id: 't', event_hash: 'md5:1', hops: 'all' },
    ]) {
      const { status, body } = await door.call('POST', `/v1/sessions/${session}/tasks`, {
        input: says('go'),
        metadata: { tollbridge: { caller, tier: 'act_auto' } },
      });
      expect(status).toBe(202);
      await door.at.until(body.id);
      const [receipt] = await door.at.receipts(body.id);
      expect(verifyReceipt(receipt, { keys: door.at.runtime.keyring.jwks() }).valid).toBe(true);
      expect(JSON.stringify(linksOf(receipt!))).not.toContain('md5');
    }
  });
});

// biome-ignore lint/suspicious/noExplicitAny: documents are taken apart freely
type Loose = any;
