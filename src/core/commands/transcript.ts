/** The messages of a session: as they are added, as they are now, and as they were at an event; and whether more may be added. */
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Message, MessageInput, Session } from '../../model/resources.ts';
import { everyRow } from '../../model/values/every-row.ts';
import type { At, Row, Store } from '../../ports/index.ts';
import type { Context } from '../context.ts';
import { artifactEvents } from '../events/log.ts';
import { goOnWith } from '../waiting.ts';

type MessageLocation = Pick<EventDraft, 'resource' | 'workspace_id' | 'session_id'>;

export function sessionLocation(
  sessionId: string,
  workspaceId: string,
): MessageLocation & { workspace_id: string; session_id: string } {
  return { resource: { object: 'session', id: sessionId }, workspace_id: workspaceId, session_id: sessionId };
}

/** The session, if more may be added to it. */
export function openSession(at: At, id: string): Session {
  const session = at.get<Session & Row>('session', id);
  if (!session) throw new Fault('not_found', `no session ${id}`);
  if (session.state === 'CLOSED' || session.state === 'FAILED') throw closed(id);
  return session;
}

export function closed(id: string): Fault {
  return new Fault('conflict', `session ${id} is closed`);
}

/** The events that add a message to the transcript. Synchronous where the whole message fits into the event. */
export function messageEvents(
  { log, ids, clock }: Pick<Context, 'log' | 'ids' | 'clock'>,
  location: MessageLocation & { task_id?: string | null; workspace_id?: string | null },
  input: MessageInput & { readonly id?: string },
  actor: string,
): EventDraft[] | Promise<EventDraft[]> {
  const now = clock.now();
  const message: Message = {
    id: input.id ?? ids.next('message'),
    object: 'message',
    created_at: now,
    updated_at: now,
    metadata: input.metadata ?? {},
    role: input.role,
    parts: input.parts,
    session_id: location.session_id ?? null,
    task_id: location.task_id ?? null,
  };
  const home = { workspace_id: location.workspace_id ?? '', session_id: location.session_id ?? null, now };
  return goOnWith(log.fitMessage(message, home), ({ value, artifacts }) => [
    ...artifactEvents(artifacts, location),
    ...transcriptEvents(location, value, actor),
  ]);
}

export function transcriptEvents(location: MessageLocation, message: Message, actor: string): EventDraft[] {
  const byAgent = message.role === 'assistant' || message.role === 'agent' || message.role === 'tool';
  const row = { workspace_id: location.workspace_id ?? null, ...withoutHome(message) };
  return [
    {
      event: byAgent ? 'agent.message' : 'user.message',
      actor,
      payload: { message: row },
      ...location,
    },
    { event: 'session.message_appended', actor, payload: { message_id: message.id, role: message.role }, ...location },
  ];
}

/** A message copied from another transcript names its workspace; a new one does not, and need not be copied. */
function withoutHome(message: Message & { readonly workspace_id?: string | null }): Message {
  if (!('workspace_id' in message)) return message;
  const { workspace_id: _, ...said } = message;
  return said;
}

/** The transcript as it was right after an event, read from the log itself. */
export async function messagesAsOf({ store }: Context, sessionId: string, upTo: string): Promise<Message[]> {
  const kinds = ['session.created', 'user.message', 'agent.message', 'session.truncated'];
  const kept = new Map<string, Message>();
  let whole = false;
  for await (const event of store.read({ stream: { of: 'session', id: sessionId }, kinds, upTo })) {
    if (event.replayed) continue; // a replay repeats it; it was not said again
    if (event.event === 'session.created') whole = true;
    else if (event.event === 'session.truncated') for (const id of event.payload.removed) kept.delete(id);
    else if (event.event === 'user.message' || event.event === 'agent.message') {
      const { message } = event.payload;
      if (message) kept.set(message.id, message);
    }
  }
  if (!whole) throw new Fault('cursor_expired', `the beginning of session ${sessionId} is no longer kept`);
  return [...kept.values()];
}

export async function allMessages({ store }: Context, sessionId: string): Promise<readonly (Message & Row)[]> {
  const all: (Message & Row)[] = [];
  for await (const message of messagesOf(store, sessionId)) all.push(message);
  return all;
}

export function messagesOf(store: Pick<Store, 'list'>, session_id: string): AsyncIterable<Message & Row> {
  const said = { object: 'message', where: { session_id } };
  return everyRow((paging) => store.list<Message & Row>({ ...said, ...paging }));
}
