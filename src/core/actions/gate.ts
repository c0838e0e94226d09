/**
 * The gate: policy is consulted here and nowhere else. Every error here becomes a refusal with a reason; the gate never throws. Its
 * callers record the decision in the same commit as the act it is about, and only then run the act.
 */

import type { Action, Actor, Decision } from '../../model/actions.ts';
import type { EventDraft } from '../../model/events.ts';
import type { DecidedPayload } from '../../model/payloads.ts';
import type { JsonObject } from '../../model/schema.ts';
import { isObject } from '../../model/values/is-object.ts';
import type { Loss } from '../../model/values/loss.ts';
import { VERDICTS } from '../../model/words.ts';
import type { Logger, PolicyEngine } from '../../ports/index.ts';
import type { FoundTool } from '../tools/catalog.ts';

export interface GateDeps {
  readonly policy: PolicyEngine;
  readonly timeoutMs: number;
  readonly log: Logger;
  /** Keyed, so that the log holds proof of the arguments and not the arguments. */
  readonly digest: (args: JsonObject) => string;
}
/**
 * Synchronous where the rules alone decide. `withinMs`: the longest the asker can wait. `tool`: the mounted tool that the act would
 * run, where it has been looked up.
 */
export type Gate = (action: Action, withinMs?: number, tool?: FoundTool) => Decision | Promise<Decision>;

/** After its timeout, an engine that was given the limit may still return the decision that its timeout means. */
const LAST_WORD_MS = 100;

export function createGate({ policy, timeoutMs, log, digest }: GateDeps): Gate {
  function failed(action: Action, cause: unknown): Decision {
    log.error({ err: cause, action: action.id }, 'policy did not decide; the action is blocked');
    return blocked('policy_failed', 'policy could not be evaluated', policy.name);
  }

  /** Fixes the arguments that may run: a decision that is not a refusal names the arguments it covers. */
  function sound(decision: unknown, action: Action): Decision {
    if (isDecision(decision)) {
      if (isUnanswered(action, decision)) return blocked('no_answer', 'no rule answers this query, which counts as no');
      if (decision.verdict === 'block' || decision.verdict === 'defer') return decision;
      const arguments_digest = digest(decision.arguments ?? action.arguments);
      // The member comes first because V8 adds members to a spread object slowly; a digest that the engine supplies does not count.
      return decision.arguments_digest === undefined
        ? { arguments_digest, ...decision }
        : { ...decision, arguments_digest };
    }
    throw new Error(`${policy.name} answered with something that is not a decision`);
  }

  return (action, withinMs) => {
    try {
      // Rules alone decide synchronously, and so need no timer.
      const atOnce = policy.judge?.(action);
      if (atOnce !== undefined) return sound(atOnce, action);
    } catch (cause) {
      return failed(action, cause);
    }
    return waited(action, withinMs ?? Number.POSITIVE_INFINITY);
  };

  async function waited(action: Action, withinMs: number): Promise<Decision> {
    // A timer of our own rather than AbortSignal.timeout, so that a quick decision leaves no timer behind.
    const deadline = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const waitMs = Math.min(withinMs, Math.max(timeoutMs, policy.extraTimeMs ?? 0));
    try {
      // Called before the timer starts: an engine's synchronous setup, such as reading its rules for the first time, does not count
      // against its time.
      const reply = policy.decide(action, deadline.signal, waitMs);
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          deadline.abort();
          timer = setTimeout(reject, LAST_WORD_MS, new Error('out of time'));
        }, waitMs);
      });
      return sound(await Promise.race([reply, late]), action);
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

/** A question needs an answer, not only the absence of an objection: only a rule or an engine that was asked can allow it. */
function isUnanswered({ kind }: Action, { verdict, rule_id, code }: Decision): boolean {
  return kind === 'query' && verdict === 'allow' && rule_id === undefined && code !== ANSWERED;
}
const ANSWERED = 'answered';

export function blocked(code: string, reason: string, engine = 'bridge'): Decision {
  return { verdict: 'block', code, reason, engine };
}

/** An outside engine may return anything; only a known verdict with a reason and usable members counts. */
function isDecision(value: unknown): value is Decision {
  const { verdict, reason, arguments: args, retry_after_ms: retry, ask } = (value ?? {}) as Partial<Decision>;
  return (
    typeof reason === 'string' &&
    (VERDICTS as readonly unknown[]).includes(verdict) &&
    (args === undefined || isObject(args)) &&
    (retry === undefined || isDuration(retry)) &&
    (ask === undefined || (isObject(ask) && isAsking(ask)))
  );
}

function isAsking({ to, expires_ms }: NonNullable<Decision['ask']>): boolean {
  return (
    (to === undefined || (Array.isArray(to) && to.every((word) => typeof word === 'string'))) &&
    (expires_ms === undefined || isDuration(expires_ms))
  );
}

/** A longer duration is an error, and a date cannot represent it. */
function isDuration(ms: unknown): boolean {
  return typeof ms === 'number' && ms >= 0 && ms <= LONGEST_MS;
}
const LONGEST_MS = 100 * 365 * 24 * 3600 * 1000;

/** The decision as recorded: enough to put the same act to another policy later. */
/** A rule rewrites arguments that cannot be handed back to the asker. */
export const CANNOT_MODIFY = 'cannot_modify';
const NOT_REWRITTEN = [
  {
    aspect: 'arguments',
    why: 'the rule rewrites the arguments, and the protocol of this agent carries only a yes or a no',
  },
] as const satisfies readonly Loss[];

export function decidedEvent(action: Action, decision: Decision): EventDraft {
  const { actor, workspace_id, session_id, task_id } = action;
  const payload: DecidedPayload = {
    action: recorded(action),
    decision,
    ...(decision.code === CANNOT_MODIFY && { loss: NOT_REWRITTEN }),
  };
  return {
    event: 'vendor.tollbridge.decided',
    resource: task_id ? { object: 'task', id: task_id } : { object: 'session', id: session_id ?? workspace_id },
    workspace_id,
    session_id: session_id ?? null,
    task_id: task_id ?? null,
    actor: actor.id,
    payload: payload,
  };
}

function recordedActor({ id, kind, tenant_id, door }: Actor): DecidedPayload['action']['actor'] {
  return { id, kind, ...(tenant_id && { tenant_id }), ...(door && { door }) };
}

/** The action's members, except those recorded elsewhere in the event, in another form, or not at all. */
function recorded(action: Action): DecidedPayload['action'] {
  const kept: Partial<Record<keyof Action | 'persona_id', unknown>> = {};
  for (const name in action) {
    const member = name as keyof Action;
    if (action[member] !== undefined && !RECORDED_OTHERWISE.has(name)) kept[member] = action[member];
  }
  kept.actor = recordedActor(action.actor);
  if (action.persona) kept.persona_id = action.persona.id;
  if (action.tier) kept.tier = action.tier;
  // The arguments are in tool.requested of the same call; a second copy would double the log.
  if (!action.tool_call_id) kept.arguments = action.arguments;
  return kept as DecidedPayload['action']; // the members of an action that are not recorded otherwise
}
const RECORDED_OTHERWISE: ReadonlySet<string> = new Set([
  'trace',
  'context',
  'caller',
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
