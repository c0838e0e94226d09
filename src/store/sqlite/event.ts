/** From draft to the event as it is kept. The text begins the same way in every event, so its kind is found unparsed. */
import { type CoreEvent, type EventDraft, eventId } from '../../model/events.ts';

const OPENING = `{"id":"${eventId(0)}","object":"event","event":"`;

export function buildEvent(draft: EventDraft, position: number, sequence: number, now: string): CoreEvent {
  const event: { -readonly [K in keyof CoreEvent]: CoreEvent[K] } = {
    id: eventId(position),
    object: 'event',
    event: draft.event,
    created_at: now,
    updated_at: now,
    metadata: draft.metadata ?? {},
    resource: draft.resource,
    sequence,
    payload: draft.payload,
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
  return event;
}

/** True for a text whose event is one of `kinds`, each as `quotedKind` gives it. */
export function hasKind(text: string, kinds: ReadonlySet<string>): boolean {
  // A quote inside a name is written with a backslash before it, so the first bare quote ends the name.
  let end = text.indexOf('"', OPENING.length);
  while (text[end - 1] === '\\') end = text.indexOf('"', end + 1);
  return kinds.has(text.slice(OPENING.length, end));
}

export function quotedKind(kind: string): string {
  return JSON.stringify(kind).slice(1, -1);
}
