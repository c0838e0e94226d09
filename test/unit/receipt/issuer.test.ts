import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storyLog } from '../../../fixtures/receipts/story.ts';
import type { CoreEvent, EventDraft } from '../../../src/model/events.ts';
import type { Task } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type {
  ChainHead,
  ReceiptClaim,
  ReceiptIssuer,
  ReceiptQuery,
  StoredReceipt,
  TreeNode,
} from '../../../src/ports/index.ts';
import { createIssuer } from '../../../src/receipt/build/issuer.ts';
import { verifyInclusion } from '../../../src/receipt/merkle/proofs.ts';
import { canonicalJson, hashOf } from '../../../src/receipt/seal/canonical-json.ts';
import { type Keyring, openKeyring } from '../../../src/receipt/seal/keys.ts';
import { createStoredVerifier } from '../../../src/receipt/verify/stored.ts';
import { verifyReceipt } from '../../../src/receipt/verify/verify.ts';

let dir: string;
let keyring: Keyring;
let issuer: ReceiptIssuer;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'issuer-'));
  keyring = await openKeyring({ dir: join(dir, 'keys'), now: () => '2026-11-16T09:02:00.000Z' });
  issuer = createIssuer({
    signer: keyring.signer(),
    issuer: { id: 'gateway_test', kind: 'harness' },
    source: 'tollbridge',
  });
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const log = storyLog();
const task = (log[1]!.payload as { task: Task }).task;
const times = {
  created_at: '2026-11-16T09:00:00.000Z',
  started_at: '2026-11-16T09:00:01.000Z',
  completed_at: '2026-11-16T09:01:20.000Z',
  issued_at: '2026-11-16T09:01:20.000Z',
};
const claim = (more: Partial<ReceiptClaim> = {}): ReceiptClaim => ({
  receipt_id: 'receipt_1',
  task,
  final_state: 'SUCCEEDED',
  times,
  tiers: { start: 'act_with_approval', end: 'act_auto' },
  last: [],
  ...more,
});
const head = { previous: null, index: 3, tree: { size: 0, frontier: [] } };
function account(events: readonly CoreEvent[]) {
  const fresh = issuer.account();
  for (const event of events) fresh.add(event);
  return fresh;
}

