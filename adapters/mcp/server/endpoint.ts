/**
 * Handles requests at an address that serves one server. A tool call is an act and passes the gate as one; what becomes of every
 * other request is in `other-requests.ts`. No protocol state is kept here.
 */

import { CODES, methodRow } from '../../../mappings/mcp.ts';
import {
  type ActResult,
  type AskRecord,
  asFault,
  type Bridge,
  type CallerOfCall,
  type Deps,
  Fault,
  isObject,
  type Json,
  type JsonObject,
  type MountedTool,
  type Row,
} from '../../../src/index.ts';
import { receiptReference } from '../../../src/transport/outbound/receipt-reference.ts';
import { SIGN_IN, SIGN_IN_REQUIRED } from '../client/auth/sign-in-required.ts';
import type { McpSettings } from '../config.ts';
import { clientFrameTrouble } from '../frame-rules.ts';
import { type FrameOutcome, failed, outcomeOf, type Request } from '../frames.ts';
import { callerIn, circleIn, type OwnAccount, withWord } from '../gateways.ts';
import { paramTrouble } from '../header-values.ts';
import type { McpRequestContext } from '../request-context.ts';
import { cameToTask, createTaskOwners } from '../tasks/owners.ts';
import { type AskedTask, createTaskRecords } from '../tasks/records.ts';
import { traceInMeta } from '../trace.ts';
import { isPlainName, refused, toWireOutcome } from '../translate.ts';
import { createApprovals } from './approvals.ts';
import { createAsking } from './asking.ts';
import type { CallTask, CallTasks } from './call-tasks.ts';
import { type Caller, canOpenPages, type LegacyCaller, scopeOf } from './caller.ts';
import { createOtherRequests } from './other-requests.ts';
import { createRefuse, type Refuse } from './refused-frames.ts';
import { createSuspendedCalls, type Running } from './suspended-calls.ts';

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
  readonly deps: Pick<Deps, 'ids' | 'log' | 'clock'> & Partial<Pick<Deps, 'http'>>;
}

export function createEndpoint(server: string, { bridge, callTasks, settings, deps }: EndpointDeps): EndpointHandler {
  const suspended = createSuspendedCalls(settings.suspendMs, () => deps.http?.mark ?? '');
  const asking = createAsking(createApprovals(bridge, deps));
  const refuse = createRefuse(bridge, callTasks);
  const owners = createTaskOwners(server, bridge);
  const records = createTaskRecords(server, { bridge, clock: deps.clock, made: owners.made, hasSchema });
  const others = createOtherRequests(server, { bridge, callTasks, asking, owners, records, refuse, log: deps.log });
  const { contextFor, pass } = others;

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
        return await serve(request, caller, running);
      }
      const waiter = { who: scopeOf(caller.actor), method, params, signal: caller.signal, notify: caller.notify };
      const resumed = suspended.resume(waiter);
      // Every state that a client gets here is ours: any other was made up, and its answers belong to no question.
      const madeUp = params.requestState ?? (row ? undefined : params.inputResponses);
      if (!resumed && row?.handling !== 'pass' && madeUp !== undefined) {
        return failed(CODES.invalidParams, 'Invalid or expired requestState');
      }
      const outcome = await (resumed ??
        suspended.start(waiter, (running) => serve(request, caller, running).catch(outcomeOf)));
      return complete(outcome);
    } catch (thrown) {
      return outcomeOf(thrown);
    }
  }

  function serve(request: Request, caller: Caller, running: Running): Promise<FrameOutcome> {
    const acts = methodRow(request.method)?.handling === 'act';
    return acts ? act(request, caller, running) : others.serve(request, caller, running);
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
    let written: (() => Promise<void>) | undefined;
    const ordered = after(plain, () => written?.());
    const context = asked ? { ...plain, tasks: asked.context } : ordered;
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
        // A call that becomes a task is answered before it ends.
        ...(!asked && { unwritten: (write: () => Promise<void>) => (written = write) }),
        asked(askId) {
          question = askId;
          ask(askId);
        },
      }),
    );
    if (!act) throw new Fault('internal', 'a call came back without a word');
    return { ...calling, act, found, asked, taskId, question };
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

  return {
    receive,
    refuse,
    async notify(method, params, caller) {
      const running = runningFor(caller);
      const request: Request = { jsonrpc: '2.0', id: 0, method, params };
      await pass(method, params, caller, contextFor(request, caller, running), caller.signal);
    },
    close() {
      others.close();
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

/** What the client is asked, and what is logged about a call, stands after the decision on it. */
function after(context: McpRequestContext, decided: () => Promise<void> | undefined): McpRequestContext {
  const { input, refused } = context;
  return {
    ...context,
    input: async (...asked) => {
      await decided();
      return await input(...asked);
    },
    refused(method, reason) {
      // A decision that could not be written ends the call with that fault.
      Promise.resolve(decided()).then(
        () => refused?.(method, reason),
        () => {},
      );
    },
  };
}
