/**
 * Whose a server's task is. Servers know us and not our callers, so a task's name would be everyone's who learns it; here it is
 * its maker's, on record, and to anyone else it is not there.
 */
import { randomUUID } from 'node:crypto';
import { asFault, type Bridge, type JsonObject } from '../../src/index.ts';
import { type Caller, scopeOf } from './caller.ts';
import { isObject, type Outcome } from './frames.ts';
import { taskIn } from './task-words.ts';

export interface TaskOwners {
  /** Takes down that this call came to a task, if it did. */
  made(outcome: Outcome, caller: Caller, ours: string): Promise<void>;
  /**
   * The request as the server may hear it. One about a task that is not the caller's is about one that never was, so that the
   * server itself says, in its own words, that there is none.
   */
  about(method: string, params: JsonObject, caller: Caller): Promise<Asked>;
  /** A list without what is somebody else's. */
  listed(outcome: Outcome, caller: Caller): Promise<Outcome>;
}

export interface Asked {
  readonly params: JsonObject;
  heard(outcome: Outcome): Outcome;
}

export function createTaskOwners(server: string, bridge: Bridge): TaskOwners {
  async function owns({ actor }: Caller, id: unknown): Promise<boolean> {
    if (typeof id !== 'string') return false;
    return (await bridge.bound('mcp', scopeOf(actor), boundName(server, id))) !== undefined;
  }

  /** Somebody else's tasks are nothing to listen for, and so are not among what is granted. */
  async function wishes(params: JsonObject, caller: Caller): Promise<Asked> {
    const heard = (outcome: Outcome) => outcome;
    const { notifications } = params;
    if (!isObject(notifications) || !Array.isArray(notifications.taskIds)) return { params, heard };
    const { taskIds } = notifications;
    const mine = await Promise.all(taskIds.map((taskId) => owns(caller, taskId)));
    const theirs = taskIds.filter((_, at) => mine[at]);
    return { params: { ...params, notifications: { ...notifications, taskIds: theirs } }, heard };
  }

  return {
    async made(outcome, { actor }, ours) {
      const theirs = 'result' in outcome ? taskIn(outcome.result)?.taskId : undefined;
      if (typeof theirs !== 'string') return;
      const to = { object: 'task', id: ours };
      const body = { protocol: 'mcp', scope: scopeOf(actor), wire_id: boundName(server, theirs), to };
      await bridge.submit({ kind: 'binding.set', actor, body }).catch((cause) => {
        // A server that gives one name twice to one caller: it is that caller's all the same.
        if (asFault(cause).kind !== 'conflict') throw cause;
      });
    },
    async about(method, params, caller) {
      if (method === 'subscriptions/listen') return await wishes(params, caller);
      const { taskId } = params;
      const named = method.startsWith('tasks/') && typeof taskId === 'string';
      if (!named || (await owns(caller, taskId))) return { params, heard: (outcome) => outcome };
      const nobodys = randomUUID();
      return {
        params: { ...params, taskId: nobodys },
        heard: (outcome) =>
          JSON.parse(JSON.stringify(outcome).replaceAll(nobodys, JSON.stringify(taskId).slice(1, -1))) as Outcome,
      };
    },
    async listed(outcome, caller) {
      if ('error' in outcome || !Array.isArray(outcome.result.tasks)) return outcome;
      const { tasks } = outcome.result;
      const mine = await Promise.all(tasks.map((task) => isObject(task) && owns(caller, task.taskId)));
      return { result: { ...outcome.result, tasks: tasks.filter((_, at) => mine[at]) } };
    },
  };
}

/** Nearly all calls come to an end instead. */
export function cameToTask(outcome: Outcome): boolean {
  return 'result' in outcome && taskIn(outcome.result) !== undefined;
}

/** What a server's task is bound under, for whoever it is. */
export function boundName(server: string, theirs: string): string {
  return `${server}:task:${theirs}`;
}
