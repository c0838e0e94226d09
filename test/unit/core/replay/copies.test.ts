/** Two gateways that hold copies of one log: the same replays, asked for in the same order, have the same receipts to the byte. */
import { cp } from 'node:fs/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createDemoAgent } from '../../../../src/demo/agent.ts';
import { createDemoTools } from '../../../../src/demo/tools.ts';
import type { CommandBody, ReplayOverride } from '../../../../src/model/commands.ts';
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { Receipt } from '../../../../src/model/receipt.ts';
import type { Json } from '../../../../src/model/schema.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { canonicalJson } from '../../../../src/receipt/seal/canonical-json.ts';
import { openKeyring } from '../../../../src/receipt/seal/keys.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  all,
  freshDir,
  openTestGateway,
  REAL_TIME,
  says,
  type TestGateway,
} from '../../../support/gateway/test-gateway.ts';
import { needsFile } from '../../../support/gateway/test-store.ts';
import { replay } from '../../../support/tasks/replay.ts';

needsFile();

const ASKS = `
- { id: ordinary, then: allow }
- { id: people, when: { kind: tool, tool: [delete_note, send_mail] }, then: ask, say: a person decides }
- { id: mended, when: { kind: tool, tool: write_note }, then: modify, set: { text: mended }, say: made safe }
`;

const parts = () => ({
  rules: ASKS,
  agents: [createDemoAgent({ pause: async () => {}, stepMs: 0 })],
  tools: [createDemoTools()],
  settings: { inlineLimit: 400 },
});

/** The canonical bytes without what is each gateway's own. */
function bytesOf({ signatures: _, ...receipt }: Receipt): string {
  return canonicalJson(receipt);
}

async function played(gateway: TestGateway, words: string, answers: readonly boolean[]): Promise<string> {
  const { id } = await gateway.submit(await gateway.session(), { input: says(words) });
  let asked = 0;
  await eventually(async () => {
    for (const ask of await gateway.openAsks()) {
      const approved = answers[asked++ % answers.length] ?? true;
      await gateway.answer(ask.id, ask.kind === 'input' ? { value: `answer ${asked}` } : { approved }).catch(() => {});
    }
    return ['COMPLETED', 'FAILED', 'CANCELED'].includes((await gateway.task(id)).status);
  });
  await gateway.runtime.idle();
  return id;
}

/** The same log under other keys, on another clock, in another life. */
async function copyOf(gateway: TestGateway): Promise<TestGateway> {
  const dir = await freshDir();
  await gateway.close();
  // A closed log is its one file; the driver removes the two beside it when it gets to it.
  const kept = (path: string) => !/\/(keys|leases)(\/|$)|-(shm|wal)$/.test(path);
  await cp(gateway.dir, dir, { recursive: true, filter: kept });
  const later = { now: () => new Date(Date.now() + 86_400_000).toISOString() };
  return await openTestGateway({ ...REAL_TIME, ...parts(), dir, clock: later });
}

type Override = readonly [string, ReplayOverride];

/** Keys of a record that an override may name, and a value of the right kind for each. */
function overridesIn(
  events: readonly CoreEvent[],
  canary: string,
  visibility: ReplayOverride['visibility'],
): Override[] {
  const found: Override[] = [
    ['time:started_at', { kind: 'time', value: '2026-04-25T19:16:14Z' }],
    ['time:completed_at', { kind: 'time', value: '2026-04-25T19:16:15Z' }],
  ];
  for (const { id, event, payload } of events) {
    const call = String(payload.tool_call_id);
    const input = { ...(visibility && { visibility }) };
    if (event === 'tool.completed' || event === 'tool.failed') {
      const value = { text: `the ${canary} note says ${canary}` };
      found.push([`host:${payload.name}:${call}`, { kind: 'tool_result', value, ...input }]);
    }
    if (event === 'span.completed') {
      const { call_id } = payload.span as { call_id: string };
      const value = { text: canary.length % 2 === 0 ? `${canary}` : `write ${canary} ${canary}` };
      found.push([`llm:${call_id}`, { kind: 'llm_provider_response', value, ...input }]);
    }
    if (event === 'vendor.tollbridge.ask_closed' && payload.state === 'answered') {
      found.push([`event:${id}`, { kind: 'event_payload', value: { ...payload, answer: canary }, ...input }]);
    }
    if (event === 'agent.message') {
      const message = { ...(payload.message as object), parts: [{ type: 'text', text: canary, visibility: 'public' }] };
      found.push([`event:${id}`, { kind: 'event_payload', value: { message } as Json, ...input }]);
    }
  }
  return found;
}

