/**
 * The one place policy is consulted. Whatever goes wrong here is a no with a reason; nothing thrown leaves.
 * Its callers write the decision down in the same commit as what it is about, and only then act.
 */
import type { Action, Actor, Decision } from '../model/actions.ts';
import type { EventDraft } from '../model/events.ts';
import type { DecidedPayload } from '../model/payloads.ts';
import type { JsonObject } from '../model/schema.ts';
import { VERDICTS } from '../model/words.ts';
import type { Logger, PolicyEngine } from '../ports.ts';

export interface GateDeps {
  readonly policy: PolicyEngine;
  readonly timeoutMs: number;
  readonly log: Logger;
  /** Keyed, so that the log holds proof of the arguments and not the arguments. */
  readonly digest: (args: JsonObject) => string;
}
/** At once where the rules alone decide. `withinMs`: the asker cannot wait longer than that. */
export type Gate = (action: Action, withinMs?: number) => Decision | Promise<Decision>;

/** After its time is up an engine that was told so may still say what its own silence means. */
const LAST_WORD_MS = 100;

export function createGate({ policy, timeoutMs, log, digest }: GateDeps): Gate {
  function failed(action: Action, cause: unknown): Decision {
    log.error({ err: cause, action: action.id }, 'policy did not decide; the action is blocked');
    return blocked('policy_failed', 'policy could not be evaluated', policy.name);
  }

  /** What may run is fixed here: a decision that is not a no names the arguments it covers. */
  function sound(decision: unknown, action: Action): Decision {
    if (isDecision(decision)) {
      if (isUnanswered(action, decision)) return blocked('no_answer', 'no rule answers this query, which counts as no');
      if (decision.verdict === 'block' || decision.verdict === 'defer') return decision;
      return { ...decision, arguments_digest: digest(decision.arguments ?? action.arguments) };
    }
    throw new Error(`${policy.name} answered with something that is not a decision`);
  }

  return (action, withinMs) => {
    try {
      // Rules alone need no waiting, and so no clock that watches over it.
      const atOnce = policy.judge?.(action);
      if (atOnce !== undefined) return sound(atOnce, action);
    } catch (cause) {
      return failed(action, cause);
    }
    return waited(action, withinMs ?? Number.POSITIVE_INFINITY);
  };

  async function waited(action: Action, withinMs: number): Promise<Decision> {
    // A timer of our own rather than AbortSignal.timeout, so that a quick decision leaves nothing ticking.
    const deadline = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const waitMs = Math.min(withinMs, Math.max(timeoutMs, policy.patienceMs ?? 0));
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        deadline.abort();
        timer = setTimeout(reject, LAST_WORD_MS, new Error('out of time'));
      }, waitMs);
    });
    try {
      return sound(await Promise.race([policy.decide(action, deadline.signal, waitMs), late]), action);
    } catch (cause) {
      const refused = failed(action, cause);
      return deadline.signal.aborted
        ? blocked('policy_timed_out', `policy did not answer within ${waitMs} ms`, policy.name)
        : refused;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** That nobody objects to a question is not an answer to it: only a rule or an engine that was asked says yes. */
function isUnanswered({ kind }: Action, { verdict, rule_id, code }: Decision): boolean {
  return kind === 'query' && verdict === 'allow' && rule_id === undefined && code !== ANSWERED;
}
const ANSWERED = 'answered';

export function blocked(code: string, reason: string, engine = 'bridge'): Decision {
  return { verdict: 'block', code, reason, engine };
}

/** An engine from outside may answer anything; only a known word with a reason, and members one can act on, count. */
function isDecision(value: unknown): value is Decision {
  const { verdict, reason, arguments: args, retry_after_ms: retry, ask } = (value ?? {}) as Partial<Decision>;
  return (
    typeof reason === 'string' &&
    (VERDICTS as readonly unknown[]).includes(verdict) &&
    (args === undefined || isMembers(args)) &&
    (retry === undefined || isDuration(retry)) &&
    (ask === undefined || (isMembers(ask) && isAsking(ask)))
  );
}

function isAsking({ to, expires_ms }: NonNullable<Decision['ask']>): boolean {
  return (
    (to === undefined || (Array.isArray(to) && to.every((word) => typeof word === 'string'))) &&
    (expires_ms === undefined || isDuration(expires_ms))
  );
}

function isMembers(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Longer than anyone waits is not a duration but a mistake, and a date cannot hold it. */
function isDuration(ms: unknown): boolean {
  return typeof ms === 'number' && ms >= 0 && ms <= LONGEST_MS;
}
const LONGEST_MS = 100 * 365 * 24 * 3600 * 1000;

/** The decision as it stands in the log: enough to ask the same question of another policy later. */
export function decidedEvent(action: Action, decision: Decision): EventDraft {
  const { actor, workspace_id, session_id, task_id } = action;
  const payload: DecidedPayload = { action: recorded(action), decision };
  return {
    event: 'vendor.tollbridge.decided',
    resource: task_id ? { object: 'task', id: task_id } : { object: 'session', id: session_id ?? workspace_id },
    workspace_id,
    session_id: session_id ?? null,
    task_id: task_id ?? null,
    actor: actor.id,
    payload: payload as unknown as JsonObject,
  };
}

function recordedActor({ id, kind, tenant_id, door }: Actor): DecidedPayload['action']['actor'] {
  return { id, kind, ...(tenant_id && { tenant_id }), ...(door && { door }) };
}

/** Members as they are, but for those that stand elsewhere in the event, in another form, or not at all. */
function recorded(action: Action): DecidedPayload['action'] {
  const kept: Record<string, unknown> = {};
  for (const name in action) {
    const value = action[name as keyof Action];
    if (value !== undefined && !RECORDED_OTHERWISE.has(name)) kept[name] = value;
  }
  kept.actor = recordedActor(action.actor);
  if (action.persona) kept.persona_id = action.persona.id;
  if (action.tier) kept.tier = action.tier;
  // The arguments stand in tool.requested of the same call; written twice they would double the log.
  if (!action.tool_call_id) kept.arguments = action.arguments;
  return kept as unknown as DecidedPayload['action'];
}
const RECORDED_OTHERWISE: ReadonlySet<string> = new Set([
  'actor',
  'persona',
  'quotas',
  'workspace_id',
  'session_id',
  'task_id',
  'tier',
  'arguments',
  'root',
  'facts',
  'changes',
]);
