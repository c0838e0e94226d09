/** A task in the words of both its designs: 2025-11-25, and the extension to 2026-07-28. Pure. */
import { META, TASKS_EXTENSION } from '../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../src/index.ts';
import { isObject, metaOf } from './frames.ts';

/** Whether these are the capabilities of somebody who knows tasks as the extension has them. */
export function knowsTasks({ extensions }: JsonObject): boolean {
  return isObject(extensions) && extensions[TASKS_EXTENSION] !== undefined;
}

export function toExtensionState(task: JsonObject): JsonObject {
  const { ttl, pollInterval } = task;
  return { ...common(task), ttlMs: ttl ?? null, ...(pollInterval !== undefined && { pollIntervalMs: pollInterval }) };
}

/** A tool that failed is a task that failed in this design; in the other one it has come to a result. */
export function toLegacyState(task: JsonObject): JsonObject {
  const { status, ttlMs, pollIntervalMs, result } = task;
  const didNotWork = status === 'completed' && isObject(result) && result.isError === true;
  return {
    ...common(task),
    ...(didNotWork && { status: 'failed' }),
    ttl: ttlMs ?? null,
    ...(pollIntervalMs !== undefined && { pollInterval: pollIntervalMs }),
  };
}

function common({ taskId, status, statusMessage, createdAt, lastUpdatedAt }: JsonObject): JsonObject {
  return {
    taskId: taskId ?? null,
    status: status ?? null,
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt: createdAt ?? null,
    lastUpdatedAt: lastUpdatedAt ?? createdAt ?? null,
  };
}

/** 2025-11-25: everything says which task it belongs to. */
export function related(said: JsonObject, taskId: Json): JsonObject {
  return { ...said, _meta: { ...metaOf(said), [META.relatedTask]: { taskId } } };
}

/** The extension says it otherwise. */
export function unrelated(said: JsonObject): JsonObject {
  const { _meta, ...rest } = said;
  const { [META.relatedTask]: _, ...meta } = metaOf(said);
  return Object.keys(meta).length > 0 ? { ...rest, _meta: meta } : rest;
}
