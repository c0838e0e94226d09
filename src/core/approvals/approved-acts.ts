/**
 * Acts that people were asked about: waits for the answer, then spends it on exactly the act they saw. An approval does not cover a
 * tool that was defined anew, an act that the rules of now refuse, or arguments other than those it names.
 */

import type { Action, Decision } from '../../model/actions.ts';
import type { Answer, ChangedArguments } from '../../model/asks.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Task } from '../../model/resources.ts';
import { anySignal } from '../../model/values/signals.ts';
import { asExecutable, decidedIn, denied, rewritten } from '../actions/action-events.ts';
import type { Authorization, Holding, RuleOptions } from '../actions/authorization.ts';
import type { AuthorizerDeps } from '../actions/authorize.ts';
import { actCharges, quotasOf, withinQuotas } from '../actions/charging.ts';
import { blocked } from '../actions/gate.ts';
import { openRun, readsOf, requireRunBy } from '../tasks/lifecycle.ts';
import { pause } from '../waiting.ts';
import type { Raised } from './asks.ts';
import { voidedBy, withChanged } from './changed-acts.ts';

/** How the act was decided when its question was raised: by which revision of the rules, and whether a mounted tool runs it. */
export interface AskedUnder {
  readonly mounted: boolean;
  readonly revision: number | undefined;
}

