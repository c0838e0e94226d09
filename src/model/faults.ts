/**
 * Errors, in our words. Every wire has its own words for each kind, in its mapping table. A policy refusal is not a fault; it is a
 * decision.
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
  /** The invalid member of the request, as a JSON Pointer or a name. */
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

/**
 * The member a fault is about, named as in the protocol's own example: `session_id`, and `message.parts.0.visibility` where it is
 * nested. Null when no single member is wrong. Names that are not pointers, like those of headers, stay as they are.
 */
export function fieldName(param: string | undefined): string | null {
  if (!param?.startsWith('/')) return param ?? null;
  const members = param.split('/').filter((member) => member !== '');
  return members.map((member) => member.replaceAll('~1', '/').replaceAll('~0', '~')).join('.') || null;
}

/** Every unplanned error is our failure: the caller receives "internal", and the original error stays in the fault as its cause. */
export function asFault(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown;
  return new Fault('internal', 'something went wrong inside the bridge', { cause: thrown });
}
