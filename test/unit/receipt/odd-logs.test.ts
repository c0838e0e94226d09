/** A log that holds anything at all still ends in a receipt that is valid and can be signed. */
import { describe, expect, test } from 'vitest';
import { storyInput, storyLog } from '../../../fixtures/receipts/story.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { buildReceipt } from '../../../src/receipt/build/build.ts';
import { createEvidence } from '../../../src/receipt/build/evidence.ts';
import { fits, receiptOf, sealed } from '../../support/receipts/from-events.ts';

describe('a log that holds anything', () => {
  const kinds = [...new Set(storyLog().map((each) => each.event)), 'artifact.updated', 'vendor.tollbridge.passthrough'];
  const oddities: unknown[] = [null, [], 'text', 7, { tool_call_id: 'c' }, { tool_call_id: 5 }, ODD()];

  function ODD() {
    const members = ['tool_call_id', 'name', 'input', 'output', 'ask', 'ask_id', 'action', 'decision', 'span', 'model'];
    members.push(
      'provider',
      'usd_micros',
      'input_tokens',
      'path',
      'type',
      'operation',
      'artifact',
      'task',
      'status',
      'by',
    );
    return Object.fromEntries(members.map((key) => [key, '\ud800']));
  }

  test.each(kinds)('%s with an odd payload still leaves a valid receipt', (kind) => {
    for (const payload of oddities) {
      const receipt = receiptOf([
        kind,
        payload as JsonObject,
        { trace_id: '\udc00', metadata: { redactions: [null, {}] } },
      ]);
      expect(fits(sealed(receipt)), JSON.stringify(payload)).toBe(true);
    }
  });

  test('absurd figures cannot make a receipt impossible', () => {
    const huge: [string, JsonObject] = [
      'vendor.tollbridge.usage',
      { provider: 'p', usd_micros: Number.MAX_SAFE_INTEGER, input_tokens: Number.MAX_SAFE_INTEGER },
    ];
    const receipt = receiptOf(huge, huge);
    expect(receipt.autonomy_budget.consumed.input_tokens).toBe(9007199254740991);
    expect(fits(sealed(receipt))).toBe(true);
  });

  test('a failure and metadata are made signable', () => {
    const receipt = buildReceipt(
      storyInput(createEvidence(), {
        end: { state: 'FAILED', failure: { code: 'odd', message: 'half \ud800', details: { n: 2 ** 60 } } },
        metadata: { note: '\udfff' },
      }),
    );
    expect(receipt.lifecycle).toMatchObject({
      final_state: 'FAILED',
      failure: { code: 'odd', message: 'half \ufffd', details: { n: '1152921504606847000' } },
    });
    expect(fits(sealed(receipt))).toBe(true);
  });

  test('what was merely too long for an event is not a result', () => {
    const artifact = { id: 'artifact_1', kind: 'other', sha256: 'A'.repeat(64), uri: null };
    expect(
      receiptOf(['artifact.created', { artifact: { ...artifact, metadata: { spilled: true } } }]).final_artifacts,
    ).toEqual([]);
    expect(receiptOf(['artifact.created', { artifact }]).final_artifacts).toEqual([
      { artifact_id: 'artifact_1', kind: 'other', uri: 'artifact://artifact_1', sha256: `sha256:${'a'.repeat(64)}` },
    ]);
  });
});