export function createApprovedActs(deps: AuthorizerDeps) {
  const { log, gate, asks, tools, quotas: quotaRules } = deps;

  /** Waits for the answer, then spends it on exactly this act. */
  async function answered(
    task: Task,
    action: Action,
    decision: Decision,
    raised: Raised,
    options: Holding,
    { mounted, revision }: AskedUnder,
  ): Promise<Authorization> {
    options.asked?.(raised.ask_id);
    const answer = await waitFor(raised.ask_id, task.id, options);
    // An approval is not spent for an asker that has left: it is kept until the asker asks again.
    if (!answer || (options.signal.aborted && answer.kind === 'approved')) {
      return { kind: 'open', ask_id: raised.ask_id, decision };
    }
    if (answer.kind !== 'approved' && answer.kind !== 'value') {
      if (answer.kind !== 'canceled') await spend(task, raised.ask_id, options, []).catch(ignoreConflict);
      const refused = notApproved(decision, answer);
      return { kind: 'no', reason: refused.reason, decision: refused, answer };
    }
    // The tool's definition may have changed since people saw it.
    const drift = await driftOf(action, mounted);
    if (drift) {
      const refused = blocked('approval_void', drift);
      await spend(task, raised.ask_id, options, [decidedIn(task, action, refused), denied(task, action, refused)]);
      return { kind: 'no', reason: drift, decision: refused, answer };
    }
    if (answer.kind === 'approved' && answer.changed) {
      return await changed(task, action, decision, answer, options, mounted);
    }
    const now = await decidedAgain(task, action, decision, revision, options);
    if (now?.verdict === 'defer') return { kind: 'no', reason: now.reason, decision: now };
    if (now) {
      await spend(task, raised.ask_id, options, [decidedIn(task, action, now), denied(task, action, now)]);
      return { kind: 'no', reason: now.reason, decision: now, answer };
    }
    const over = await takeUp(task, action, decision, raised.ask_id, options);
    if (over) return { kind: 'no', reason: over.reason, decision: over, answer };
    const approved = decision.arguments ? { ...answer, arguments: action.arguments } : answer;
    return { kind: 'go', action, decision, answer: approved };
  }

  /**
   * People answered a question that the rules of that moment had raised. When other rules, another persona or another tier apply by
   * now, these decide on the act as well: an approval does not cover an act that they refuse, rewrite, or escalate to other
   * approvers. Undefined: the approval holds.
   */
  async function decidedAgain(
    task: Task,
    action: Action,
    approved: Decision,
    revision: number | undefined,
    options: RuleOptions,
  ): Promise<Decision | undefined> {
    if (revision === undefined) return undefined;
    const data = await deps.policyData(task);
    if (deps.revision?.() === revision && data.tier === action.tier && sameValue(data.persona, action.persona)) {
      return undefined;
    }
    const { persona: _before, ...rest } = action;
    const now = asExecutable(await gate({ ...rest, ...data }), options);
    switch (now.verdict) {
      case 'block':
      case 'defer':
        return now;
      case 'escalate':
        if (!sameValue(now.ask?.to, approved.ask?.to))
          return blocked(
            'approval_void',
            'the rules changed after it was approved and name other approvers; ask again',
          );
        break;
      default:
        break;
    }
    if (now.arguments === undefined || now.arguments_digest === approved.arguments_digest) return undefined;
    return blocked('approval_void', 'the rules changed after it was approved and rewrite its arguments; ask again');
  }

  /**
   * Approved with other arguments. The process that took the answer has decided on them; this one, which runs them, decides once
   * more under the rules it has, and runs nothing but the bytes whose digest the answer names.
   */
  async function changed(
    task: Task,
    asked: Action,
    before: Decision,
    answer: Answer & { readonly kind: 'approved' },
    options: Holding,
    mounted: boolean,
  ): Promise<Authorization> {
    const { changed: approved, by } = answer as typeof answer & { changed: ChangedArguments };
    const askId = answer.ask_id as string;
    const no = async (reason: string): Promise<Authorization> => {
      const refused = blocked('approval_void', reason);
      await spend(task, askId, options, [decidedIn(task, asked, refused), denied(task, asked, refused)]);
      deps.wholeActs?.dropChanged(askId, approved.arguments_digest);
      return { kind: 'no', reason, decision: refused, answer };
    };
    // A replay has the arguments as the log shows them, and runs nothing.
    let args = approved.arguments;
    if (deps.wholeActs) {
      const kept = await deps.wholeActs.changed(askId, approved.arguments_digest).catch(() => undefined);
      if (!kept || deps.digest?.(kept) !== approved.arguments_digest) {
        return await no('the arguments it was approved with are no longer kept here; ask again');
      }
      args = kept;
    }
    const action = withChanged(asked, args, mounted, deps.read);
    if (deps.revision) {
      const { persona: _before, ...rest } = action;
      const now = await gate({ ...rest, ...(await deps.policyData(task)) });
      if (now.verdict === 'defer') return { kind: 'no', reason: now.reason, decision: now };
      const why = voidedBy(now, approved);
      if (why) return await no(why);
    }
    const decision: Decision = {
      verdict: 'modify',
      code: 'changed_by_approver',
      reason: `${by} approved it with other arguments`,
      engine: before.engine,
      ...(approved.rule_id ? { rule_id: approved.rule_id } : before.rule_id && { rule_id: before.rule_id }),
      ...(before.policy_version && { policy_version: before.policy_version }),
      arguments: approved.arguments,
      arguments_digest: approved.arguments_digest,
    };
    const over = await takeUp(task, action, decision, askId, options, by);
    deps.wholeActs?.dropChanged(askId, approved.arguments_digest);
    if (over) return { kind: 'no', reason: over.reason, decision: over, answer };
    return { kind: 'go', action, decision: { ...decision, arguments: args }, answer: { ...answer, arguments: args } };
  }

  /** Spends an approval and charges the act, or refuses it when a quota ran out while the question was open. */
  async function takeUp(
    task: Task,
    action: Action,
    decision: Decision,
    askId: string,
    { signal, runBy }: RuleOptions,
    changedBy?: string,
  ): Promise<Decision | undefined> {
    for (let tries = 0; ; tries += 1) {
      let over: Decision | undefined;
      await log.commit({
        reads: [...readsOf(task.id), ...quotasOf(action)],
        decide(at) {
          const { now, run } = openRun(at, task.id);
          requireRunBy(run, runBy);
          const used = asks.take(at, now, run, askId);
          const checked = withinQuotas(quotaRules, at, action, decision);
          over = checked.verdict === 'block' || checked.verdict === 'defer' ? checked : undefined;
          // A rate limit that resets shortly does not waste the approval: it is kept until the limit allows the act.
          if (over?.verdict === 'defer' && tries < deps.deferTries) return { events: [] };
          if (over) {
            over = { ...over, verdict: 'block' };
            return { events: [used, decidedIn(now, action, over), denied(now, action, over)] };
          }
          const change = !decision.arguments
            ? []
            : changedBy === undefined
              ? [rewritten(now, action, decision)]
              : [
                  // The decision on an approver's own arguments, as the log may show them.
                  decidedIn(now, { ...action, arguments: decision.arguments }, decision),
                  rewritten(now, action, decision, { ask_id: askId, by: changedBy }),
                ];
          return { events: [used, ...change, ...actCharges(quotaRules, at, now, action)] };
        },
      });
      const refused = over as Decision | undefined;
      if (refused?.verdict !== 'defer') return refused;
      await pause(Math.min(refused.retry_after_ms ?? 1000, deps.deferCapMs), signal);
    }
  }

  async function waitFor(askId: string, taskId: string, options: Holding): Promise<Answer | undefined> {
    const { signal, waitMs, holdUntil, withdrawn, actor } = options;
    const asker = { id: actor.id, withdrawn };
    if (waitMs === undefined) return await asks.wait(askId, taskId, signal, asker);
    const budget = new AbortController();
    const timer = setTimeout(() => budget.abort(), Math.max(0, holdUntil - performance.now()));
    try {
      const answer = await asks.wait(askId, taskId, anySignal([signal, budget.signal]), asker);
      return budget.signal.aborted && answer.kind === 'canceled' ? undefined : answer;
    } finally {
      clearTimeout(timer);
    }
  }

  async function spend(task: Task, askId: string, { runBy }: RuleOptions, also: readonly EventDraft[]): Promise<void> {
    await log.commit({
      reads: readsOf(task.id),
      decide(at) {
        const { now, run } = openRun(at, task.id);
        requireRunBy(run, runBy);
        return { events: [asks.take(at, now, run, askId), ...also] };
      },
    });
  }

  /** Why the tool that would run is not the approved one; undefined when it is. */
  async function driftOf(action: Action, mounted: boolean): Promise<string | undefined> {
    if (!action.definition || !action.tool || action.evidence !== 'held') return undefined;
    const found = await tools.find(action.actor, action.tool, action.server, action.session_id);
    // Not a mounted tool: the caller supplied the effect itself.
    if (!found && !mounted) return undefined;
    if (!found) return `${action.tool} is no longer there to do what was approved`;
    return found.definition === action.definition
      ? undefined
      : `the definition of ${action.tool} changed after it was approved; ask again`;
  }

  return answered;
}

/** The decision when people denied, or did not answer in time. */
function notApproved({ arguments: _, ask: _ask, ...decision }: Decision, answer: Answer): Decision {
  const codes: Partial<Record<Answer['kind'], string>> = {
    denied: 'approval_denied',
    expired: 'approval_timed_out',
    canceled: 'approval_withdrawn',
  };
  const reason = 'reason' in answer && answer.reason ? answer.reason : 'not approved';
  return { ...decision, verdict: 'block', code: codes[answer.kind] ?? 'approval_denied', reason };
}

function sameValue(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function ignoreConflict(cause: unknown): void {
  if (!(cause instanceof Fault && cause.kind === 'conflict')) throw cause;
}
