/**
 * What becomes of a request at an address that stands for one server. A call of a tool is an act and passes the gate as
 * one; everything else is decided, written down and handed on as it came. No state of the protocol's is kept here.
 */

import { CODES, methodRow } from '../../mappings/mcp.ts';
import {
  type Accepted,
  type AskRecord,
  asFault,
  asText,
  type Bridge,
  type Deps,
  Fault,
  type JsonObject,
  type Row,
} from '../../src/index.ts';
import { createApprovals } from './approvals.ts';
import { type Caller, type LegacyCaller, scopeOf } from './caller.ts';
import type { McpSettings } from './config.ts';
import { clientFrameTrouble } from './frame-rules.ts';
import { failed, type Id, isObject, type Notice, type Outcome, outcomeOf, type Request } from './frames.ts';
import { paramTrouble } from './header-values.ts';
import type { McpLine } from './line.ts';
import { createOwnChanges } from './own-changes.ts';
import { createParking, type Running } from './parked.ts';
import { createRefuse, type Refuse } from './refusals.ts';
import type { Stints } from './stints.ts';
import { cameToTask, createTaskOwners } from './task-owners.ts';
import { createTaskRecords } from './task-records.ts';
import { isPlainName, refused, toWireOutcome } from './translate.ts';

export interface Desk {
  receive(request: Request, caller: Caller): Promise<Outcome>;
  /** Something that wants no answer, and may go on by the table of frames. */
  tell(method: string, params: JsonObject, caller: LegacyCaller): Promise<void>;
  /** Writes down that a frame was refused, and why. */
  readonly refuse: Refuse;
  close(): void;
}

export interface DeskParts {
  readonly bridge: Bridge;
  readonly stints: Stints;
  readonly settings: Pick<McpSettings, 'parkMs'>;
  readonly deps: Pick<Deps, 'ids' | 'log' | 'clock'>;
}

