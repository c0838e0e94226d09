/**
 * The common address: tools of all servers under names of their own, and agents to give work to. Everyone sees what the
 * rules would let them try, and nothing else. A call goes to the desk of its server and is held there like any other.
 */
import { CODES, LATEST_LEGACY, LEGACY, META, MODERN, methodRow, TASKS_EXTENSION } from '../../mappings/mcp.ts';
import {
  type AgentFace,
  type Artifact,
  asFault,
  type Json,
  type JsonObject,
  type Row,
  type Skill,
  VERSION,
} from '../../src/index.ts';
import { createAgentDesk } from './agent-desk.ts';
import { agentTools, artifactIn } from './agent-result.ts';
import { answerTasks } from './agent-tasks.ts';
import { createWork } from './agent-work.ts';
import { type Caller, scopeOf } from './caller.ts';
import { type Desk, type DeskParts, runningFor } from './desk.ts';
import { failed, isObject, metaOf, type Outcome, outcomeOf, type Request } from './frames.ts';
import { exposedPrompt, exposedUri, namesOf, promptOf, uriOf } from './names.ts';
import { createParking, type Running } from './parked.ts';

export interface CommonParts extends DeskParts {
  readonly deskOf: (server: string) => Desk;
  /** Which servers are here; all that are mounted when absent. */
  readonly servers: readonly string[] | undefined;
  readonly agents: boolean;
}

const SERVER_INFO = { name: 'tollbridge', title: 'Tollbridge', version: VERSION } as const;
const LISTS: Readonly<Record<string, 'prompts' | 'resources' | 'resourceTemplates'>> = {
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
};

