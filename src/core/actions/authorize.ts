/**
 * Authorizes an act: asks the gate, records the decision with everything that follows, and asks people when the decision says so.
 * An authorization that allows an act has spent the approval and the quota it needed, and the act may run once.
 */

import type { Action, Actor, Decision } from '../../model/actions.ts';
import type { Answer, ChangedArguments } from '../../model/asks.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Quota, Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { anySignal } from '../../model/values/signals.ts';
import { isTerminal } from '../../model/words.ts';
import type { ActReader, At, Clock, QuotaRules, Row, Unit } from '../../ports/index.ts';
import type { Asks, NewAsk, Raised } from '../approvals/asks.ts';
import { againOf, voidedBy, withChanged } from '../approvals/changed-acts.ts';
import { isInPart, reasonOf, type WholeActs, withWords } from '../approvals/whole-acts.ts';
import { artifactEvents, type Log } from '../events/log.ts';
import type { Run } from '../events/rows.ts';
import { inTask, taskLocation } from '../tasks/lifecycle.ts';
import { SERVED_BY } from '../tasks/pending-work.ts';
import type { Tools } from '../tools/catalog.ts';
import { driftOf } from '../tools/drift.ts';
import { pause } from '../waiting.ts';
import {
  asExecutable,
  asShown,
  coveringSame,
  denied,
  describeForPeople,
  notApproved,
  questionOf,
  quotasOf,
  requestedEvent,
  rewritten,
  type Shown,
  toolUse,
} from './action-events.ts';
import { chargeEvents } from './charging.ts';
import { blocked, decidedEvent, type Gate } from './gate.ts';
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

export interface RuleOptions {
  readonly actor: Actor;
  readonly signal: AbortSignal;
  /** How long the asker may be kept waiting, from the moment it asks; absent means until the question is answered or expires. */
  readonly waitMs?: number;
  /** How long policy may take; absent means as long as its engines need. */
  readonly decideMs?: number;
  /** A deferral is returned to the asker instead of being waited out here. */
  readonly deferred?: 'returned';
  /** The asker can run rewritten arguments. */
  readonly takesArguments: boolean;
  /** The agent's own words about the act: shown as such, never as the question. */
  readonly question?: string;
  /** The request is in the log already, since before a crash. */
  readonly requested?: boolean;
  /** The claim on the call id is in the log already. */
  readonly claimed?: boolean;
  readonly ext?: JsonObject;
  /** The request context, passed unread to the backend that runs the act. */
  readonly context?: object;
  /** Fires when the asker no longer needs the answer. */
  readonly withdrawn?: AbortSignal | undefined;
  /**
   * The act came from a client as a request of its own: it counts against request limits, and a request over the limit is refused
   * at once.
   */
  readonly request?: boolean;
  /** Called with the id of the question that people are asked. */
  readonly asked?: (askId: string) => void;
}

/** The time by which the asker must be answered, on the monotonic clock of the process. */
type Holding = RuleOptions & { readonly holdUntil: number };

export type Authorization =
  | { readonly kind: 'go'; readonly action: Action; readonly decision: Decision; readonly answer?: Answer }
  | { readonly kind: 'no'; readonly reason: string; readonly decision: Decision; readonly answer?: Answer }
  /** The asker stopped waiting; the question stays open. */
  | { readonly kind: 'open'; readonly ask_id: string; readonly decision: Decision };

/** Facts about an act that the gateway runs itself: the call id it claims, and that its tool is mounted here. */
export interface Held {
  readonly claim?: Pick<Unit, 'idempotency'>;
  readonly mounted?: boolean;
  /** A refusal that needs no rule: it is recorded as the decision. */
  readonly refused?: Decision;
}

export interface Authorizer {
  /** `taken`: this call has been decided on before; returned only to an asker with a claim. */
  rule(task: Task, action: Action, options: RuleOptions, held?: Held): Promise<Authorization | 'taken'>;
}

