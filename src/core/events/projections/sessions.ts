/** Sessions: their owner, their transcript, and what is counted of them. */
import type { CoreEvent, EventDraft } from '../../../model/events.ts';
import type { Message, Session } from '../../../model/resources.ts';
import type { Change, Row } from '../../../ports/index.ts';
import type { Owner, TaintRow, Tally } from '../rows.ts';
import { fresh, type Get, NO_CHANGE, put, text } from './changes.ts';

export type Spoken = 'user.message' | 'agent.message';

export function opened(event: CoreEvent<'session.created'>, get: Get): readonly Change[] {
  const { session } = event.payload;
  const at = event.created_at;
  // A fork begins with its parent's taint, which is as old as it was there.
  const inherited = session.parent_session_id && get<TaintRow>('taint', session.parent_session_id);
  const taint = inherited && { ...inherited, id: session.id, updated_at: at };
  const begun = [put(begunSession(event)), ...ownedBy(event, session.id)];
  return taint ? [...begun, put(taint)] : begun;
}

/** Content of a second source, whichever it is, says that there were several. */
export function tainted(event: CoreEvent<'vendor.tollbridge.tainted'>, get: Get): readonly Change[] {
  const { session_id: id, payload: from, created_at: at } = event;
  if (!id) return NO_CHANGE;
  const before = get<TaintRow>('taint', id);
  return [put<TaintRow>(before ? { ...before, several: true, updated_at: at } : { ...fresh('taint', id, at), from })];
}

/** The session as the store has it after the commit that opened it. */
export function sessionBegunIn(events: readonly CoreEvent[], id: string): Session | undefined {
  for (const event of events) {
    if (event.event === 'session.created' && event.resource.id === id) return begunSession(event);
  }
  return undefined;
}

function begunSession(event: CoreEvent<'session.created'>): Session {
  const { session } = event.payload;
  return { ...session, updated_at: event.created_at };
}

/** The principal that opened it, or on whose behalf an agent did. */
export function ownedBy({ actor, metadata, created_at }: CoreEvent, id: string): readonly Change[] {
  const owner_id = text(metadata.owner) ?? actor;
  return owner_id ? [put<Owner>({ ...fresh('owner', id, created_at), owner_id })] : NO_CHANGE;
}

export function count(event: CoreEvent, get: Get, change: (tally: Tally) => Tally): Tally {
  const id = event.session_id ?? event.resource.id;
  const tally = get<Tally>('tally', id) ?? {
    messages: 0,
    tip_message_id: null,
    tip_at: null,
    open_tasks: 0,
    compacted_through: null,
    lane: null,
    ...fresh('tally', id, event.created_at),
  };
  return { ...change(tally), updated_at: event.created_at };
}

/** The message an event adds to the transcript, if it is one. */
export function messageIn(event: Pick<EventDraft<Spoken>, 'payload'>): Message | undefined {
  const { message } = event.payload;
  return typeof message?.id === 'string' && Array.isArray(message.parts) ? message : undefined;
}

/** A message repeated under its own id replaces that message. */
export function appended(event: CoreEvent<Spoken>, get: Get): readonly Change[] {
  const message = messageIn(event);
  if (!message) return NO_CHANGE;
  const row = { ...message, object: 'message' as const, updated_at: event.created_at };
  const before = get<Message & Row>('message', message.id);
  if (before) return [put({ ...row, created_at: before.created_at })];
  const tally = count(event, get, (t) => ({
    ...t,
    messages: t.messages + 1,
    tip_message_id: message.id,
    tip_at: messageTime(message, event, t.tip_at),
  }));
  return [put({ ...row, created_at: tally.tip_at ?? event.created_at }), put(tally)];
}

/** The message's claimed time, unless it is in the future or before the previous message. */
function messageTime(message: Message, event: CoreEvent, after: string | null): string {
  const now = readTime(event.created_at);
  const claimed = readClaim(message.created_at);
  const at = Number.isNaN(claimed) ? now : Math.min(claimed, now);
  return spellTime(after === null ? at : Math.max(at, Date.parse(after) + 1));
}

const readTime = rememberingLast(Date.parse);
const readClaim = rememberingLast(Date.parse);
const spellTime = rememberingLast((ms: number) => new Date(ms).toISOString());

/** Many messages are written in one commit with one time: it is parsed and formatted once. */
function rememberingLast<A, B>(work: (input: A) => B): (input: A) => B {
  let last: { readonly input: A; readonly made: B } | undefined;
  return (input) => {
    if (last?.input !== input) last = { input, made: work(input) };
    return last.made;
  };
}

export function truncated(event: CoreEvent<'session.truncated'>, get: Get): readonly Change[] {
  const { removed, kept_turn_count: messages, new_tip_turn_id: tip_message_id } = event.payload;
  const tally = count(event, get, (t) => ({ ...t, messages, tip_message_id }));
  return [put(tally), ...removed.map((id): Change => ({ drop: { object: 'message', id } }))];
}
