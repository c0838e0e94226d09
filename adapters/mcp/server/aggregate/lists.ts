/**
 * The lists of the common address for one caller: the tools of all servers under prefixed names, agents as tools, prompts and
 * resources. Filtered by the rules that also decide the call: tools they refuse are not listed.
 */

import { META, MODERN, OWN_META } from '../../../../mappings/mcp.ts';
import {
  type AgentFace,
  asText,
  type Bridge,
  isObject,
  isReworded,
  type Json,
  type JsonObject,
  mostOf,
  type Skill,
  type ToolServerState,
  VERSION,
} from '../../../../src/index.ts';
import { agentTools } from '../../agents/result.ts';
import { type FrameOutcome, metaOf, type Request } from '../../frames.ts';
import type { CallTasks } from '../call-tasks.ts';
import type { Caller } from '../caller.ts';
import { exposedPrompt, exposedUri, namesOf } from './names.ts';

export const SERVER_INFO = { name: 'tollbridge', title: 'Tollbridge', version: VERSION } as const;

type Member = 'prompts' | 'resources' | 'resourceTemplates';
const MEMBERS: ReadonlyMap<string, Member> = new Map([
  ['prompts/list', 'prompts'],
  ['resources/list', 'resources'],
  ['resources/templates/list', 'resourceTemplates'],
]);
const MOST_PAGES = 100;

export interface CommonLists {
  /** The tool of this name, if the caller may try it. */
  tool(name: string, caller: Caller): Promise<Skill | undefined>;
  /** Servers whose tools can be called as tasks. */
  tasking(caller: Caller): Promise<readonly string[]>;
  /** All servers behind this address; the rules decide on each request to one. */
  servers(caller: Caller): Promise<readonly string[]>;
  /** Why a server that this tool name could belong to has no such tool yet; undefined when it answers. */
  missing(name: string, caller: Caller): Promise<string | undefined>;
  /** The server that a tool of this name would be of, where the caller has to sign in before its tools are listed. */
  awaiting(name: string, caller: Caller): Promise<{ readonly server: string; readonly tool: string } | undefined>;
  /** One complete list; undefined when the method is not a list. */
  show(method: string, caller: Caller): Promise<FrameOutcome> | undefined;
}

export interface ListParts {
  readonly bridge: Bridge;
  readonly callTasks: CallTasks;
  /** The servers behind this address; all that are mounted when absent. */
  readonly servers: readonly string[] | undefined;
  readonly agents: boolean;
  readonly at: (server: string, asked: Request, caller: Caller) => Promise<FrameOutcome>;
}

