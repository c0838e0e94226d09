/** Work for an agent that a person or the configuration switched off: refused when it arrives, and when its turn comes. */
import type { Decision } from '../../model/actions.ts';
import type { End } from '../../model/commands.ts';
import type { DecidedPayload } from '../../model/payloads.ts';
import type { Task } from '../../model/resources.ts';
import type { Row } from '../../ports/index.ts';
import type { Context } from '../context.ts';
import type { Endings } from './end-task.ts';
import { inTask } from './lifecycle.ts';

export function switchedOff(agent: string, why: string): Decision {
  const reason = `agent ${agent} is switched off: ${why}`;
  return { verdict: 'block', reason, code: 'agent_off', engine: 'bridge' };
}

/** The end of a task that policy forbids and that never began. */
export function refusedEnd({ reason: message, rule_id, code }: Decision): End {
  const details = { begun: false, rule_id: rule_id ?? null, code: code ?? null };
  return { state: 'FAILED', failure: { code: 'policy_violation', message, details } };
}

/**
 * Ends a task that waits in the queue of its session: its prompt was decided on before the agent was switched off, so the second
 * decision about the same act is written first, and then the end with it.
 */
export async function refuseQueued(
  { store, log, ids, endings }: Pick<Context, 'store' | 'log' | 'ids'> & { readonly endings: Endings },
  task: Task,
  why: string,
): Promise<void> {
  const decision = switchedOff(task.assigned_agent_id ?? '', why);
  const kinds = ['vendor.tollbridge.decided'] as const;
  let action: DecidedPayload['action'] | undefined;
  for await (const { payload } of store.read({ stream: { of: 'task', id: task.id }, kinds: [...kinds] })) {
    ({ action } = payload as unknown as DecidedPayload);
    break;
  }
  const id = ids.next('action');
  let waited = false;
  await log.commit({
    reads: [{ object: 'task', id: task.id }],
    decide(at) {
      const now = at.get<Task & Row>('task', task.id);
      waited = now?.status === 'SUBMITTED';
      if (!now || !waited || !action) return { events: [] };
      const payload: DecidedPayload = { action: { ...action, id }, decision };
      return { events: [{ ...inTask(now), event: 'vendor.tollbridge.decided', actor: now.created_by, payload }] };
    },
  });
  if (waited) await endings.finish(task.id, refusedEnd(decision), { by: 'bridge', reason: decision.reason });
}
