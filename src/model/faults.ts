/**
 * What can go wrong, in our words. Every wire has its own words for each kind, in its mapping table.
 * A policy that says no is not a fault; it is a decision.
 */
import type { JsonObject } from './schema.ts';

export const FAULT_KINDS = [
  'invalid_request',
  'invalid_state_transition',
  'unauthenticated',
  'permission_denied',
  'not_found',
  'conflict',
  'idempotency_key_reused',
  'cursor_expired',
  'payload_too_large',
  'policy_violation',
  'locked',
  'unsupported_version',
  'rate_limited',
  'client_closed',
  'internal',
  'upstream_unavailable',
  'unavailable',
  'deadline_exceeded',
  'not_implemented',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface FaultDetail {
  /** The member of the request that is wrong, as a JSON Pointer or a name. */
  readonly param?: string;
  readonly details?: JsonObject;
  readonly cause?: unknown;
}

export class Fault extends Error {
  readonly kind: FaultKind;
  readonly param: string | undefined;
  readonly details: JsonObject | undefined;

  constructor(kind: FaultKind, message: string, { param, details, cause }: FaultDetail = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'Fault';
    this.kind = kind;
    this.param = param;
    this.details = details;
  }
}

/** Anything unplanned is ours: the caller hears "internal", its own message stays behind as the cause. */
export function asFault(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown;
  return new Fault('internal', 'something went wrong inside the bridge', { cause: thrown });
}
