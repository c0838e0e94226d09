/**
 * Authorizes an act: asks the gate, records the decision with everything that follows, and asks people when the decision says so.
 * An authorization that allows an act has spent the approval and the quota it needed, and the act may run once.
 */

import type { Action, Decision } from '../../model/actions.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { ActReader, Clock, QuotaRules, Unit } from '../../ports/index.ts';
import { createApprovedActs } from '../approvals/approved-acts.ts';
import type { Asks, NewAsk, Raised } from '../approvals/asks.ts';
import { againOf } from '../approvals/changed-acts.ts';
import { isInPart, reasonOf, type WholeActs, withWords } from '../approvals/whole-acts.ts';
import { artifactEvents, type Log } from '../events/log.ts';
import type { RunRow } from '../events/rows.ts';
import { inTask, openRun, readsOf, requireRunBy, taskLocation } from '../tasks/lifecycle.ts';
import { SERVED_BY } from '../tasks/pending-work.ts';
import { withCallQuotas } from '../tools/call-limits.ts';
import type { Tools } from '../tools/catalog.ts';
import { pause } from '../waiting.ts';
import {
  asExecutable,
  asShown,
  decidedIn,
  denied,
  describeForPeople,
  questionOf,
  requestedEvent,
  rewritten,
  type ShownArguments,
  toolUse,
} from './action-events.ts';
import type { Authorization, Held, Holding, RuleOptions } from './authorization.ts';
import { actCharges, quotasOf, withinQuotas } from './charging.ts';
import { blocked, type Gate } from './gate.ts';
import type { ReadPolicyData } from './policy-data.ts';
import { tooMany, tooManyRequests } from './refusals.ts';

export interface AuthorizerDeps {
  readonly log: Log;
  readonly gate: Gate;
  readonly asks: Asks;
  readonly tools: Tools;
  readonly quotas: Pick<QuotaRules, 'refuse' | 'charge' | 'softPassed' | 'passed'>;
  readonly clock: Clock;
  /** The instance name under which other processes can check that this one lives; absent while it has none, and in a replay. */
  readonly servedBy?: () => string | undefined;
  /** Current personas, tiers and quotas; a replay has none, its decisions are on record. */
  readonly policyData: ReadPolicyData;
  /** Changes whenever rules, harnesses or tiers change. Absent in a replay, whose rules do not change. */
  readonly revision?: () => number;
  /** How often policy is asked again about a deferred act before it is refused. */
  readonly deferTries: number;
  readonly deferCapMs: number;
  /** Keeps unredacted acts while their questions are open. Absent in a replay, which asks no one. */
  readonly wholeActs?: Pick<WholeActs, 'prepare' | 'discard' | 'changed' | 'dropChanged'>;
  /** Reads the facts of an act. Absent in a replay, whose acts are on record with the effect they counted with. */
  readonly read?: ActReader;
  /** The digest by which a decision names the arguments it covers. Absent in a replay, which runs nothing. */
  readonly digest?: (args: JsonObject) => string;
}

/** `taken`: this call has been decided on before; returned only to an asker with a claim. */
type Authorize = (task: Task, action: Action, options: RuleOptions, held?: Held) => Promise<Authorization | 'taken'>;

