/** Tasks in both designs: 2025-11-25, and the extension to 2026-07-28. Pure. */
import { CODES, META, TASKS_EXTENSION } from '../../../mappings/mcp.ts';
import { isObject, type Json, type JsonObject } from '../../../src/index.ts';
import { metaOf } from '../frames.ts';

/** The final states, in either design. */
export const OVER: readonly unknown[] = ['completed', 'failed', 'cancelled'];

/** Whether these are the capabilities of a client that supports the extension's tasks. */
export function knowsTasks({ extensions }: JsonObject): boolean {
  return isObject(extensions) && extensions[TASKS_EXTENSION] !== undefined;
}

export function toExtensionState(task: JsonObject): JsonObject {
  const { ttl, pollInterval } = task;
  return { ...common(task), ttlMs: ttl ?? null, ...(pollInterval !== undefined && { pollIntervalMs: pollInterval }) };
}

/** A tool that failed is a failed task in this design; in the other it is a completed task with a result. */
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

/** A task that its server no longer knows, within its lifetime. In the extension's form. */
export function lost(task: JsonObject): JsonObject {
  const message = 'the server no longer knows this task, and what came of it is not known';
  return { ...task, status: 'failed', statusMessage: message, error: { code: CODES.internal, message } };
}

/** The task in a result of either design: a member of the result, or the result itself. */
export function taskIn(result: JsonObject): JsonObject | undefined {
  const task = result.resultType === 'task' ? result : result.task;
  return isObject(task) && typeof task.taskId === 'string' ? task : undefined;
}

/** A task that was over when it began: it stands for a call on record. */
export interface KeptTask {
  readonly callId: string;
  /** In milliseconds: when, and for how long. */
  readonly created: number;
  readonly ttl: number;
}

/** The id holds everything but the call and the owner, so that nothing else has to be stored. The owner is bound in the log. */
export function keptName({ callId, created, ttl }: KeptTask): string {
  return `kept-${created.toString(36)}-${ttl.toString(36)}-${callId}`;
}

export function keptIn(taskId: unknown): KeptTask | undefined {
  const name = typeof taskId === 'string' && /^kept-([0-9a-z]{1,10})-([0-9a-z]{1,10})-([0-9a-f-]{36})$/.exec(taskId);
  const [, created, ttl, callId] = name || [];
  if (created === undefined || ttl === undefined || callId === undefined) return undefined;
  return { callId, created: Number.parseInt(created, 36), ttl: Number.parseInt(ttl, 36) };
}

/** 2025-11-25: every message names the task it belongs to. */
export function related(said: JsonObject, taskId: Json): JsonObject {
  return { ...said, _meta: { ...metaOf(said), [META.relatedTask]: { taskId } } };
}

/** The extension has no such member. */
export function unrelated(said: JsonObject): JsonObject {
  const { _meta, ...rest } = said;
  const { [META.relatedTask]: _, ...meta } = metaOf(said);
  return Object.keys(meta).length > 0 ? { ...rest, _meta: meta } : rest;
}
