/**
 * The common address: the tools of all servers under prefixed names, and agents as tools. Each caller sees the tools that the
 * rules would let it call, and no others. A call is handled by the endpoint of its server, like any other.
 */

import { CODES, LATEST_LEGACY, LEGACY, MODERN, methodRow, TASKS_EXTENSION } from '../../../../mappings/mcp.ts';
import {
  type Artifact,
  asFault,
  asText,
  isObject,
  type Json,
  type JsonObject,
  type Row,
  type Skill,
} from '../../../../src/index.ts';
import { createAgentEndpoint } from '../../agents/endpoint.ts';
import { artifactIn } from '../../agents/result.ts';
import { answerTasks } from '../../agents/tasks.ts';
import { createWork } from '../../agents/work.ts';
import { LEGACY_TASKS } from '../../compat/convert.ts';
import { clientFrameTrouble } from '../../frame-rules.ts';
import { type FrameOutcome, failed, outcomeOf, type Request } from '../../frames.ts';
import type { SessionContext } from '../../request-context.ts';
import { refused } from '../../translate.ts';
import { type Caller, type LegacyCaller, scopeOf } from '../caller.ts';
import { type EndpointDeps, type EndpointHandler, runningFor } from '../endpoint.ts';
import { createListChanges } from '../list-changes.ts';
import { createRefuse } from '../refused-frames.ts';
import { createSuspendedCalls, type Running } from '../suspended-calls.ts';
import { listenInCommon } from './listen.ts';
import { createCommonLists, kept, renamed, SERVER_INFO } from './lists.ts';
import { promptOf, uriOf } from './names.ts';
import { createCommonSessions } from './sessions.ts';
import { listTasks, taskRequest, withTask } from './tasks.ts';

export interface CommonParts extends EndpointDeps {
  readonly handlerOf: (server: string) => EndpointHandler;
  /** The servers behind this address; all that are mounted when absent. */
  readonly servers: readonly string[] | undefined;
  readonly agents: boolean;
}

