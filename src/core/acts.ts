/**
 * From "may I?" to "done": every act of every agent goes through here once.
 * Decide, write down, then act. What was allowed and not seen to end is never tried again.
 */

import type { Action, Actor, Decision, ToolResult } from '../model/actions.ts';
import { asText } from '../model/as-text.ts';
import type { ProposedAction } from '../model/commands.ts';
import { Fault } from '../model/faults.ts';
import type { ToolEndedPayload, ToolRulingPayload } from '../model/payloads.ts';
import type { Task } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { isTerminal } from '../model/words.ts';
import type { ActReader, ActResult, HeldEffect, Ids, Logger, Row, Store, Unit } from '../ports.ts';
import { afterEnd } from './act-events.ts';
import { newArtifact } from './artifacts.ts';
import { type Charge, chargeEvents, type Metering, reportedAmounts } from './charging.ts';
import { earlier } from './context.ts';
import { effectOf } from './effect-floor.ts';
import { blocked, decidedEvent } from './gate.ts';
import { inTask, placeOf } from './lifecycle.ts';
import { artifactEvents } from './log.ts';
import type { ReadPolicyData } from './policy-data.ts';
import { boundedResult, type ResultLimits } from './result-size.ts';
import { createRulings, ended, type RuleOptions, type Ruling, type RulingDeps } from './rulings.ts';
import type { Taints } from './taints.ts';
import { argumentsTrouble } from './tool-arguments.ts';

export interface ActsDeps extends RulingDeps {
  readonly store: Store;
  readonly ids: Ids;
  readonly hash: (value: Json) => string;
  readonly logger: Logger;
  /** Absent in a replay: what it repeats was within them. */
  readonly resultLimits?: ResultLimits;
  /** The digest by which a decision names the arguments it covers. Absent in a replay, which runs nothing. */
  readonly digest?: (args: JsonObject) => string;
  /** Tells what an act touches. Absent in a replay, whose acts are on record with the effect they counted with. */
  readonly read?: ActReader;
  /** Which sessions have read what others wrote. Absent in a replay, as above. */
  readonly taints?: Taints;
}