export function createDesk(server: string, { bridge, stints, settings, deps }: DeskParts): Desk {
  const parking = createParking(settings.parkMs);
  const approvals = createApprovals(bridge, deps);
  const refuse = createRefuse(bridge, stints);
  const owners = createTaskOwners(server, bridge);
  const records = createTaskRecords(server, { bridge, clock: deps.clock, made: owners.made, hasSchema });
  const changes = createOwnChanges({ bridge, log: deps.log, names });

  async function receive(request: Request, caller: Caller): Promise<Outcome> {
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
      const resumed = parking.resume(asking);
      // Every state a client was given here is ours: one that is not was made up, and its answers answer nothing.
      const madeUp = params.requestState ?? (row ? undefined : params.inputResponses);
      if (!resumed && row?.handling !== 'pass' && madeUp !== undefined) {
        return failed(CODES.invalidParams, 'Invalid or expired requestState');
      }
      const outcome = await (resumed ??
        parking.start(asking, (running) => serve(request, caller, running).catch(outcomeOf)));
      return complete(outcome);
    } catch (thrown) {
      return outcomeOf(thrown);
    }
  }

  async function serve(request: Request, caller: Caller, running: Running): Promise<Outcome> {
    const { method, params = {} } = request;
    const row = methodRow(method);
    if (!row) return await unknown(request, caller, running);
    if (row.handling === 'act') return await act(request, caller, running);
    const asked = await owners.about(method, params, caller);
    // What is read is read by a session, which may have to be told from one that has read nothing.
    const keptIn = row.reads && { keptIn: await stints.session(caller, server) };
    const tasks = method.startsWith('tasks/') && { tasks: records.line(caller) };
    const line = { ...lineFor(request, caller, running), ...keptIn, ...tasks };
    if (method === 'subscriptions/listen') return await listen(request.id, asked.params, caller, line, running.signal);
    const outcome = asked.heard(await pass(method, asked.params, caller, line, running.signal));
    if (method === 'tasks/list') return await records.listed(await owners.listed(outcome, caller), params, caller);
    if (method === 'initialize') {
      changes.opened(outcome, caller);
      records.opened(outcome, caller);
    }
    return method === 'tools/list' ? await offered(outcome, caller) : outcome;
  }

  async function listen(
    id: Id,
    params: JsonObject,
    caller: Caller,
    line: McpLine,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { said, stop } = await changes.listen(id, params, caller, line.notify);
    try {
      return await pass('subscriptions/listen', params, caller, { ...line, notify: said }, signal);
    } finally {
      stop();
    }
  }

  async function pass(
    method: string,
    params: JsonObject,
    caller: Caller,
    line: McpLine,
    signal: AbortSignal,
  ): Promise<Outcome> {
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
        workspace_id: await stints.workspace(caller),
        ...(line.keptIn && { session_id: line.keptIn }),
        ...(typeof target === 'string' && target !== '' && { target }),
        effect: 'none',
      },
      line,
      signal,
    });
    if (details) return details as unknown as Outcome;
    throw new Fault('policy_violation', decision?.reason ?? `${method} may not be used here`);
  }

  /** A request in no row of the table: an act of effect `unknown`, decided like any other and then passed on as it was decided. */
  function unknown(request: Request, caller: Caller, running: Running): Promise<Outcome> {
    // What a hop says of itself is no part of what is asked; the backend puts it back.
    const { _meta: _, ...args } = request.params ?? {};
    const { method: tool } = request;
    return stints.within(caller, server, async ({ taskId, sessionId }) => {
      const { act } = await bridge.submit({
        kind: 'tool.call',
        actor: caller.actor,
        body: { task_id: taskId, action: { kind: 'extension', tool, server, arguments: args } },
        ...(caller.trace && { trace_id: caller.trace }),
        line: lineFor(request, caller, running, sessionId),
        signal: running.signal,
        asked: (askId) => void approvals.ask(caller, askId, (requests) => running.input(requests)),
      });
      if (act?.kind === 'done' && isObject(act.result.output)) return act.result.output as unknown as Outcome;
      const reason = act?.kind === 'refused' ? act.reason : (act?.result.error ?? 'the request came to nothing');
      const kind = act?.kind === 'refused' ? 'policy_violation' : 'upstream_unavailable';
      throw new Fault(kind, reason);
    });
  }

  async function act(request: Request, caller: Caller, running: Running): Promise<Outcome> {
    const { name, arguments: given } = request.params ?? {};
    // Absent and null are the same to most servers; the gate and the server both get an object.
    const args = given ?? {};
    if (!isPlainName(name)) return failed(CODES.invalidParams, `Unknown tool: ${JSON.stringify(name ?? null)}`);
    if (!isObject(args)) return failed(CODES.invalidParams, 'the arguments must be an object');
    const trouble = caller.era === 'modern' && caller.headers && (await headerTrouble(name, args, caller));
    if (trouble) return failed(CODES.headerMismatch, `Header mismatch: ${trouble}`);
    // Who waits for a task has no use for a result: what never began is an error to them.
    const unable = records.wants(request.params ?? {}, caller) ? outcomeOf : inability;
    try {
      return await attempt(request, name, args, caller, running);
    } catch (thrown) {
      const fault = asFault(thrown);
      if (fault.kind !== 'not_found') return unable(fault);
      // It may have come since, or be there for this session only: whoever serves it is asked once.
      const line = lineFor(request, caller, running);
      await pass('tools/list', {}, caller, { ...line, params: {} }, running.signal);
      return await attempt(request, name, args, caller, running).catch((again) => {
        const late = asFault(again);
        return late.kind === 'not_found' ? failed(CODES.invalidParams, `Unknown tool: ${name}`) : unable(late);
      });
    }
  }

  function attempt(
    request: Request,
    tool: string,
    args: JsonObject,
    caller: Caller,
    running: Running,
  ): Promise<Outcome> {
    return stints.within(caller, server, async ({ taskId, sessionId }) => {
      const plain = lineFor(request, caller, running, sessionId);
      const asked = records.asked(plain.params, caller);
      const line = asked ? { ...plain, tasks: asked.line } : plain;
      const call = asked && { tool_call_id: asked.callId };
      let question: string | undefined;
      const { act } = await bridge.submit({
        kind: 'tool.call',
        actor: caller.actor,
        body: { task_id: taskId, action: { kind: 'tool', tool, server, arguments: args, ...call } },
        ...(caller.trace && { trace_id: caller.trace }),
        line,
        signal: running.signal,
        asked(askId) {
          question = askId;
          void approvals.ask(caller, askId, (requests) => running.input(requests));
        },
      });
      if (!act) throw new Fault('internal', 'a call came back without a word');
      if (act.kind !== 'refused') {
        const outcome = toWireOutcome(act, false);
        if (asked) return await asked.came(outcome, !isObject(act.result.output), taskId);
        if (cameToTask(outcome)) await owners.made(outcome, caller, taskId);
        return outcome;
      }
      const structured = !(await hasSchema(tool, caller));
      const late = question !== undefined && act.decision.code === 'approval_timed_out';
      const refusal = toWireOutcome(
        late ? { ...act, reason: `${act.reason}; ${await approvers(question as string, caller)}` } : act,
        structured,
      );
      return asked ? await asked.came(refusal, true, taskId) : refusal;
    });
  }

  /** Who could have said yes, for whoever has to find them. */
  async function approvers(askId: string, { actor }: Caller): Promise<string> {
    const ask = await bridge.view<AskRecord & Row>(actor, 'ask', askId).catch(() => undefined);
    const who = ask && ask.to.length > 0 ? ask.to.join(' or ') : 'anyone who may answer approvals';
    return `${who} could have approved ${askId}, at any door or with: tollbridge approve`;
  }

  /** A result has to fit its tool's schema; what we say of our own goes without, where there is one. */
  async function hasSchema(tool: string, { actor }: Pick<Caller, 'actor'>): Promise<boolean> {
    const skill = await bridge.tool(actor, tool, server).catch(() => undefined);
    return skill !== undefined && skill.output_schema !== null;
  }

  async function headerTrouble(tool: string, args: JsonObject, caller: Caller): Promise<string | undefined> {
    const skill = await bridge.tool(caller.actor, tool, server).catch(() => undefined);
    return paramTrouble((skill?.input_schema ?? undefined) as JsonObject | undefined, args, caller.headers ?? {});
  }

  /** What the rules would refuse, or is no longer what it was, is not there. */
  async function offered(outcome: Outcome, caller: Caller): Promise<Outcome> {
    if ('error' in outcome || !Array.isArray(outcome.result.tools)) return outcome;
    const shown = await names(caller);
    changes.shown(shown, caller);
    const known = new Set(shown);
    const tools = outcome.result.tools.filter((tool) => isObject(tool) && known.has(asText(tool.name)));
    if (tools.length === outcome.result.tools.length) return outcome;
    // Somebody else may see more: what was left out for one must not be kept for all.
    const scope = outcome.result.cacheScope === undefined ? {} : { cacheScope: 'private' };
    return { result: { ...outcome.result, tools, ...scope } };
  }

  async function names(caller: Caller): Promise<readonly string[]> {
    const skills = await bridge.offered(caller.actor, await stints.workspace(caller));
    return skills.flatMap(({ source, name }) => (source === server ? [name] : []));
  }

  function lineFor({ id, params = {} }: Request, caller: Caller, running: Running, keptIn?: string): McpLine {
    return {
      era: caller.era,
      id,
      params,
      principal: scopeOf(caller.actor),
      capabilities: caller.capabilities,
      client: caller.client,
      session: caller.session,
      keptIn,
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
    async tell(method, params, caller) {
      const running = runningFor(caller);
      const request: Request = { jsonrpc: '2.0', id: 0, method, params };
      await pass(method, params, caller, lineFor(request, caller, running), caller.signal);
    },
    close() {
      changes.close();
      parking.close();
    },
  };
}

export function runningFor({ signal, notify, input }: LegacyCaller): Running {
  const nobody = () => Promise.reject(new Fault('not_implemented', 'this client cannot be asked'));
  return { signal, notify, input: input ?? nobody };
}

/** In the modern era a result says what kind it is; ours, and those of tools that know nothing of it, are whole. */
function complete(outcome: Outcome): Outcome {
  if ('error' in outcome || outcome.result.resultType !== undefined) return outcome;
  return { result: { resultType: 'complete', ...outcome.result } };
}

/** Our own inability, where a model can read it; what is the caller's mistake stays an error. */
function inability(fault: Fault): Outcome {
  const asError = fault.kind === 'internal' || fault.kind === 'invalid_request' || fault.kind === 'client_closed';
  return asError ? outcomeOf(fault) : refused(fault.message, { code: fault.kind });
}