export function createAggregateEndpoint(parts: CommonParts): EndpointHandler {
  const { bridge, callTasks, deps } = parts;
  const work = createWork(bridge, callTasks, deps);
  const agentEndpoint = createAgentEndpoint(bridge, work);
  const suspended = createSuspendedCalls(parts.settings.suspendMs, () => parts.deps.http?.mark ?? '');
  const refuse = createRefuse(bridge, callTasks);
  const sessions = createCommonSessions();
  /** Sessions that know that calls can be tasks. */
  const taskSessions = new WeakSet<SessionContext>();
  const lists = createCommonLists({ bridge, callTasks, servers: parts.servers, agents: parts.agents, at });
  const changes = createListChanges({ bridge, log: deps.log, show: lists.show, servers: true });

  /** Calls the endpoint of one server for a caller at this address. */
  async function at(server: string, asked: Request, caller: Caller): Promise<FrameOutcome> {
    return named(server, withTask(server, await parts.handlerOf(server).receive(asked, sessions.at(server, caller))));
  }

  async function list(method: string, { cursor }: JsonObject, caller: Caller): Promise<FrameOutcome | undefined> {
    const showing = lists.show(method, caller);
    if (!showing) return undefined;
    // Lists have a single page here, so no client was given a cursor.
    if (cursor !== undefined) return failed(CODES.invalidParams, 'Invalid cursor');
    const outcome = await showing;
    changes.shown(method, outcome, caller);
    return outcome;
  }

  /** Forwards a request about one resource, prompt or task to the server that has it. */
  async function forward(asked: Request, caller: Caller): Promise<FrameOutcome | undefined> {
    const { method, params = {} } = asked;
    const servers = await lists.servers(caller);
    const there = (server: string, more: JsonObject) =>
      at(server, { ...asked, params: { ...params, ...more } }, caller);
    const task = taskRequest(asked);
    if (task) return servers.includes(task.server) ? await at(task.server, task.there, caller) : undefined;
    if (method === 'prompts/get') {
      const prompt = promptOf(params.name, servers);
      return prompt && (await there(prompt.server, { name: prompt.name }));
    }
    if (method === 'completion/complete' && isObject(params.ref)) {
      const prompt = promptOf(params.ref.name, servers);
      if (prompt) return await there(prompt.server, { ref: { ...params.ref, name: prompt.name } });
      const resource = uriOf(params.ref.uri);
      return resource && servers.includes(resource.server)
        ? await there(resource.server, { ref: { ...params.ref, uri: resource.uri } })
        : failed(CODES.invalidParams, 'there is nothing of this name to complete');
    }
    const target = uriOf(params.uri);
    if (!target || !servers.includes(target.server)) return undefined;
    return onServer(await there(target.server, { uri: target.uri }), target.server);
  }

  /** The agents' and the servers', each in turn. */
  async function tasks({ cursor }: JsonObject, caller: LegacyCaller): Promise<FrameOutcome> {
    const shown = (outcome: FrameOutcome | undefined) => (outcome && 'result' in outcome ? outcome.result : undefined);
    const more = (within: string | undefined) => (within === undefined ? {} : { cursor: within });
    const listed = (server: string) => ({
      name: server,
      page: async (within: string | undefined) =>
        shown(await at(server, { jsonrpc: '2.0', id: 0, method: 'tasks/list', params: more(within) }, caller)),
    });
    const agents = {
      name: '',
      page: async (within: string | undefined) =>
        shown(await answerTasks('tasks/list', more(within), caller, runningFor(caller), work)),
    };
    const servers = (await lists.tasking(caller)).map(listed);
    return await listTasks(cursor, parts.agents ? [agents, ...servers] : servers);
  }

  /** Sends a request to every server. Servers that do not support it are ignored. */
  async function everywhere(asked: Request, caller: Caller): Promise<FrameOutcome> {
    await Promise.all((await lists.servers(caller)).map((server) => at(server, asked, caller)));
    return { result: {} };
  }

  async function readArtifact(uri: Json | undefined, caller: Caller): Promise<FrameOutcome | undefined> {
    const id = artifactIn(uri);
    if (id === undefined) return undefined;
    const { mime_type: mimeType } = await bridge.view<Artifact & Row>(caller.actor, 'artifact', id);
    const bytes = Buffer.from(await bridge.bytes(caller.actor, id));
    const text = /^text\/|json|xml|yaml/.test(mimeType);
    const body = text ? { text: bytes.toString('utf8') } : { blob: bytes.toString('base64') };
    return kept({ contents: [{ uri: uri as string, mimeType, ...body }] }, caller);
  }

  async function call(asked: Request, caller: Caller, running: Running): Promise<FrameOutcome> {
    const { params = {} } = asked;
    const own = parts.agents ? await agentEndpoint.call(params, caller, running) : undefined;
    return own ?? failed(CODES.invalidParams, `Unknown tool: ${JSON.stringify(params.name ?? null)}`);
  }

  async function serve(asked: Request, caller: Caller, running: Running): Promise<FrameOutcome> {
    const { method, params = {} } = asked;
    const task = parts.agents ? await answerTasks(method, params, caller, running, work) : undefined;
    if (task) return task;
    if (method.startsWith('tasks/')) return failed(CODES.invalidParams, 'Task not found');
    if (method === 'tools/call') return await call(asked, caller, running);
    const artifact = method === 'resources/read' ? await readArtifact(params.uri, caller) : undefined;
    if (artifact) return artifact;
    return failed(
      method === 'resources/read' || method === 'prompts/get' ? CODES.invalidParams : CODES.methodNotFound,
      method === 'resources/read'
        ? 'Resource not found'
        : method === 'prompts/get'
          ? 'Unknown prompt'
          : 'Method not found',
    );
  }

  async function receive(asked: Request, from: Caller): Promise<FrameOutcome> {
    const { method, params = {} } = asked;
    const knows = from.session !== undefined && taskSessions.has(from.session);
    // A session spans all servers here, because content read from one server can be sent to another.
    const caller: Caller = { ...from, at: from.at ?? '', ...(knows && { tasks: true }) };
    try {
      const trouble = clientFrameTrouble(asked);
      if (trouble) {
        await refuse(asked, trouble.error.message, caller);
        return trouble;
      }
      const row = methodRow(method);
      if (row && !row.eras.includes(caller.era)) return failed(CODES.methodNotFound, 'Method not found');
      if (method === 'initialize') return { result: toOpening(params, caller) };
      if (method === 'server/discover') return kept(toDiscovery(), caller);
      if (method === 'ping') return { result: {} };
      if (method === 'logging/setLevel') return await everywhere(asked, caller);
      if (method === 'subscriptions/listen') return await listenInCommon(asked, caller, { lists, changes, at });
      const shown = await list(method, params, caller);
      if (shown) return shown;
      if (method === 'tools/call') {
        const skill = await lists.tool(asText(params.name), caller);
        if (skill) return await at(skill.source ?? '', { ...asked, params: toCall(params, skill, caller) }, caller);
        const waits = await lists.awaiting(asText(params.name), caller);
        if (waits) return await at(waits.server, { ...asked, params: { ...params, name: waits.tool } }, caller);
        const why = await lists.missing(asText(params.name), caller);
        if (why) return refused(why, { code: 'upstream_unavailable' });
      }
      if (method === 'tasks/list' && caller.era === 'legacy') return await tasks(params, caller);
      const there = await forward(asked, caller);
      if (there) return there;
      if (caller.era === 'legacy') return await serve(asked, caller, runningFor(caller));
      const asking = { who: scopeOf(caller.actor), method, params, signal: caller.signal, notify: caller.notify };
      return await (suspended.resume(asking) ??
        suspended.start(asking, (running) => serve(asked, caller, running).catch(outcomeOf)));
    } catch (thrown) {
      const fault = asFault(thrown);
      return fault.kind === 'not_found' ? failed(CODES.invalidParams, fault.message) : outcomeOf(thrown);
    }
  }

  function toOpening({ protocolVersion: wanted }: JsonObject, { session }: Caller): JsonObject {
    const known = (LEGACY as readonly unknown[]).includes(wanted);
    const protocolVersion = known ? wanted : LATEST_LEGACY;
    // No other revision of this era has tasks.
    const tasks = protocolVersion === LATEST_LEGACY && { tasks: LEGACY_TASKS };
    if (tasks && session) taskSessions.add(session);
    return { protocolVersion, capabilities: { ...LISTS, ...tasks }, serverInfo: SERVER_INFO };
  }

  function toDiscovery(): JsonObject {
    const extensions = { [TASKS_EXTENSION]: {} };
    return { supportedVersions: [MODERN], capabilities: { ...LISTS, extensions } };
  }

  return {
    receive,
    refuse,
    /** A change of the client's roots goes to the servers its session has used; other notifications are not forwarded to all of them. */
    async notify(method, params, caller) {
      const { session } = caller;
      if (!session || method !== 'notifications/roots/list_changed') return;
      const visited = sessions.visited(session);
      await Promise.all(
        visited.map((server) => parts.handlerOf(server).notify(method, params, sessions.at(server, caller))),
      );
    },
    close() {
      changes.close();
      suspended.close();
    },
  };
}

