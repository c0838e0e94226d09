/** Commands for sessions: open, append, fork, truncate, compact, close. Messages in a session keep log order. */
import type { CommandKind } from '../../model/commands.ts';
import { Fault } from '../../model/faults.ts';
import type { Message, Session } from '../../model/resources.ts';
import type { Row } from '../../ports/index.ts';
import { accepted, type Handlers, once } from '../context.ts';
import { linkEvents, linkedBy } from './artifact-changes.ts';
import { type CreateSessionDeps, sessionCreation, unnamed } from './session/create.ts';
import { sessionFork } from './session/fork.ts';
import { type StoppedSessionDeps, stoppedSessionHandlers } from './session/stopped.ts';
import { serving } from './session-opening.ts';
import { messageEvents, openSession, sessionLocation } from './transcript.ts';
import { seenSession } from './views.ts';

type Kinds = Extract<CommandKind, `session.${string}` | 'message.append'>;

export interface SessionDeps extends CreateSessionDeps, StoppedSessionDeps {}

export function sessionHandlers(deps: SessionDeps): Pick<Handlers, Kinds> {
  const { log, access, ids } = deps;

  return {
    'session.create': sessionCreation(deps),
    'session.fork': sessionFork(deps),
    ...stoppedSessionHandlers(deps),

    'session.update': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Session & Row>(actor, 'session', body.session_id);
      const { repeated } = await log.commit({
        ...once(deps, command, before.workspace_id, body.session_id),
        reads: [{ object: 'session', id: body.session_id }],
        decide(at) {
          const session = openSession(at, body.session_id);
          const next = {
            ...session,
            ...(body.summary !== undefined && { summary: body.summary }),
            metadata: { ...session.metadata, ...unnamed(body.metadata), ...serving(deps, body.agent) },
          };
          return {
            events: [
              {
                ...sessionLocation(session.id, session.workspace_id),
                event: 'vendor.tollbridge.resource_updated',
                actor: actor.id,
                payload: { resource: next },
              },
            ],
            result: { id: session.id },
          };
        },
      });
      return accepted('session.update', await seenSession(deps, actor, body.session_id), repeated);
    },

    'session.compact': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Session & Row>(actor, 'session', body.session_id);
      const through = await access.see<Message & Row>(actor, 'message', body.through_message_id);
      if (through.session_id !== before.id) throw new Fault('not_found', `no message ${through.id} in this session`);
      const { repeated } = await log.commit({
        ...once(deps, command, before.workspace_id, before.id),
        reads: [{ object: 'session', id: before.id }],
        decide(at) {
          openSession(at, before.id);
          return {
            events: [
              {
                ...sessionLocation(before.id, before.workspace_id),
                event: 'session.compacted',
                actor: actor.id,
                payload: { summary: body.summary, through_message_id: body.through_message_id },
              },
            ],
            result: { id: before.id },
          };
        },
      });
      return accepted('session.compact', await seenSession(deps, actor, before.id), repeated);
    },

    'message.append': async (command) => {
      const { actor, body } = command;
      const session = await access.see<Session & Row>(actor, 'session', body.session_id);
      const location = sessionLocation(session.id, session.workspace_id);
      const id = ids.next('message');
      const files = await linkedBy(deps, actor, body.message.parts);
      const added = await messageEvents(deps, location, { ...body.message, id }, actor.id);
      const events = [...added, ...linkEvents(files, { object: 'message', id }, { ...location, actor: actor.id })];
      const { result, repeated } = await log.commit({
        ...once(deps, command, session.workspace_id, `${session.id}/messages`),
        reads: [{ object: 'session', id: session.id }],
        decide(at) {
          openSession(at, session.id);
          return { events, result: { id } };
        },
      });
      const made = (result as { id: string }).id;
      return accepted('message.append', await access.see<Row>(actor, 'message', made), repeated);
    },
  };
}