describe('an account', () => {
  test('takes events in order, each once, and leaves gaps to a later reading', () => {
    const running = account([log[0]!, log[1]!, log[3]!, log[1]!]);
    expect(running.sequence).toBe(2);
    for (const event of log) running.add(event);
    expect(running.sequence).toBe(30);
    expect(canonicalJson(running.seal(claim(), head).receipt)).toBe(
      canonicalJson(account(log).seal(claim(), head).receipt),
    );
  });

  test('knows which calls have no end yet, and which of them may have happened', () => {
    const upTo = (sequence: number) => account(log.filter((event) => event.sequence <= sequence)).open();
    expect(upTo(4)).toEqual([]);
    expect(upTo(6)).toEqual([{ tool_call_id: 'call_1', name: 'read_file', cleared: true }]);
    expect(upTo(16)).toEqual([{ tool_call_id: 'call_3', name: 'deploy', cleared: false }]);
    expect(upTo(18)).toEqual([{ tool_call_id: 'call_3', name: 'deploy', cleared: false }]);
    expect(upTo(19)).toEqual([{ tool_call_id: 'call_3', name: 'deploy', cleared: true }]);
    // The denied call has no end and wants none.
    expect(upTo(30)).toEqual([]);
  });

  test('seals what it knows, and can do so again', () => {
    const running = account(log);
    const sealed = running.seal(claim({ tenant_id: 'tenant_1' }), head);
    expect(sealed).toMatchObject({ id: 'receipt_1', task_id: 'task_fix', hash: sealed.receipt.chain.receipt_hash });
    expect(sealed.receipt).toMatchObject({
      issuer: { id: 'gateway_test', public_key_id: keyring.signer().keyId },
      identifiers: { tenant_id: 'tenant_1', persona_ref: 'persona_fixer', workspace_ref: 'ws_shop' },
      trust: { start_tier: 'act_with_approval', end_tier: 'act_auto', policy_ref: 'policy_7' },
      metadata: { chain: { scope: 'workspace', id: 'ws_shop', index: 3 } },
      replay_input: { determinism: 'best_effort' },
    });
    expect(verifyReceipt(sealed.receipt, { keys: keyring.jwks() }).valid).toBe(true);
    expect(running.seal(claim({ tenant_id: 'tenant_1' }), head)).toEqual(sealed);
  });

  test('counts the events of the commit that ends the task without taking them in', () => {
    const running = account(log.filter((event) => event.sequence <= 16));
    const location = { resource: { object: 'task', id: 'task_fix' }, task_id: 'task_fix' };
    const draft = (event: string, payload: JsonObject): EventDraft => ({ ...location, event, payload }) as EventDraft;
    const last = [
      draft('vendor.tollbridge.ask_closed', {
        ask_id: 'ask_1',
        state: 'canceled',
        by: 'bridge',
        at: times.completed_at,
      }),
      draft('tool.failed', { tool_call_id: 'call_3', name: 'deploy', status: 'error', code: 'canceled' }),
    ];
    const { receipt } = running.seal(
      claim({ final_state: 'CANCELED', last, still_running: true, interrupted: true }),
      head,
    );
    expect(receipt.approvals).toMatchObject([{ approval_id: 'ask_1', actor: 'bridge', decision: 'canceled' }]);
    expect(receipt.side_effects.tool_calls.at(-1)).toMatchObject({
      call_id: 'call_3',
      status: 'canceled',
      metadata: { code: 'canceled', stopped_while: 'waiting_for_approval' },
    });
    expect(receipt.metadata).toMatchObject({ still_running: true, interrupted: true });
    expect(running.open()).toHaveLength(1);
    expect(running.sequence).toBe(16);
  });

  test('a failure is reported as the task tells it', () => {
    const failed = { ...task, failure: { code: 'agent_crashed', message: 'it went away' } };
    const { receipt } = account(log).seal(claim({ final_state: 'FAILED', task: failed }), head);
    expect(receipt.lifecycle).toMatchObject({ final_state: 'FAILED', failure: { code: 'agent_crashed' } });
  });
});

describe('a replay', () => {
  const replay = {
    source_task_id: 'task_fix',
    mode: 'exact',
    source_hash: hashOf('the log'),
    deltas: [],
    materials: [],
  } as const;

  test('comes out the same under any key', async () => {
    const other = await openKeyring({ dir: join(dir, 'other'), now: () => '2026-11-16T11:00:00.000Z' });
    const elsewhere = createIssuer({
      signer: other.signer(),
      issuer: { id: 'gateway_test', kind: 'harness' },
      source: 'tollbridge',
    }).account();
    for (const event of log) elsewhere.add(event);
    const here = account(log).seal(claim({ replay }), head);
    const there = elsewhere.seal(claim({ replay }), head);
    expect(there.hash).toBe(here.hash);
    expect(there.receipt.signatures).not.toEqual(here.receipt.signatures);
    expect(here.receipt).toMatchObject({
      subject: { object: 'replay_segment', id: 'task_fix' },
      replay_input: {
        determinism: 'byte_deterministic',
        materials: [{ kind: 'event_log', id: 'event_log_task_fix', sha256: hashOf('the log') }],
      },
    });
  });

  test('that lacked something says what', () => {
    const { receipt } = account(log).seal(
      claim({ final_state: 'FAILED', replay: { ...replay, unavailable: 'event evt_7 is gone' } }),
      head,
    );
    expect(receipt.replay_input).toMatchObject({
      determinism: 'unavailable',
      unavailable_reason: 'event evt_7 is gone',
    });
  });
});

test('hashes are those of the canonical form', () => {
  expect(issuer.hash({ b: 1, a: 2 })).toBe('sha256:d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772');
});

