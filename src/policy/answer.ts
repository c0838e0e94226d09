/** Checks whether a value is a decision. External engines may answer anything; only a known verdict with a reason counts. */

import type { Decision } from '../model/actions.ts';
import { isObject } from '../model/values/is-object.ts';
import type { PolicyEngine } from '../ports/index.ts';
import { block, isPure, rank } from './engine.ts';

/** A reason goes into the log, so it is cut to this length. */
const MAX_REASON_CHARS = 2_000;

/** Decisions of our own engines are used as they are; from an external engine's answer only the known members are kept. */
export function checked(engine: PolicyEngine, value: unknown): Decision {
  if (isPure(engine) && isSound(value)) return value;
  if (isSound(value)) return knownParts(engine.name, value);
  return block(engine.name, 'policy_error', `${engine.name} answered with something that is not a decision`);
}

function isSound(value: unknown): value is Decision {
  if (!isObject(value)) return false;
  const { verdict, reason, arguments: args } = value;
  return (
    typeof reason === 'string' &&
    typeof verdict === 'string' &&
    rank(verdict) >= 0 &&
    (args === undefined ? verdict !== 'modify' : isObject(args)) &&
    // An unreadable list of approvers invalidates the decision: dropping the list would let anyone answer.
    (value.ask === undefined || (isObject(value.ask) && namesPeople(value.ask.to)))
  );
}

function namesPeople(to: unknown): boolean {
  return to === undefined || (Array.isArray(to) && (to.length === 0 || to.some(isName)));
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function knownParts(engine: string, said: Decision): Decision {
  const { verdict, reason, code, rule_id, policy_version, arguments: args, retry_after_ms, ask: people } = said;
  const to = (people?.to ?? []).filter(isName);
  const expires = duration(people?.expires_ms);
  const wait = duration(retry_after_ms);
  return {
    verdict,
    reason: reason.slice(0, MAX_REASON_CHARS),
    engine,
    ...(typeof code === 'string' && { code }),
    ...(typeof rule_id === 'string' && { rule_id }),
    ...(typeof policy_version === 'string' && { policy_version }),
    ...(args !== undefined && { arguments: args }),
    ...(wait !== undefined && { retry_after_ms: wait }),
    ...((to.length > 0 || expires !== undefined) && {
      ask: { ...(to.length > 0 && { to }), ...(expires !== undefined && { expires_ms: expires }) },
    }),
  };
}

function duration(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}
