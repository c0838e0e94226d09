/**
 * A session whose opening a rule leaves to a person. The question needs a task, and the task a session: it is opened at once for
 * this one task, takes no other work until the answer is yes, and is closed when it is no. Only for callers that can wait; every
 * other caller gets the refusal.
 */
import type { EventDraft } from '../../model/events.ts';
import { asFault, Fault } from '../../model/faults.ts';
import type { Session, Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { Row } from '../../ports/index.ts';
import { accepted, type Context, type Handlers, type Received } from '../context.ts';
import { type ServingDeps, serving } from './session-opening.ts';
import { sessionLocation } from './transcript.ts';
import { completeSession } from './views.ts';

/** The member of a session's metadata that is true while its opening is not decided. Clients cannot write it. */
export const PENDING = 'opening_pending';

export interface AskedSessionDeps extends Context, ServingDeps {
  readonly create: Handlers['session.create'];
  readonly close: Handlers['session.close'];
  /** Submits work in a new session without asking policy whether the session may be opened. */
  readonly submit: Handlers['task.submit'];
  readonly propose: Handlers['action.propose'];
  readonly report: Handlers['task.report'];
}

export function createAskedSession(deps: AskedSessionDeps): Handlers['session.create'] {
  const { store, log, access } = deps;

  async function ask(command: Received<'session.create'>): Promise<string> {
    const { actor, body, asked, signal } = command;
    const { workspace_id, persona_id = null, metadata = {} } = body;
    const { resource: task } = await deps.submit({
      kind: 'task.submit',
      actor,
      body: {
        agent: 'none',
        session: { workspace_id, persona_id, metadata: { ...metadata, [PENDING]: true } },
        input: { kind: 'session_opening' },
        // The asker waits in this process: when that is gone, so is the question.
        served: {},
      },
    });
    const { session_id } = task as Task & Row;
    const end = (summary: string) =>
      deps.report({
        kind: 'task.report',
        actor,
        body: { task_id: task.id, facts: [], end: { state: 'COMPLETED', summary } },
      });
    try {
      const action = {
        kind: 'session.open' as const,
        arguments: { persona_id, about: metadata },
        effect: 'none' as const,
      };
      const more = { ...(asked && { asked }), ...(signal && { signal }) };
      const { decision } = await deps.propose({
        kind: 'action.propose',
        actor,
        ...more,
        body: { task_id: task.id, action: action as never },
      });
      if (decision?.verdict !== 'allow') {
        if (signal?.aborted) throw new Fault('client_closed', 'the caller no longer waits for the session');
        const details = { rule_id: decision?.rule_id ?? null };
        throw new Fault('policy_violation', decision?.reason ?? 'it was not approved', { details });
      }
      await end('the session may be opened');
      await opened(session_id, command);
      return session_id;
    } catch (cause) {
      await end('the session was not opened').catch(() => {});
      await deps.close({ kind: 'session.close', actor, body: { session_id } }).catch(() => {});
      throw cause;
    }
  }

  async function opened(id: string, { actor, body }: Received<'session.create'>): Promise<void> {
    await log.commit({
      reads: [{ object: 'session', id }],
      decide(at) {
        const session = at.get<Session & Row>('session', id) as Session;
        const { [PENDING]: _, ...metadata } = session.metadata as JsonObject;
        const event: EventDraft = {
          ...sessionLocation(id, session.workspace_id),
          event: 'vendor.tollbridge.resource_updated',
          actor: actor.id,
          payload: { resource: { ...session, metadata: { ...metadata, ...serving(deps, body.agent) } } },
        };
        return { events: [event] };
      },
    });
  }

  return async (command) => {
    try {
      return await deps.create(command);
    } catch (cause) {
      const { kind, details } = asFault(cause);
      if (!command.asked || kind !== 'policy_violation' || details?.verdict !== 'escalate') throw cause;
      const id = await ask(command);
      const row = await access.see<Session & Row>(command.actor, 'session', id);
      return accepted('session.create', await completeSession(store, row), false);
    }
  };
}

/** A session whose opening is not decided takes no work. */
export function requireOpened({ metadata }: Pick<Session, 'metadata'> | { readonly metadata?: undefined }): void {
  if ((metadata as JsonObject | undefined)?.[PENDING] === true)
    throw new Fault('conflict', 'the session waits for an approval before it is opened');
}
