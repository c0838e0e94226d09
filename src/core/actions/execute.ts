/**
 * Executes acts: every act of every agent goes through here once. It is decided, recorded, then run. An act that was allowed and
 * whose end was not observed is never tried again.
 */

import type { Action, Actor, Decision, ToolResult } from '../../model/actions.ts';
import type { CommandEnvelope, ProposedAction } from '../../model/commands.ts';
import { Fault } from '../../model/faults.ts';
import type { Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import { isTerminal } from '../../model/words.ts';
import type {
  ActResult,
  HeldEffect,
  Ids,
  LimitPassed,
  Logger,
  PolicyEngine,
  ReceiptIssuer,
  Row,
  Store,
} from '../../ports/index.ts';
import { createSignInQuestions, signInNeeded } from '../approvals/sign-in-questions.ts';
import { newArtifact } from '../commands/artifacts.ts';
import { accepted, type Context, type Handlers, once } from '../context.ts';
import { artifactEvents } from '../events/log.ts';
import { inTask, openTask, ours, taskLocation } from '../tasks/lifecycle.ts';
import { referenceTo } from '../tasks/work-context.ts';
import type { EffectOfTool } from '../tools/accepted.ts';
import { argumentsTrouble } from '../tools/arguments.ts';
import type { CallCounts } from '../tools/call-counts.ts';
import type { CallQuotaOf } from '../tools/call-limits.ts';
import { FoundTool } from '../tools/catalog.ts';
import { unlistedCall } from '../tools/unlisted.ts';
import { afterEnd, decidedIn, type EndedCall, endEvents, toolResult } from './action-events.ts';
import {
  type Authorization,
  type AuthorizerDeps,
  asDecision,
  createAuthorizer,
  type RuleOptions,
} from './authorize.ts';
import { createCallIds, isReuse, reused } from './call-ids.ts';
import { createMetering, type Metering, UNMETERED } from './charging.ts';
import { effectOf } from './effect-floor.ts';
import { blocked } from './gate.ts';
import type { ReadPolicyData } from './policy-data.ts';
import { boundedResult, type ResultLimits } from './result-size.ts';
import type { Taints } from './taints.ts';
import type { LimitReached } from './time-limits.ts';

export interface ActsDeps extends AuthorizerDeps {
  readonly store: Store;
  readonly ids: Ids;
  readonly hash: (value: Json) => string;
  readonly logger: Logger;
  /** Identifies this gateway to one that is given a call. Absent in a replay, which forwards none. */
  readonly issuer?: Pick<ReceiptIssuer, 'sealer' | 'eventHash'>;
  /** Absent in a replay: the recorded results were within the limits. */
  readonly resultLimits?: ResultLimits;
  /** Stores a memory that an agent writes. Absent in a replay, which creates nothing. */
  readonly remember?: (task: Task, actor: Actor, wanted: JsonObject, callId: string) => Promise<string>;
  /** Stops work whose usage is past a hard limit. Absent in a replay, which uses nothing. */
  readonly limitPassed?: LimitReached;
  /** Absent in a replay, which calls nothing. */
  readonly counts?: Pick<CallCounts, 'note'>;
  /** Policy's look at a result. Absent in a replay: the recorded results were looked at. */
  readonly inspect?: NonNullable<PolicyEngine['inspect']>;
  /** The effect of a mounted tool, with what a person has accepted. Absent in a replay, whose acts are on record. */
  readonly effectOf?: EffectOfTool;
  /** The limit of calls of one tool by one caller. Absent in a replay, whose decisions are on record. */
  readonly callQuota?: CallQuotaOf;
  /** Which sessions are tainted by untrusted content. Absent in a replay, as above. */
  readonly taints?: Taints;
}

export interface Acts {
  rule(task: Task, proposed: ProposedAction, options: RuleOptions): Promise<Authorization>;
  perform(task: Task, proposed: ProposedAction, options: RuleOptions, effect?: HeldEffect): Promise<ActResult>;
  /** The refusal of an agent's question to people. Undefined: it may be asked. */
  mayNotAsk(task: Task, question: { key: string; question: string }, actor: Actor): Promise<Decision | undefined>;
  /** False when this call id is already used by another call in the log. */
  sameCall(task: Task, proposed: ProposedAction): Promise<boolean>;
  /** Records the end of a call. */
  ended(task: Task, call: EndedCall, result: ToolResult): Promise<void>;
  /** Records the refusal that an agent was given. */
  recordRefusal(task: Task, callId: string, name: string, reason: string): Promise<void>;
  readonly policyData: ReadPolicyData;
  /** Charges reported usage to the task's quotas, in the commit that records the report. */
  metering(task: Task, reports: readonly JsonObject[]): Promise<Metering>;
  /** Stops work that is past a hard limit. */
  limitPassed(task: Task, passed: LimitPassed): void;
}
export function createActs(deps: ActsDeps): Acts {
  const { store, log, tools, clock, ids, policyData } = deps;
  const authorize = createAuthorizer(deps);
  const callIds = createCallIds(deps);
  const askForCode = createSignInQuestions(deps);
  const metering = createMetering(deps);

  async function describe(task: Task, proposed: ProposedAction, actor: Actor, request = false): Promise<Action> {
    return await completed(task, owned(proposed), actor, { request });
  }

  /**
   * Turns a proposal into an action: copies it and adds the data policy needs. `mounted`: its server's definition states the
   * effect; for every other act the effect is only claimed, and cannot be lower than the act shows.
   */
  async function completed(
    task: Task,
    own: ProposedAction,
    actor: Actor,
    { mounted = false, request = false }: { readonly mounted?: boolean; readonly request?: boolean },
  ): Promise<Action> {
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
    const rated = request && data.quotas.some(({ limits }) => Object.hasOwn(limits, 'requests_per_minute'));
    action.cost = rated ? { ...costOf(own), requests_per_minute: 1 } : costOf(own);
    if (data.persona) action.persona = data.persona;
    action.tier = data.tier;
    const called = mounted && own.server && own.tool ? { server: own.server, tool: own.tool } : undefined;
    const limited = called && deps.callQuota?.(actor, called);
    action.quotas = limited ? [...data.quotas, await limited] : data.quotas;
    if (data.root) action.root = data.root;
    const { trace_id, tracestate, trace_flags } = ours(task);
    if (trace_id) action.trace = { trace_id, ...(tracestate && { tracestate }), ...(trace_flags && { trace_flags }) };
    if (!mounted && deps.read) {
      action.facts = deps.read(action);
      action.effect = effectOf(action as Action, action.facts.shows);
    }
    return action as Action;
  }

  async function rule(task: Task, proposed: ProposedAction, options: RuleOptions): Promise<Authorization> {
    const action = await describe(task, proposed, options.actor, options.request);
    return (await authorize(task, action, options)) as Authorization;
  }

  async function mayNotAsk(...[task, { key, question }, actor]: Parameters<Acts['mayNotAsk']>) {
    const asked: ProposedAction = { kind: 'elicit', tool: key, effect: 'none', evidence: 'held' };
    const action = await describe(task, { ...asked, arguments: { question } }, actor);
    const decision = await deps.gate(action);
    // An escalated question is asked as it is: asking people for permission to ask them would be the same interruption.
    if (decision.verdict !== 'block' && decision.verdict !== 'defer') return undefined;
    await log.commit({
      reads: [{ object: 'task', id: task.id }],
      decide(at) {
        return { events: [decidedIn(openTask(at, task.id), action, decision)] };
      },
    });
    return decision;
  }

  async function perform(
    task: Task,
    proposed: ProposedAction,
    options: RuleOptions,
    effect?: HeldEffect,
  ): Promise<ActResult> {
    const callId = proposed.tool_call_id ?? ids.next('call');
    const passed = effect ? undefined : (passing(proposed, options) ?? remembering(task, proposed, options, callId));
    const found =
      effect || passed || !proposed.tool
        ? undefined
        : (tools.known(options.actor, options.tool, proposed) ?? (await findTool(task, proposed, options)));
    if (!effect && !passed && !found) throw new Fault('not_found', `no tool ${proposed.tool ?? ''} is mounted`);
    const held = owned(proposed);
    held.tool_call_id = callId;
    held.evidence = 'held';
    if (found) {
      // The tool's server defines its effect; the caller's value is only a claim.
      held.kind = 'tool';
      held.server = found.server;
      held.definition = found.definition;
      const effect = deps.effectOf?.(found) ?? found.effect;
      held.effect = typeof effect === 'string' ? effect : await effect;
      const attributes = found.attributes(task.session_id);
      if (attributes) held.attributes = proposed.attributes ? { ...proposed.attributes, ...attributes } : attributes;
    }
    // No definition states the effect; the caller's value is only a claim. Writing a memory is a write.
    if (passed) held.effect = proposed.kind === 'memory.write' ? 'write' : 'unknown';
    const claim = proposed.tool_call_id && !options.claimed ? callIds.claim(task, proposed) : undefined;
    const about = { mounted: found !== undefined, request: options.request ?? false };
    const action = await completed(task, held, options.actor, about);
    const unfit = found && argumentsTrouble(found.skill, action.arguments);
    const refused =
      unfit === undefined ? undefined : blocked('invalid_arguments', `invalid arguments for ${action.tool}: ${unfit}`);
    let authorization: Authorization | 'taken';
    try {
      authorization = await authorize(task, action, options, { claim, tool: found, refused });
    } catch (cause) {
      throw claim && isReuse(cause) ? reused(callId) : cause;
    }
    if (authorization === 'taken') return await callIds.recorded(task, callId, options.signal);
    const paired = found !== undefined && isAgents(task);
    if (authorization.kind !== 'go') {
      const reason =
        authorization.kind === 'no' ? authorization.reason : `waiting for an answer to ${authorization.ask_id}`;
      if (paired && authorization.kind === 'no') await recordRefusal(task, callId, action.tool ?? action.kind, reason);
      if (found && authorization.kind === 'no') deps.counts?.note(calledTool(found), 'refused', 0);
      return { kind: 'refused', reason, decision: authorization.decision };
    }
    // The last check before the act runs: its arguments must be the ones decided on, even if the object was changed since.

    if (deps.digest && authorization.decision.arguments_digest !== deps.digest(authorization.action.arguments)) {
      const result: ToolResult = { status: 'error', output: null, error: NOT_WHAT_WAS_DECIDED, code: 'not_decided' };
      await record(
        task,
        { id: callId, tool: action.tool ?? action.kind, evidence: 'held', code: 'not_decided' },
        result,
      );
      throw new Fault('internal', NOT_WHAT_WAS_DECIDED);
    }
    const run = () =>
      found
        ? FoundTool.run(found, authorization.action, options.signal, options.context, (protocol) =>
            referenceTo(deps, task, protocol),
          )
        : (passed ?? (effect as HeldEffect))(authorization.action.arguments, options.signal);
    const unwanted = () => options.signal.aborted || options.withdrawn?.aborted === true;
    const began = performance.now();
    const came = unwanted() ? STOPPED : await attempt(run);
    const outcome = came.status === 'ok' ? 'ok' : 'error';
    if (found) deps.counts?.note(calledTool(found), outcome, (performance.now() - began) / 1000);
    const result = found || options.unlisted ? await inspected(authorization.action, came) : came;
    const canceled = result.status !== 'ok' && unwanted();
    const code = result.code ?? (canceled ? 'canceled' : undefined);
    await record(task, { id: callId, tool: action.tool ?? action.kind, evidence: 'held', paired, code }, result);
    return authorization.decision.verdict === 'modify'
      ? { kind: 'done', result, decision: authorization.decision }
      : { kind: 'done', result };
  }

  /** An agent's call waits for a principal that has to sign in at the server first. A client is told, and asks its person itself. */
  async function findTool(task: Task, proposed: ProposedAction, options: RuleOptions): Promise<FoundTool | undefined> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await tools.find(options.actor, proposed.tool ?? '', proposed.server, task.session_id);
      } catch (thrown) {
        const needed = options.request || tries === MOST_SIGN_INS ? undefined : signInNeeded(thrown);
        const code = needed && (await askForCode(task, options, needed));
        if (!needed || code === undefined) throw thrown;
        const { server, tool } = needed;
        await perform(task, { kind: 'tool', tool, server, arguments: { code } }, options);
      }
    }
  }

  /** The agent gets the refusal as the result of its call. A task that has ended meanwhile gets none. */
  async function recordRefusal(task: Task, callId: string, name: string, reason: string): Promise<void> {
    await log.commit({
      reads: [{ object: 'task', id: task.id }],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        if (!now || isTerminal(now.status)) return { events: [] };
        return { events: [toolResult(now, { id: callId, tool: name }, 'error', reason)] };
      },
    });
  }

  /** A request in its server's protocol that no mapping table covers: forwarded as it was decided on. */
  function passing(
    { kind, tool: method, server }: ProposedAction,
    { actor, context }: RuleOptions,
  ): HeldEffect | undefined {
    if (kind !== 'extension' || !method || !server) return undefined;
    tools.requirePassing(server);
    return async (params, signal) => {
      const output = await tools.pass(actor, server, { method, params }, signal, context);
      const taint = tools.taints(server, { method, params }) && { taint: { server, what: method } };
      if (!Object.hasOwn(output, 'error')) return { status: 'ok', output, ...taint };
      return { status: 'error', output, error: `${server} answered ${method} with an error`, ...taint };
    };
  }

  /** Memories that work writes are stored here: gated and recorded like any other act. */
  function remembering(
    task: Task,
    { kind, server }: ProposedAction,
    { actor }: RuleOptions,
    callId: string,
  ): HeldEffect | undefined {
    const { remember } = deps;
    if (kind !== 'memory.write' || server || !remember) return undefined;
    return async (args) => ({ status: 'ok', output: { memory_id: await remember(task, actor, args, callId) } });
  }

  /** Policy looks at a result before it is recorded or passed on. A result that could not be looked at is withheld. */
  async function inspected(action: Action, result: ToolResult): Promise<ToolResult> {
    try {
      return (await deps.inspect?.(action, result)) ?? result;
    } catch (cause) {
      deps.logger.error({ err: cause, action: action.id }, 'a result could not be inspected; it is withheld');
      const error = 'the call ran, and its result was withheld: it could not be inspected';
      return { status: 'error', output: null, error, code: 'result_withheld' };
    }
  }

  async function attempt(run: () => Promise<ToolResult>): Promise<ToolResult> {
    try {
      const result = await run();
      return deps.resultLimits ? boundedResult(result, deps.resultLimits) : result;
    } catch (cause) {
      deps.logger.warn({ err: cause }, 'a tool threw');
      const message = cause instanceof Error ? cause.message : asText(cause);
      // No answer came in time; the call may still have run.
      const late = cause instanceof Fault && cause.kind === 'deadline_exceeded';
      const code = late ? { code: cause.kind } : {};
      return { status: 'error', output: null, error: message || 'the tool failed without saying why', ...code };
    }
  }

  /** The act has run: a store that is down for a while must not cost its record. */
  async function record(...[task, call, result]: Parameters<Acts['ended']>): Promise<void> {
    for (let wait = 50; ; wait *= 2) {
      try {
        await writeEnd(task, call, result);
        return;
      } catch (cause) {
        if (!(cause instanceof Fault && cause.kind === 'unavailable') || wait > LONGEST_WAIT_MS) throw cause;
        await new Promise((resolve) => setTimeout(resolve, wait).unref());
      }
    }
  }

  async function writeEnd(...[task, call, result]: Parameters<Acts['ended']>): Promise<void> {
    const location = { now: clock.now(), ...taskLocation(task) };
    const output = await log.fit(result.output ?? null, location);
    const files = result.artifacts
      ? await Promise.all(result.artifacts.map((file) => newArtifact(file, location, store, ids)))
      : [];
    const used = result.usage ? await metering(task, [result.usage]) : UNMETERED;
    const at = inTask(task);
    const tainted = result.taint && deps.taints?.marking(task.session_id, result.taint, at, call.id);
    const artifacts = artifactEvents([...output.artifacts, ...files], at);
    const end = endEvents(task, call, result, output.value, log.clean);
    const received = call.paired ? [toolResult(task, call, result.status, result.error)] : [];
    await log.commit({
      reads: [{ object: 'task', id: task.id }, ...used.reads, ...(tainted?.reads ?? [])],
      decide(now) {
        const current = now.get<Task & Row>('task', task.id);
        const all = [...artifacts, ...end, ...(tainted?.events(now) ?? []), ...used.events(now)];
        // The call ended after its task: the receipt is sealed, so this event is beside it, not part of it.
        const late = !current || isTerminal(current.status);
        return { events: late ? all.map(afterEnd) : [...all, ...received] };
      },
    });
    tainted?.written();
    const passed = used.passed?.();
    if (passed) deps.limitPassed?.(task, passed);
  }

  const limitPassed = (task: Task, passed: LimitPassed) => deps.limitPassed?.(task, passed);
  return {
    rule,
    perform,
    mayNotAsk,
    sameCall: callIds.isSame,
    ended: record,
    recordRefusal,
    policyData,
    metering,
    limitPassed,
  };
}

