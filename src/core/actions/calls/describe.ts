/** Turns a proposal into an action: a copy of it, with everything that policy decides on. */
import type { Action, Actor } from '../../../model/actions.ts';
import type { ProposedAction } from '../../../model/commands.ts';
import type { Task } from '../../../model/resources.ts';
import { ours } from '../../tasks/lifecycle.ts';
import type { ActsDeps } from '../acts.ts';
import { effectOf } from '../effect-floor.ts';

export type DescribeDeps = Pick<ActsDeps, 'ids' | 'policyData' | 'taints' | 'callQuota' | 'read'>;

interface About {
  /** Its server's definition states the effect; for every other act the effect is only claimed, and cannot be lower than the act shows. */
  readonly mounted?: boolean;
  /** A request of a client, which counts for limits of requests. */
  readonly request?: boolean;
}

export type DescribeAct = (task: Task, own: ProposedAction, actor: Actor, about: About) => Promise<Action>;

export function createDescribeAct(deps: DescribeDeps): DescribeAct {
  const { ids, policyData } = deps;
  // Writes into `own`, which is the caller's copy.
  return async (task, own, actor, { mounted = false, request = false }) => {
    const data = await policyData(task);
    const marked = deps.taints?.of(task.session_id) ?? false;
    const tainted = typeof marked === 'boolean' ? marked : await marked;
    const action = own as Writable<Partial<Action>> & ProposedAction;
    action.id = ids.next('action');
    action.actor = actor;
    action.workspace_id = task.workspace_id;
    action.session_id = task.session_id;
    action.task_id = task.id;
    action.arguments = own.arguments ?? {};
    action.effect = own.effect ?? 'unknown';
    action.evidence = own.evidence ?? 'observed';
    if (tainted) action.attributes = { ...own.attributes, tainted };
    const rated = request && data.quotas.some(({ limits }) => Object.hasOwn(limits, 'requests_per_minute'));
    action.cost = rated ? { ...costOf(own), requests_per_minute: 1 } : costOf(own);
    if (data.persona) action.persona = data.persona;
    action.tier = data.tier;
    const called = mounted && own.server && own.tool ? { server: own.server, tool: own.tool } : undefined;
    const limited = called && deps.callQuota?.(actor, called);
    action.quotas = limited ? [...data.quotas, await limited] : data.quotas;
    if (data.root) action.root = data.root;
    const { trace_id, tracestate, trace_flags } = ours(task);
    if (trace_id) action.trace = { trace_id, ...(tracestate && { tracestate }), ...(trace_flags && { trace_flags }) };
    if (!mounted && deps.read) {
      action.facts = deps.read(action);
      action.effect = effectOf(action as Action, action.facts.shows);
    }
    return action as Action;
  };
}

/**
 * A copy to write into. It begins with a member of its own because V8 takes a microsecond for each member added to an object that
 * is nothing but a spread one.
 */
export function owned(proposed: ProposedAction): ProposedAction {
  return { kind: proposed.kind, ...(proposed as Partial<ProposedAction>) };
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A call counts as at least one call, whatever cost the asker claims. Askers cannot name the amounts that core counts itself. */
function costOf({ kind, cost: claimed }: ProposedAction): NonNullable<Action['cost']> {
  const cost = claimed && Object.fromEntries(Object.entries(claimed).filter(([name]) => !OURS_TO_COUNT.has(name)));
  if (!COUNTED.has(kind)) return cost ?? {};
  const tool_calls = Math.max(1, cost?.tool_calls ?? 1);
  return cost ? { ...cost, tool_calls } : { tool_calls };
}

const OURS_TO_COUNT = new Set(['tasks', 'concurrency', 'requests_per_minute', 'wall_time_ms']);
const COUNTED = new Set(['tool', 'fs.write', 'terminal', 'handoff']);