export interface Acts {
  /** What policy needs to know about an act, gathered in one place. */
  describe(task: Task, proposed: ProposedAction, actor: Actor): Promise<Action>;
  rule(task: Task, proposed: ProposedAction, options: RuleOptions): Promise<Ruling>;
  perform(task: Task, proposed: ProposedAction, options: RuleOptions, effect?: HeldEffect): Promise<ActResult>;
  /** A no to a question an agent would put to people. Undefined: it may be put. */
  mayNotAsk(task: Task, question: { key: string; question: string }, actor: Actor): Promise<Decision | undefined>;
  /** False when this call id stands for another call in the log. */
  sameCall(task: Task, proposed: ProposedAction): Promise<boolean>;
  /** Writes down how a call ended. */
  ended(
    task: Task,
    call: { id: string; tool: string; evidence: string },
    result: ToolResult,
    code?: string,
  ): Promise<void>;
  readonly policyData: ReadPolicyData;
  /** Charges reported usage to what the task works under, in the commit that records the report. */
  metering(task: Task, reports: readonly JsonObject[]): Promise<Metering>;
}
export function createActs(deps: ActsDeps): Acts {
  const { store, log, tools, clock, ids, policyData } = deps;
  const rulings = createRulings(deps);

  async function describe(task: Task, proposed: ProposedAction, actor: Actor): Promise<Action> {
    return await completed(task, owned(proposed), actor);
  }

  /**
   * What was proposed becomes the action: the object is ours, and gets what policy has to know. `mounted`: its server's definition says
   * what it does; of every other act the effect is only claimed, and counts from what the act shows upwards.
   */
  async function completed(task: Task, own: ProposedAction, actor: Actor, mounted = false): Promise<Action> {
    const data = await policyData(task);
    const marked = deps.taints?.of(task.session_id) ?? false;
    const tainted = typeof marked === 'boolean' ? marked : await marked;
    const action = own as Writable<Partial<Action>> & ProposedAction;
    action.id = ids.next('action');
    action.actor = actor;
    action.workspace_id = task.workspace_id;
    action.session_id = task.session_id;
    action.task_id = task.id;
    action.arguments = own.arguments ?? {};
    action.effect = own.effect ?? 'unknown';
    action.evidence = own.evidence ?? 'observed';
    if (tainted) action.attributes = { ...own.attributes, tainted };
    action.cost = costOf(own);
    if (data.persona) action.persona = data.persona;
    action.tier = data.tier;
    action.quotas = data.quotas;
    if (data.root) action.root = data.root;
    if (!mounted && deps.read) {
      action.facts = deps.read(action);
      action.effect = effectOf(action as Action, action.facts.shows);
    }
    return action as Action;
  }

  async function rule(task: Task, proposed: ProposedAction, options: RuleOptions): Promise<Ruling> {
    return (await rulings.rule(task, await describe(task, proposed, options.actor), options)) as Ruling;
  }

  async function mayNotAsk(...[task, { key, question }, actor]: Parameters<Acts['mayNotAsk']>) {
    const asked: ProposedAction = { kind: 'elicit', tool: key, effect: 'none', evidence: 'held' };
    const action = await describe(task, { ...asked, arguments: { question } }, actor);
    const decision = await deps.gate(action);
    // To ask people whether people may be asked is to ask them.
    if (decision.verdict !== 'block' && decision.verdict !== 'defer') return undefined;
    await log.commit({
      reads: [{ object: 'task', id: task.id }],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        if (!now || isTerminal(now.status)) throw ended(task, now);
        return { events: [{ ...decidedEvent(action, decision), ...inTask(now) }] };
      },
    });
    return decision;
  }

  async function metering(task: Task, reports: readonly JsonObject[]): Promise<Metering> {
    if (reports.length === 0) return UNMETERED;
    const quotas = (await policyData(task)).quotas.map(({ id }) => id);
    const charge: Charge = { quotas, amounts: (limits) => reportedAmounts(reports, limits) };
    return {
      reads: quotas.map((id) => ({ object: 'quota', id })),
      events: (at) => chargeEvents(deps.quotas, at, task, charge),
    };
  }

  async function perform(
    task: Task,
    proposed: ProposedAction,
    options: RuleOptions,
    effect?: HeldEffect,
  ): Promise<ActResult> {
    const passed = effect ? undefined : passing(proposed, options);
    const found =
      effect || passed || !proposed.tool
        ? undefined
        : await tools.find(proposed.tool, proposed.server, task.session_id);
    if (!effect && !passed && !found) throw new Fault('not_found', `no tool ${proposed.tool ?? ''} is mounted`);
    const callId = proposed.tool_call_id ?? ids.next('call');
    const held = owned(proposed);
    held.tool_call_id = callId;
    held.evidence = 'held';
    if (found) {
      // The one who serves the tool knows what it does; a caller's word for it is only a claim.
      held.kind = 'tool';
      held.server = found.server;
      held.definition = found.definition;
      held.effect = found.effect;
      const attributes = found.attributes(task.session_id);
      if (attributes) held.attributes = proposed.attributes ? { ...proposed.attributes, ...attributes } : attributes;
    }
    // Nobody has said what it does; a caller's word for it is only a claim.
    if (passed) held.effect = 'unknown';
    const claim = proposed.tool_call_id && !options.claimed ? claimOf(task, proposed) : undefined;
    const action = await completed(task, held, options.actor, found !== undefined);
    const unfit = found && argumentsTrouble(found.skill, action.arguments);
    const refused =
      unfit !== undefined && blocked('invalid_arguments', `invalid arguments for ${action.tool}: ${unfit}`);
    const known = { ...(claim && { claim }), ...(found && { mounted: true }), ...(refused && { refused }) };
    let ruling: Ruling | 'taken';
    try {
      ruling = await rulings.rule(task, action, options, known);
    } catch (cause) {
      throw claim && isReuse(cause) ? reused(callId) : cause;
    }
    if (ruling === 'taken') return await recorded(task, callId, options.signal);
    if (ruling.kind !== 'go') {
      const reason = ruling.kind === 'no' ? ruling.reason : `waiting for an answer to ${ruling.ask_id}`;
      return { kind: 'refused', reason, decision: ruling.decision };
    }
    // The last look before anything happens: what runs is what was decided, whatever became of the object on the way.

    if (deps.digest && ruling.decision.arguments_digest !== deps.digest(ruling.action.arguments)) {
      const result: ToolResult = { status: 'error', output: null, error: NOT_WHAT_WAS_DECIDED, code: 'not_decided' };
      await record(task, { id: callId, tool: action.tool ?? action.kind, evidence: 'held' }, result, 'not_decided');
      throw new Fault('internal', NOT_WHAT_WAS_DECIDED);
    }
    const run = () =>
      found
        ? found.call(ruling.action, options.signal, options.line)
        : (passed ?? (effect as HeldEffect))(ruling.action.arguments, options.signal);
    const unwanted = () => options.signal.aborted || options.withdrawn?.aborted === true;
    const result = unwanted() ? STOPPED : await attempt(run);
    const canceled = result.status !== 'ok' && unwanted();
    const call = { id: callId, tool: action.tool ?? action.kind, evidence: 'held' };
    await record(task, call, result, result.code ?? (canceled ? 'canceled' : undefined));
    return { kind: 'done', result };
  }

  /** A request in words of its server's protocol that no table knows: passed on as it was decided. */
  function passing({ kind, tool: method, server }: ProposedAction, { line }: RuleOptions): HeldEffect | undefined {
    if (kind !== 'extension' || !method || !server) return undefined;
    tools.requirePassing(server);
    return async (params, signal) => {
      const output = await tools.pass(server, { method, params }, signal, line);
      const taint = tools.taints(server, { method, params }) && { taint: { server, what: method } };
      if (!Object.hasOwn(output, 'error')) return { status: 'ok', output, ...taint };
      return { status: 'error', output, error: `${server} answered ${method} with an error`, ...taint };
    };
  }

  /** One call id, one act: whoever comes second with the same call waits for its result, with another one is refused. */
  function claimOf(task: Task, { tool_call_id, changes: _, ...call }: ProposedAction): Pick<Unit, 'idempotency'> {
    const scope = deps.hash(['call', task.id, tool_call_id as string]);
    return { idempotency: { scope, body: deps.hash(call as unknown as Json) } };
  }

  async function sameCall(task: Task, proposed: ProposedAction): Promise<boolean> {
    try {
      await earlier(deps, claimOf(task, proposed));
      return true;
    } catch (cause) {
      if (isReuse(cause)) return false;
      throw cause;
    }
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
    throw new Fault('deadline_exceeded', `call ${callId} has no result yet`);
  }

  async function attempt(run: () => Promise<ToolResult>): Promise<ToolResult> {
    try {
      const result = await run();
      return deps.resultLimits ? boundedResult(result, deps.resultLimits) : result;
    } catch (cause) {
      deps.logger.warn({ err: cause }, 'a tool threw');
      const message = cause instanceof Error ? cause.message : asText(cause);
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
    const place = { now: clock.now(), ...placeOf(task) };
    const output = await log.fit(result.output ?? null, place);
    const files = result.artifacts
      ? await Promise.all(result.artifacts.map((file) => newArtifact(file, place, store, ids)))
      : [];
    const used = result.usage ? await metering(task, [result.usage as unknown as JsonObject]) : UNMETERED;
    const payload: ToolEndedPayload = {
      tool_call_id: call.id,
      name: call.tool,
      status: result.status === 'ok' ? 'ok' : 'error',
      output: output.value,
      ...(result.error && { error: result.error }),
      ...(code && { code }),
    };
    const at = inTask(task);
    const tainted = result.taint && deps.taints?.marking(task.session_id, result.taint, at, call.id);
    const events = artifactEvents([...output.artifacts, ...files], at);
    for (const effect of result.effects ?? []) {
      const told = { ...effect, tool_call_id: call.id, evidence: call.evidence } as unknown as JsonObject;
      events.push({ event: 'vendor.tollbridge.side_effect', payload: told, ...at });
    }
    if (result.usage) {
      const told = { ...result.usage, call_id: call.id } as JsonObject;
      events.push({ event: 'vendor.tollbridge.usage', payload: told, ...at });
    }
    events.push({
      event: result.status === 'ok' ? 'tool.completed' : 'tool.failed',
      payload: payload as unknown as JsonObject,
      ...at,
      ...(result.ext && { ext: result.ext }),
    });
    await log.commit({
      reads: [{ object: 'task', id: task.id }, ...used.reads, ...(tainted?.reads ?? [])],
      decide(now) {
        const current = now.get<Task & Row>('task', task.id);
        const all = [...events, ...(tainted?.events(now) ?? []), ...used.events(now)];
        // It ended after its task did: the receipt is sealed, so this is a note beside it, not part of it.
        const late = !current || isTerminal(current.status);
        return { events: late ? all.map(afterEnd) : all };
      },
    });
    tainted?.written();
  }

  return { describe, rule, perform, mayNotAsk, sameCall, ended: record, policyData, metering };
}

