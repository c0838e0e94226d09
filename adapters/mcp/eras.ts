/**
 * From one era's words to the other's, for results and for what servers say of themselves. Pure. What an era does not have
 * is left out on the way into it; nothing is made up on the way out but what the era insists on.
 */
import {
  CODES,
  LATEST_LEGACY,
  LEGACY,
  LOG_LEVELS,
  META,
  MODERN,
  methodRow,
  TASKS_EXTENSION,
} from '../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../src/index.ts';
import { isObject, metaOf, type Notice, type Outcome } from './frames.ts';
import type { McpLine } from './line.ts';
import { knowsTasks } from './task-words.ts';

/** A server's opening words, for a client of the legacy era. */
export function toInitializeResult(discovered: JsonObject, wanted: Json | undefined): JsonObject {
  const { capabilities, instructions } = discovered;
  const known = (LEGACY as readonly unknown[]).includes(wanted);
  const protocolVersion = known ? wanted : LATEST_LEGACY;
  const offers = isObject(capabilities) ? capabilities : {};
  // No other revision of this era has tasks.
  const tasks = protocolVersion === LATEST_LEGACY && knowsTasks(offers) && { tasks: LEGACY_TASKS };
  return {
    protocolVersion,
    capabilities: { ...withoutExtensions(offers), ...tasks },
    serverInfo: metaOf(discovered)[META.server] ?? { name: 'unknown', version: '0' },
    ...(instructions !== undefined && { instructions }),
  };
}

/** What 2025-11-25 calls a server whose calls can be tasks. */
export const LEGACY_TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } } as const;

/** The same for a client of the modern era. */
export function toDiscoverResult(about: JsonObject): JsonObject {
  const { capabilities, instructions, serverInfo } = about;
  const { tasks: _, ...rest } = isObject(capabilities) ? capabilities : {};
  const { extensions } = rest;
  const both = offersTasks(about) && {
    extensions: { ...(isObject(extensions) && extensions), [TASKS_EXTENSION]: {} },
  };
  return {
    supportedVersions: [MODERN],
    capabilities: { ...rest, ...both },
    ...(instructions !== undefined && { instructions }),
    ...UNKEPT,
    ...(isObject(serverInfo) && { _meta: { [META.server]: serverInfo } }),
  };
}

/** What a server of 2025-11-25 says when its calls can be tasks. */
export function offersTasks({ capabilities }: JsonObject): boolean {
  const tasks = isObject(capabilities) ? capabilities.tasks : undefined;
  const requests = isObject(tasks) ? tasks.requests : undefined;
  return isObject(requests) && isObject(requests.tools) && requests.tools.call !== undefined;
}

const UNKEPT = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } as const;

/** An extension is relayed only where its era has it. */
function withoutExtensions({ extensions: _, ...capabilities }: JsonObject): JsonObject {
  return capabilities;
}

export function toLegacyOutcome(outcome: Outcome): Outcome {
  if ('error' in outcome) return outcome;
  const { resultType: _r, ttlMs: _t, cacheScope: _c, _meta, ...result } = outcome.result;
  if (!isObject(_meta)) return { result };
  const { [META.server]: _s, ...meta } = _meta;
  return { result: Object.keys(meta).length > 0 ? { ...result, _meta: meta } : result };
}

export function toModernOutcome(method: string, outcome: Outcome, about: JsonObject): Outcome {
  if ('error' in outcome) {
    const { error } = outcome;
    return error.code === CODES.resourceNotFound ? { error: { ...error, code: CODES.invalidParams } } : outcome;
  }
  const { tools, ...result } = outcome.result;
  const { serverInfo } = about;
  return {
    result: {
      resultType: 'complete',
      ...(methodRow(method)?.cached && { ttlMs: 0, cacheScope: 'private' }),
      ...result,
      ...(tools !== undefined && { tools: Array.isArray(tools) ? tools.map(withoutExecution) : tools }),
      ...(isObject(serverInfo) && { _meta: { [META.server]: serverInfo, ...metaOf(result) } }),
    },
  };
}

function withoutExecution(tool: Json): Json {
  if (!isObject(tool)) return tool;
  const { execution: _, ...rest } = tool;
  return rest;
}

/** The envelope a modern server wants, for a caller who had none. */
export function envelopeFor(line: McpLine, level: string | undefined): JsonObject {
  const { tasks: _t, extensions: _e, roots, ...capabilities } = line.capabilities;
  return {
    [META.version]: MODERN,
    [META.capabilities]: { ...capabilities, ...(roots !== undefined && { roots: {} }) },
    [META.client]: line.client,
    ...(level !== undefined && { [META.level]: level }),
  };
}

/** Whether a caller of the modern era wants to hear this; the legacy era has asked its server itself. */
export function wanted({ method, params }: Notice, meta: JsonObject): boolean {
  // How a task is, is looked for in this era.
  if (method === 'notifications/tasks/status') return false;
  if (method !== 'notifications/message') return true;
  const least = (LOG_LEVELS as readonly unknown[]).indexOf(meta[META.level]);
  return least >= 0 && (LOG_LEVELS as readonly unknown[]).indexOf(params?.level) >= least;
}