export function createCommonDesk(parts: CommonParts): Desk {
  const { bridge, stints, deps } = parts;
  const work = createWork(bridge, stints, deps);
  const agentDesk = createAgentDesk(bridge, work);
  const parking = createParking(parts.settings.parkMs);

  async function skillsFor(caller: Caller): Promise<readonly Skill[]> {
    const all = await bridge.offered(caller.actor, await stints.workspace(caller));
    return parts.servers ? all.filter(({ source }) => parts.servers?.includes(source ?? '')) : all;
  }

  async function agentsFor({ actor }: Caller): Promise<readonly AgentFace[]> {
    return parts.agents ? await bridge.agents(actor) : [];
  }

  async function serversFor(caller: Caller): Promise<readonly string[]> {
    return [...new Set((await skillsFor(caller)).map(({ source }) => source ?? ''))].toSorted();
  }

  async function listTools(caller: Caller): Promise<Outcome> {
    const names = namesOf(await skillsFor(caller));
    const tools = [...names].map(([name, skill]) => toTool(name, skill, caller));
    return kept({ tools: [...tools, ...agentTools(await agentsFor(caller), caller.era === 'legacy')] }, caller);
  }

  /** The same of every server; one that does not answer is left out. */
  async function listAll(method: string, member: 'prompts' | 'resources' | 'resourceTemplates', caller: Caller) {
    const pages = await Promise.all(
      (await serversFor(caller)).map(async (server) => {
        const found: Json[] = [];
        for (let cursor: Json | undefined, pages = 0; pages < MOST_PAGES; pages += 1) {
          const asked = request(method, cursor === undefined ? {} : { cursor });
          const outcome = await parts.deskOf(server).receive(asked, caller);
          if ('error' in outcome) break;
          const page = outcome.result[member];
          found.push(...(Array.isArray(page) ? page.map((each) => renamed(server, member, each)) : []));
          cursor = outcome.result.nextCursor;
          if (cursor === undefined || cursor === null) break;
        }
        return found;
      }),
    );
    return kept({ [member]: pages.flat() }, caller);
  }

  /** A request about one thing, at the server that has it. */
  async function forward(asked: Request, caller: Caller): Promise<Outcome | undefined> {
    const { method, params = {} } = asked;
    const servers = await serversFor(caller);
    const at = (server: string, given: JsonObject) =>
      parts.deskOf(server).receive({ ...asked, params: { ...params, ...given } }, caller);
    if (method === 'prompts/get') {
      const prompt = promptOf(params.name, servers);
      return prompt && (await at(prompt.server, { name: prompt.name }));
    }
    if (method === 'completion/complete' && isObject(params.ref)) {
      const prompt = promptOf(params.ref.name, servers);
      if (prompt) return await at(prompt.server, { ref: { ...params.ref, name: prompt.name } });
      const resource = uriOf(params.ref.uri);
      return resource && servers.includes(resource.server)
        ? await at(resource.server, { ref: { ...params.ref, uri: resource.uri } })
        : failed(CODES.invalidParams, 'there is nothing of this name to complete');
    }
    const place = uriOf(params.uri);
    return place && servers.includes(place.server) ? await at(place.server, { uri: place.uri }) : undefined;
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
    const tasks = parts.agents ? await answerTasks(method, params, caller, running, work) : undefined;
    if (tasks) return tasks;
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
    // What is read from one server here is sent through another: it is one session's doing.
    const caller: Caller = { ...from, at: from.at ?? '' };
    try {
      const row = methodRow(method);
      if (row && !row.eras.includes(caller.era)) return failed(CODES.methodNotFound, 'Method not found');
      if (method === 'initialize') return { result: toOpening(params) };
      if (method === 'server/discover') return kept(toDiscovery(), caller);
      if (method === 'ping' || method === 'logging/setLevel') return { result: {} };
      if (method === 'subscriptions/listen') return await listening(asked, caller);
      if (method === 'tools/list') return await listTools(caller);
      const member = LISTS[method];
      if (member) return await listAll(method, member, caller);
      if (method === 'tools/call') {
        const skill = namesOf(await skillsFor(caller)).get(String(params.name));
        if (skill) {
          const there = { ...asked, params: { ...params, name: skill.name } };
          return await parts.deskOf(skill.source ?? '').receive(there, caller);
        }
      }
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

  /** Nothing here changes by itself that a client could not ask for; it is told what it gets, which is nothing yet. */
  function listening({ id }: Request, caller: Caller): Promise<Outcome> {
    const mark = { [META.subscription]: id };
    caller.notify({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: {}, _meta: mark },
    });
    return new Promise((resolve) => {
      const over = () => resolve({ result: { resultType: 'complete', _meta: mark } });
      if (caller.signal.aborted) over();
      else caller.signal.addEventListener('abort', over, { once: true });
    });
  }

  const offers = { tools: {}, prompts: {}, resources: {}, completions: {} };

  function toOpening({ protocolVersion }: JsonObject): JsonObject {
    const known = (LEGACY as readonly unknown[]).includes(protocolVersion);
    const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
    return {
      protocolVersion: known ? protocolVersion : LATEST_LEGACY,
      capabilities: { ...offers, ...(parts.agents && { tasks }) },
      serverInfo: SERVER_INFO,
    };
  }

  function toDiscovery(): JsonObject {
    const extensions = { [TASKS_EXTENSION]: {} };
    return { supportedVersions: [MODERN], capabilities: { ...offers, ...(parts.agents && { extensions }) } };
  }

  return {
    receive,
    async tell() {},
    close: () => parking.close(),
  };
}

const MOST_PAGES = 100;

function request(method: string, params: JsonObject): Request {
  return { jsonrpc: '2.0', id: 0, method, params };
}

/** What one caller sees is nobody else's business. */
function kept(result: JsonObject, { era }: Caller): Outcome {
  if (era === 'legacy') return { result };
  const meta = { [META.server]: SERVER_INFO, ...metaOf(result) };
  return { result: { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...result, _meta: meta } };
}

function toTool(name: string, skill: Skill, { era }: Caller): JsonObject {
  const { raw } = (skill.metadata.mcp ?? {}) as { raw?: JsonObject };
  const { execution, ...tool } = raw ?? {
    description: skill.description,
    inputSchema: (skill.input_schema ?? { type: 'object' }) as JsonObject,
  };
  return { ...tool, ...(era === 'legacy' && execution !== undefined && { execution }), name } as JsonObject;
}

function renamed(server: string, member: string, each: Json): Json {
  if (!isObject(each)) return each;
  if (member === 'prompts') return { ...each, name: exposedPrompt(server, String(each.name)) };
  if (member === 'resources') return { ...each, uri: exposedUri(server, String(each.uri)) };
  return { ...each, uriTemplate: exposedUri(server, String(each.uriTemplate)) };
}
