/**
 * Whose a server's task is. Servers know us and not our callers, so a task's name would be everyone's who learns it; here it is
 * its maker's, on record, and to anyone else it is not there.
 */
import { CODES, TASKS_EXTENSION } from '../../mappings/mcp.ts';
import { asFault, type Bridge, type JsonObject } from '../../src/index.ts';
import { type Caller, scopeOf } from './caller.ts';
import { failed, isObject, type Outcome } from './frames.ts';

export interface TaskOwners {
  /** Takes down that this call came to a task, if it did. */
  made(outcome: Outcome, caller: Caller, taskId: string): Promise<void>;
  /** The answer to someone whose task this is not. Undefined: it is theirs, or the request is about none. */
  refusal(method: string, params: JsonObject, caller: Caller): Promise<Outcome | undefined>;
  /** A list without what is somebody else's. */
  listed(outcome: Outcome, caller: Caller): Promise<Outcome>;
}

export function createTaskOwners(server: string, bridge: Bridge): TaskOwners {
  const wireId = (taskId: string) => `${server}:task:${taskId}`;

  async function owns({ actor }: Caller, taskId: unknown): Promise<boolean> {
    if (typeof taskId !== 'string') return false;
    return (await bridge.bound('mcp', scopeOf(actor), wireId(taskId))) !== undefined;
  }

  return {
    async made(outcome, { actor }, taskId) {
      const theirs = 'result' in outcome ? taskIn(outcome.result) : undefined;
      if (theirs === undefined) return;
      const to = { object: 'task', id: taskId };
      const body = { protocol: 'mcp', scope: scopeOf(actor), wire_id: wireId(theirs), to };
      await bridge.submit({ kind: 'binding.set', actor, body }).catch((cause) => {
        // A server that gives one name twice to one caller: it is that caller's all the same.
        if (asFault(cause).kind !== 'conflict') throw cause;
      });
    },
    async refusal(method, { taskId }, caller) {
      if (!method.startsWith('tasks/') || method === 'tasks/list' || (await owns(caller, taskId))) return undefined;
      const { extensions } = caller.capabilities;
      const able = caller.era === 'legacy' || (isObject(extensions) && extensions[TASKS_EXTENSION] !== undefined);
      if (able) return failed(CODES.invalidParams, 'Task not found');
      const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
      return failed(CODES.missingCapability, 'Missing required client capability', { requiredCapabilities });
    },
    async listed(outcome, caller) {
      if ('error' in outcome || !Array.isArray(outcome.result.tasks)) return outcome;
      const { tasks } = outcome.result;
      const mine = await Promise.all(tasks.map((task) => isObject(task) && owns(caller, task.taskId)));
      return { result: { ...outcome.result, tasks: tasks.filter((_, at) => mine[at]) } };
    },
  };
}

/** By either design: inside the result, or the result itself. */
function taskIn(result: JsonObject): string | undefined {
  const id = result.resultType === 'task' ? result.taskId : isObject(result.task) ? result.task.taskId : undefined;
  return typeof id === 'string' ? id : undefined;
}
