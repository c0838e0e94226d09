/** Receipts, of replays too, have the shape the format publishes. */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { storyEvidence, storyInput } from '../../../fixtures/receipts/story.ts';
import { buildReceipt } from '../../../src/receipt/build/build.ts';
import { createEvidence } from '../../../src/receipt/build/evidence.ts';
import { replayInput } from '../../../src/receipt/build/materials.ts';
import { canonicalJson, hashOf } from '../../../src/receipt/seal/canonical-json.ts';
import { sealReceipt } from '../../../src/receipt/seal/seal.ts';
import { AT, fits, head, reported, sealed, signer } from '../../support/receipts/from-events.ts';

const harn = new URL('../../../fixtures/harn/', import.meta.url);

describe('the schema', () => {
  test('built receipts fit ours, and the published one', () => {
    const evidence = storyEvidence();
    const receipts = [
      buildReceipt(storyInput(evidence, { replay_input: replayInput(evidence, 'task_fix') })),
      buildReceipt(storyInput(evidence, { budget_limit: { usd: 2 }, subject: { object: 'outcome', id: 'o' } })),
      buildReceipt(storyInput(createEvidence(), { end: { state: 'CANCELED' } })),
      buildReceipt(replayFixtureInput()),
    ].map(sealed);
    for (const receipt of receipts) expect(fits(receipt)).toBe(true);

    const published = new URL('agents-protocol-receipts/schemas/receipt-2026-04-25.schema.json', harn);
    const ajv = new Ajv2020({ strict: false });
    formats.default(ajv);
    const theirs = ajv.compile(JSON.parse(readFileSync(published, 'utf8')));
    for (const receipt of receipts) {
      theirs(receipt);
      expect(theirs.errors ?? []).toEqual([]);
    }
  });

  test('one wrong member is enough not to fit', () => {
    const receipt = sealed(buildReceipt(storyInput(createEvidence())));
    expect(fits({ ...receipt, extra: 1 })).toBe(false);
    expect(fits({ ...receipt, chain: { previous_receipt_hash: null } })).toBe(false);
  });
});

describe('replays', () => {
  test('the published replay receipt is what the builder makes, chain and signatures aside', () => {
    const receipt = buildReceipt(replayFixtureInput());
    expect(hashOf(receipt)).toBe('sha256:5bc37ce8347cfec1f1148d54aa13604b099b2a3fb775813bbe3df860bb5b9eac');
    const published = new URL('agents-protocol-replay/fixtures/valid/task-replay-receipt.json', harn);
    const { chain: _, signatures: __, ...body } = JSON.parse(readFileSync(published, 'utf8'));
    expect(canonicalJson(receipt)).toBe(canonicalJson(body));
  });

  test('a replay does nothing again: no approvals, no effects, no cost, no trace of its own', () => {
    const replay = { source: 'tollbridge', source_task_id: 'task_source', mode: 'exact' } as const;
    const receipt = buildReceipt(storyInput(storyEvidence(), { replay, times: { completed_at: AT } }));
    expect(receipt).not.toHaveProperty('approvals');
    expect(receipt.identifiers).not.toHaveProperty('trace_id');
    expect(receipt.issued_at).toBe(AT);
    expect(receipt.side_effects).toEqual({ fs_writes: [], network_egress: [], tool_calls: [], a2a_handoffs: [] });
    expect(receipt.cost).toEqual({ currency: 'USD', total: 0, provider_breakdown: [] });
    expect(receipt.redactions).toEqual([]);
    expect(receipt.deltas).toEqual([]);
    expect(receipt.metadata).toEqual({ source: 'tollbridge', source_task_id: 'task_source', replay_mode: 'exact' });
    expect(receipt.model_route.route_policy_reason).toBe('replayed from recorded provider response');
  });

  test('sealing puts a place into metadata only where there is one', () => {
    const replay = { source: 'tollbridge', source_task_id: 'task_source', mode: 'exact' } as const;
    const placed = sealReceipt(buildReceipt(storyInput(createEvidence())), { ...head, index: 7 }, signer);
    expect(placed.receipt.metadata?.chain).toEqual({ scope: 'workspace', id: 'ws_shop', index: 7 });
    const unplaced = sealReceipt(buildReceipt(storyInput(createEvidence(), { replay })), head, signer);
    expect(unplaced.receipt.metadata).not.toHaveProperty('chain');
  });
});

/** The published replay fixture. Its hashes are not of anything: they are handed in as it prints them. */
function replayFixtureInput() {
  const of = (digit: string) => `sha256:${digit.repeat(64)}`;
  const artifact = { id: 'artifact_replay_output', kind: 'dataset', uri: null, sha256: 'd'.repeat(64) };
  const model = { provider: 'fixture', model: 'replay-fixture' };
  const evidence = reported([
    ['artifact.created', { artifact }],
    ['span.completed', { span: { kind: 'llm', call_id: 'main:1' }, model }],
  ]);
  return {
    receipt_id: 'receipt_replay_01JZ6Y3B5K0QJ9GM61VZKX7P6G',
    evidence,
    task: {
      id: 'task_replay_01JZ6Y2ZKMB8H8DMXBGXR1FPGS',
      session_id: 'session_replay_fixture',
      workspace_id: 'workspace_replay_fixture',
      created_at: '2026-04-25T19:16:10Z',
    },
    end: { state: 'COMPLETED' as const },
    times: { started_at: '2026-04-25T19:16:14Z', completed_at: '2026-04-25T19:17:33Z' },
    issuer: {
      id: 'harness_conformance',
      kind: 'harness' as const,
      name: 'Harn replay conformance',
      version: 'agents-protocol-2026-04-25',
    },
    identifiers: { trace_id: 'trace_replay_fixture' },
    trust: {
      start_tier: 'act_auto' as const,
      end_tier: 'act_auto' as const,
      policy_ref: 'policy_replay_conformance',
    },
    replay_input: {
      determinism: 'byte_deterministic' as const,
      materials: [
        {
          kind: 'event_log' as const,
          id: 'event_log_source_task',
          uri: 'artifact://artifact_event_log_source_task',
          sha256: of('c'),
          content_type: 'application/jsonl',
        },
        {
          kind: 'llm_provider_response' as const,
          id: 'llm:main:1',
          sha256: of('a'),
          metadata: { override_key: 'llm:main:1' },
        },
      ],
    },
    deltas: [
      {
        delta_id: 'delta_llm_main_1',
        operation: 'replace' as const,
        path: '/replay_input/materials/llm:main:1',
        override_key: 'llm:main:1',
        event_id: 'event_01JZ7001',
        before_sha256: of('1'),
        after_sha256: of('a'),
        reason: 'agents-protocol replay conformance fixture',
      },
      {
        delta_id: 'delta_time_started_at',
        operation: 'replace' as const,
        path: '/lifecycle/started_at',
        override_key: 'time:started_at',
        event_id: 'event_01JZ7000',
        before_sha256: of('2'),
        after_sha256: of('b'),
        reason: 'pin replay clock',
      },
    ],
    replay: {
      source: 'agents-protocol-replay-conformance-fixture',
      source_task_id: 'task_source_01JZ6Y2ZKMB8H8DMXBGXR1FPGS',
      mode: 'with_overrides' as const,
    },
  };
}
