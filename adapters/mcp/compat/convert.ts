/**
 * Converts results and server descriptions from one era to the other. Pure. Members that the target era does not have are
 * dropped; only members that it requires are added.
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
} from '../../../mappings/mcp.ts';
import { isObject, type Json, type JsonObject } from '../../../src/index.ts';
import { type FrameOutcome, metaOf, type Notice } from '../frames.ts';
import type { McpRequestContext } from '../request-context.ts';
import { knowsTasks } from '../tasks/words.ts';

/** A server's answer to `initialize`, for a client of the legacy era. */
export function toInitializeResult(discovered: JsonObject, wanted: Json | undefined): JsonObject {
  const { capabilities, instructions } = discovered;
  const known = (LEGACY as readonly unknown[]).includes(wanted);
  const protocolVersion = known ? wanted : LATEST_LEGACY;
  const declared = isObject(capabilities) ? capabilities : {};
  // No other revision of this era has tasks.
  const tasks = protocolVersion === LATEST_LEGACY && knowsTasks(declared) && { tasks: LEGACY_TASKS };
  return {
    protocolVersion,
    capabilities: { ...withoutExtensions(declared), ...tasks },
    serverInfo: metaOf(discovered)[META.server] ?? { name: 'unknown', version: '0' },
    ...(instructions !== undefined && { instructions }),
  };
}

/** The capabilities of 2025-11-25 for a server whose calls can be tasks. */
export const LEGACY_TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } } as const;

/** A server's answer to `server/discover`, for a client of the modern era. */
export function toDiscoverResult(about: JsonObject): JsonObject {
  const { capabilities, instructions, serverInfo } = about;
  const { tasks: _, ...rest } = isObject(capabilities) ? capabilities : {};
  const { extensions } = rest;
  const both = supportsTasks(about) && {
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

/** Whether a server of 2025-11-25 declares that calls can be tasks. */
export function supportsTasks({ capabilities }: JsonObject): boolean {
  const tasks = isObject(capabilities) ? capabilities.tasks : undefined;
  const requests = isObject(tasks) ? tasks.requests : undefined;
  return isObject(requests) && isObject(requests.tools) && requests.tools.call !== undefined;
}

const UNKEPT = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } as const;

/** An extension is relayed only where its era has it. */
function withoutExtensions({ extensions: _, ...capabilities }: JsonObject): JsonObject {
  return capabilities;
}

export function toLegacyOutcome(outcome: FrameOutcome): FrameOutcome {
  if ('error' in outcome) return outcome;
  const { resultType: _r, ttlMs: _t, cacheScope: _c, _meta, ...result } = outcome.result;
  if (!isObject(_meta)) return { result };
  const { [META.server]: _s, ...meta } = _meta;
  return { result: Object.keys(meta).length > 0 ? { ...result, _meta: meta } : result };
}

export function toModernOutcome(method: string, outcome: FrameOutcome, about: JsonObject): FrameOutcome {
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

/** The envelope that a modern server requires, for a caller that sent none. */
export function envelopeFor(context: McpRequestContext, level: string | undefined): JsonObject {
  const { tasks: _t, extensions: _e, roots, ...capabilities } = context.capabilities;
  return {
    [META.version]: MODERN,
    [META.capabilities]: { ...capabilities, ...(roots !== undefined && { roots: {} }) },
    [META.client]: context.client,
    ...(level !== undefined && { [META.level]: level }),
  };
}

/** Whether a caller of the modern era asked for this notification; legacy callers have asked their server themselves. */
export function wantedCapabilities({ method, params }: Notice, meta: JsonObject): boolean {
  // Clients of this era poll for the state of a task.
  if (method === 'notifications/tasks/status') return false;
  if (method !== 'notifications/message') return true;
  const least = (LOG_LEVELS as readonly unknown[]).indexOf(meta[META.level]);
  return least >= 0 && (LOG_LEVELS as readonly unknown[]).indexOf(params?.level) >= least;
}
