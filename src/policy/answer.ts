/** Is this a decision? Engines outside may answer anything; only a known word with a reason counts. */
import type { Decision } from '../model/actions.ts';
import type { JsonObject } from '../model/schema.ts';
import type { PolicyEngine } from '../ports.ts';
import { block, isPure, rank } from './engine.ts';

/** What is left of it goes into the log. */
const MAX_REASON_CHARS = 2_000;

/** Our own engines are taken at their word; what comes from outside is taken apart and only its known parts kept. */
export function checked(engine: PolicyEngine, value: unknown): Decision {
  if (isPure(engine) && isSound(value)) return value;
  if (isSound(value)) return knownParts(engine.name, value);
  return block(engine.name, 'policy_error', `${engine.name} answered with something that is not a decision`);
}

function isSound(value: unknown): value is Decision {
  if (!isRecord(value)) return false;
  const { verdict, reason, arguments: args } = value;
  return (
    typeof reason === 'string' &&
    typeof verdict === 'string' &&
    rank(verdict) >= 0 &&
    (args === undefined ? verdict !== 'modify' : isRecord(args)) &&
    // Whom to ask, said so that nobody can tell whom: dropping it would let anyone answer.
    (value.ask === undefined || (isRecord(value.ask) && namesPeople(value.ask.to)))
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

function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
