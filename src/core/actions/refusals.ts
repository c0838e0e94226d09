/** Refusals of the gate as faults: of new work, and of requests that come too fast. */
import type { Decision } from '../../model/actions.ts';
import { Fault } from '../../model/faults.ts';
import type { JsonObject } from '../../model/schema.ts';

/** The request exceeds a rate limit: its sender has to retry later. */
export function tooMany({ verdict, code }: Decision): boolean {
  return verdict === 'defer' && code === 'rate_limited';
}

export function tooManyRequests({ reason, code, retry_after_ms }: Decision): Fault {
  const details = { code: code ?? null, rule_id: null, ...(retry_after_ms !== undefined && { retry_after_ms }) };
  return new Fault('rate_limited', reason, { details });
}

/** A refusal of new work is a fault in the caller's protocol, unless the caller asked for a task that records it. */
export function refusal(verdict: 'block' | 'defer', reason: string, details: JsonObject): Fault {
  return new Fault(verdict === 'defer' ? 'rate_limited' : 'policy_violation', reason, { details });
}
