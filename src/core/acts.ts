/**
 * From "may I?" to "done": every act of every agent goes through here once.
 * Decide, write down, then act. What was allowed and not seen to end is never tried again.
 */
import type { Action, Actor, Decision, ToolResult } from '../model/actions.ts';
import type { Answer } from '../model/asks.ts';
import type { ProposedAction } from '../model/commands.ts';
import type { EventDraft } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { ToolEndedPayload, ToolRequestedPayload, ToolRulingPayload } from '../model/payloads.ts';
import type { Artifact, Persona, Pointer, Quota, Task, Workspace } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { AUTONOMY_TIERS, type AutonomyTier, isTerminal } from '../model/words.ts';
import type { ActResult, At, Clock, HeldEffect, Ids, Logger, QuotaRules, Row, Store, Unit } from '../ports.ts';
import type { Asks, Raised } from './asks.ts';
import { type Charge, chargeEvents, type Metering, reportedAmounts } from './charging.ts';
import { blocked, decidedEvent, type Gate } from './gate.ts';
import { inTask } from './lifecycle.ts';
import { artifactEvents, keptBytes, type Log } from './log.ts';
import type { Run } from './rows.ts';
import type { Tools } from './tools.ts';

export interface ActsDeps {
  readonly store: Store;
  readonly log: Log;
  readonly gate: Gate;
  readonly asks: Asks;
  readonly tools: Tools;
  readonly quotas: QuotaRules;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly hash: (value: Json) => string;
  readonly logger: Logger;
  readonly defaultTier: AutonomyTier;
  /** How often a deferred act is asked about again before it is refused. */
  readonly deferTries: number;
  readonly deferCapMs: number;
  /** Where personas and quotas come from; a replay has neither, its decisions are on record. */
  readonly policyData?: Acts['policyData'];
}

export interface RuleOptions {
  readonly actor: Actor;
  readonly signal: AbortSignal;
  /** How long an escalation may hold the asker; absent means until it is answered or expires. */
  readonly waitMs?: number;
  /** The asker can run rewritten arguments. */
  readonly takesArguments: boolean;
  readonly question?: string;
  /** The request is in the log already, from before a crash. */
  readonly requested?: boolean;
  readonly ext?: JsonObject;
}

export type Ruling =
  | { readonly kind: 'go'; readonly action: Action; readonly decision: Decision; readonly answer?: Answer }
  | { readonly kind: 'no'; readonly reason: string; readonly decision: Decision; readonly answer?: Answer }
  /** The asker stopped holding the line; the question stays open. */
  | { readonly kind: 'open'; readonly ask_id: string; readonly decision: Decision };

export interface Acts {
  /** What policy needs to know about an act, gathered in one place. */
  describe(task: Task, proposed: ProposedAction, actor: Actor): Promise<Action>;
  rule(task: Task, proposed: ProposedAction, options: RuleOptions): Promise<Ruling>;
  perform(task: Task, proposed: ProposedAction, options: RuleOptions, effect?: HeldEffect): Promise<ActResult>;
  /** Writes down how a call ended. */
  ended(
    task: Task,
    call: { id: string; tool: string; evidence: string },
    result: ToolResult,
    code?: string,
  ): Promise<void>;
  policyData(task: Pick<Task, 'workspace_id' | 'persona_id' | 'quota_id'>): Promise<PolicyData>;
  /** Charges reported usage to what the task works under, in the commit that records the report. */
  metering(task: Task, reports: readonly JsonObject[]): Promise<Metering>;
}
export interface PolicyData {
  readonly persona?: Persona;
  readonly tier: AutonomyTier;
  readonly quotas: readonly Quota[];
}

