/**
 * Under which name an outside harness knows whoever is at work, and the way it came to us: the same in questions and in
 * news, because a harness has nothing else to tell by what belongs together. What goes round in circles is told from it.
 */
import type { Action, CoreEvent, JsonObject } from '../../src/index.ts';
import { isObject } from './decode.ts';
import { viaOf } from './translate.ts';

export interface Worker {
  readonly agent_id: string;
  readonly depth: number;
  /** The harnesses its words came through, we ourselves last. */
  readonly via: readonly string[];
}

export interface Workers {
  whoAsks(action: Action): Worker;
  whoTells(event: CoreEvent): Worker;
}

/** More tasks at once than this, and the oldest go by the name in their events. */
const MOST = 10_000;

export function createWorkers(hop: string): Workers {
  const atWork = new Map<string, Worker>();

  /** An agent of this protocol has a name of its own; any other is known by the name it is mounted under. */
  function remember(taskId: string, task: JsonObject): void {
    const { assigned_agent_id: assigned, metadata } = task;
    const claimed = claimsIn(metadata);
    const agent_id = claimed.agent_id ?? (typeof assigned === 'string' ? `agent:${assigned}` : undefined);
    if (typeof agent_id !== 'string') return;
    if (atWork.size >= MOST) atWork.delete(atWork.keys().next().value as string);
    atWork.set(taskId, { agent_id, depth: depthOf(claimed), via: [...viaOf(claimed), hop] });
  }

  return {
    whoAsks({ task_id, kind, tool, actor, attributes = {} }) {
      const { agent_id } = attributes;
      const known = task_id === undefined ? undefined : atWork.get(task_id);
      const named = kind === 'prompt' && tool !== undefined ? `agent:${tool}` : actor.id;
      return {
        agent_id: typeof agent_id === 'string' ? agent_id : (known?.agent_id ?? named),
        depth: depthOf(attributes as JsonObject),
        via: [...viaOf(attributes as JsonObject), hop],
      };
    },

    whoTells({ event, task_id, actor, payload }) {
      const { task, session } = payload as { task?: unknown; session?: unknown };
      if (event === 'task.submitted' && task_id && isObject(task)) remember(task_id, task as JsonObject);
      const known = task_id ? atWork.get(task_id) : undefined;
      if (task_id && OVER.has(event)) atWork.delete(task_id);
      if (known) return known;
      const via = isObject(session) ? viaOf(claimsIn((session as JsonObject).metadata)) : [];
      return { agent_id: actor?.startsWith('agent:') ? actor : hop, depth: 0, via: [...via, hop] };
    },
  };
}

const OVER = new Set(['task.completed', 'task.failed', 'task.canceled']);

/** What an agent of this protocol said about itself, as its task or session keeps it. */
function claimsIn(metadata: unknown): JsonObject {
  const { ahp } = (isObject(metadata) ? metadata : {}) as { ahp?: unknown };
  return isObject(ahp) ? (ahp as JsonObject) : {};
}

function depthOf({ depth }: JsonObject): number {
  return typeof depth === 'number' ? depth : 0;
}
