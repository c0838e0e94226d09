/** Turns a draft into an event. Every event's JSON text begins the same way, so the kind can be matched without parsing. */
import { type CoreEvent, type EventDraft, type EventEnvelope, eventId } from '../../../model/events.ts';

const OPENING = `{"id":"${eventId(0)}","object":"event","event":`;

export function buildEvent(draft: EventDraft, position: number, sequence: number, now: string): CoreEvent {
  const event: Written = {
    id: eventId(position),
    object: 'event',
    event: draft.event,
    created_at: now,
    updated_at: now,
    metadata: draft.metadata ?? {},
    resource: { object: draft.resource.object, id: draft.resource.id },
    sequence,
    payload: draft.payload ?? {},
  };
  if (draft.workspace_id !== undefined) event.workspace_id = draft.workspace_id;
  if (draft.session_id !== undefined) event.session_id = draft.session_id;
  if (draft.task_id !== undefined) event.task_id = draft.task_id;
  if (draft.actor !== undefined) event.actor = draft.actor;
  if (draft.trace_id !== undefined) event.trace_id = draft.trace_id;
  if (draft.span_id !== undefined) event.span_id = draft.span_id;
  if (draft.idempotency_key !== undefined) event.idempotency_key = draft.idempotency_key;
  if (draft.receipt_id !== undefined) event.receipt_id = draft.receipt_id;
  if (draft.replayed !== undefined) event.replayed = draft.replayed;
  if (draft.replay !== undefined) event.replay = draft.replay;
  if (draft.ext !== undefined) event.ext = draft.ext;
  return event as CoreEvent; // of the kind of its draft, with the draft's payload
}
type Written = { -readonly [K in keyof EventEnvelope]: EventEnvelope[K] } & Pick<EventDraft, 'event' | 'payload'>;

/** Tells from an event's text whether the event is of one of these kinds, each given as JSON. */
export function isOfKind(text: string, kinds: Iterable<string>): boolean {
  for (const kind of kinds) if (text.startsWith(kind, OPENING.length)) return true;
  return false;
}