export function createActs(deps: ActsDeps): Acts {
  const { store, log, gate, asks, tools, quotas: quotaRules, clock, ids } = deps;

  async function policyData(about: Parameters<Acts['policyData']>[0]): Promise<PolicyData> {
    if (deps.policyData) return await deps.policyData(about);
    const [persona, workspace] = await Promise.all([
      about.persona_id ? store.get<Persona & Row>('persona', about.persona_id) : undefined,
      store.get<Workspace & Row>('workspace', about.workspace_id),
    ]);
    const quotaIds = [persona?.quota_id, workspace?.quota_id, about.quota_id].filter((id) => typeof id === 'string');
    const found = await Promise.all([...new Set(quotaIds)].map((id) => store.get<Quota & Row>('quota', id)));
    return {
      ...(persona && { persona }),
      tier: tierOf(persona, deps.defaultTier),
      quotas: found.filter((quota) => quota !== undefined),
    };
  }

  async function describe(task: Task, proposed: ProposedAction, actor: Actor): Promise<Action> {
    const data = await policyData(task);
    const { evidence = 'observed', effect = 'unknown', arguments: args = {}, cost, ...named } = proposed;
    return {
      ...named,
      id: ids.next('action'),
      actor,
      workspace_id: task.workspace_id,
      session_id: task.session_id,
      task_id: task.id,
      arguments: args,
      effect,
      evidence,
      // A call counts as one call at least, whatever its asker says it costs.
      cost: { ...cost, ...(COUNTED.has(proposed.kind) && { tool_calls: Math.max(1, cost?.tool_calls ?? 1) }) },
      ...data,
    } as Action;
  }

  async function rule(task: Task, proposed: ProposedAction, options: RuleOptions): Promise<Ruling> {
    return (await ruleOn(task, proposed, options)) as Ruling;
  }

  /** `taken`: this very call was ruled on before; only asked with a claim. */
  async function ruleOn(
    task: Task,
    proposed: ProposedAction,
    options: RuleOptions,
    held: Held = {},
  ): Promise<Ruling | 'taken'> {
    if (options.signal.aborted) throw new Fault('client_closed', 'the work was told to stop');
    const action = await describe(task, proposed, options.actor);
    let first: Held = held;
    let requested = options.requested ?? false;
    let waited = 0;
    for (let tries = 0; ; tries += 1) {
      const ruled = await ruleOnce(task, action, requested, options, first);
      if (ruled === 'taken' || ruled.decision.verdict !== 'defer' || ruled.kind !== 'no') return ruled;
      const retryMs = Math.min(ruled.decision.retry_after_ms ?? 1000, deps.deferCapMs);
      // Whoever holds the line only so long is told to come back, rather than kept until it hangs up.
      if (options.waitMs !== undefined && retryMs > options.waitMs - waited) return ruled;
      if (tries >= deps.deferTries) {
        const decision = blocked('deferred_too_long', `${ruled.decision.reason}; still so after ${tries} tries`);
        await log.commit({
          decide: () => ({ events: [decidedEvent(action, decision), denied(task, action, decision)] }),
        });
        return { kind: 'no', reason: decision.reason, decision };
      }
      requested = true;
      first = held.mounted ? { mounted: true } : {};
      waited += retryMs;
      await pause(retryMs, options.signal);
    }
  }

  /** One question to the gate, written down with everything that follows from the answer. */
  async function ruleOnce(
    task: Task,
    action: Action,
    requested: boolean,
    options: RuleOptions,
    { claim, mounted }: Held,
  ): Promise<Ruling | 'taken'> {
    const asked = asExecutable(await gate(action), options);
    // What people are asked about, and what may run, is the act as the rules rewrote it.
    const effective: Action = asked.arguments ? { ...action, arguments: asked.arguments } : action;
    const digest = asks.digest(effective);
    const shown = await showable(task, action.arguments, asked.arguments);
    // Assigned inside the commit, which decides on the state as it then is.
    let raised: Raised | undefined;
    let decision = asked;

    const { repeated } = await log.commit({
      ...claim,
      reads: [{ object: 'task', id: task.id }, { object: 'run', id: task.id }, ...quotasOf(action)],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        const run = at.get<Run>('run', task.id);
        if (!now || !run || isTerminal(now.status)) throw ended(task, now);
        decision = asked.verdict === 'allow' || asked.verdict === 'modify' ? withinQuotas(at, action, asked) : asked;
        raised = undefined;

        const request =
          requested || !action.tool_call_id ? [] : [requestedEvent(now, action, shown.asked, options.ext)];
        const events: EventDraft[] = [
          ...artifactEvents(shown.artifacts, inTask(now)),
          ...request,
          decidedEvent({ ...action, arguments: shown.asked }, asShown(decision, shown)),
        ];
        if (decision.verdict === 'block') events.push(denied(now, action, decision));
        if (decision.verdict === 'modify') events.push(rewritten(now, action, asShown(decision, shown)));
        if (decision.verdict === 'allow' || decision.verdict === 'modify') events.push(...charges(at, now, action));
        if (decision.verdict === 'escalate') {
          raised = asks.raise(at, now, run, {
            kind: 'approval',
            key: action.tool_call_id ?? digest,
            digest,
            question: options.question ?? questionOf(action),
            action: describeForPeople(action, shown.rewritten ?? shown.asked),
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
    });
    if (repeated) return 'taken';
    if (raised) return await answered(task, effective, asShown(decision, shown), raised, options, mounted ?? false);
    if (decision.verdict === 'allow') return { kind: 'go', action, decision };
    if (decision.verdict === 'modify') return { kind: 'go', action: effective, decision };
    return { kind: 'no', reason: decision.reason, decision };
  }

  /** Arguments as the log and people may see them. */
  async function showable(task: Task, args: JsonObject, rewrittenTo: JsonObject | undefined): Promise<Shown> {
    const place = { ...placeOf(task), now: clock.now() };
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
    options: RuleOptions,
    mounted: boolean,
  ): Promise<Ruling> {
    const answer = await waitFor(raised.ask_id, task.id, options);
    if (!answer) return { kind: 'open', ask_id: raised.ask_id, decision };
    if (answer.kind !== 'approved') {
      if (answer.kind !== 'canceled') await spend(task, raised.ask_id, []).catch(ignoreConflict);
      const refused = notApproved(decision, answer);
      return { kind: 'no', reason: refused.reason, decision: refused, answer };
    }
    // What people saw may no longer be what would run.
    const drift = await driftOf(action, mounted);
    if (drift) {
      const refused = blocked('approval_void', drift);
      await spend(task, raised.ask_id, [decidedEvent(action, refused), denied(task, action, refused)]);
      return { kind: 'no', reason: drift, decision: refused, answer };
    }
    const over = await takeUp(task, action, decision, raised.ask_id, options.signal);
    if (over) return { kind: 'no', reason: over.reason, decision: over, answer };
    const approved = decision.arguments ? { ...answer, arguments: action.arguments } : answer;
    return { kind: 'go', action, decision, answer: approved };
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
            return { events: [used, decidedEvent(action, over), denied(now, action, over)] };
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

  async function waitFor(askId: string, taskId: string, { signal, waitMs }: RuleOptions): Promise<Answer | undefined> {
    if (waitMs === undefined) return await asks.wait(askId, taskId, signal);
    const budget = new AbortController();
    const timer = setTimeout(() => budget.abort(), waitMs);
    try {
      const answer = await asks.wait(askId, taskId, AbortSignal.any([signal, budget.signal]));
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

  async function driftOf(action: Action, mounted: boolean): Promise<string | undefined> {
    if (!action.definition || !action.tool || action.evidence !== 'held') return undefined;
    const found = await tools.find(action.tool, action.server);
    // Not one of ours: the caller brought the effect itself.
    if (!found && !mounted) return undefined;
    if (!found) return `${action.tool} is no longer there to do what was approved`;
    return found.definition === action.definition
      ? undefined
      : `the definition of ${action.tool} changed after it was approved; ask again`;
  }

  function withinQuotas(at: Pick<At, 'get' | 'now'>, action: Action, asked: Decision): Decision {
    for (const { id } of action.quotas ?? []) {
      const quota = at.get<Quota & Row>('quota', id);
      const refusal = quota && quotaRules.refuse(quota, action.cost ?? {}, at.now);
      // Asking people about the quota does not undo what the rules made of the arguments.
      if (refusal?.verdict === 'escalate' && asked.arguments) return { ...refusal, arguments: asked.arguments };
      if (refusal) return refusal;
    }
    return asked;
  }

  function charges(at: Pick<At, 'get' | 'now'>, task: Task, action: Action): EventDraft[] {
    const quotas = (action.quotas ?? []).map(({ id }) => id);
    const amounts = () => action.cost ?? {};
    return chargeEvents(quotaRules, at, task, { quotas, amounts, about: { action_id: action.id } });
  }

  async function metering(task: Task, reports: readonly JsonObject[]): Promise<Metering> {
    if (reports.length === 0) return UNMETERED;
    const quotas = (await policyData(task)).quotas.map(({ id }) => id);
    const charge: Charge = { quotas, amounts: (limits) => reportedAmounts(reports, limits) };
    return {
      reads: quotas.map((id) => ({ object: 'quota', id })),
      events: (at) => chargeEvents(quotaRules, at, task, charge),
    };
  }

  async function perform(
    task: Task,
    proposed: ProposedAction,
    options: RuleOptions,
    effect?: HeldEffect,
  ): Promise<ActResult> {
    const found = effect || !proposed.tool ? undefined : await tools.find(proposed.tool, proposed.server);
    if (!effect && !found) throw new Fault('not_found', `no tool ${proposed.tool ?? ''} is mounted`);
    const callId = proposed.tool_call_id ?? ids.next('call');
    const held: ProposedAction = {
      ...proposed,
      tool_call_id: callId,
      evidence: 'held',
      // The one who serves the tool knows what it does; a caller's word for it is only a claim.
      ...(found && { kind: 'tool', server: found.server, definition: found.definition, effect: found.effect }),
    };
    const claim = proposed.tool_call_id && !options.requested ? claimOf(task, proposed) : undefined;
    const ruling = await ruleOn(task, held, options, {
      ...(claim && { claim }),
      ...(found && { mounted: true }),
    }).catch((cause) => {
      throw claim && cause instanceof Fault && cause.kind === 'idempotency_key_reused' ? reused(callId) : cause;
    });
    if (ruling === 'taken') return await recorded(task, callId, options.signal);
    if (ruling.kind !== 'go') {
      const reason = ruling.kind === 'no' ? ruling.reason : `waiting for an answer to ${ruling.ask_id}`;
      return { kind: 'refused', reason, decision: ruling.decision };
    }
    const { action } = ruling;
    const result = options.signal.aborted
      ? STOPPED
      : await attempt(() =>
          found ? found.call(action, options.signal) : (effect as HeldEffect)(action.arguments, options.signal),
        );
    const canceled = result.status !== 'ok' && options.signal.aborted;
    const call = { id: callId, tool: action.tool ?? action.kind, evidence: 'held' };
    await record(task, call, result, result.code ?? (canceled ? 'canceled' : undefined));
    return { kind: 'done', result };
  }

  /** One call id, one act: whoever comes second with the same call waits for its result, with another one is refused. */
  function claimOf(task: Task, { tool_call_id, ...call }: ProposedAction): Pick<Unit, 'idempotency'> {
    const scope = deps.hash(['call', task.id, tool_call_id as string]);
    return { idempotency: { scope, body: deps.hash(call as unknown as Json) } };
  }

  /** How a call that someone else makes, or made, came out. */
  async function recorded(task: Task, callId: string, signal: AbortSignal): Promise<ActResult> {
    const over = AbortSignal.any([signal, AbortSignal.timeout(RETRY_WAIT_MS)]);
    for await (const { event, payload } of store.follow({ stream: { of: 'task', id: task.id } }, over)) {
      if (payload.tool_call_id !== callId) continue;
      if (event === 'tool.completed' || event === 'tool.failed') {
        const { status, output = null, error, code } = payload as unknown as ToolEndedPayload;
        return { kind: 'done', result: { status, output, ...(error && { error }), ...(code && { code }) } };
      }
      if (event === 'tool.denied') {
        const { reason = 'denied', by, code, rule_id } = payload as unknown as ToolRulingPayload;
        const decision = { verdict: 'block', reason, engine: by, ...(code && { code }), ...(rule_id && { rule_id }) };
        return { kind: 'refused', reason, decision: decision as Decision };
      }
    }
    throw new Fault('deadline_exceeded', `call ${callId} is still running`);
  }

  async function attempt(run: () => Promise<ToolResult>): Promise<ToolResult> {
    try {
      return await run();
    } catch (cause) {
      deps.logger.warn({ err: cause }, 'a tool threw');
      const message = cause instanceof Error ? cause.message : String(cause);
      return { status: 'error', output: null, error: message || 'the tool failed without saying why' };
    }
  }

  /** What was done is done: a log that is away for a while must not cost the record of it. */
  async function record(...[task, call, result, code]: Parameters<Acts['ended']>): Promise<void> {
    for (let wait = 50; ; wait *= 2) {
      try {
        await writeEnd(task, call, result, code);
        return;
      } catch (cause) {
        if (!(cause instanceof Fault && cause.kind === 'unavailable') || wait > LONGEST_WAIT_MS) throw cause;
        await new Promise((resolve) => setTimeout(resolve, wait).unref());
      }
    }
  }

  async function writeEnd(...[task, call, result, code]: Parameters<Acts['ended']>): Promise<void> {
    const place = { ...placeOf(task), now: clock.now() };
    const output = await log.fit(result.output ?? null, place);
    const files = await Promise.all((result.artifacts ?? []).map((file) => newArtifact(file, place, store, ids)));
    const used = await metering(task, result.usage ? [result.usage as unknown as JsonObject] : []);
    const payload: ToolEndedPayload = {
      tool_call_id: call.id,
      name: call.tool,
      status: result.status === 'ok' ? 'ok' : 'error',
      output: output.value,
      ...(result.error && { error: result.error }),
      ...(code && { code }),
    };
    const at = inTask(task);
    const events: EventDraft[] = [
      ...artifactEvents([...output.artifacts, ...files], at),
      ...(result.effects ?? []).map((effect) => ({
        ...at,
        event: 'vendor.tollbridge.side_effect',
        payload: { ...effect, tool_call_id: call.id, evidence: call.evidence } as unknown as JsonObject,
      })),
      ...(result.usage
        ? [{ ...at, event: 'vendor.tollbridge.usage', payload: { ...result.usage, call_id: call.id } as JsonObject }]
        : []),
      {
        ...at,
        event: result.status === 'ok' ? 'tool.completed' : 'tool.failed',
        payload: payload as unknown as JsonObject,
        ...(result.ext && { ext: result.ext }),
      },
    ];
    await log.commit({
      reads: [{ object: 'task', id: task.id }, ...used.reads],
      decide(now) {
        const current = now.get<Task & Row>('task', task.id);
        const all = [...events, ...used.events(now)];
        // It ended after its task did: the receipt is sealed, so this is a note beside it, not part of it.
        const late = !current || isTerminal(current.status);
        return { events: late ? all.map(afterEnd) : all };
      },
    });
  }

  return { describe, rule, perform, ended: record, policyData, metering };
}

/** What is known about an act that runs through us: which call it claims to be, and that we serve its tool. */
interface Held {
  readonly claim?: Pick<Unit, 'idempotency'>;
  readonly mounted?: boolean;
}
/** Arguments as asked for and as rewritten, without secrets; what does not fit is in the artifacts. */
interface Shown {
  readonly asked: JsonObject;
  readonly rewritten?: JsonObject;
  readonly artifacts: readonly Artifact[];
}

const COUNTED = new Set(['tool', 'fs.write', 'terminal', 'handoff']);
const UNMETERED: Metering = { reads: [], events: () => [] };
/** How long a second asker waits for the first one's call. */
const RETRY_WAIT_MS = 60_000;
/** A log that stays away longer than this many milliseconds times two is not coming back while anyone waits. */
const LONGEST_WAIT_MS = 15_000;
const STOPPED: ToolResult = { status: 'error', output: null, error: 'stopped before it began', code: 'canceled' };

function quotasOf({ quotas = [] }: Action): Pointer[] {
  return quotas.map(({ id }) => ({ object: 'quota', id }));
}

function asShown(decision: Decision, { rewritten: args }: Shown): Decision {
  return decision.arguments && args ? { ...decision, arguments: args } : decision;
}

function afterEnd(event: EventDraft): EventDraft {
  return { ...event, payload: { ...event.payload, after_end: true } };
}

function reused(callId: string): Fault {
  return new Fault('conflict', `call id ${callId} was already used for a different call`);
}

/** The word for a no that came from people, or from nobody being there. */
function notApproved({ arguments: _, ask: _ask, ...decision }: Decision, answer: Answer): Decision {
  const codes: Partial<Record<Answer['kind'], string>> = {
    denied: 'approval_denied',
    expired: 'approval_timed_out',
    canceled: 'approval_withdrawn',
  };
  const reason = 'reason' in answer && answer.reason ? answer.reason : 'not approved';
  return { ...decision, verdict: 'block', code: codes[answer.kind] ?? 'approval_denied', reason };
}

/** No persona means rules alone; a tier nobody has heard of means ask. */
export function tierOf(persona: Pick<Persona, 'autonomy_tier'> | undefined, otherwise: AutonomyTier): AutonomyTier {
  if (!persona) return otherwise;
  const known = (AUTONOMY_TIERS as readonly string[]).includes(persona.autonomy_tier);
  return known ? (persona.autonomy_tier as AutonomyTier) : 'suggest';
}

export async function newArtifact(
  file: NonNullable<ToolResult['artifacts']>[number],
  place: { workspace_id: string; session_id?: string | null; task_id?: string | null; now: string },
  store: Pick<Store, 'putBlob'>,
  ids: Ids,
): Promise<Artifact> {
  const sha256 = file.bytes
    ? await store.putBlob(file.bytes)
    : (file.sha256?.replace(/^sha256:/, '').toLowerCase() ?? null);
  return {
    id: ids.next('artifact'),
    object: 'artifact',
    created_at: place.now,
    updated_at: place.now,
    metadata: keptBytes({ ...file.metadata, ...(file.name && { name: file.name }) }, file.bytes?.byteLength),
    kind: file.kind,
    mime_type: file.mime_type,
    uri: file.uri ?? null,
    visibility: file.visibility ?? 'public',
    sha256,
    workspace_id: place.workspace_id,
    session_id: place.session_id ?? null,
    task_id: place.task_id ?? null,
  };
}

function placeOf(task: Task) {
  return { workspace_id: task.workspace_id, session_id: task.session_id, task_id: task.id };
}

/** A rule that rewrites arguments is a refusal to someone who can only hear yes or no. */
function asExecutable(decision: Decision, { takesArguments }: RuleOptions): Decision {
  const rewrites =
    decision.verdict === 'modify' || (decision.verdict === 'escalate' && decision.arguments !== undefined);
  if (!rewrites || (takesArguments && decision.arguments)) return decision;
  return {
    ...decision,
    verdict: 'block',
    code: 'cannot_modify',
    reason: `${decision.reason} (the rule rewrites the arguments, which cannot be carried back to this agent)`,
  };
}

function requestedEvent(task: Task, action: Action, input: JsonObject, ext: JsonObject | undefined): EventDraft {
  const payload: ToolRequestedPayload = {
    tool_call_id: action.tool_call_id as string,
    name: action.tool ?? action.kind,
    kind: action.kind,
    input,
    effect: action.effect,
    evidence: action.evidence,
    ...(action.server && { server: action.server }),
    ...(action.target && { target: action.target }),
    ...(action.definition && { definition: action.definition }),
  };
  return {
    ...inTask(task),
    event: 'tool.requested',
    actor: action.actor.id,
    payload: payload as unknown as JsonObject,
    ...(ext && { ext }),
  };
}

function denied(task: Task, action: Action, decision: Decision): EventDraft {
  return rulingEvent('tool.denied', task, action, decision);
}

function rewritten(task: Task, action: Action, decision: Decision): EventDraft {
  return rulingEvent('tool.approved', task, action, decision, decision.arguments);
}

function rulingEvent(event: string, task: Task, action: Action, decision: Decision, input?: JsonObject): EventDraft {
  const payload: ToolRulingPayload = {
    tool_call_id: action.tool_call_id ?? null,
    name: action.tool ?? action.kind,
    by: decision.engine,
    reason: decision.reason,
    ...(decision.code && { code: decision.code }),
    ...(decision.rule_id && { rule_id: decision.rule_id }),
    ...(input && { input }),
  };
  return { ...inTask(task), event, payload: payload as unknown as JsonObject };
}

function questionOf(action: Action): string {
  const what = action.tool ?? action.kind;
  return action.target
    ? `May ${action.actor.id} use ${what} on ${action.target}?`
    : `May ${action.actor.id} use ${what}?`;
}

function describeForPeople(action: Action, shown: JsonObject): JsonObject {
  const { kind, tool, server, target, effect, evidence, definition } = action;
  const described = {
    kind,
    tool,
    server,
    target,
    effect,
    evidence,
    definition,
    actor: action.actor.id,
    arguments: shown,
  };
  return Object.fromEntries(Object.entries(described).filter(([, v]) => v !== undefined)) as Record<string, Json>;
}

function ended(task: Task, now: Task | undefined): Fault {
  return new Fault('conflict', `task ${task.id} already ended${now ? ` as ${now.status}` : ''}`);
}

function ignoreConflict(cause: unknown): void {
  if (!(cause instanceof Fault && cause.kind === 'conflict')) throw cause;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new Fault('client_closed', 'stopped while waiting to ask again'));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}