/**
 * A copy to write into. It begins with a member of its own because the engine is slow, a microsecond each, to add members to an
 * object that is nothing but a spread one.
 */
function owned(proposed: ProposedAction): ProposedAction {
  return { kind: proposed.kind, ...(proposed as Partial<ProposedAction>) };
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A call counts as one call at least, whatever its asker says it costs. */
function costOf({ kind, cost }: ProposedAction): NonNullable<Action['cost']> {
  if (!COUNTED.has(kind)) return cost ?? {};
  const tool_calls = Math.max(1, cost?.tool_calls ?? 1);
  return cost ? { ...cost, tool_calls } : { tool_calls };
}
const COUNTED = new Set(['tool', 'fs.write', 'terminal', 'handoff']);
const NOT_WHAT_WAS_DECIDED = 'the arguments are not those that were decided on; nothing was run';
const UNMETERED: Metering = { reads: [], events: () => [] };
/** How long a second asker waits for the first one's call. */
const RETRY_WAIT_MS = 60_000;
/** A log that stays away longer than this many milliseconds times two is not coming back while anyone waits. */
const LONGEST_WAIT_MS = 15_000;
const STOPPED: ToolResult = { status: 'error', output: null, error: 'stopped before it began', code: 'canceled' };

/** The store knows claims, not calls: a claim that does not hold is said in our words. */
function isReuse(cause: unknown): boolean {
  return cause instanceof Fault && cause.kind === 'idempotency_key_reused';
}

export function reused(callId: string): Fault {
  return new Fault('conflict', `call id ${callId} was already used for a different call`);
}
