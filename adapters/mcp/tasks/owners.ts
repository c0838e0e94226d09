/**
 * Owners of servers' tasks. Servers know the gateway and not its callers, so any caller that learns a task id could use it; here
 * the owner is recorded in the log, and for other callers the task does not exist.
 */
import { randomUUID } from 'node:crypto';
import { asFault, type Bridge, isObject, type JsonObject } from '../../../src/index.ts';
import type { FrameOutcome } from '../frames.ts';
import { type Caller, scopeOf } from '../server/caller.ts';
import { taskIn } from './words.ts';

export interface TaskOwners {
  /** Takes down that this call came to a task, if it did. */
  made(outcome: FrameOutcome, caller: Caller, ours: string): Promise<void>;
  /**
   * The request as the server receives it. A request about another caller's task is sent with a made-up id, so that the server
   * itself answers, in its own words, that there is no such task.
   */
  about(method: string, params: JsonObject, caller: Caller): Promise<TaskRequest>;
  /** A list without other callers' tasks. */
  listed(outcome: FrameOutcome, caller: Caller): Promise<FrameOutcome>;
}

export interface TaskRequest {
  readonly params: JsonObject;
  filtered(outcome: FrameOutcome): FrameOutcome;
}

export function createTaskOwners(server: string, bridge: Bridge): TaskOwners {
  async function owns({ actor }: Caller, id: unknown): Promise<boolean> {
    if (typeof id !== 'string') return false;
    return (await bridge.bound('mcp', scopeOf(actor), boundName(server, id))) !== undefined;
  }

  /** Other callers' tasks are removed from a subscription, and so are not granted. */
  async function wishes(params: JsonObject, caller: Caller): Promise<TaskRequest> {
    const unchanged = (outcome: FrameOutcome) => outcome;
    const { notifications } = params;
    if (!isObject(notifications) || !Array.isArray(notifications.taskIds)) return { params, filtered: unchanged };
    const { taskIds } = notifications;
    const mine = await Promise.all(taskIds.map((taskId) => owns(caller, taskId)));
    const theirs = taskIds.filter((_, at) => mine[at]);
    return { params: { ...params, notifications: { ...notifications, taskIds: theirs } }, filtered: unchanged };
  }

  return {
    async made(outcome, { actor }, ours) {
      const theirs = 'result' in outcome ? taskIn(outcome.result)?.taskId : undefined;
      if (typeof theirs !== 'string') return;
      const to = { object: 'task', id: ours };
      const body = { protocol: 'mcp', scope: scopeOf(actor), wire_id: boundName(server, theirs), to };
      await bridge.submit({ kind: 'binding.set', actor, body }).catch((cause) => {
        // A server that gave the same id twice to one caller: the task is that caller's already.
        if (asFault(cause).kind !== 'conflict') throw cause;
      });
    },
    async about(method, params, caller) {
      if (method === 'subscriptions/listen') return await wishes(params, caller);
      const { taskId } = params;
      const named = method.startsWith('tasks/') && typeof taskId === 'string';
      if (!named || (await owns(caller, taskId))) return { params, filtered: (outcome) => outcome };
      const unowned = randomUUID();
      return {
        params: { ...params, taskId: unowned },
        filtered: (outcome) =>
          JSON.parse(JSON.stringify(outcome).replaceAll(unowned, JSON.stringify(taskId).slice(1, -1))) as FrameOutcome,
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

/** Most calls return a result instead. */
export function cameToTask(outcome: FrameOutcome): boolean {
  return 'result' in outcome && taskIn(outcome.result) !== undefined;
}

/** The name under which a server's task is bound to its owner. */
export function boundName(server: string, theirs: string): string {
  return `${server}:task:${theirs}`;
}
