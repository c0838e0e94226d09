/** Receipts built from a few events, applied one after the other. */
import { storyInput } from '../../../fixtures/receipts/story.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import { Receipt } from '../../../src/model/receipt.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { validator } from '../../../src/model/validate.ts';
import { buildReceipt, type UnsealedReceipt } from '../../../src/receipt/build/build.ts';
import { createEvidence, learn } from '../../../src/receipt/build/evidence.ts';
import { sealReceipt } from '../../../src/receipt/seal/seal.ts';

export const fits = validator(Receipt);

export const signer = {
  keyId: 'key_test',
  sign: () => ({ key_id: 'key_test', algorithm: 'none', signature: 'none' }),
  mac: () => 'none',
};

export const head = { previous: null, index: 0, tree: { size: 0, frontier: [] } };
export const sealed = (receipt: UnsealedReceipt) => sealReceipt(receipt, head, signer).receipt;
export const AT = '2026-11-16T09:00:10.000Z';

function event(n: number, kind: string, payload: JsonObject, more: Partial<CoreEvent> = {}): CoreEvent {
  return {
    id: `evt_${String(n).padStart(16, '0')}`,
    object: 'event',
    created_at: AT,
    updated_at: AT,
    metadata: {},
    event: kind,
    resource: { object: 'task', id: 'task_fix' },
    sequence: n,
    payload,
    ...more,
  } as CoreEvent;
}

export function reported(events: readonly [kind: string, payload: JsonObject, more?: Partial<CoreEvent>][]) {
  const known = createEvidence();
  for (const [n, [kind, payload, more]] of events.entries()) learn(known, event(n + 1, kind, payload, more));
  return known;
}

export const receiptOf = (...events: [string, JsonObject, Partial<CoreEvent>?][]) =>
  buildReceipt(storyInput(reported(events)));

export const requested = (more: JsonObject = {}): [string, JsonObject] => [
  'tool.requested',
  {
    tool_call_id: 'c',
    name: 'deploy',
    kind: 'tool',
    input: { env: 'prod' },
    effect: 'publish',
    evidence: 'held',
    ...more,
  },
];