export function createAuthorizer(deps: AuthorizerDeps): Authorize {
  const { log, gate, asks, quotas: quotaRules, clock } = deps;
  const answered = createApprovedActs(deps);

  const authorize: Authorize = async (task, action, options, held = {}) => {
    if (options.signal.aborted) throw new Fault('client_closed', 'the work was canceled');
    let first: Held = held;
    let current = action;
    let requested = options.requested ?? false;
    const holding: Holding = {
      holdUntil: performance.now() + (options.waitMs ?? Number.POSITIVE_INFINITY),
      ...options,
    };
    for (let tries = 0; ; tries += 1) {
      const authorization = await ruleOnce(task, current, requested, holding, first);
      if (authorization === 'taken' || authorization.decision.verdict !== 'defer' || authorization.kind !== 'no')
        return authorization;
      if (options.deferred === 'returned') return authorization;
      const retryMs = Math.min(authorization.decision.retry_after_ms ?? 1000, deps.deferCapMs);
      // An asker with a time limit shorter than the deferral gets it as the answer, rather than waiting until it disconnects.
      if (retryMs > holding.holdUntil - performance.now()) return authorization;
      if (tries >= deps.deferTries) {
        const why = `${authorization.decision.reason}; still so after ${tries} tries`;
        const decision = blocked('deferred_too_long', why);
        await log.commit({
          reads: readsOf(task.id),
          decide(at) {
            const { now, run } = openRun(at, task.id);
            requireRunBy(run, options.runBy);
            return { events: [decidedIn(now, action, decision), denied(now, action, decision)] };
          },
        });
        return { kind: 'no', reason: decision.reason, decision };
      }
      requested = true;
      first = { tool: held.tool };
      await pause(retryMs, options.signal);
      // With the persona, tier and quotas of now.
      const { persona: _before, ...rest } = current;
      const data = await deps.policyData(task);
      current = { ...rest, ...data, quotas: withCallQuotas(data.quotas, current.quotas) };
    }
  };

  /** Asks the gate once, and records the decision with everything that follows from it. */
  async function ruleOnce(
    task: Task,
    action: Action,
    requested: boolean,
    options: Holding,
    held: Held,
  ): Promise<Authorization | 'taken'> {
    const revision = deps.revision?.();
    const decided = asExecutable(held.refused ?? (await gate(action, options.decideMs, held.tool)), options);
    const isFinal = decided.verdict !== 'escalate' && decided.verdict !== 'defer';
    const asked = isFinal ? decided : (held.unasked?.(decided) ?? decided);
    if (options.request && tooMany(asked)) throw tooManyRequests(asked);
    const shown = await showable(task, action.arguments, asked.arguments);
    // People are asked about the act as the rules rewrote it, and that act may run.
    const effective: Action = asked.arguments ? { ...action, arguments: asked.arguments } : action;
    const pending: WritingDown = { task, action, effective, asked, shown, requested, options, held, revision };
    const authorization = asked.verdict === 'escalate' ? 'unkept' : await writeDown(pending);
    return authorization === 'unkept' ? await ask(pending) : authorization;
  }

  /** The unredacted act is stored before its question opens; an act that cannot be stored is refused instead. */
  async function ask(pending: WritingDown): Promise<Authorization | 'taken'> {
    const { task, action, shown } = pending;
    const effective = withWords(pending.effective, pending.options.question);
    const digest = asks.digest(effective);
    const key = action.tool_call_id ?? digest;
    let id: string | undefined;
    try {
      const again = againOf(effective, pending.options.takesArguments, pending.held.tool?.skill);
      id = await deps.wholeActs?.prepare(task, effective, { key, digest, again });
    } catch (cause) {
      const refused = blocked('cannot_show', `people cannot be shown what would run: ${reasonOf(cause)}`);
      return certain(await writeDown({ ...pending, asked: refused }));
    }
    const logged = describeForPeople(effective, shown.rewritten ?? shown.asked);
    const opening: Opening = { key, digest, logged, inPart: isInPart(effective, logged, log.clean), ...(id && { id }) };
    let used: string | undefined;
    try {
      return certain(await writeDown({ ...pending, effective, opening, opened: (askId) => (used = askId) }));
    } finally {
      // The commit opened no question under this id.
      if (id && used !== id) deps.wholeActs?.discard(id);
    }
  }

  /**
   * One commit. `unkept`: a quota requires an approval after all, and the act is not stored for approvers yet; nothing was written.
   */
  async function writeDown(pending: WritingDown): Promise<Authorization | 'taken' | 'unkept'> {
    const { task, action, effective, asked, shown, requested, options, opening, revision } = pending;
    const { claim, tool } = pending.held;
    // Assigned inside the commit, which decides on the state it reads.
    let raised: Raised | undefined;
    let decision = asked;
    const unit: Unit = {
      reads: [...readsOf(task.id), ...quotasOf(action)],
      decide(at) {
        const { now, run } = openRun(at, task.id);
        requireRunBy(run, options.runBy);
        decision =
          asked.verdict === 'allow' || asked.verdict === 'modify' ? withinQuotas(quotaRules, at, action, asked) : asked;
        // Thrown in the commit, which then writes nothing: a flood of requests must not fill the log.
        if (options.request && tooMany(decision)) throw tooManyRequests(decision);
        raised = undefined;

        const request =
          requested || !action.tool_call_id
            ? []
            : [servedHere(run, requestedEvent(now, action, shown.asked, options.ext))];
        const events: EventDraft[] = [
          ...artifactEvents(shown.artifacts, inTask(now)),
          ...request,
          decidedIn(now, { ...action, arguments: shown.asked }, asShown(decision, shown)),
        ];
        if (decision.verdict === 'block') events.push(denied(now, action, decision));
        if (decision.verdict === 'modify') events.push(rewritten(now, action, asShown(decision, shown)));
        if (decision.verdict === 'allow' || decision.verdict === 'modify')
          events.push(...actCharges(quotaRules, at, now, action));
        if (decision.verdict === 'escalate') {
          if (!opening) throw UNKEPT;
          const { logged, ...about } = opening;
          raised = asks.raise(at, now, run, {
            ...about,
            // An agent that asks for a value needs the value, not permission to have asked.
            kind: action.kind === 'query' ? 'input' : 'approval',
            question: questionOf(effective),
            action: logged,
            name: action.tool ?? action.kind,
            decision,
            ...(action.tool_call_id && { tool_call_id: action.tool_call_id }),
            ...(options.ext && { ext: options.ext }),
          });
          // The same question again: its request and decision are in the log since the first time.
          if (raised.joined) return { events: raised.events };
          events.push(...raised.events);
        }
        if (request.length > 0 && tool && typeof now.assigned_agent_id === 'string') {
          events.push(toolUse(now, action, shown.asked));
        }
        return { events };
      },
      ...claim,
    };
    // Nothing but an outright allow waits: it opens no question, spends no approval and charges no quota.
    if (pending.held.joins && asked.verdict === 'allow' && !requested && quotasOf(action).length === 0) {
      return { kind: 'go', action, decision: asked, unwritten: unit };
    }
    const committed = await log.commit(unit).catch(unlessUnkept);
    if (!committed) return 'unkept';
    if (committed.repeated) return 'taken';
    const asking = raised as Raised | undefined;
    pending.opened?.(asking?.ask_id);
    if (asking) {
      const stated = asShown(decision, shown);
      return await answered(task, effective, stated, asking, options, {
        mounted: tool !== undefined,
        revision,
      });
    }
    if (decision.verdict === 'allow') return { kind: 'go', action, decision };
    if (decision.verdict === 'modify') return { kind: 'go', action: effective, decision };
    return { kind: 'no', reason: decision.reason, decision };
  }

  /**
   * Names the process that runs the call when it is not the task's: when that process is gone, the call has no end. Work outside
   * the gateway has no process here.
   */
  function servedHere(run: RunRow, request: EventDraft): EventDraft {
    const served = request.payload.evidence === 'held' ? deps.servedBy?.() : undefined;
    if (served === undefined || run.instance === null || run.instance === served) return request;
    return { ...request, metadata: { ...request.metadata, [SERVED_BY]: served } };
  }

  /** Arguments as the log and people may see them, redacted. */
  async function showable(task: Task, args: JsonObject, rewrittenTo: JsonObject | undefined): Promise<ShownArguments> {
    const location = { now: clock.now(), ...taskLocation(task) };
    const asked = await log.fit(args, location);
    const changed = rewrittenTo && (await log.fit(rewrittenTo, location));
    return {
      asked: asked.value as JsonObject,
      ...(changed && { rewritten: changed.value as JsonObject }),
      artifacts: [...asked.artifacts, ...(changed?.artifacts ?? [])],
    };
  }

  return authorize;
}

/** Thrown inside a commit, and recognised by identity. */
const UNKEPT = new Fault('internal', 'the act is not kept for the people who are to be asked');

function unlessUnkept(cause: unknown): undefined {
  if (cause !== UNKEPT) throw cause;
}

function certain(authorization: Authorization | 'taken' | 'unkept'): Authorization | 'taken' {
  if (authorization === 'unkept') throw UNKEPT;
  return authorization;
}

interface Opening extends Pick<NewAsk, 'id' | 'key' | 'digest' | 'inPart'> {
  readonly logged: JsonObject;
}

interface WritingDown {
  readonly task: Task;
  readonly action: Action;
  readonly effective: Action;
  readonly asked: Decision;
  readonly shown: ShownArguments;
  readonly requested: boolean;
  readonly options: Holding;
  readonly held: Held;
  /** The revision of rules and declarations that the decision was made under. */
  readonly revision: number | undefined;
  readonly opening?: Opening;
  readonly opened?: (askId: string | undefined) => void;
}
