/**
 * Handles requests at an address that serves one server. A tool call is an act and passes the gate as one; every other request
 * is decided, logged and forwarded unchanged. No protocol state is kept here.
 */

import { CODES, methodRow } from '../../../mappings/mcp.ts';
import {
  type Accepted,
  type ActResult,
  type AskRecord,
  asFault,
  type Bridge,
  type CallerOfCall,
  type CommandOf,
  type Deps,
  Fault,
  isObject,
  type Json,
  type JsonObject,
  type MountedTool,
  type Row,
  type Skill,
} from '../../../src/index.ts';
import { receiptReference } from '../../../src/transport/outbound/receipt-reference.ts';
import { SIGN_IN, SIGN_IN_REQUIRED } from '../client/auth/sign-in-required.ts';
import type { McpSettings } from '../config.ts';
import { clientFrameTrouble } from '../frame-rules.ts';
import { type FrameOutcome, failed, type Id, type Notice, outcomeOf, type Request } from '../frames.ts';
import { callerIn, circleIn, type OwnAccount, withWord } from '../gateways.ts';
import { paramTrouble } from '../header-values.ts';
import type { McpRequestContext } from '../request-context.ts';
import { cameToTask, createTaskOwners } from '../tasks/owners.ts';
import { type AskedTask, createTaskRecords } from '../tasks/records.ts';
import { traceInMeta } from '../trace.ts';
import { isPlainName, refused, toWireOutcome } from '../translate.ts';
import { createApprovals } from './approvals.ts';
import type { CallTask, CallTasks } from './call-tasks.ts';
import { type Caller, canOpenPages, type LegacyCaller, scopeOf } from './caller.ts';
import { createOwnChanges } from './own-changes.ts';
import { createRefuse, type Refuse } from './refused-frames.ts';
import { shownTools } from './shown-tools.ts';
import { createSuspendedCalls, type Running } from './suspended-calls.ts';
import { reportWaiting } from './waiting-progress.ts';

export interface EndpointHandler {
  receive(request: Request, caller: Caller): Promise<FrameOutcome>;
  /** Forwards a notification that the frame table allows. */
  notify(method: string, params: JsonObject, caller: LegacyCaller): Promise<void>;
  /** Logs that a frame was refused, and why. */
  readonly refuse: Refuse;
  close(): void;
}

interface Calling {
  readonly request: Request;
  readonly tool: string;
  readonly args: JsonObject;
  readonly caller: Caller;
  readonly running: Running;
  /** The call of another gateway that this call claims to be. */
  readonly from: CallerOfCall | undefined;
}

/** The members of a command during which a person may be asked. */
type AskingMembers = Required<Pick<CommandOf<'tool.call'>, 'signal' | 'withdrawn' | 'asked'>>;

/** A call that was attempted, with everything its answer is rendered from. */
interface Tried extends Calling {
  readonly act: ActResult;
  readonly found: MountedTool | undefined;
  readonly asked: AskedTask | undefined;
  readonly taskId: string;
  readonly question: string | undefined;
}

export interface EndpointDeps {
  readonly bridge: Bridge;
  readonly callTasks: CallTasks;
  readonly settings: Pick<McpSettings, 'suspendMs'>;
  readonly deps: Pick<Deps, 'ids' | 'log' | 'clock'>;
}

