/** Forks a session: a new one on a branch of its own, with the messages as they were at an event. */
import type { EventDraft } from '../../../model/events.ts';
import { Fault } from '../../../model/faults.ts';
import type { Message, Session } from '../../../model/resources.ts';
import type { At, Row } from '../../../ports/index.ts';
import { accepted, type Context, type Handlers, once } from '../../context.ts';
import { branchEvent, newBranch, openBranch, seeBranch } from '../branches.ts';
import { sessionEvent, unserved } from '../session-opening.ts';
import { allMessages, messagesAsOf, sessionLocation, transcriptEvents } from '../transcript.ts';
import { seenSession } from '../views.ts';
import { unnamed } from './create.ts';

export function sessionFork(deps: Context): Handlers['session.fork'] {
  const { store, log, access, ids } = deps;
  return async (command) => {
    const { actor, body } = command;
    const source = await access.see<Session & Row>(actor, 'session', body.session_id);
    if (body.at_event_id) {
      const event = await store.event(body.at_event_id);
      if (event?.session_id !== source.id) throw new Fault('not_found', `no event ${body.at_event_id} in this session`);
    }
    const existing = body.branch_id ? await seeBranch(deps, actor, body.branch_id, source.workspace_id) : undefined;
    const from = body.at_event_id ?? (await store.tip({ of: 'session', id: source.id })) ?? null;
    const copied = body.at_event_id
      ? await messagesAsOf(deps, source.id, body.at_event_id)
      : await allMessages(deps, source.id);
    const id = ids.next('session');
    const branchId = existing?.id ?? ids.next('branch');
    const location = sessionLocation(id, source.workspace_id);
    const { result, repeated } = await log.commit({
      ...once(deps, command, source.workspace_id, source.id),
      reads: existing ? [{ object: 'branch', id: branchId }] : [],
      decide(at) {
        const branched = existing
          ? takenBranch(at, branchId, id, actor.id)
          : branchEvent(
              'branch.created',
              newBranch({
                id: branchId,
                now: at.now,
                created_by: actor.id,
                kind: 'session',
                base_ref: from ? `${source.id}@${from}` : source.id,
                workspace_id: source.workspace_id,
                parent_branch_id: source.branch_id ?? null,
                session_id: id,
              }),
              actor.id,
            );
        const fork: Session = {
          ...source,
          id,
          created_at: at.now,
          updated_at: at.now,
          metadata: { ...unserved(source.metadata), ...unnamed(body.metadata) },
          state: 'IDLE',
          transcript: {},
          root_session_id: source.root_session_id ?? source.id,
          parent_session_id: source.id,
          branch_id: branchId,
        };
        const messages = copied.flatMap((message) => {
          const copy: Message = {
            ...message,
            id: ids.next('message'),
            session_id: id,
            task_id: null,
            metadata: { ...message.metadata, copied_from: message.id },
          };
          return transcriptEvents(location, copy, actor.id);
        });
        const forked: EventDraft = {
          ...sessionLocation(source.id, source.workspace_id),
          event: 'session.thread_forked',
          actor: actor.id,
          payload: {
            session_id: id,
            branch_id: branchId,
            at_event_id: body.at_event_id ?? null,
            messages: copied.length,
          },
        };
        const events = [sessionEvent('session.created', fork, actor), branched, ...messages, forked];
        return { events, result: { id } };
      },
    });
    const made = (result as { id: string }).id;
    return accepted('session.fork', await seenSession(deps, actor, made), repeated);
  };
}

/** An existing branch takes one fork: two would be two histories under one name. */
function takenBranch(at: At, branchId: string, sessionId: string, actor: string): EventDraft {
  const branch = openBranch(at, branchId);
  if (branch.metadata.forked_session_id) throw new Fault('conflict', `branch ${branchId} has a session already`);
  const next = { ...branch, metadata: { ...branch.metadata, forked_session_id: sessionId } };
  return branchEvent('branch.updated', next, actor);
}
