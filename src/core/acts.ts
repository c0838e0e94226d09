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
import type { ActResult, Clock, HeldEffect, Ids, Logger, QuotaRules, Row, Store } from '../ports.ts';
import type { Asks, Raised } from './asks.ts';
import { blocked, decidedEvent, type Gate } from './gate.ts';
import { inTask } from './lifecycle.ts';
import { artifactEvents, type Log } from './log.ts';
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
      cost: { ...(COUNTED.has(proposed.kind) && { tool_calls: 1 }), ...cost },
      ...data,
    } as Action;
  }

  async function rule(task: Task, proposed: ProposedAction, options: RuleOptions): Promise<Ruling> {
    const action = await describe(task, proposed, options.actor);
    let requested = options.requested ?? false;
    for (let tries = 0; ; tries += 1) {
      const ruled = await ruleOnce(task, action, requested, options);
      if (ruled.decision.verdict !== 'defer' || ruled.kind !== 'no') return ruled;
      if (tries >= deps.deferTries) {
        const decision = blocked('deferred_too_long', `${ruled.decision.reason}; still so after ${tries} tries`);
        await log.commit({
          decide: () => ({ events: [decidedEvent(action, decision), denied(task, action, decision)] }),
        });
        return { kind: 'no', reason: decision.reason, decision };
      }
      requested = true;
      await pause(Math.min(ruled.decision.retry_after_ms ?? 1000, deps.deferCapMs), options.signal);
    }
  }

  /** One question to the gate, written down with everything that follows from the answer. */
  async function ruleOnce(task: Task, action: Action, requested: boolean, options: RuleOptions): Promise<Ruling> {
    const asked = asExecutable(await gate(action), options);
    // What people are asked about, and what may run, is the act as the rules rewrote it.
    const effective: Action = asked.arguments ? { ...action, arguments: asked.arguments } : action;
    const digest = asks.digest(effective);
    const quotaReads: Pointer[] = (action.quotas ?? []).map(({ id }) => ({ object: 'quota', id }));
    const shownArguments = (await log.fit(action.arguments, { ...placeOf(task), now: clock.now() })) as {
      value: JsonObject;
      artifacts: readonly Artifact[];
    };
    // Assigned inside the commit, which decides on the state as it then is.
    let raised: Raised | undefined;
    let decision = asked;

    await log.commit({
      reads: [{ object: 'task', id: task.id }, { object: 'run', id: task.id }, ...quotaReads],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        const run = at.get<Run>('run', task.id);
        if (!now || !run || isTerminal(now.status)) throw ended(task, now);
        decision = asked.verdict === 'allow' || asked.verdict === 'modify' ? withinQuotas(at, action, asked) : asked;
        raised = undefined;

        const request =
          requested || !action.tool_call_id ? [] : [requestedEvent(now, action, shownArguments.value, options.ext)];
        const events: EventDraft[] = [
          ...artifactEvents(shownArguments.artifacts, inTask(now)),
          ...request,
          decidedEvent({ ...action, arguments: shownArguments.value }, decision),
        ];
        if (decision.verdict === 'block') events.push(denied(now, action, decision));
        if (decision.verdict === 'modify') events.push(rewritten(now, action, decision));
        if (decision.verdict === 'allow' || decision.verdict === 'modify') events.push(...charges(at, now, action));
        if (decision.verdict === 'escalate') {
          raised = asks.raise(at, now, run, {
            kind: 'approval',
            key: action.tool_call_id ?? digest,
            digest,
            question: options.question ?? questionOf(action),
            action: describeForPeople(action, asked.arguments ? log.clean(asked.arguments) : shownArguments.value),
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

    if (raised) return await answered(task, effective, decision, raised, options);
    if (decision.verdict === 'allow') return { kind: 'go', action, decision };
    if (decision.verdict === 'modify') return { kind: 'go', action: effective, decision };
    return { kind: 'no', reason: decision.reason, decision };
  }

  /** Waits for people, then spends their answer on exactly this act. */
  async function answered(
    task: Task,
    action: Action,
    decision: Decision,
    raised: Raised,
    options: RuleOptions,
  ): Promise<Ruling> {
    const answer = await waitFor(raised.ask_id, task.id, options);
    if (!answer) return { kind: 'open', ask_id: raised.ask_id, decision };
    if (answer.kind === 'expired' || answer.kind === 'canceled') {
      if (answer.kind === 'expired') await spend(task, raised.ask_id, []).catch(ignoreConflict);
      return { kind: 'no', reason: answer.reason, decision, answer };
    }
    if (answer.kind !== 'approved') {
      await spend(task, raised.ask_id, []).catch(ignoreConflict);
      return { kind: 'no', reason: answer.kind === 'denied' ? answer.reason : 'not approved', decision, answer };
    }
    // What people saw may no longer be what would run.
    const drift = await driftOf(action);
    if (drift) {
      const refused = blocked('approval_void', drift);
      await spend(task, raised.ask_id, [decidedEvent(action, refused), denied(task, action, refused)]);
      return { kind: 'no', reason: drift, decision: refused, answer };
    }
    const quotaReads = (action.quotas ?? []).map(({ id }) => ({ object: 'quota', id }));
    let over: Decision | undefined;
    await log.commit({
      reads: [{ object: 'task', id: task.id }, { object: 'run', id: task.id }, ...quotaReads],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        if (!now) throw ended(task, now);
        const used = asks.take(at, now, at.get<Run>('run', task.id), raised.ask_id);
        const checked = withinQuotas(at, action, decision);
        over = checked.verdict === 'block' || checked.verdict === 'defer' ? checked : undefined;
        return over
          ? { events: [used, decidedEvent(action, over), denied(now, action, over)] }
          : {
              events: [
                used,
                ...(decision.arguments ? [rewritten(now, action, decision)] : []),
                ...charges(at, now, action),
              ],
            };
      },
    });
    if (over) return { kind: 'no', reason: (over as Decision).reason, decision: over, answer };
    return { kind: 'go', action, decision, answer };
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

  async function driftOf(action: Action): Promise<string | undefined> {
    if (!action.definition || !action.tool || action.evidence !== 'held') return undefined;
    const found = await tools.find(action.tool, action.server);
    if (!found) return undefined; // not one of ours: the caller brought the effect itself
    return found.definition === action.definition
      ? undefined
      : `the definition of ${action.tool} changed after it was approved; ask again`;
  }

  function withinQuotas(
    at: { get: <T extends Row>(o: string, id: string) => T | undefined; now: string },
    action: Action,
    asked: Decision,
  ): Decision {
    for (const { id } of action.quotas ?? []) {
      const quota = at.get<Quota & Row>('quota', id);
      const refusal = quota && quotaRules.refuse(quota, action.cost ?? {}, at.now);
      if (refusal) return refusal;
    }
    return asked;
  }

  function charges(
    at: { get: <T extends Row>(o: string, id: string) => T | undefined; now: string },
    task: Task,
    action: Action,
  ): EventDraft[] {
    return (action.quotas ?? []).flatMap(({ id }) => {
      const quota = at.get<Quota & Row>('quota', id);
      if (!quota) return [];
      const { usage, reset_at } = quotaRules.charge(quota, action.cost ?? {}, at.now);
      const payload = { quota_id: id, amounts: action.cost ?? {}, usage, reset_at, action_id: action.id };
      return [{ ...inTask(task), event: 'vendor.tollbridge.quota_used', payload: payload as unknown as JsonObject }];
    });
  }

  async function perform(
    task: Task,
    proposed: ProposedAction,
    options: RuleOptions,
    effect?: HeldEffect,
  ): Promise<ActResult> {
    const found = effect || !proposed.tool ? undefined : await tools.find(proposed.tool, proposed.server);
    if (!effect && !found) throw new Fault('not_found', `no tool ${proposed.tool ?? ''} is mounted`);
    const held: ProposedAction = {
      ...proposed,
      tool_call_id: proposed.tool_call_id ?? ids.next('call'),
      evidence: 'held',
      // The one who serves the tool knows what it does; a caller's word for it is only a claim.
      ...(found && { server: found.server, definition: found.definition, effect: found.effect }),
    };
    const ruling = await rule(task, held, options);
    if (ruling.kind !== 'go') {
      const reason = ruling.kind === 'no' ? ruling.reason : `waiting for an answer to ${ruling.ask_id}`;
      return { kind: 'refused', reason, decision: ruling.decision };
    }
    const { action } = ruling;
    const result = await attempt(() =>
      found ? found.call(action, options.signal) : (effect as HeldEffect)(action.arguments, options.signal),
    );
    const canceled = result.status !== 'ok' && options.signal.aborted;
    const call = { id: held.tool_call_id as string, tool: action.tool ?? action.kind, evidence: 'held' };
    await record(task, call, result, result.code ?? (canceled ? 'canceled' : undefined));
    return { kind: 'done', result };
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

  async function record(
    task: Task,
    call: { id: string; tool: string; evidence: string },
    result: ToolResult,
    code?: string,
  ) {
    const place = { ...placeOf(task), now: clock.now() };
    const output = await log.fit(result.output ?? null, place);
    const files = await Promise.all((result.artifacts ?? []).map((file) => newArtifact(file, place, store, ids)));
    const payload: ToolEndedPayload = {
      tool_call_id: call.id,
      name: call.tool,
      status: result.status === 'ok' ? 'ok' : 'error',
      output: output.value,
      ...(result.error && { error: result.error }),
      ...(code && { code }),
    };
    const at = inTask(task);
    await log.commit({
      reads: [{ object: 'task', id: task.id }],
      decide(now) {
        const current = now.get<Task & Row>('task', task.id);
        // It ended after its task did: the receipt is sealed, so this is a note beside it, not part of it.
        const late = !current || isTerminal(current.status);
        return {
          events: [
            ...artifactEvents([...output.artifacts, ...files], at),
            ...(result.effects ?? []).map((effect) => ({
              ...at,
              event: 'vendor.tollbridge.side_effect',
              payload: { ...effect, tool_call_id: call.id, evidence: call.evidence } as unknown as JsonObject,
            })),
            ...(result.usage
              ? [
                  {
                    ...at,
                    event: 'vendor.tollbridge.usage',
                    payload: { ...result.usage, call_id: call.id } as JsonObject,
                  },
                ]
              : []),
            {
              ...at,
              event: result.status === 'ok' ? 'tool.completed' : 'tool.failed',
              payload: { ...payload, ...(late && { after_end: true }) } as unknown as JsonObject,
              ...(result.ext && { ext: result.ext }),
            },
          ],
        };
      },
    });
  }

  return { describe, rule, perform, ended: record, policyData };
}

const COUNTED = new Set(['tool', 'fs.write', 'terminal', 'handoff']);

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
    metadata: {
      ...file.metadata,
      ...(file.name && { name: file.name }),
      ...(file.bytes && { bytes: file.bytes.byteLength }),
    },
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
