/**
 * Tasks of servers at the common address. There a task's name says whose it is, as a resource's does, because two servers may give
 * the same name; everything that comes and goes about it is renamed on its way.
 */
import { META } from '../../mappings/mcp.ts';
import type { JsonObject } from '../../src/index.ts';
import type { Caller } from './caller.ts';
import { isObject, metaOf, type Notice, type Outcome, type Request } from './frames.ts';
import { exposedUri, uriOf } from './names.ts';

/** The server whose task this request is about, and the request as that server may hear it. */
export function taskRequest(asked: Request): { readonly server: string; readonly there: Request } | undefined {
  const { method, params = {} } = asked;
  const task = method.startsWith('tasks/') ? uriOf(params.taskId) : undefined;
  return task && { server: task.server, there: { ...asked, params: { ...params, taskId: task.uri } } };
}

/** The outcome of a call or of a request about a task, under the name the task has here. */
export function withTask(server: string, outcome: Outcome): Outcome {
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

/** Whatever names a task it belongs to names it as it is called here. */
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

/** The caller, asked about tasks by the names they have here. */
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
