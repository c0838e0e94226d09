/**
 * Records work that policy forbids, for callers whose protocol has a word for it: a task that ended before it began, with the
 * decision, the reason and a receipt. Only a hash of the input is stored and it enters no transcript: forbidden input must not
 * reach an agent with the session's next task.
 */

import type { Action, Decision } from '../../model/actions.ts';
import type { EventDraft } from '../../model/events.ts';
import type { Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { Accepted, Row, Unit } from '../../ports/index.ts';
import { decidedEvent } from '../actions/gate.ts';
import { freshSession, sessionEvent } from '../commands/session-opening.ts';
import { openSession } from '../commands/transcript.ts';
import { accepted, type Context } from '../context.ts';
import type { Endings } from './end-task.ts';
import { inTask } from './lifecycle.ts';
import { type NewTask, newTask } from './new-task.ts';

export interface RefusedDeps extends Context {
  readonly endings: Endings;
  readonly instance: string;
}

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
      const { reason: message, rule_id = null, code = null } = decision;
      const failure = { code: 'policy_violation', message, details: { begun: false, rule_id, code } };
      await endings.open(made, events);
      await endings.finish(made, { state: 'FAILED', failure }, { by: 'bridge', reason: message });
    }
    return accepted('task.submit', await access.see<Task & Row>(actor, 'task', made), repeated);
  };
}
