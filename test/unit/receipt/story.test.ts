/** What a receipt tells of a task: the whole story, who approved what, and what nobody said. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { storyEvidence, storyInput, storyLog } from '../../../fixtures/receipts/story.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { buildReceipt } from '../../../src/receipt/build/build.ts';
import { copyOf, createEvidence, learn, type TaskEvidence } from '../../../src/receipt/build/evidence.ts';
import { replayInput } from '../../../src/receipt/build/materials.ts';
import { canonicalJson, hashOf } from '../../../src/receipt/seal/canonical-json.ts';
import { fits, receiptOf, reported, requested, sealed } from '../../support/receipts/from-events.ts';

const learned = (known: TaskEvidence, event: CoreEvent): TaskEvidence => {
  const more = copyOf(known);
  learn(more, event);
  return more;
};

describe('the story', () => {
  test('a task with everything in it becomes this receipt', () => {
    const evidence = storyEvidence();
    const receipt = buildReceipt(storyInput(evidence, { replay_input: replayInput(evidence, 'task_fix') }));
    const expected = readFileSync(new URL('../../../fixtures/receipts/receipt.json', import.meta.url), 'utf8');
    expect(receipt).toEqual(JSON.parse(expected));
  });

  test('folding in pieces, twice over, or all at once comes to the same', () => {
    const log = storyLog();
    const once = log.reduce(learned, createEvidence());
    const half = log.slice(0, 15).reduce(learned, createEvidence());
    expect(half.sequence).toBe(15);
    expect(half.cursor).toBe('evt_0000000000000015');
    expect(log.reduce(learned, half)).toEqual(once);
    expect(once.sequence).toBe(30);
  });

  test('what is learned on a copy is not known to what was copied', () => {
    const log = storyLog();
    const states = log.map((_, n) => log.slice(0, n).reduce(learned, createEvidence()));
    const before = states.map((state) => canonicalJson(buildReceipt(storyInput(state))));
    for (const state of states) log.reduce(learned, state);
    expect(states.map((state) => canonicalJson(buildReceipt(storyInput(state))))).toEqual(before);
  });

  test('the same input gives the same bytes', () => {
    const bytes = () => canonicalJson(buildReceipt(storyInput(storyEvidence())));
    expect(bytes()).toBe(bytes());
  });
});

describe('approvals', () => {
  const opened: [string, JsonObject] = [
    'vendor.tollbridge.ask_opened',
    { ask: { id: 'ask_1', kind: 'approval', action: { kind: 'tool', tool: 'deploy' }, question: 'May it?' } },
  ];
  const closed = (state: string): [string, JsonObject] => [
    'vendor.tollbridge.ask_closed',
    { ask_id: 'ask_1', state, by: 'user_ada', at: '2026-11-16T09:00:11.000Z' },
  ];

  test.each([
    ['approved', 'approved'],
    ['answered', 'approved'],
    ['denied', 'denied'],
    ['expired', 'timeout'],
    ['canceled', 'canceled'],
    ['a word never met', 'canceled'],
  ])('%s is reported as %s', (state, decision) => {
    expect(receiptOf(opened, closed(state)).approvals).toEqual([
      {
        approval_id: 'ask_1',
        action: 'tool:deploy',
        actor: 'user_ada',
        decided_at: '2026-11-16T09:00:11.000Z',
        decision,
        evidence_hash: hashOf({
          id: 'ask_1',
          kind: 'approval',
          action: { kind: 'tool', tool: 'deploy' },
          question: 'May it?',
        }),
        quorum_proof: decision === 'approved' ? { required: 1, satisfied: 1 } : null,
      },
    ]);
  });

  test('a question still open when the task ended was canceled by its end', () => {
    expect(receiptOf(opened).approvals).toMatchObject([
      { actor: 'gateway_test', decision: 'canceled', decided_at: '2026-11-16T09:01:20.000Z' },
    ]);
  });

  test('a question for a value is reported as an input, not as an approval', () => {
    const asked: [string, JsonObject] = ['vendor.tollbridge.ask_opened', { ask: { id: 'ask_1', kind: 'input' } }];
    const receipt = receiptOf(asked, closed('answered'));
    expect(receipt.approvals).toEqual([]);
    expect(receipt.metadata).toMatchObject({ inputs: { answered: 1 } });
  });
});

describe('what was not said', () => {
  test('an empty log makes a valid receipt that claims nothing', () => {
    const receipt = receiptOf();
    expect(fits(sealed(receipt))).toBe(true);
    expect(receipt.metadata).toEqual({
      chain: { scope: 'workspace', id: 'ws_shop' },
      evidence: { held: 0, asked: 0, observed: 0 },
      not_reported: ['usage', 'model'],
    });
    expect(receipt.cost).toEqual({ currency: 'USD', total: 0, provider_breakdown: [] });
    expect(receipt.autonomy_budget.consumed).toEqual({ tool_calls: 0, wall_time_ms: 80_000 });
    expect(receipt.model_route.chosen_model).toEqual({ provider: 'none', model: 'none' });
    expect(receipt.lifecycle.started_at).toBe('2026-11-16T09:00:00.000Z');
    expect(receipt.trust).toEqual({ start_tier: 'act_with_approval', end_tier: 'act_with_approval' });
  });

  test('tokens without money, and money without tokens, are distinguished', () => {
    const tokens = receiptOf(['vendor.tollbridge.usage', { provider: 'p', model: 'm', input_tokens: 5 }]);
    expect(tokens.metadata?.not_reported).toEqual(['cost']);
    expect(tokens.cost.provider_breakdown).toEqual([
      { provider: 'p', model: 'm', amount: 0, input_tokens: 5, metadata: { amount_not_reported: true } },
    ]);
    const money = receiptOf(['vendor.tollbridge.usage', { usd_micros: 5 }]);
    expect(money.metadata?.not_reported).toEqual(['tokens', 'model']);
    expect(money.autonomy_budget.consumed.usd).toBe(0.000005);
  });

  test('money is added in whole millionths', () => {
    const parts = Array.from({ length: 10 }, (): [string, JsonObject] => [
      'vendor.tollbridge.usage',
      { provider: 'p', usd_micros: 100_000 },
    ]);
    expect(receiptOf(...parts).cost.total).toBe(1);
  });

  test('flags come from the end and from the log', () => {
    const end = { state: 'CANCELED', still_running: true, not_reported: ['side_effects'] } as const;
    expect(buildReceipt(storyInput(createEvidence(), { end })).metadata).toMatchObject({
      still_running: true,
      not_reported: ['side_effects', 'usage', 'model'],
    });
    expect(receiptOf(['vendor.tollbridge.recovered', {}]).metadata).toMatchObject({ interrupted: true });
    expect(receiptOf(['vendor.tollbridge.passthrough', {}]).metadata).toMatchObject({ unmodelled_calls: 1 });
  });

  test('only what was all held, answered and recorded can be replayed byte for byte', () => {
    const span: [string, JsonObject] = ['span.completed', { span: { kind: 'llm', call_id: '1' }, response: 'yes' }];
    const answer: [string, JsonObject] = ['tool.completed', { tool_call_id: 'c', status: 'ok', output: 1 }];
    const determinism = (...events: [string, JsonObject, Partial<CoreEvent>?][]) =>
      replayInput(reported(events), 'task_fix').determinism;
    expect(determinism(span, requested(), answer)).toBe('byte_deterministic');
    expect(determinism(span, requested())).toBe('best_effort');
    expect(determinism(requested(), answer)).toBe('best_effort');
    expect(determinism(span, requested({ evidence: 'observed' }), answer)).toBe('best_effort');
    expect(determinism(span, ['note', {}, { metadata: { redactions: [{ field: '/a', reason: 'r' }] } }])).toBe(
      'best_effort',
    );
  });
});