const LISTS = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  completions: {},
  logging: {},
} as const;

/** The params with the tool name that its server uses. A caller without tasks cannot ask for one, so its `task` member is dropped. */
function toCall({ task, ...params }: JsonObject, { name }: Skill, { era, tasks }: Caller): JsonObject {
  const wanted = task !== undefined && (era === 'modern' || tasks === true);
  return { ...params, name, ...(wanted && { task }) };
}

/** Renames resources in answers to the names under which they can be read here; web addresses stay as they are. */
function named(server: string, outcome: FrameOutcome): FrameOutcome {
  if ('error' in outcome) return outcome;
  const { content, messages } = outcome.result;
  const block = (each: Json): Json => {
    if (!isObject(each)) return each;
    if (each.type === 'resource_link' && !/^https?:/.test(asText(each.uri))) return renamed(server, 'resources', each);
    const inside = each.type === 'resource' && { resource: renamed(server, 'resources', each.resource ?? null) };
    return { ...each, ...inside };
  };
  const message = (each: Json) =>
    isObject(each) && isObject(each.content) ? { ...each, content: block(each.content) } : each;
  return {
    result: {
      ...outcome.result,
      ...(Array.isArray(content) && { content: content.map(block) }),
      ...(Array.isArray(messages) && { messages: messages.map(message) }),
    },
  };
}

/** Contents of a resource go by the name it was asked for under. */
function onServer(outcome: FrameOutcome, server: string): FrameOutcome {
  if ('error' in outcome || !Array.isArray(outcome.result.contents)) return outcome;
  const contents = outcome.result.contents.map((each) => renamed(server, 'resources', each));
  return { result: { ...outcome.result, contents } };
}
