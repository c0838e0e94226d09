/**
 * May this be done? Asked of the gate, written down with everything that follows, and put to people when it says so.
 * A ruling that says go has spent what it needed: the approval, the quota. What it allows may run once.
 */
import type { Action, Actor, Decision } from '../model/actions.ts';
import type { Answer } from '../model/asks.ts';
import type { EventDraft } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Quota, Task } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import { isTerminal } from '../model/words.ts';
import type { At, Clock, QuotaRules, Row, Unit } from '../ports.ts';
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
} from './act-events.ts';
import type { Asks, Raised, Wanted } from './asks.ts';
import { SERVED_BY } from './awaited.ts';
import { chargeEvents } from './charging.ts';
import { driftOf } from './drift.ts';
import { blocked, decidedEvent, type Gate } from './gate.ts';
import { inTask, placeOf } from './lifecycle.ts';
import { artifactEvents, type Log } from './log.ts';
import type { ReadPolicyData } from './policy-data.ts';
import type { Run } from './rows.ts';
import type { Tools } from './tools.ts';
import { pause } from './waiting.ts';
import { isInPart, reasonOf, type WholeActs, withWords } from './whole-acts.ts';

export interface RulingDeps {
  readonly log: Log;
  readonly gate: Gate;
  readonly asks: Asks;
  readonly tools: Tools;
  readonly quotas: Pick<QuotaRules, 'refuse' | 'charge'>;
  readonly clock: Clock;
  /** This process, by the name others can see it alive under; absent while it has none, and in a replay. */
  readonly servedBy?: () => string | undefined;
  /** Personas, tiers and quotas as they are now; a replay has none, its decisions are on record. */
  readonly policyData: ReadPolicyData;
  /** Another number whenever other rules, harnesses or tiers hold. Absent in a replay, whose rules do not change. */
  readonly revision?: () => number;
  /** How often a deferred act is asked about again before it is refused. */
  readonly deferTries: number;
  readonly deferCapMs: number;
  /** Where acts are kept whole while people are asked about them. Absent in a replay, which asks nobody. */
  readonly wholeActs?: Pick<WholeActs, 'prepare' | 'discard'>;
}

export interface RuleOptions {
  readonly actor: Actor;
  readonly signal: AbortSignal;
  /** How long the asker may be held, from the moment it asks; absent means until the question is answered or expires. */
  readonly waitMs?: number;
  /** How long policy may take; absent means as long as its engines need. */
  readonly decideMs?: number;
  /** A deferral is the asker's to hear, not to be waited out here. */
  readonly deferred?: 'told';
  /** The asker can run rewritten arguments. */
  readonly takesArguments: boolean;
  /** What the agent says it is about: shown as the agent's words, never as the question. */
  readonly question?: string;
  /** The request is in the log already, from before a crash. */
  readonly requested?: boolean;
  /** So is the claim on the call id. */
  readonly claimed?: boolean;
  readonly ext?: JsonObject;
  /** For whoever runs the act, unread. */
  readonly line?: object;
  /** Fires when the asker no longer wants to know. */
  readonly withdrawn?: AbortSignal | undefined;
  /** Told of the question people are asked. */
  readonly asked?: (askId: string) => void;
}

/** When the asker has to be answered, on the process's own clock. */
type Holding = RuleOptions & { readonly holdUntil: number };

export type Ruling =
  | { readonly kind: 'go'; readonly action: Action; readonly decision: Decision; readonly answer?: Answer }
  | { readonly kind: 'no'; readonly reason: string; readonly decision: Decision; readonly answer?: Answer }
  /** The asker stopped holding the line; the question stays open. */
  | { readonly kind: 'open'; readonly ask_id: string; readonly decision: Decision };

/** What is known about an act that runs through us: which call it claims to be, and that we serve its tool. */
export interface Held {
  readonly claim?: Pick<Unit, 'idempotency'>;
  readonly mounted?: boolean;
  /** A no that needs no rule: it is written down as the decision. */
  readonly refused?: Decision;
}

export interface Rulings {
  /** `taken`: this very call was ruled on before; only said to someone with a claim. */
  rule(task: Task, action: Action, options: RuleOptions, held?: Held): Promise<Ruling | 'taken'>;
}

