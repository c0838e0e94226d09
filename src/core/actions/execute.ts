/**
 * Executes acts: every act of every agent goes through here once. It is decided, recorded, then run. An act that was allowed and
 * whose end was not observed is never tried again.
 */

import type { Action, Decision, ToolResult } from '../../model/actions.ts';
import type { CommandEnvelope, ProposedAction } from '../../model/commands.ts';
import { Fault } from '../../model/faults.ts';
import type { Task } from '../../model/resources.ts';
import { asText } from '../../model/values/as-text.ts';
import type { ActResult, HeldEffect, LimitPassed, Row } from '../../ports/index.ts';
import { createSignInQuestions, signInNeeded } from '../approvals/sign-in-questions.ts';
import { accepted, type Context, type Handlers, once } from '../context.ts';
import { openTask } from '../tasks/lifecycle.ts';
import { referenceTo } from '../tasks/work-context.ts';
import { argumentsTrouble, onlyLacks } from '../tools/arguments.ts';
import { FoundTool } from '../tools/catalog.ts';
import { unlistedCall } from '../tools/unlisted.ts';
import { decidedIn } from './action-events.ts';
import type { Acts, ActsDeps } from './acts.ts';
import { type Authorization, asDecision, type RuleOptions } from './authorization.ts';
import { createAuthorizer } from './authorize.ts';
import { createCallIds, isReuse, reused } from './calls/call-ids.ts';
import { createDescribeAct, owned } from './calls/describe.ts';
import { createEndRecorder } from './calls/record-end.ts';
import { boundedResult } from './calls/result-size.ts';
import { createUnmountedActs } from './calls/unmounted.ts';
import { createUnwrittenDecision } from './calls/unwritten.ts';
import { createMetering } from './charging.ts';
import { blocked } from './gate.ts';

export function createActs(deps: ActsDeps): Acts {
  const { log, tools, ids, policyData } = deps;
  const authorize = createAuthorizer(deps);
  const callIds = createCallIds(deps);
  const describe = createDescribeAct(deps);
  const unmounted = createUnmountedActs(deps);
  const { record, recordRefusal } = createEndRecorder(deps);
  const askForCode = createSignInQuestions(deps);
  const metering = createMetering(deps);

  async function rule(task: Task, proposed: ProposedAction, options: RuleOptions): Promise<Authorization> {
    const action = await describe(task, owned(proposed), options.actor, { request: options.request ?? false });
    return (await authorize(task, action, options)) as Authorization;
  }

  async function mayNotAsk(...[task, { key, question }, actor]: Parameters<Acts['mayNotAsk']>) {
    const asked: ProposedAction = { kind: 'elicit', tool: key, effect: 'none', evidence: 'held' };
    const action = await describe(task, { ...asked, arguments: { question } }, actor, {});
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
    const passed = effect ? undefined : unmounted(task, proposed, options, callId);
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
    const action = await describe(task, held, options.actor, about);
    const unfit = found && argumentsTrouble(found.skill, action.arguments);
    const misfit =
      unfit === undefined ? undefined : blocked('invalid_arguments', `invalid arguments for ${action.tool}: ${unfit}`);
    // No question is opened about a call that its server is going to refuse.
    const theirs = misfit && found?.answersMissing && onlyLacks(found.skill, action.arguments);
    const refused = theirs ? undefined : misfit;
    const unasked = theirs ? () => misfit : options.unlisted ? notListed : undefined;
    let authorization: Authorization | 'taken';
    try {
      const joins =
        deps.readsInOneCommit === true && options.unwritten !== undefined && !claim && isWithoutEffect(found, action);
      authorization = await authorize(task, action, options, { claim, tool: found, refused, unasked, joins });
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
      if (authorization.unwritten) await log.commit(authorization.unwritten);
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
    const { unwritten } = authorization;
    const decision = unwritten && createUnwrittenDecision(() => log.commit(unwritten));
    if (decision) options.unwritten?.(decision.write);
    const came = unwanted() ? STOPPED : await (decision ? decision.during(attempt(run)) : attempt(run));
    const outcome = came.status === 'ok' ? 'ok' : 'error';
    if (found) deps.counts?.note(calledTool(found), outcome, (performance.now() - began) / 1000);
    const result = await inspected(authorization.action, came);
    const canceled = result.status !== 'ok' && unwanted();
    const code = result.code ?? (canceled ? 'canceled' : undefined);
    if (decision && canceled) await decision.write();
    const joined = decision && !(await decision.written()) ? unwritten : undefined;
    const { runBy } = options;
    const call = { id: callId, tool: action.tool ?? action.kind, evidence: 'held', paired, code, runBy };
    await record(task, { ...call, oneCommit: joined !== undefined }, result, joined);
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

  const limitPassed = (task: Task, passed: LimitPassed) => deps.limitPassed?.(task, passed);
  return {
    rule,
    perform,
    mayNotAsk,
    sameCall: callIds.isSame,
    ended: (task, call, result) => record(task, call, result),
    inspected,
    recordRefusal,
    policyData,
    metering,
    limitPassed,
  };
}

/**
 * Work of an agent of this gateway, which requests tools and receives their results. A client that calls tools by itself reports no
 * model events.
 */
function isAgents({ assigned_agent_id }: Pick<Task, 'assigned_agent_id'>): boolean {
  return typeof assigned_agent_id === 'string';
}

/** By the definition of a trusted server, a definition that a person accepted, or the configuration: never by a claim. */
function isWithoutEffect(found: FoundTool | undefined, { effect }: Action): boolean {
  return found !== undefined && (effect === 'none' || effect === 'read');
}

/** A code can be mistyped. */
const MOST_SIGN_INS = 3;
const NOT_WHAT_WAS_DECIDED = 'the arguments are not those that were decided on; nothing was run';
const STOPPED: ToolResult = { status: 'error', output: null, error: 'stopped before it began', code: 'canceled' };

function calledTool({ server, skill }: FoundTool): { readonly server: string; readonly tool: string } {
  return { server, tool: skill.name };
}

/** The commands by which doors propose acts: those that the proposer runs itself, and calls of mounted tools. */
export function actionHandlers(
  deps: Context & Pick<ActsDeps, 'tools'> & { readonly acts: Acts },
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

/** A call of a tool without a definition cannot be judged; a rule may allow it all the same. */
function notListed(decision: Decision): Decision {
  const reason = `${decision.reason} (its server lists no such tool)`;
  return { ...decision, verdict: 'block', code: 'not_listed', reason };
}

function optionsOf({
  actor,
  signal = NEVER,
  withdrawn,
  ext,
  context,
  tool,
  asked,
  unlisted = false,
  unwritten,
}: CommandEnvelope): RuleOptions {
  return {
    actor,
    signal,
    withdrawn,
    request: true,
    takesArguments: true,
    ext,
    context,
    tool,
    asked,
    unlisted,
    unwritten,
  };
}
const NEVER = new AbortController().signal;