export function createCommonLists({ bridge, callTasks, agents, at, ...parts }: ListParts): CommonLists {
  const isHere = (server: string) => parts.servers?.includes(server) ?? true;

  /** Names by the tool list they were derived from: they are the same for all callers, and derived again when the list changes. */
  const known = new WeakMap<readonly Skill[], ReadonlyMap<string, Skill>>();

  async function names({ actor }: Caller): Promise<ReadonlyMap<string, Skill>> {
    const all = await bridge.tools(actor);
    const named = known.get(all) ?? namesOf(all.filter(({ source }) => isHere(source ?? '')));
    known.set(all, named);
    return named;
  }

  async function tool(name: string, caller: Caller): Promise<Skill | undefined> {
    const skill = (await names(caller)).get(name);
    return skill && (await bridge.visible(caller.actor, await callTasks.workspace(caller), skill))[0];
  }

  async function tasking(caller: Caller): Promise<readonly string[]> {
    const found = [...(await names(caller)).values()].flatMap((skill) =>
      executionOf(skill) ? [skill.source ?? ''] : [],
    );
    return [...new Set(found)].toSorted();
  }

  async function servers({ actor }: Caller): Promise<readonly string[]> {
    return (await bridge.servers(actor)).filter(isHere).toSorted();
  }

  async function tools(caller: Caller): Promise<FrameOutcome> {
    const visible = await bridge.visible(caller.actor, await callTasks.workspace(caller));
    const may = new Set(visible.map(keyOf));
    const named = [...(await names(caller))].flatMap(([name, skill]) =>
      may.has(keyOf(skill)) ? [toTool(name, skill, caller)] : [],
    );
    const faces: readonly AgentFace[] = agents ? await bridge.agents(caller.actor) : [];
    const listed = [...named, ...agentTools(faces, caller.era === 'legacy' && caller.tasks === true)];
    return kept({ tools: listed, ...(await marked(caller)) }, caller);
  }

  /** The servers that do not answer. */
  async function absent({ actor }: Caller): Promise<readonly ToolServerState[]> {
    const states = await bridge.serverStates(actor);
    return states.filter(({ name, state }) => state !== 'ready' && state !== 'unknown' && isHere(name));
  }

  /** Names the servers that do not answer, for clients that look there; every other client ignores the member. */
  async function marked(caller: Caller): Promise<JsonObject> {
    const states = await absent(caller);
    if (states.length === 0) return {};
    return {
      _meta: { [OWN_META.unavailable]: states.map(({ name, programs: _, ...more }) => ({ server: name, ...more })) },
    };
  }

  async function missing(name: string, caller: Caller): Promise<string | undefined> {
    const found = (await absent(caller)).find((state) => name.startsWith(`${state.name}__`));
    if (!found) return undefined;
    return `the server ${found.name} does not answer (${found.reason ?? found.state}); the list of tools is announced when it does`;
  }

  async function awaiting(name: string, caller: Caller): Promise<{ server: string; tool: string } | undefined> {
    const waiting = [...(await names(caller)).values()].filter(({ metadata }) => metadata.gateway === true);
    const found = waiting.find(({ source }) => name.startsWith(`${source}__`));
    return found && { server: found.source ?? '', tool: name.slice(`${found.source}__`.length) };
  }

  /** The lists of all servers as one; a server that does not answer is left out, and does not hold up the others. */
  async function all(method: string, member: Member, caller: Caller): Promise<FrameOutcome> {
    const away = new Set((await absent(caller)).map(({ name }) => name));
    const here = (await servers(caller)).filter((server) => !away.has(server));
    const pages = new Map<string, readonly Json[]>();
    await mostOf(
      here.map(async (server) => {
        const found: Json[] = [];
        for (let cursor: Json | undefined, pages = 0; pages < MOST_PAGES; pages += 1) {
          const params = { ...envelopeOf(caller), ...(cursor !== undefined && { cursor }) };
          const asked: Request = { jsonrpc: '2.0', id: 0, method, params };
          const outcome = await at(server, asked, { ...caller, mayBeKnown: true });
          if ('error' in outcome) break;
          const page = outcome.result[member];
          found.push(...(Array.isArray(page) ? page.map((each) => renamed(server, member, each)) : []));
          cursor = outcome.result.nextCursor;
          if (cursor === undefined || cursor === null) break;
        }
        pages.set(server, found);
      }),
    );
    return kept({ [member]: here.flatMap((server) => pages.get(server) ?? []) }, caller);
  }

  return {
    tool,
    tasking,
    servers,
    missing,
    awaiting,
    show(method, caller) {
      if (method === 'tools/list') return tools(caller);
      const member = MEMBERS.get(method);
      return member && all(method, member, caller);
    },
  };
}

/** The server and the name of the tool there. */
function keyOf({ source, name }: Skill): string {
  return `${source} ${name}`;
}

/** The modern envelope for a request that no client made. */
function envelopeOf({ era, capabilities, client }: Caller): JsonObject {
  if (era === 'legacy') return {};
  // A client that did not name itself is not given a name.
  const named = Object.keys(client).length > 0 && { [META.client]: client };
  return { _meta: { [META.version]: MODERN, [META.capabilities]: capabilities, ...named } };
}

/** Marks a result as private, because it depends on the caller. */
export function kept(result: JsonObject, { era }: Caller): FrameOutcome {
  if (era === 'legacy') return { result };
  const meta = { [META.server]: SERVER_INFO, ...metaOf(result) };
  return { result: { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...result, _meta: meta } };
}

function toTool(name: string, skill: Skill, { era, tasks }: Caller): JsonObject {
  const { raw } = mcpOf(skill);
  const { execution: said, ...tool } = raw ?? {
    description: skill.description,
    inputSchema: (skill.input_schema ?? { type: 'object' }) as JsonObject,
  };
  const execution = said ?? (tasks && executionOf(skill));
  const described = isReworded(skill) && { description: skill.description };
  return { ...tool, ...described, ...(era === 'legacy' && execution && { execution }), name } as JsonObject;
}

function mcpOf({ metadata }: Skill): { readonly raw?: JsonObject; readonly tasks?: boolean } {
  return (metadata.mcp ?? {}) as { raw?: JsonObject; tasks?: boolean };
}

/** Whether calls can be tasks, in the words of 2025-11-25. A server with the extension declares it for itself, not by tool. */
function executionOf(skill: Skill): JsonObject | undefined {
  const { raw, tasks } = mcpOf(skill);
  if (tasks) return { taskSupport: 'optional' };
  const { taskSupport } = isObject(raw?.execution) ? raw.execution : {};
  return taskSupport === 'optional' || taskSupport === 'required' ? { taskSupport } : undefined;
}

/** The entry under the name it has at this address. */
export function renamed(server: string, member: string, each: Json): Json {
  if (!isObject(each)) return each;
  if (member === 'prompts') return { ...each, name: exposedPrompt(server, asText(each.name)) };
  if (member === 'resources') return { ...each, uri: exposedUri(server, asText(each.uri)) };
  return { ...each, uriTemplate: exposedUri(server, asText(each.uriTemplate)) };
}