/** The commands by which doors propose acts: those that the proposer runs itself, and calls of mounted tools. */
export function actionHandlers(
  deps: Context & Pick<AuthorizerDeps, 'tools'> & { readonly acts: Acts },
): Pick<Handlers, 'action.propose' | 'tool.call'> {
  const { log, access, acts } = deps;
  return {
    'action.propose': async (command) => {
      const { actor, body } = command;
      const task = await access.see<Task & Row>(actor, 'task', body.task_id);
      // The proposer runs the act itself: its evidence is `asked` at most, whatever the proposal claims.
      const { evidence: claimed, ...proposal } = body.action;
      const evidence = claimed === 'observed' ? 'observed' : 'asked';
      const authorization = await acts.rule(
        task,
        { evidence, ...proposal },
        {
          ...optionsOf(command),
          takesArguments: body.takes_arguments ?? true,
          waitMs: body.wait_ms,
          deferred: body.waits_out_deferral === false ? 'returned' : undefined,
          decideMs: body.decide_ms,
        },
      );
      return accepted('action.propose', await access.see<Row>(actor, 'task', task.id), false, {
        decision: asDecision(authorization),
        ...('answer' in authorization && authorization.answer && { answer: authorization.answer }),
        ...(authorization.kind === 'open' && { details: { ask_id: authorization.ask_id } }),
      });
    },

    'tool.call': async (command) => {
      const { actor, body } = command;
      const task = await access.see<Task & Row>(actor, 'task', body.task_id);
      const claim = once(deps, command, task.workspace_id, `${task.id}/tools`);
      // The key names the call, so that a retry is the same call and gets its result instead of acting again.
      const keyed = claim.idempotency && `call_${claim.idempotency.scope.slice(7, 39)}`;
      const callId = body.action.tool_call_id ?? keyed;
      const { repeated } = keyed
        ? await log.commit({ ...claim, decide: () => ({ events: [], result: { id: task.id } }) })
        : { repeated: false };
      const proposed = { ...body.action, ...(callId && { tool_call_id: callId }) };
      const unlisted = command.unlisted ? await unlistedCall(deps, task, proposed, command) : undefined;
      const act = await acts.perform(task, unlisted?.proposed ?? proposed, optionsOf(command), unlisted?.effect);
      return accepted('tool.call', await access.see<Row>(actor, 'task', task.id), repeated, {
        act,
        ...(act.kind === 'refused' && { decision: act.decision }),
      });
    },
  };
}