export function createEndpoint(server: string, { bridge, callTasks, settings, deps }: EndpointDeps): EndpointHandler {
  const suspended = createSuspendedCalls(settings.suspendMs);
  const approvals = createApprovals(bridge, deps);
  const refuse = createRefuse(bridge, callTasks);
  const owners = createTaskOwners(server, bridge);
  const records = createTaskRecords(server, { bridge, clock: deps.clock, made: owners.made, hasSchema });
  const changes = createOwnChanges({ bridge, log: deps.log, names });

  async function receive(request: Request, caller: Caller): Promise<FrameOutcome> {
    const { method, params = {} } = request;
    try {
      const trouble = clientFrameTrouble(request);
      if (trouble) {
        await refuse(request, trouble.error.message, caller);
        return trouble;
      }
      const row = methodRow(method);
      if (row && !row.eras.includes(caller.era)) return failed(CODES.methodNotFound, 'Method not found');
      if (row?.handling === 'answer') return { result: {} };
      if (caller.era === 'legacy') {
        const running = runningFor(caller);
        return await (row?.handling === 'act' ? act(request, caller, running) : serve(request, caller, running));
      }
      const asking = { who: scopeOf(caller.actor), method, params, signal: caller.signal, notify: caller.notify };
      const resumed = suspended.resume(asking);
      // Every state that a client gets here is ours: any other was made up, and its answers belong to no question.
      const madeUp = params.requestState ?? (row ? undefined : params.inputResponses);
      if (!resumed && row?.handling !== 'pass' && madeUp !== undefined) {
        return failed(CODES.invalidParams, 'Invalid or expired requestState');
      }
      const outcome = await (resumed ??
        suspended.start(asking, (running) => serve(request, caller, running).catch(outcomeOf)));
      return complete(outcome);
    } catch (thrown) {
      return outcomeOf(thrown);
    }
  }

  async function serve(request: Request, caller: Caller, running: Running): Promise<FrameOutcome> {
    const { method, params = {} } = request;
    const row = methodRow(method);
    if (!row) return await unknown(request, caller, running);
    if (row.handling === 'act') return await act(request, caller, running);
    const asked = await owners.about(method, params, caller);
    // Reads are recorded by session, because untrusted content taints the session that reads it.
    const keptIn = row.reads && { keptIn: await callTasks.session(caller, server) };
    const tasks = method.startsWith('tasks/') && { tasks: records.context(caller) };
    const context = { ...contextFor(request, caller, running), ...keptIn, ...tasks };
    if (method === 'subscriptions/listen')
      return await listen(request.id, asked.params, caller, context, running.signal);
    const outcome = asked.filtered(await pass(method, asked.params, caller, context, running.signal));
    if (method === 'tasks/list') return await records.listed(await owners.listed(outcome, caller), params, caller);
    if (method === 'initialize') {
      changes.opened(outcome, caller);
      records.opened(outcome, caller);
    }
    return method === 'tools/list' ? await visibleTools(outcome, caller) : outcome;
  }

  async function listen(
    id: Id,
    params: JsonObject,
    caller: Caller,
    context: McpRequestContext,
    signal: AbortSignal,
  ): Promise<FrameOutcome> {
    const { said, stop } = await changes.listen(id, params, caller, context.notify);
    try {
      return await pass('subscriptions/listen', params, caller, { ...context, notify: said }, signal);
    } finally {
      stop();
    }
  }

  async function pass(
    method: string,
    params: JsonObject,
    caller: Caller,
    context: McpRequestContext,
    signal: AbortSignal,
  ): Promise<FrameOutcome> {
    const member = methodRow(method)?.name;
    const target = member && params[member];
    const { decision, details }: Accepted<'passthrough'> = await bridge.submit({
      kind: 'passthrough',
      actor: caller.actor,
      body: {
        protocol: 'mcp',
        server,
        method,
        params,
        workspace_id: await callTasks.workspace(caller),
        ...(context.keptIn && { session_id: context.keptIn }),
        ...(typeof target === 'string' && target !== '' && { target }),
        effect: 'none',
      },
      context: context,
      signal,
    });
    if (details) return details as FrameOutcome;
    throw new Fault('policy_violation', decision?.reason ?? `${method} may not be used here`);
  }

  /** A request in no row of the table: an act of effect `unknown`, decided like any other and then passed on as it was decided. */
  function unknown(request: Request, caller: Caller, running: Running): Promise<FrameOutcome> {
    // `_meta` is about the hop and not part of the request that is decided; the backend restores it.
    const { _meta: _, ...args } = request.params ?? {};
    const { method: tool } = request;
    return callTasks.within(caller, server, async ({ taskId, sessionId }) => {
      const { act } = await asking(request, caller, running, (members, began) =>
        bridge.submit({
          kind: 'tool.call',
          actor: caller.actor,
          body: { task_id: taskId, action: { kind: 'extension', tool, server, arguments: args } },
          ...(caller.trace ?? traceInMeta(request.params)),
          context: { ...contextFor(request, caller, running, sessionId), began },
          ...members,
        }),
      );
      if (act?.kind === 'done' && isObject(act.result.output)) return act.result.output as FrameOutcome;
      const reason = act?.kind === 'refused' ? act.reason : (act?.result.error ?? 'the request came to nothing');
      const kind = act?.kind === 'refused' ? 'policy_violation' : 'upstream_unavailable';
      throw new Fault(kind, reason);
    });
  }

  async function act(request: Request, caller: Caller, running: Running): Promise<FrameOutcome> {
    const { name, arguments: callArguments } = request.params ?? {};
    // Absent and null are the same to most servers; the gate and the server both get an object.
    const args = callArguments ?? {};
    if (!isPlainName(name)) return failed(CODES.invalidParams, `Unknown tool: ${JSON.stringify(name ?? null)}`);
    if (!isObject(args)) return failed(CODES.invalidParams, 'the arguments must be an object');
    const circle = circleIn(request.params);
    if (circle) return failed(CODES.invalidParams, circle);
    const calling: Calling = { request, tool: name, args, caller, running, from: callerIn(request.params) };
    // A client that asked for a task does not read a tool result: a call that could not begin is an error to it.
    const unable = records.wants(request.params ?? {}, caller) ? outcomeOf : inability;
    try {
      return await attempt(calling);
    } catch (thrown) {
      const fault = asFault(thrown);
      if (fault.details?.code === SIGN_IN_REQUIRED && canOpenPages(caller.capabilities)) {
        // The gateway's tool asks the person at the client; the call that needed it goes on afterwards.
        const signedIn = await attempt({ ...calling, tool: SIGN_IN, args: {} }).catch(unable);
        if ('error' in signedIn || signedIn.result.isError === true) return signedIn;
        return await attempt(calling).catch(unable);
      }
      if (fault.kind !== 'not_found') return unable(fault);
      // The tool may be new, or exist for this session only: the server is asked for its list once.
      const context = contextFor(request, caller, running);
      await pass('tools/list', {}, caller, { ...context, params: {} }, running.signal);
      return await attempt(calling).catch(async (again) => {
        const late = asFault(again);
        return late.kind === 'not_found' ? await unlisted(calling) : unable(late);
      });
    }
  }

  /** The server may take any name, so it is asked only where a rule allows it; otherwise the answer is that of the official SDKs. */
  async function unlisted(calling: Calling): Promise<FrameOutcome> {
    const { caller, tool } = calling;
    const unknown = failed(CODES.invalidParams, `Unknown tool: ${tool}`);
    try {
      const tried = await callTasks.within(caller, server, (task) => perform(calling, undefined, task, true));
      return tried.act.kind === 'refused' ? unknown : await answered(tried);
    } catch (thrown) {
      const fault = asFault(thrown);
      return fault.kind === 'not_found' ? unknown : inability(fault);
    }
  }

  /** The tool is looked up once: the call carries what was found, so that the headers are held against the definition that runs. */
  async function attempt(calling: Calling): Promise<FrameOutcome> {
    const { tool, args, caller, from } = calling;
    const repeated = caller.era === 'modern' ? caller.headers : undefined;
    const found = repeated || from ? await bridge.tool(caller.actor, tool, server) : undefined;
    const trouble = repeated && paramTrouble(found?.skill.input_schema as Json | undefined, args, repeated);
    if (trouble) return failed(CODES.headerMismatch, `Header mismatch: ${trouble}`);
    if (from) return await accounted(calling, found);
    return await callTasks.within(
      caller,
      server,
      async (callTask) => await answered(await perform(calling, found, callTask)),
    );
  }

  /** For another gateway, whose receipt is to name ours: the call is a task of its own and its receipt is sealed before it is answered. */
  async function accounted(calling: Calling, found: MountedTool | undefined): Promise<FrameOutcome> {
    const { tool, caller } = calling;
    const { actor } = caller;
    // An unknown tool is not called, so there is nothing to account for. Calls inside a named session are looked up there.
    if (!found && caller.home === undefined) throw new Fault('not_found', `no tool ${tool} is mounted`);
    const { came, receiptId } = await callTasks.alone(caller, server, (callTask) => perform(calling, found, callTask));
    const receipt = receiptId === undefined ? undefined : await receiptReference(bridge, actor, receiptId);
    return await answered(came, { taskId: came.taskId, receipt });
  }

  async function perform(
    calling: Calling,
    found: MountedTool | undefined,
    { taskId, sessionId }: CallTask,
    unlisted = false,
  ): Promise<Tried> {
    const { request, tool, args, caller, running, from } = calling;
    const plain = contextFor(request, caller, running, sessionId);
    const asked = records.asked(plain.params, caller);
    const context = asked ? { ...plain, tasks: asked.context } : plain;
    const call = asked && { tool_call_id: asked.callId };
    let question: string | undefined;
    const { act } = await asking(request, caller, running, ({ asked: ask, ...members }, began) =>
      bridge.submit({
        kind: 'tool.call',
        actor: caller.actor,
        body: {
          task_id: taskId,
          action: { kind: 'tool', tool, server, arguments: args, ...call, ...(from && { caller: from }) },
        },
        ...(caller.trace ?? traceInMeta(request.params)),
        context: { ...context, began },
        ...members,
        tool: found,
        unlisted,
        asked(askId) {
          question = askId;
          ask(askId);
        },
      }),
    );
    if (!act) throw new Fault('internal', 'a call came back without a word');
    return { ...calling, act, found, asked, taskId, question };
  }

  /** Puts questions to the person at the client, and reports progress from the question until the call begins or comes to nothing. */
  async function asking<T>(
    { params }: Request,
    caller: Caller,
    running: Running,
    run: (members: AskingMembers, began: () => void) => Promise<T>,
  ): Promise<T> {
    const { signal } = running;
    let stopReport = () => {};
    let stayed = () => {};
    const over = () => {
      stopReport();
      stayed();
    };
    const asked = (askId: string) => {
      stopReport = reportWaiting(params, caller, running, askId);
      stayed = caller.session?.onLeave(() => caller.giveUp?.()) ?? (() => {});
      void approvals.ask(caller, askId, (requests) => running.input(requests));
    };
    try {
      // A call that nobody waits for takes its question with it.
      return await run({ signal, withdrawn: signal, asked }, over);
    } finally {
      over();
    }
  }

  /** The outcome of a call as its caller receives it. */
  async function answered(tried: Tried, account?: OwnAccount): Promise<FrameOutcome> {
    const { act, found, asked, taskId, question, tool, args, caller } = tried;
    const worded = (outcome: FrameOutcome) => withWord(outcome, act, args, account);
    // Another gateway records the answer to its call, which is the task and not yet the task's result.
    const asTask = (outcome: FrameOutcome) => (account ? worded(outcome) : outcome);
    if (act.kind !== 'refused') {
      const outcome = worded(toWireOutcome(act, false));
      if (asked) return asTask(await asked.came(outcome, !isObject(act.result.output), taskId));
      if (cameToTask(outcome)) await owners.made(outcome, caller, taskId);
      return outcome;
    }
    const structured = !(found ? found.skill.output_schema : await hasSchema(tool, caller));
    const late = question !== undefined && act.decision.code === 'approval_timed_out';
    const refusal = toWireOutcome(
      late ? { ...act, reason: `${act.reason}; ${await approvers(question as string, caller)}` } : act,
      structured,
    );
    const rendered = worded(refusal);
    return asked ? asTask(await asked.came(rendered, true, taskId)) : rendered;
  }

  /** The approvers who could have approved, so that the caller can find them. */
  async function approvers(askId: string, { actor }: Caller): Promise<string> {
    const ask = await bridge.view<AskRecord & Row>(actor, 'ask', askId).catch(() => undefined);
    const who = ask && ask.to.length > 0 ? ask.to.join(' or ') : 'anyone who may answer approvals';
    return `${who} could have approved ${askId}, at any door or with: tollbridge approve`;
  }

  /** A result has to fit its tool's output schema, so refusals have no structured content where there is one. */
  async function hasSchema(tool: string, { actor }: Pick<Caller, 'actor'>): Promise<boolean> {
    const found = await bridge.tool(actor, tool, server).catch(() => undefined);
    return found !== undefined && found.skill.output_schema !== null;
  }

  /** Leaves out tools that the rules would refuse and tools whose definition has changed since it was pinned. */
  async function visibleTools(outcome: FrameOutcome, caller: Caller): Promise<FrameOutcome> {
    if ('error' in outcome || !Array.isArray(outcome.result.tools)) return outcome;
    const skills = await visibleSkills(caller);
    changes.shown(
      skills.map(({ name }) => name),
      caller,
    );
    const tools = shownTools(outcome.result.tools, skills);
    if (tools === outcome.result.tools) return outcome;
    // Another caller may see more tools: a list that was filtered for one caller must not be cached for all.
    const scope = outcome.result.cacheScope === undefined ? {} : { cacheScope: 'private' };
    return { result: { ...outcome.result, tools, ...scope } };
  }

  async function visibleSkills(caller: Caller): Promise<readonly Skill[]> {
    const skills = await bridge.visible(caller.actor, await callTasks.workspace(caller));
    return skills.filter(({ source }) => source === server);
  }

  async function names(caller: Caller): Promise<readonly string[]> {
    return (await visibleSkills(caller)).map(({ name }) => name);
  }

  function contextFor(
    { id, params = {} }: Request,
    caller: Caller,
    running: Running,
    keptIn?: string,
  ): McpRequestContext {
    return {
      era: caller.era,
      id,
      params,
      principal: scopeOf(caller.actor),
      capabilities: caller.capabilities,
      client: caller.client,
      session: caller.session,
      keptIn,
      mayBeKnown: caller.mayBeKnown,
      trace: caller.trace ?? traceInMeta(params),
      notify: running.notify,
      input: running.input,
      refused(method, reason) {
        const frame: Notice = { jsonrpc: '2.0', method };
        refuse(frame, `${server} sent it: ${reason}`, caller).catch((cause) =>
          deps.log.warn({ err: cause, server, method }, 'a refused frame could not be written down'),
        );
      },
    };
  }

  return {
    receive,
    refuse,
    async notify(method, params, caller) {
      const running = runningFor(caller);
      const request: Request = { jsonrpc: '2.0', id: 0, method, params };
      await pass(method, params, caller, contextFor(request, caller, running), caller.signal);
    },
    close() {
      changes.close();
      suspended.close();
    },
  };
}

export function runningFor({ signal, notify, input }: LegacyCaller): Running {
  const cannotAsk = () => Promise.reject(new Fault('not_implemented', 'this client cannot be asked'));
  return { signal, notify, input: input ?? cannotAsk };
}

/** Modern results state their type; our own results, and those of tools that do not set it, are complete. */
function complete(outcome: FrameOutcome): FrameOutcome {
  if ('error' in outcome || outcome.result.resultType !== undefined) return outcome;
  return { result: { resultType: 'complete', ...outcome.result } };
}

/** Failures of the gateway become results, so that a model can read them; the caller's mistakes stay errors. */
function inability(fault: Fault): FrameOutcome {
  const asError = fault.kind === 'internal' || fault.kind === 'invalid_request' || fault.kind === 'client_closed';
  return asError ? outcomeOf(fault) : refused(fault.message, { code: fault.kind });
}
