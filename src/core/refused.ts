/**
 * Work that policy forbids, for callers whose protocol has a word for it: a task that ended before it began, with the
 * decision, the reason and a receipt. What was wanted is kept as its hash alone and enters no transcript: what nobody may
 * be given must not reach an agent with the next task of the session.
 */
import type { Action, Decision } from '../model/actions.ts';
import type { Task } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { Accepted, Row, Unit } from '../ports.ts';
import { accepted, type Context } from './context.ts';
import type { Endings } from './endings.ts';
import { decidedEvent } from './gate.ts';
import { inTask } from './lifecycle.ts';
import { newTask, type Wanted } from './new-task.ts';
import { freshSession, sessionEvent } from './opening.ts';
import { openSession } from './transcript.ts';

export interface RefusedDeps extends Context {
  readonly endings: Endings;
  readonly instance: string;
}

export function createRefused({ log, access, endings, instance }: RefusedDeps) {
  return async function refuse(
    wanted: Wanted,
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
        const place = inTask(task);
        const payload = { task: task as unknown as Json, from: null, to: 'SUBMITTED', agent, instance };
        const submitted = {
          ...place,
          event: 'task.submitted',
          actor: actor.id,
          payload,
          ...(idempotency && { idempotency_key: idempotency.key }),
          ...(ext && { ext }),
        };
        // Should this process die before the end is written, whoever takes the task up finds the no and ends it.
        return { events: [...session, submitted, { ...decidedEvent(action, decision), ...place }], result: { id } };
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
