/** Commands before which the work of a session is stopped: closing it, and cutting it back. */
import { Fault } from '../../../model/faults.ts';
import type { Session, Task } from '../../../model/resources.ts';
import type { JsonObject } from '../../../model/schema.ts';
import { isTerminal } from '../../../model/words.ts';
import type { Row } from '../../../ports/index.ts';
import { accepted, type Context, earlier, type Handlers, once } from '../../context.ts';
import type { Tally } from '../../events/rows.ts';
import { sessionEvent } from '../session-opening.ts';
import { allMessages, closed, openSession, sessionLocation } from '../transcript.ts';
import { seenSession } from '../views.ts';

export interface StoppedSessionDeps extends Context {
  /** Ends a task that prevents closing or truncating a session. */
  readonly cancelTask: (taskId: string, by: string, reason: string) => Promise<unknown>;
}

export function stoppedSessionHandlers(deps: StoppedSessionDeps): Pick<Handlers, 'session.close' | 'session.truncate'> {
  const { store, log, access } = deps;

  async function openTasks(sessionId: string): Promise<readonly Task[]> {
    const runs = await store.list<Row>({ object: 'run', where: { session_id: sessionId }, limit: 200 });
    const tasks = await Promise.all(runs.map(({ id }) => store.get<Task & Row>('task', id)));
    return tasks.filter((task) => task !== undefined && !isTerminal(task.status)) as Task[];
  }

  async function stopAll(sessionId: string, by: string, reason: string): Promise<void> {
    for (const task of await openTasks(sessionId)) await deps.cancelTask(task.id, by, reason);
  }

  return {
    'session.close': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Session & Row>(actor, 'session', body.session_id);
      for (;;) {
        if (before.state !== 'CLOSED') await stopAll(before.id, actor.id, 'the session was closed');
        try {
          const { repeated } = await log.commit({
            ...once(deps, command, before.workspace_id, body.session_id),
            reads: [
              { object: 'session', id: body.session_id },
              { object: 'tally', id: body.session_id },
            ],
            decide(at) {
              const session = at.get<Session & Row>('session', body.session_id) as Session;
              if (session.state === 'CLOSED') return { events: [], result: { id: session.id } };
              // Work submitted after the other tasks were stopped must not outlive the session.
              if ((at.get<Tally>('tally', session.id)?.open_tasks ?? 0) > 0) throw new Busy(session.id);
              const closed: Session = { ...session, state: 'CLOSED', updated_at: at.now };
              return { events: [sessionEvent('session.closed', closed, actor)], result: { id: session.id } };
            },
          });
          return accepted('session.close', await seenSession(deps, actor, body.session_id), repeated);
        } catch (cause) {
          if (!(cause instanceof Busy)) throw cause;
        }
      }
    },

    'session.truncate': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Session & Row>(actor, 'session', body.session_id);
      const claim = once(deps, command, before.workspace_id, before.id);
      // A repeat must not stop tasks that were submitted after the first.
      const first = await earlier(deps, claim);
      if (first) {
        return accepted('session.truncate', await seenSession(deps, actor, before.id), true, {
          details: first as JsonObject,
        });
      }
      if (before.state === 'CLOSED') throw closed(before.id);
      await stopAll(before.id, actor.id, 'the session was cut back');
      for (;;) {
        const messages = await allMessages(deps, before.id);
        const removed = messages.slice(body.keep_first);
        const details = {
          kept_turn_count: messages.length - removed.length,
          removed_turn_count: removed.length,
          new_tip_turn_id:
            messages[body.keep_first - 1]?.id ?? (removed.length === 0 ? (messages.at(-1)?.id ?? null) : null),
        };
        try {
          const { repeated, result } = await log.commit({
            ...claim,
            reads: [
              { object: 'session', id: before.id },
              { object: 'tally', id: before.id },
            ],
            decide(at) {
              openSession(at, before.id);
              if ((at.get<Tally>('tally', before.id)?.messages ?? 0) !== messages.length) throw new Busy(before.id);
              const payload = { ...details, removed: removed.map(({ id }) => id), reason: body.reason ?? null };
              const location = sessionLocation(before.id, before.workspace_id);
              return {
                events: [{ ...location, event: 'session.truncated', actor: actor.id, payload }],
                result: details,
              };
            },
          });
          const session = await seenSession(deps, actor, before.id);
          return accepted('session.truncate', session, repeated, { details: result as JsonObject });
        } catch (cause) {
          if (!(cause instanceof Busy)) throw cause;
        }
      }
    },
  };
}

/** A task was submitted between reading and writing. */
class Busy extends Fault {
  constructor(sessionId: string) {
    super('conflict', `session ${sessionId} changed meanwhile`);
  }
}
