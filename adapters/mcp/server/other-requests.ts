/**
 * Requests that are no tool calls. A method of the table is decided, logged and forwarded unchanged; one that no row names is an act
 * of effect `unknown`. Lists of tools leave out what the rules would refuse.
 */
import { methodRow } from '../../../mappings/mcp.ts';
import {
  type Accepted,
  type Bridge,
  Fault,
  isObject,
  type JsonObject,
  type Logger,
  type Skill,
} from '../../../src/index.ts';
import type { FrameOutcome, Id, Notice, Request } from '../frames.ts';
import type { McpRequestContext } from '../request-context.ts';
import type { TaskOwners } from '../tasks/owners.ts';
import type { TaskRecords } from '../tasks/records.ts';
import { traceInMeta } from '../trace.ts';
import type { AskingPerson } from './asking.ts';
import type { CallTasks } from './call-tasks.ts';
import { type Caller, scopeOf } from './caller.ts';
import { createOwnChanges } from './own-changes.ts';
import type { Refuse } from './refused-frames.ts';
import { shownTools } from './shown-tools.ts';
import type { Running } from './suspended-calls.ts';

export interface OtherRequests {
  serve(request: Request, caller: Caller, running: Running): Promise<FrameOutcome>;
  /** Has a request decided and forwards it. */
  pass(
    method: string,
    params: JsonObject,
    caller: Caller,
    context: McpRequestContext,
    signal: AbortSignal,
  ): Promise<FrameOutcome>;
  /** `keptIn`: the gateway session in which the request is recorded. */
  contextFor(request: Request, caller: Caller, running: Running, keptIn?: string): McpRequestContext;
  close(): void;
}

export interface OtherRequestsDeps {
  readonly bridge: Bridge;
  readonly callTasks: CallTasks;
  readonly asking: AskingPerson;
  readonly owners: TaskOwners;
  readonly records: TaskRecords;
  readonly refuse: Refuse;
  readonly log: Logger;
}

export function createOtherRequests(server: string, deps: OtherRequestsDeps): OtherRequests {
  const { bridge, callTasks, asking, owners, records, refuse } = deps;
  const changes = createOwnChanges({ bridge, log: deps.log, names });

  async function serve(request: Request, caller: Caller, running: Running): Promise<FrameOutcome> {
    const { method, params = {} } = request;
    const row = methodRow(method);
    if (!row) return await unknown(request, caller, running);
    const asked = await owners.about(method, params, caller);
    // Reads are recorded by session, because untrusted content taints the session that reads it.
    const reads = row.reads || hearsResults(method, params);
    const keptIn = reads && { keptIn: await callTasks.session(caller, server) };
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

  return { serve, pass, contextFor, close: () => changes.close() };
}

/** Notifications of a task carry its result. */
function hearsResults(method: string, { notifications }: JsonObject): boolean {
  return method === 'subscriptions/listen' && isObject(notifications) && Array.isArray(notifications.taskIds);
}