describe('a stored receipt', () => {
  /** What a store keeps of receipts, with room to tamper. */
  function archive(size: number) {
    const kept: StoredReceipt[] = [];
    const nodes: TreeNode[] = [];
    const events = log.filter(({ resource }) => resource.object === 'task' && resource.id === task.id);
    let tree: ChainHead['tree'] = { size: 0, frontier: [] };
    for (let position = 0; position < size; position += 1) {
      const before = kept.at(-1)?.hash ?? null;
      const at = { previous: before, index: position, tree };
      const sealed = account(log).seal(claim({ receipt_id: `receipt_${position}` }), at);
      kept.push({ position, chain: 'ws_shop', index: position, hash: sealed.hash, receipt: sealed.receipt });
      nodes.push(...sealed.nodes);
      tree = sealed.tree;
    }
    const store = {
      receipts: async ({ chain, index, after = -1, limit = 50 }: ReceiptQuery) =>
        kept
          .filter((each) => each.chain === chain && each.position > after && (index ?? each.index) === each.index)
          .slice(0, limit),
      tree: async () => tree,
      nodes: async (wanted: readonly { level: number; index: number }[]) =>
        wanted.flatMap(({ level, index }) => nodes.filter((node) => node.level === level && node.index === index)),
      firstMissing: async () => undefined,
      async *read() {
        yield* events;
      },
    };
    return { kept, nodes, events, verify: createStoredVerifier({ store, keys: () => keyring.jwks() }) };
  }

  test('verifies with its predecessor and its place in the tree, which anyone can check', async () => {
    const { kept, verify } = archive(5);
    for (const stored of kept) {
      const report = await verify(stored, {});
      expect(report).toMatchObject({ valid: true, details: { chain: stored.index === 0 ? 'first' : 'ok' } });
      const { root, status, ...proof } = report.details.tree;
      expect(status).toBe('ok');
      expect(verifyInclusion(stored.hash, proof, root)).toBe(true);
    }
  });

  test('reaches an anchor further back, and no other', async () => {
    const { kept, verify } = archive(5);
    expect((await verify(kept[4]!, { trustAnchor: kept[0]!.hash })).details.trust_anchor).toBe('reached');
    expect(await verify(kept[0]!, { trustAnchor: kept[4]!.hash })).toMatchObject({
      valid: false,
      reason: 'chain_mismatch',
    });
  });

  test('is found out when it, the one before it or the tree was changed', async () => {
    const edited = archive(3);
    edited.kept[1] = {
      ...edited.kept[1]!,
      receipt: { ...edited.kept[1]!.receipt, issued_at: '2026-11-16T09:01:21.000Z' },
    };
    expect(await edited.verify(edited.kept[1]!, {})).toMatchObject({ valid: false, reason: 'hash_mismatch' });
    expect(await edited.verify(edited.kept[2]!, {})).toMatchObject({ valid: false, reason: 'chain_mismatch' });

    const deleted = archive(3);
    const last = deleted.kept[2]!;
    deleted.kept.splice(1, 1);
    expect(await deleted.verify(last, {})).toMatchObject({ valid: false, reason: 'chain_mismatch' });

    const uprooted = archive(3);
    uprooted.nodes[0] = { ...uprooted.nodes[0]!, hash: hashOf('another') };
    expect(await uprooted.verify(uprooted.kept[1]!, {})).toMatchObject({
      valid: false,
      reason: 'merkle_mismatch',
      details: { tree: { status: 'mismatch' } },
    });
    const changed = archive(3);
    expect((await changed.verify(changed.kept[1]!, {})).details.events).toBe('ok');
    changed.events[4] = { ...changed.events[4]!, actor: 'another' };
    expect(await changed.verify(changed.kept[1]!, {})).toMatchObject({
      valid: false,
      reason: 'events_mismatch',
      details: { events: 'mismatch' },
    });
    uprooted.nodes.length = 0;
    expect(await uprooted.verify(uprooted.kept[1]!, {})).toMatchObject({ valid: false, reason: 'merkle_mismatch' });
  });
});
