/**
 * The common address: tools of all servers under names of their own, and agents to give work to. Everyone sees what the
 * rules would let them try, and nothing else. A call goes to the desk of its server and is held there like any other.
 */

import { CODES, LATEST_LEGACY, LEGACY, MODERN, methodRow, TASKS_EXTENSION } from '../../mappings/mcp.ts';
import { type Artifact, asFault, asText, type Json, type JsonObject, type Row, type Skill } from '../../src/index.ts';
import { createAgentDesk } from './agent-desk.ts';
import { artifactIn } from './agent-result.ts';
import { answerTasks } from './agent-tasks.ts';
import { createWork } from './agent-work.ts';
import { type Caller, type LegacyCaller, scopeOf } from './caller.ts';
import { listenInCommon } from './common-listen.ts';
import { createCommonLists, kept, renamed, SERVER_INFO } from './common-lists.ts';
import { createCommonSessions } from './common-sessions.ts';
import { listTasks, taskRequest, withTask } from './common-tasks.ts';
import { type Desk, type DeskParts, runningFor } from './desk.ts';
import { LEGACY_TASKS } from './eras.ts';
import { clientFrameTrouble } from './frame-rules.ts';
import { failed, isObject, type Outcome, outcomeOf, type Request } from './frames.ts';
import type { SessionLine } from './line.ts';
import { createListChanges } from './list-changes.ts';
import { promptOf, uriOf } from './names.ts';
import { createParking, type Running } from './parked.ts';
import { createRefuse } from './refusals.ts';

export interface CommonParts extends DeskParts {
  readonly deskOf: (server: string) => Desk;
  /** Which servers are here; all that are mounted when absent. */
  readonly servers: readonly string[] | undefined;
  readonly agents: boolean;
}

export function createCommonDesk(parts: CommonParts): Desk {
  const { bridge, stints, deps } = parts;
  const work = createWork(bridge, stints, deps);
  const agentDesk = createAgentDesk(bridge, work);
  const parking = createParking(parts.settings.parkMs);
  const refuse = createRefuse(bridge, stints);
  const sessions = createCommonSessions();
  /** Sessions that know that calls can be tasks. */
  const told = new WeakSet<SessionLine>();
  const lists = createCommonLists({ bridge, stints, servers: parts.servers, agents: parts.agents, at });
  const changes = createListChanges({ bridge, log: deps.log, show: lists.show, servers: true });

  /** The desk of one server, for somebody who came to this address. */
  async function at(server: string, asked: Request, caller: Caller): Promise<Outcome> {
    return named(server, withTask(server, await parts.deskOf(server).receive(asked, sessions.at(server, caller))));
  }

  async function list(method: string, { cursor }: JsonObject, caller: Caller): Promise<Outcome | undefined> {
    const showing = lists.show(method, caller);
    if (!showing) return undefined;
    // Everything is on one page here, so nobody was given a place to go on from.
    if (cursor !== undefined) return failed(CODES.invalidParams, 'Invalid cursor');
    const outcome = await showing;
    changes.shown(method, outcome, caller);
    return outcome;
  }

  /** A request about one thing, at the server that has it. */
  async function forward(asked: Request, caller: Caller): Promise<Outcome | undefined> {
    const { method, params = {} } = asked;
    const servers = await lists.servers(caller);
    const there = (server: string, given: JsonObject) =>
      at(server, { ...asked, params: { ...params, ...given } }, caller);
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
    const place = uriOf(params.uri);
    if (!place || !servers.includes(place.server)) return undefined;
    return inPlace(await there(place.server, { uri: place.uri }), place.server);
  }

  /** The agents' and the servers', each in turn. */
  async function tasks({ cursor }: JsonObject, caller: LegacyCaller): Promise<Outcome> {
    const shown = (outcome: Outcome | undefined) => (outcome && 'result' in outcome ? outcome.result : undefined);
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

  /** Something every server should know. One that knows nothing of it is left alone. */
  async function everywhere(asked: Request, caller: Caller): Promise<Outcome> {
    await Promise.all((await lists.servers(caller)).map((server) => at(server, asked, caller)));
    return { result: {} };
  }

  async function readArtifact(uri: Json | undefined, caller: Caller): Promise<Outcome | undefined> {
    const id = artifactIn(uri);
    if (id === undefined) return undefined;
    const { mime_type: mimeType } = await bridge.view<Artifact & Row>(caller.actor, 'artifact', id);
    const bytes = Buffer.from(await bridge.bytes(caller.actor, id));
    const text = /^text\/|json|xml|yaml/.test(mimeType);
    const body = text ? { text: bytes.toString('utf8') } : { blob: bytes.toString('base64') };
    return kept({ contents: [{ uri: uri as string, mimeType, ...body }] }, caller);
  }

  async function call(asked: Request, caller: Caller, running: Running): Promise<Outcome> {
    const { params = {} } = asked;
    const own = parts.agents ? await agentDesk.call(params, caller, running) : undefined;
    return own ?? failed(CODES.invalidParams, `Unknown tool: ${JSON.stringify(params.name ?? null)}`);
  }

  async function serve(asked: Request, caller: Caller, running: Running): Promise<Outcome> {
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

  async function receive(asked: Request, from: Caller): Promise<Outcome> {
    const { method, params = {} } = asked;
    const knows = from.session !== undefined && told.has(from.session);
    // What is read from one server here is sent through another: it is one session's doing.
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
      }
      if (method === 'tasks/list' && caller.era === 'legacy') return await tasks(params, caller);
      const there = await forward(asked, caller);
      if (there) return there;
      if (caller.era === 'legacy') return await serve(asked, caller, runningFor(caller));
      const asking = { who: scopeOf(caller.actor), method, params, signal: caller.signal, notify: caller.notify };
      return await (parking.resume(asking) ??
        parking.start(asking, (running) => serve(asked, caller, running).catch(outcomeOf)));
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
    if (tasks && session) told.add(session);
    return { protocolVersion, capabilities: { ...OFFERS, ...tasks }, serverInfo: SERVER_INFO };
  }

  function toDiscovery(): JsonObject {
    const extensions = { [TASKS_EXTENSION]: {} };
    return { supportedVersions: [MODERN], capabilities: { ...OFFERS, extensions } };
  }

  return {
    receive,
    refuse,
    /** What a client says of itself goes to the servers it has been at; anything else is not for all of them. */
    async tell(method, params, caller) {
      const { session } = caller;
      if (!session || method !== 'notifications/roots/list_changed') return;
      const visited = sessions.visited(session);
      await Promise.all(
        visited.map((server) => parts.deskOf(server).tell(method, params, sessions.at(server, caller))),
      );
    },
    close() {
      changes.close();
      parking.close();
    },
  };
}

const OFFERS = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  completions: {},
  logging: {},
} as const;

/** As its server calls it. Who knows no tasks has asked for none, whatever a member of that name means to them. */
function toCall({ task, ...params }: JsonObject, { name }: Skill, { era, tasks }: Caller): JsonObject {
  const wanted = task !== undefined && (era === 'modern' || tasks === true);
  return { ...params, name, ...(wanted && { task }) };
}

/** Resources that answers speak of go by the names they can be read under here; what is on the web is where it is. */
function named(server: string, outcome: Outcome): Outcome {
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
function inPlace(outcome: Outcome, server: string): Outcome {
  if ('error' in outcome || !Array.isArray(outcome.result.contents)) return outcome;
  const contents = outcome.result.contents.map((each) => renamed(server, 'resources', each));
  return { result: { ...outcome.result, contents } };
}
