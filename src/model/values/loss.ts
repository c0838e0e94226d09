/**
 * What a translation could not carry, on the event it concerns: `loss` of its payload. One entry for each aspect of the work that is
 * narrower here than on the other side, or missing; an event without `loss` was carried whole. Written where something is dropped,
 * never because of the name of a protocol.
 */
import type { Json, JsonObject } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { isObject } from './is-object.ts';

/** The aspects of work in which two accounts of it can differ. */
export const LOSS_ASPECTS = [
  'arguments',
  'results',
  'decisions',
  'effects',
  'files',
  'usage',
  'failure',
  'report',
] as const;
export type LossAspect = (typeof LOSS_ASPECTS)[number];

export const LossShape = Type.Object({
  aspect: Type.Unsafe<LossAspect>({ type: 'string', enum: [...LOSS_ASPECTS] }),
  /** What is missing and why, in a sentence. */
  why: Type.String(),
});
export type Loss = Static<typeof LossShape>;

/** The losses an event states. A log may hold events from elsewhere: what has another shape is not one. */
export function lossIn({ loss, not_reported }: JsonObject): readonly Loss[] {
  const stated = listOf(loss).filter(isLoss);
  // Sentences about a whole run, which receipts repeat.
  const reports = listOf(not_reported).filter((why) => typeof why === 'string');
  return [...stated, ...reports.map((why): Loss => ({ aspect: 'report', why: why as string }))];
}

function isLoss(value: Json): value is Loss & JsonObject {
  return isObject(value) && typeof value.aspect === 'string' && typeof value.why === 'string';
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