const CLAUSES = [
  ...['hello', 'read plan', 'read nothing', 'write plan Look twice', 'delete todo', 'send report to ana'],
  ...['artifact', 'ask what colour', 'wait 3', 'handoff to bea: read plan', 'fail out_of_paper'],
];

interface Wanted {
  readonly picks: readonly number[];
  readonly visibility: ReplayOverride['visibility'] | undefined;
  readonly even: boolean;
}

async function checkCopies(words: string, answers: readonly boolean[], plans: readonly Wanted[]): Promise<void> {
  const first = await openTestGateway({ ...REAL_TIME, ...parts() });
  const id = await played(first, words, answers);
  const second = await copyOf(first);
  const again = await openTestGateway({ ...REAL_TIME, ...parts(), dir: first.dir });
  const born = new Set<string>();
  for (const [number, plan] of plans.entries()) {
    const canary = `CANARY${number}${plan.even ? 'ab' : 'a'}`;
    const known = overridesIn(await again.events(id), canary, plan.visibility);
    const override = Object.fromEntries(plan.picks.map((pick) => known[pick % known.length]!));
    const body = { mode: 'with_overrides' as const, override };
    const reversed = { ...body, override: Object.fromEntries(Object.entries(override).reverse()) };
    const [here, there] = [await replay(again, id, body), await replay(second, id, reversed)];
    const what = JSON.stringify([override, here.failure]);
    expect([here.id, here.status, here.failure], what).toEqual([there.id, there.status, there.failure]);
    expect(here.failure?.code, what).not.toBe('replay_diverged');
    expect(bytesOf(await again.receipt(here.id)), what).toBe(bytesOf(await second.receipt(there.id)));
    for (const name of [here.id, here.outcome_id!, here.receipt_id!]) {
      expect(born.has(name), name).toBe(false);
      born.add(name);
    }
    if (plan.visibility === 'public') continue;
    const shown = JSON.stringify([await again.events(here.id), here, await again.receipt(here.id)]);
    expect(shown, what).not.toContain(canary);
  }
  const asks = await again.runtime.store.list<Row>({ object: 'ask', limit: 200 });
  expect(new Set(asks.map((ask) => ask.id)).size).toBe(asks.length);
  const ids = (await all(again.runtime.store.read({ stream: { of: 'all' } }))).map((event) => event.id);
  expect(new Set(ids).size).toBe(ids.length);
  await Promise.all([again.close(), second.close()]);
}

