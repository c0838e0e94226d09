/**
 * The name under which an outside harness knows the working agent, and the chain of harnesses it came through: the same in
 * questions and in notifications, because a harness has nothing else to correlate them. The chain also reveals loops.
 */
import { type Action, type CoreEvent, isObject, type JsonObject, LruMap } from '../../../src/index.ts';
import { viaOf } from '../translate.ts';

export interface Worker {
  readonly agent_id: string;
  readonly depth: number;
  /** The harnesses its messages came through, this gateway last. */
  readonly via: readonly string[];
}

export interface Workers {
  askingAgent(action: Action): Worker;
  reportingAgent(event: CoreEvent): Worker;
}

/** The most tasks remembered at once; older ones use the name in their events. */
const MOST = 10_000;

export function createWorkers(hop: string): Workers {
  const atWork = new LruMap<string, Worker>(MOST);
  /** For work that no agent was given, such as calls of an MCP client: who asked about a call also ran it. */
  const asking = new LruMap<string, Worker>(MOST);
  const callKey = (taskId: string, call: unknown) => JSON.stringify([taskId, call]);

  /** An agent of this protocol has its own name; any other has the name it is mounted under. */
  function remember(taskId: string, task: JsonObject): void {
    const { assigned_agent_id: assigned, metadata } = task;
    const claimed = claimsIn(metadata);
    const agent_id = claimed.agent_id ?? (typeof assigned === 'string' ? `agent:${assigned}` : undefined);
    if (typeof agent_id !== 'string') return;
    atWork.set(taskId, { agent_id, depth: depthOf(claimed), via: [...viaOf(claimed), hop] });
  }

  return {
    askingAgent({ task_id, tool_call_id, kind, tool, actor, attributes = {} }) {
      const { agent_id } = attributes;
      const known = task_id === undefined ? undefined : atWork.get(task_id);
      const named = kind === 'prompt' && tool !== undefined ? `agent:${tool}` : actor.id;
      const worker = {
        agent_id: typeof agent_id === 'string' ? agent_id : (known?.agent_id ?? named),
        depth: depthOf(attributes as JsonObject),
        via: [...viaOf(attributes as JsonObject), hop],
      };
      if (!known && task_id !== undefined && tool_call_id !== undefined)
        asking.set(callKey(task_id, tool_call_id), worker);
      return worker;
    },

    reportingAgent({ event, task_id, actor, payload }) {
      const { task, session } = payload as { task?: unknown; session?: unknown };
      if (event === 'task.submitted' && task_id && isObject(task)) remember(task_id, task as JsonObject);
      const known = task_id ? atWork.get(task_id) : undefined;
      if (task_id && OVER.has(event)) atWork.delete(task_id);
      if (known) return known;
      const asked = task_id && payload.tool_call_id && asking.get(callKey(task_id, payload.tool_call_id));
      if (asked) return asked;
      const via = isObject(session) ? viaOf(claimsIn((session as JsonObject).metadata)) : [];
      return { agent_id: actor?.startsWith('agent:') ? actor : hop, depth: 0, via: [...via, hop] };
    },
  };
}

const OVER = new Set(['task.completed', 'task.failed', 'task.canceled']);

/** The claims of an agent of this protocol about itself, as stored in its task or session. */
function claimsIn(metadata: unknown): JsonObject {
  const { ahp } = (isObject(metadata) ? metadata : {}) as { ahp?: unknown };
  return isObject(ahp) ? ahp : {};
}

function depthOf({ depth }: JsonObject): number {
  return typeof depth === 'number' ? depth : 0;
}