export function createAuthorizer(deps: AuthorizerDeps): Authorizer {
  const { log, gate, asks, tools, quotas: quotaRules, clock } = deps;

  async function rule(
    ...[task, action, options, held = {}]: Parameters<Authorizer['rule']>
  ): Promise<Authorization | 'taken'> {
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
        const decision = blocked(
          'deferred_too_long',
          `${authorization.decision.reason}; still so after ${tries} tries`,
        );
        await log.commit({
          reads: [{ object: 'task', id: task.id }],
          decide(at) {
            const now = at.get<Task & Row>('task', task.id);
            if (!now || isTerminal(now.status)) throw ended(task, now);
            return { events: [decidedIn(now, action, decision), denied(now, action, decision)] };
          },
        });
        return { kind: 'no', reason: decision.reason, decision };
      }
      requested = true;
      first = held.mounted ? { mounted: true } : {};
      await pause(retryMs, options.signal);
      current = await asOfNow(task, current);
    }
  }

  /** The act with the current persona, tier and quotas. */
  async function asOfNow(task: Task, { persona: _before, ...action }: Action): Promise<Action> {
    return { ...action, ...(await deps.policyData(task)) };
  }

  /** Asks the gate once, and records the decision with everything that follows from it. */
  async function ruleOnce(
    task: Task,
    action: Action,
    requested: boolean,
    options: Holding,
    held: Held,
  ): Promise<Authorization | 'taken'> {
    const revision = deps.revision?.();
    const asked = asExecutable(held.refused ?? (await gate(action, options.decideMs)), options);
    if (options.request && tooMany(asked)) throw tooManyRequests(asked);
    const shown = await showable(task, action.arguments, asked.arguments);
    // People are asked about the act as the rules rewrote it, and that act may run.
    const effective: Action = asked.arguments ? { ...action, arguments: asked.arguments } : action;
    if (asked.verdict !== 'escalate') {
      const authorization = await writeDown({
        task,
        action,
        effective,
        asked,
        shown,
        requested,
        options,
        held,
        revision,
      });
      if (authorization !== 'unkept') return authorization;
    }
    return await ask({ task, action, effective, asked, shown, requested, options, held, revision });
  }

  /** The unredacted act is stored before its question opens; an act that cannot be stored is refused instead. */
  async function ask(pending: WritingDown): Promise<Authorization | 'taken'> {
    const { task, action, shown } = pending;
    const effective = withWords(pending.effective, pending.options.question);
    const digest = asks.digest(effective);
    const key = action.tool_call_id ?? digest;
    let id: string | undefined;
    try {
      const mounted = pending.held.mounted ?? false;
      const found =
        mounted && action.tool ? await tools.find(action.tool, action.server, action.session_id) : undefined;
      const again = againOf(effective, {
        takesArguments: pending.options.takesArguments,
        mounted,
        skill: found?.skill,
      });
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
    const { claim, mounted } = pending.held;
    // Assigned inside the commit, which decides on the state it reads.
    let raised: Raised | undefined;
    let decision = asked;
    const unit: Unit = {
      reads: [{ object: 'task', id: task.id }, { object: 'run', id: task.id }, ...quotasOf(action)],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        const run = at.get<Run>('run', task.id);
        if (!now || !run || isTerminal(now.status)) throw ended(task, now);
        decision = asked.verdict === 'allow' || asked.verdict === 'modify' ? withinQuotas(at, action, asked) : asked;
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
        if (decision.verdict === 'allow' || decision.verdict === 'modify') events.push(...charges(at, now, action));
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
        if (request.length > 0 && mounted && typeof now.assigned_agent_id === 'string') {
          events.push(toolUse(now, action, shown.asked));
        }
        return { events };
      },
      ...claim,
    };
    const committed = await log.commit(unit).catch(unlessUnkept);
    if (!committed) return 'unkept';
    if (committed.repeated) return 'taken';
    const asking = raised as Raised | undefined;
    pending.opened?.(asking?.ask_id);
    if (asking) {
      const stated = asShown(decision, shown);
      return await answered(task, effective, stated, asking, options, { mounted: mounted ?? false, revision });
    }
    if (decision.verdict === 'allow') return { kind: 'go', action, decision };
    if (decision.verdict === 'modify') return { kind: 'go', action: effective, decision };
    return { kind: 'no', reason: decision.reason, decision };
  }

  /**
   * Names the process that runs the call when it is not the task's: when that process is gone, the call has no end. Work outside
   * the gateway has no process here.
   */
  function servedHere(run: Run, request: EventDraft): EventDraft {
    const served = request.payload.evidence === 'held' ? deps.servedBy?.() : undefined;
    if (served === undefined || run.instance === null || run.instance === served) return request;
    return { ...request, metadata: { ...request.metadata, [SERVED_BY]: served } };
  }

  /** Arguments as the log and people may see them, redacted. */
  async function showable(task: Task, args: JsonObject, rewrittenTo: JsonObject | undefined): Promise<Shown> {
    const location = { now: clock.now(), ...taskLocation(task) };
    const asked = await log.fit(args, location);
    const changed = rewrittenTo && (await log.fit(rewrittenTo, location));
    return {
      asked: asked.value as JsonObject,
      ...(changed && { rewritten: changed.value as JsonObject }),
      artifacts: [...asked.artifacts, ...(changed?.artifacts ?? [])],
    };
  }

  /** Waits for the answer, then spends it on exactly this act. */
  async function answered(
    task: Task,
    action: Action,
    decision: Decision,
    raised: Raised,
    options: Holding,
    { mounted, revision }: { readonly mounted: boolean; readonly revision: number | undefined },
  ): Promise<Authorization> {
    options.asked?.(raised.ask_id);
    const answer = await waitFor(raised.ask_id, task.id, options);
    // An approval is not spent for an asker that has left: it is kept until the asker asks again.
    if (!answer || (options.signal.aborted && answer.kind === 'approved')) {
      return { kind: 'open', ask_id: raised.ask_id, decision };
    }
    if (answer.kind !== 'approved' && answer.kind !== 'value') {
      if (answer.kind !== 'canceled') await spend(task, raised.ask_id, []).catch(ignoreConflict);
      const refused = notApproved(decision, answer);
      return { kind: 'no', reason: refused.reason, decision: refused, answer };
    }
    // The tool's definition may have changed since people saw it.
    const drift = await driftOf(tools, action, mounted);
    if (drift) {
      const refused = blocked('approval_void', drift);
      await spend(task, raised.ask_id, [decidedIn(task, action, refused), denied(task, action, refused)]);
      return { kind: 'no', reason: drift, decision: refused, answer };
    }
    if (answer.kind === 'approved' && answer.changed) {
      return await changed(task, action, decision, answer, options, mounted);
    }
    const now = await decidedAgain(task, action, decision, revision, options);
    if (now?.verdict === 'defer') return { kind: 'no', reason: now.reason, decision: now };
    if (now) {
      await spend(task, raised.ask_id, [decidedIn(task, action, now), denied(task, action, now)]);
      return { kind: 'no', reason: now.reason, decision: now, answer };
    }
    const over = await takeUp(task, action, decision, raised.ask_id, options.signal);
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
      await spend(task, askId, [decidedIn(task, asked, refused), denied(task, asked, refused)]);
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
    const over = await takeUp(task, action, decision, askId, options.signal, by);
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
    signal: AbortSignal,
    changedBy?: string,
  ): Promise<Decision | undefined> {
    for (let tries = 0; ; tries += 1) {
      let over: Decision | undefined;
      await log.commit({
        reads: [{ object: 'task', id: task.id }, { object: 'run', id: task.id }, ...quotasOf(action)],
        decide(at) {
          const now = at.get<Task & Row>('task', task.id);
          if (!now) throw ended(task, now);
          const used = asks.take(at, now, at.get<Run>('run', task.id), askId);
          const checked = withinQuotas(at, action, decision);
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
              : [asChanged(now, action, decision), rewritten(now, action, decision, { ask_id: askId, by: changedBy })];
          return { events: [used, ...change, ...charges(at, now, action)] };
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

  async function spend(task: Task, askId: string, also: readonly EventDraft[]): Promise<void> {
    await log.commit({
      reads: [
        { object: 'task', id: task.id },
        { object: 'run', id: task.id },
      ],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        if (!now) throw ended(task, now);
        return { events: [asks.take(at, now, at.get<Run>('run', task.id), askId), ...also] };
      },
    });
  }

  function withinQuotas(at: Pick<At, 'get' | 'now'>, action: Action, asked: Decision): Decision {
    for (const { id } of action.quotas ?? []) {
      const quota = at.get<Quota & Row>('quota', id);
      const refusal = quota && quotaRules.refuse(quota, action.cost ?? {}, at.now);
      // A question about the quota keeps the arguments that the rules rewrote.
      if (refusal?.verdict === 'escalate') return coveringSame(refusal, asked);
      if (refusal) return refusal;
    }
    return asked;
  }

  function charges(at: Pick<At, 'get' | 'now'>, task: Task, action: Action): EventDraft[] {
    const quotas = (action.quotas ?? []).map(({ id }) => id);
    const amounts = () => action.cost ?? {};
    return chargeEvents(quotaRules, at, task, { quotas, amounts, about: { action_id: action.id } });
  }

  return { rule };
}

function sameValue(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
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
  readonly shown: Shown;
  readonly requested: boolean;
  readonly options: Holding;
  readonly held: Held;
  /** The revision of rules and declarations that the decision was made under. */
  readonly revision: number | undefined;
  readonly opening?: Opening;
  readonly opened?: (askId: string | undefined) => void;
}

/** The decision on an approver's own arguments, as the log may show them. */
function asChanged(task: Task, action: Action, decision: Decision): EventDraft {
  return decidedIn(task, { ...action, arguments: decision.arguments as JsonObject }, decision);
}

function decidedIn(task: Task, action: Action, decision: Decision): EventDraft {
  return { ...decidedEvent(action, decision), ...inTask(task) };
}

export function ended(task: Task, now: Task | undefined): Fault {
  return new Fault('conflict', `task ${task.id} already ended${now ? ` as ${now.status}` : ''}`);
}

function ignoreConflict(cause: unknown): void {
  if (!(cause instanceof Fault && cause.kind === 'conflict')) throw cause;
}