function optionsOf(command: CommandEnvelope): RuleOptions {
  const { actor, signal = NEVER, withdrawn, ext, context, tool, asked, unlisted = false } = command;
  return { actor, signal, withdrawn, request: true, takesArguments: true, ext, context, tool, asked, unlisted };
}
const NEVER = new AbortController().signal;

/**
 * A copy to write into. It begins with a member of its own because V8 takes a microsecond for each member added to an object that
 * is nothing but a spread one.
 */
function owned(proposed: ProposedAction): ProposedAction {
  return { kind: proposed.kind, ...(proposed as Partial<ProposedAction>) };
}

/**
 * Work of an agent of this gateway, which requests tools and receives their results. A client that calls tools by itself reports no
 * model events.
 */
function isAgents({ assigned_agent_id }: Pick<Task, 'assigned_agent_id'>): boolean {
  return typeof assigned_agent_id === 'string';
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A call counts as at least one call, whatever cost the asker claims. Askers cannot name the amounts that core counts itself. */
function costOf({ kind, cost: claimed }: ProposedAction): NonNullable<Action['cost']> {
  const cost = claimed && Object.fromEntries(Object.entries(claimed).filter(([name]) => !OURS_TO_COUNT.has(name)));
  if (!COUNTED.has(kind)) return cost ?? {};
  const tool_calls = Math.max(1, cost?.tool_calls ?? 1);
  return cost ? { ...cost, tool_calls } : { tool_calls };
}
/** A code can be mistyped. */
const MOST_SIGN_INS = 3;
const OURS_TO_COUNT = new Set(['tasks', 'concurrency', 'requests_per_minute', 'wall_time_ms']);
const COUNTED = new Set(['tool', 'fs.write', 'terminal', 'handoff']);
const NOT_WHAT_WAS_DECIDED = 'the arguments are not those that were decided on; nothing was run';
/** The last wait between attempts; a store that is down longer is not expected back while a caller waits. */
const LONGEST_WAIT_MS = 15_000;
const STOPPED: ToolResult = { status: 'error', output: null, error: 'stopped before it began', code: 'canceled' };

function calledTool({ server, skill }: FoundTool): { readonly server: string; readonly tool: string } {
  return { server, tool: skill.name };
}
