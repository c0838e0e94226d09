/** The record of work that was refused: when it was to be accepted, or while it waited in the queue of its session. */
import type { Action, Decision } from '../../../model/actions.ts';
import type { End } from '../../../model/commands.ts';
import type { EventDraft } from '../../../model/events.ts';
import type { DecidedPayload } from '../../../model/payloads.ts';
import type { Task } from '../../../model/resources.ts';
import type { JsonObject } from '../../../model/schema.ts';
import type { Accepted, Row, Unit } from '../../../ports/index.ts';
import { decidedEvent } from '../../actions/gate.ts';
import { freshSession, sessionEvent } from '../../commands/session-opening.ts';
import { openSession } from '../../commands/transcript.ts';
import { accepted, type Context } from '../../context.ts';
import type { Endings } from '../end-task.ts';
import { inTask } from '../lifecycle.ts';
import { type NewTask, newTask } from './new-task.ts';

export interface RefusedDeps extends Context {
  readonly endings: Endings;
  readonly instance: string;
}

/**
 * Records work that policy forbids, for callers whose protocol has a word for it: a task that ended before it began, with the
 * decision, the reason and a receipt. Only a hash of the input is stored and it enters no transcript: forbidden input must not
 * reach an agent with the session's next task.
 */
export function createRefused({ log, access, endings, instance }: RefusedDeps) {
  return async function refuse(
    wanted: NewTask,
    action: Action,
    decision: Decision,
    claim: Pick<Unit, 'idempotency'>,
  ): Promise<Accepted<'task.submit'>> {
    const { command, id, agent, session_id, opens } = wanted;
    const { actor, idempotency, ext } = command;
    const { result, repeated, events } = await log.commit({
      ...claim,
      reads: opens ? [] : [{ object: 'session', id: session_id }],
      decide(at) {
        if (!opens) openSession(at, session_id);
        const session = opens ? [sessionEvent('session.created', freshSession(session_id, opens, at.now), actor)] : [];
        const task = newTask({ ...wanted, input: action.arguments as JsonObject, now: at.now });
        const location = inTask(task);
        const payload = { task: task, from: null, to: 'SUBMITTED', agent, instance };
        const submitted: EventDraft = {
          ...location,
          event: 'task.submitted',
          actor: actor.id,
          payload,
          ...(idempotency && { idempotency_key: idempotency.key }),
          ...(ext && { ext }),
        };
        // If this process dies before the end is written, the process that recovers the task finds the refusal and ends it.
        return { events: [...session, submitted, { ...decidedEvent(action, decision), ...location }], result: { id } };
      },
    });
    const made = (result as { id: string }).id;
    if (!repeated) {
      await endings.open(made, events);
      await endings.finish(made, refusedEnd(decision), { by: 'bridge', reason: decision.reason });
    }
    return accepted('task.submit', await access.see<Task & Row>(actor, 'task', made), repeated);
  };
}

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
  for await (const event of store.read({ stream: { of: 'task', id: task.id }, kinds: [...kinds] })) {
    if (event.event !== 'vendor.tollbridge.decided') continue;
    ({ action } = event.payload);
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
