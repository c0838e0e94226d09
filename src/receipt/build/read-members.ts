/**
 * Reads members of payloads that may hold anything: imported events, agents with odd reports. A member of the wrong type counts
 * as absent; nothing here throws, because a receipt must be issued whatever was logged.
 */

import { asText } from '../../model/values/as-text.ts';
import { isObject } from '../../model/values/is-object.ts';
import { hashOf } from '../seal/canonical-json.ts';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;
const HASH = /^(?:sha256:)?([0-9a-f]{64})$/i;

export type Members = { readonly [key: string]: unknown };
const NONE: Members = Object.freeze({});

export function membersOf(value: unknown): Members {
  return isObject(value) ? (value as Members) : NONE;
}

/** Non-empty text that can be signed: half a surrogate pair has no canonical form and is replaced. */
export function text(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  return wellFormed(value);
}

export function count(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

/** Sums stop at the largest exact integer: an absurd report must not make the receipt impossible to write. */
export function sum(left: number | undefined, right: number | undefined): number | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return Math.min(left + right, Number.MAX_SAFE_INTEGER);
}

export function time(value: unknown): string | undefined {
  return typeof value === 'string' && TIME.test(value) && !Number.isNaN(Date.parse(value)) ? value : undefined;
}

/** A SHA-256 in any notation, as `sha256:<hex>`. */
export function sha256(value: unknown): string | undefined {
  const hex = typeof value === 'string' ? HASH.exec(value)?.[1] : undefined;
  return hex === undefined ? undefined : `sha256:${hex.toLowerCase()}`;
}

/** Undefined when the value is absent or has no canonical form. */
export function hashIfPossible(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  try {
    return hashOf(value);
  } catch {
    return undefined;
  }
}

/** Any JSON, with its text made signable and unsignable numbers written as text. */
export function signable(value: unknown): unknown {
  if (typeof value === 'string') return wellFormed(value);
  if (typeof value === 'number') return Number.isSafeInteger(value) || hashIfPossible(value) ? value : asText(value);
  if (Array.isArray(value)) return value.map((each) => signable(each) ?? null);
  if (typeof value !== 'object' || value === null)
    return typeof value === 'boolean' ? value : value === null ? null : undefined;
  const entries = Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
    const kept = signable(member);
    return kept === undefined ? [] : [[wellFormed(key), kept]];
  });
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function wellFormed(value: string): string {
  return (value as string & { toWellFormed(): string }).toWellFormed();
}