describe('copies of one log', () => {
  test('replay to the same bytes, under other keys, on another clock, and each with names of its own', async () => {
    const first = await openTestGateway({ ...REAL_TIME, ...parts() });
    const id = await played(first, 'read plan then write todo Sleep then ask what colour then artifact', [true]);
    const second = await copyOf(first);
    const again = await openTestGateway({ ...REAL_TIME, ...parts(), dir: first.dir });
    const bodies: Partial<CommandBody<'task.replay'>>[] = [
      {},
      {},
      {
        mode: 'with_overrides',
        override: Object.fromEntries(overridesIn(await again.events(id), 'x', 'public').slice(0, 2)),
      },
    ];
    const names: string[] = [];
    for (const body of bodies) {
      const [here, there] = [await replay(again, id, body), await replay(second, id, body)];
      expect(here.id).toBe(there.id);
      expect(here.outcome_id).toBe(there.outcome_id);
      const [one, two] = [await again.receipt(here.id), await second.receipt(there.id)];
      expect(bytesOf(one)).toBe(bytesOf(two));
      // Signed by keys that are not the same; neither is named in what is signed.
      expect(one.signatures![0]!.key_id).not.toBe(two.signatures![0]!.key_id);
      expect(one.issuer).not.toHaveProperty('public_key_id');
      names.push(here.id, here.outcome_id!, here.receipt_id!);
    }
    expect(new Set(names).size).toBe(names.length);
    expect((await openKeyring({ dir: `${second.dir}/keys`, now: () => 'now' })).signer().keyId).toBe(
      (await second.receipt((await replay(second, id)).id)).signatures![0]!.key_id,
    );
  });

  test('whose chains differ: only the place in the chain does', async () => {
    const first = await openTestGateway({ ...REAL_TIME, ...parts() });
    const id = await played(first, 'read plan', [true]);
    const second = await copyOf(first);
    const again = await openTestGateway({ ...REAL_TIME, ...parts(), dir: first.dir });
    // Another receipt of the same workspace in one of them.
    const { session_id } = await again.task(id);
    await again.until((await again.submit(session_id, { input: says('hello') })).id);
    const [here, there] = [await replay(again, id), await replay(second, id)];
    const [one, two] = [await again.receipt(here.id), await second.receipt(there.id)];
    expect(one.chain.previous_receipt_hash).not.toBe(two.chain.previous_receipt_hash);
    const unchained = ({ chain: _, ...receipt }: Receipt) => bytesOf(receipt as Receipt);
    expect(unchained(one)).toBe(unchained(two));
  });

  test('any work of the demo agent, any overrides', { timeout: 240_000 }, async () => {
    const words = fc
      .array(fc.constantFrom(...CLAUSES), { minLength: 1, maxLength: 4 })
      .map((steps) => steps.join(' then '));
    const answers = fc.array(fc.boolean(), { minLength: 1, maxLength: 3 });
    const visibility = fc.constantFrom('public' as const, 'internal' as const, 'receipt_only' as const, undefined);
    const wanted = fc.record({
      picks: fc.array(fc.nat(40), { minLength: 1, maxLength: 3 }),
      visibility,
      even: fc.boolean(),
    });
    const property = fc.asyncProperty(words, answers, fc.array(wanted, { minLength: 1, maxLength: 3 }), checkCopies);
    await fc.assert(property, { numRuns: 12 });
  });
});

test('what an approver changed is what every copy replays: the same bytes twice, and never the arguments that were asked about', async () => {
  const gateway = await openTestGateway({ ...REAL_TIME, ...parts() });
  const { id } = await gateway.submit(await gateway.session(), { input: says('send the plan to bo') });
  await eventually(async () => (await gateway.openAsks()).length > 0);
  const [ask] = await gateway.openAsks();
  await gateway.answer(ask!.id, { approved: true, arguments: { to: 'cy', text: 'the other plan' } });
  await eventually(async () => (await gateway.task(id)).status === 'COMPLETED');
  await gateway.runtime.idle();
  const twin = await copyOf(gateway);
  const again = await openTestGateway({ ...REAL_TIME, ...parts(), dir: gateway.dir });
  const reported: string[] = [];
  for (const one of [again, twin]) {
    for (let count = 0; count < 2; count += 1) {
      const task = await replay(one, id);
      expect(task.status, JSON.stringify(task.failure)).toBe('COMPLETED');
      const approved = (await one.events(task.id)).filter(({ event }) => event === 'tool.approved').at(-1);
      expect(approved?.payload).toMatchObject({ input: { to: 'cy', text: 'the other plan' } });
      reported.push(bytesOf(await one.receipt(task.id)));
    }
  }
  expect(reported.slice(2)).toEqual(reported.slice(0, 2));
});
