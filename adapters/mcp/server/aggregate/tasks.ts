/**
 * Tasks of servers at the common address. There a task id contains its server, as a resource's name does, because two servers may
 * use the same id; requests, results and notifications about it are renamed in both directions.
 */

import { CODES, META } from '../../../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../../../src/index.ts';
import { asText, isObject } from '../../../../src/index.ts';
import { type FrameOutcome, failed, metaOf, type Notice, type Request } from '../../frames.ts';
import type { Caller } from '../caller.ts';
import { exposedUri, uriOf } from './names.ts';

/** The server whose task this request is about, and the request with the id that server uses. */
export function taskRequest(asked: Request): { readonly server: string; readonly there: Request } | undefined {
  const { method, params = {} } = asked;
  const task = method.startsWith('tasks/') ? uriOf(params.taskId) : undefined;
  return task && { server: task.server, there: { ...asked, params: { ...params, taskId: task.uri } } };
}

/** A server or the agents, as a source of tasks. `page` returns undefined when the cursor is not valid. */
export interface TaskSource {
  readonly name: string;
  page(cursor: string | undefined): Promise<JsonObject | undefined>;
}

/** The tasks of all sources, one source after the other. Sources without tasks are skipped. */
export async function listTasks(cursor: Json | undefined, sources: readonly TaskSource[]): Promise<FrameOutcome> {
  const from = cursor === undefined ? { name: sources[0]?.name, within: undefined } : cursorIn(cursor);
  const first = sources.findIndex(({ name }) => name === from?.name);
  const invalid = failed(CODES.invalidParams, 'Invalid cursor');
  if (cursor !== undefined && (!from || first < 0)) return invalid;
  for (let at = first, within = from?.within; at >= 0 && at < sources.length; at += 1, within = undefined) {
    const source = sources[at] as TaskSource;
    const page = await source.page(within);
    if (!page && within !== undefined) return invalid;
    const { tasks, nextCursor } = page ?? {};
    if (!Array.isArray(tasks) || (tasks.length === 0 && nextCursor === undefined)) continue;
    const more = sources[at + 1];
    const next = typeof nextCursor === 'string' ? cursorOf(source.name, nextCursor) : more && cursorOf(more.name);
    return { result: { tasks, ...(next !== undefined && { nextCursor: next }) } };
  }
  return { result: { tasks: [] } };
}

function cursorOf(name: string, within?: string): string {
  return Buffer.from(JSON.stringify(within === undefined ? [name] : [name, within])).toString('base64url');
}

function cursorIn(cursor: Json): { readonly name: string; readonly within: string | undefined } | undefined {
  try {
    const [name, within] = JSON.parse(Buffer.from(asText(cursor), 'base64url').toString('utf8')) as Json[];
    if (typeof name !== 'string' || (within !== undefined && typeof within !== 'string')) return undefined;
    return { name, within };
  } catch {
    return undefined;
  }
}

/** The outcome of a call or of a request about a task, with the id the task has here. */
export function withTask(server: string, outcome: FrameOutcome): FrameOutcome {
  if ('error' in outcome) return outcome;
  const { result } = outcome;
  const { taskId, status, task, tasks } = result;
  return {
    result: {
      ...result,
      ...(typeof taskId === 'string' && typeof status === 'string' && { taskId: exposedUri(server, taskId) }),
      ...(isObject(task) && { task: named(server, task) }),
      ...(Array.isArray(tasks) && { tasks: tasks.map((each) => (isObject(each) ? named(server, each) : each)) }),
      ...related(server, result),
    },
  };
}

function named(server: string, task: JsonObject): JsonObject {
  return typeof task.taskId === 'string' ? { ...task, taskId: exposedUri(server, task.taskId) } : task;
}

/** Renames the related task in `_meta`. */
function related(server: string, params: JsonObject): { readonly _meta?: JsonObject } {
  const meta = metaOf(params);
  const task = meta[META.relatedTask];
  return isObject(task) ? { _meta: { ...meta, [META.relatedTask]: named(server, task) } } : {};
}

export function noticeWithTask(server: string, said: Notice): Notice {
  const { params } = said;
  if (!params) return said;
  const about = said.method.startsWith('notifications/tasks') ? named(server, params) : params;
  const more = related(server, params);
  return about === params && !more._meta ? said : { ...said, params: { ...about, ...more } };
}

/** The caller, whose questions carry the task ids of this address. */
export function askedWithTask<C extends Caller>(server: string, caller: C): C {
  const { input }: Caller = caller;
  if (!input) return caller;
  return {
    ...caller,
    input: (requests, ...more) => {
      const renamed = Object.entries(requests).map(([key, { method, params }]) => {
        return [key, { method, ...(params && { params: { ...params, ...related(server, params) } }) }] as const;
      });
      return input(Object.fromEntries(renamed), ...more);
    },
  };
}