export function createRulings(deps: RulingDeps): Rulings {
  const { log, gate, asks, tools, quotas: quotaRules, clock } = deps;

  async function rule(...[task, action, options, held = {}]: Parameters<Rulings['rule']>): Promise<Ruling | 'taken'> {
    if (options.signal.aborted) throw new Fault('client_closed', 'the work was told to stop');
    let first: Held = held;
    let current = action;
    let requested = options.requested ?? false;
    const holding: Holding = {
      holdUntil: performance.now() + (options.waitMs ?? Number.POSITIVE_INFINITY),
      ...options,
    };
    for (let tries = 0; ; tries += 1) {
      const ruled = await ruleOnce(task, current, requested, holding, first);
      if (ruled === 'taken' || ruled.decision.verdict !== 'defer' || ruled.kind !== 'no') return ruled;
      if (options.deferred === 'told') return ruled;
      const retryMs = Math.min(ruled.decision.retry_after_ms ?? 1000, deps.deferCapMs);
      // Whoever holds the line only so long is told to come back, rather than kept until it hangs up.
      if (retryMs > holding.holdUntil - performance.now()) return ruled;
      if (tries >= deps.deferTries) {
        const decision = blocked('deferred_too_long', `${ruled.decision.reason}; still so after ${tries} tries`);
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

  /** The act with persona, tier and quotas as they are by now. */
  async function asOfNow(task: Task, { persona: _before, ...action }: Action): Promise<Action> {
    return { ...action, ...(await deps.policyData(task)) };
  }

  /** One question to the gate, written down with everything that follows from the answer. */
  async function ruleOnce(
    task: Task,
    action: Action,
    requested: boolean,
    options: Holding,
    held: Held,
  ): Promise<Ruling | 'taken'> {
    const revision = deps.revision?.();
    const asked = asExecutable(held.refused ?? (await gate(action, options.decideMs)), options);
    const shown = await showable(task, action.arguments, asked.arguments);
    // What people are asked about, and what may run, is the act as the rules rewrote it.
    const effective: Action = asked.arguments ? { ...action, arguments: asked.arguments } : action;
    if (asked.verdict !== 'escalate') {
      const ruled = await writeDown({ task, action, effective, asked, shown, requested, options, held, revision });
      if (ruled !== 'unkept') return ruled;
    }
    return await ask({ task, action, effective, asked, shown, requested, options, held, revision });
  }

  /** The act is kept whole before its question opens; one that cannot be kept is refused instead. */
  async function ask(given: WritingDown): Promise<Ruling | 'taken'> {
    const { task, action, shown } = given;
    const effective = withWords(given.effective, given.options.question);
    const digest = asks.digest(effective);
    const key = action.tool_call_id ?? digest;
    let id: string | undefined;
    try {
      id = await deps.wholeActs?.prepare(task, effective, { key, digest });
    } catch (cause) {
      const refused = blocked('cannot_show', `people cannot be shown what would run: ${reasonOf(cause)}`);
      return certain(await writeDown({ ...given, asked: refused }));
    }
    const logged = describeForPeople(effective, shown.rewritten ?? shown.asked);
    const opening: Opening = { key, digest, logged, inPart: isInPart(effective, logged, log.clean), ...(id && { id }) };
    let used: string | undefined;
    try {
      return certain(await writeDown({ ...given, effective, opening, opened: (askId) => (used = askId) }));
    } finally {
      // The commit went another way: no question stands under this id.
      if (id && used !== id) deps.wholeActs?.discard(id);
    }
  }

  /** One commit. `unkept`: a quota asks people after all, and the act is not kept for them yet; nothing was written. */
  async function writeDown(given: WritingDown): Promise<Ruling | 'taken' | 'unkept'> {
    const { task, action, effective, asked, shown, requested, options, opening, revision } = given;
    const { claim, mounted } = given.held;
    // Assigned inside the commit, which decides on the state as it then is.
    let raised: Raised | undefined;
    let decision = asked;
    const unit: Unit = {
      reads: [{ object: 'task', id: task.id }, { object: 'run', id: task.id }, ...quotasOf(action)],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        const run = at.get<Run>('run', task.id);
        if (!now || !run || isTerminal(now.status)) throw ended(task, now);
        decision = asked.verdict === 'allow' || asked.verdict === 'modify' ? withinQuotas(at, action, asked) : asked;
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
            // An agent that asks for a word wants the word, not leave to have asked.
            kind: action.kind === 'query' ? 'input' : 'approval',
            question: questionOf(effective),
            action: logged,
            name: action.tool ?? action.kind,
            decision,
            ...(action.tool_call_id && { tool_call_id: action.tool_call_id }),
            ...(options.ext && { ext: options.ext }),
          });
          // The same question again: the request and the decision stand in the log from the first time.
          if (raised.joined) return { events: raised.events };
          events.push(...raised.events);
        }
        return { events };
      },
      ...claim,
    };
    const committed = await log.commit(unit).catch(unlessUnkept);
    if (!committed) return 'unkept';
    if (committed.repeated) return 'taken';
    const asking = raised as Raised | undefined;
    given.opened?.(asking?.ask_id);
    if (asking) {
      const stated = asShown(decision, shown);
      return await answered(task, effective, stated, asking, options, { mounted: mounted ?? false, revision });
    }
    if (decision.verdict === 'allow') return { kind: 'go', action, decision };
    if (decision.verdict === 'modify') return { kind: 'go', action: effective, decision };
    return { kind: 'no', reason: decision.reason, decision };
  }

  /** A call that another process runs than its task says which one: when that is gone, so is its end. Work outside has no process here. */
  function servedHere(run: Run, request: EventDraft): EventDraft {
    const served = request.payload.evidence === 'held' ? deps.servedBy?.() : undefined;
    if (served === undefined || run.instance === null || run.instance === served) return request;
    return { ...request, metadata: { ...request.metadata, [SERVED_BY]: served } };
  }

  /** Arguments as the log and people may see them. */
  async function showable(task: Task, args: JsonObject, rewrittenTo: JsonObject | undefined): Promise<Shown> {
    const place = { now: clock.now(), ...placeOf(task) };
    const asked = await log.fit(args, place);
    const changed = rewrittenTo && (await log.fit(rewrittenTo, place));
    return {
      asked: asked.value as JsonObject,
      ...(changed && { rewritten: changed.value as JsonObject }),
      artifacts: [...asked.artifacts, ...(changed?.artifacts ?? [])],
    };
  }

  /** Waits for people, then spends their answer on exactly this act. */
  async function answered(
    task: Task,
    action: Action,
    decision: Decision,
    raised: Raised,
    options: Holding,
    { mounted, revision }: { readonly mounted: boolean; readonly revision: number | undefined },
  ): Promise<Ruling> {
    options.asked?.(raised.ask_id);
    const answer = await waitFor(raised.ask_id, task.id, options);
    // An approval is not spent on an asker that has left: it is kept for when it asks again.
    if (!answer || (options.signal.aborted && answer.kind === 'approved')) {
      return { kind: 'open', ask_id: raised.ask_id, decision };
    }
    if (answer.kind !== 'approved' && answer.kind !== 'value') {
      if (answer.kind !== 'canceled') await spend(task, raised.ask_id, []).catch(ignoreConflict);
      const refused = notApproved(decision, answer);
      return { kind: 'no', reason: refused.reason, decision: refused, answer };
    }
    // What people saw may no longer be what would run.
    const drift = await driftOf(tools, action, mounted);
    if (drift) {
      const refused = blocked('approval_void', drift);
      await spend(task, raised.ask_id, [decidedIn(task, action, refused), denied(task, action, refused)]);
      return { kind: 'no', reason: drift, decision: refused, answer };
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
   * People answered a question that the rules of that moment had raised. When other rules, another persona or another tier hold by
   * now, these decide on the act as well: an approval does not cover what they refuse, rewrite, or leave to other approvers.
   * Undefined: the approval holds.
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

  /** Spends an approval and charges the act, or refuses it when a quota ran out while people were asked. */
  async function takeUp(
    task: Task,
    action: Action,
    decision: Decision,
    askId: string,
    signal: AbortSignal,
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
          // A rate that opens again shortly does not cost people their answer: it is kept until there is room.
          if (over?.verdict === 'defer' && tries < deps.deferTries) return { events: [] };
          if (over) {
            over = { ...over, verdict: 'block' };
            return { events: [used, decidedIn(now, action, over), denied(now, action, over)] };
          }
          const change = decision.arguments ? [rewritten(now, action, decision)] : [];
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
      const answer = await asks.wait(askId, taskId, AbortSignal.any([signal, budget.signal]), asker);
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
      // Asking people about the quota does not undo what the rules made of the arguments.
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

/** Thrown inside a commit, and known by being this one. */
const UNKEPT = new Fault('internal', 'the act is not kept for the people who are to be asked');

function unlessUnkept(cause: unknown): undefined {
  if (cause !== UNKEPT) throw cause;
}

function certain(ruled: Ruling | 'taken' | 'unkept'): Ruling | 'taken' {
  if (ruled === 'unkept') throw UNKEPT;
  return ruled;
}

interface Opening extends Pick<Wanted, 'id' | 'key' | 'digest' | 'inPart'> {
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
  /** Of the rules and declarations it was decided by. */
  readonly revision: number | undefined;
  readonly opening?: Opening;
  readonly opened?: (askId: string | undefined) => void;
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
