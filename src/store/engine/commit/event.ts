/**
 * Turns a draft into an event, and an event into its JSON text. The text equals the output of JSON.stringify but is joined from
 * pieces that many events share. Every event's text begins the same way, so the kind can be matched without parsing.
 */
import { type CoreEvent, type EventDraft, type EventEnvelope, eventId } from '../../../model/events.ts';
import type { Pointer } from '../../../model/resources.ts';
import type { JsonObject } from '../../../model/schema.ts';
import type { Ids } from '../database.ts';

const OPENING = `{"id":"${eventId(0)}","object":"event","event":"`;

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

export interface Encoder {
  /** `resource` and `ids` are the results of `resourceText` and `idsText` for this event. */
  encode(event: CoreEvent, draft: EventDraft, resource: string, ids: string): string;
}

/** Encodes events that share one timestamp: the opening of each kind is built once. */
export function createEncoder(now: string): Encoder {
  const openings = new Map<string, string>();

  function openingWith(kind: string, metadata: JsonObject): string {
    return `","object":"event","event":${quote(kind)},"created_at":"${now}","updated_at":"${now}","metadata":${JSON.stringify(metadata)},"resource":`;
  }

  function openingOf(kind: string): string {
    let opening = openings.get(kind);
    if (opening === undefined) {
      opening = openingWith(kind, {});
      openings.set(kind, opening);
    }
    return opening;
  }

  return {
    encode(event, draft, resource, ids) {
      const opening = draft.metadata === undefined ? openingOf(event.event) : openingWith(event.event, draft.metadata);
      let text = `{"id":"${event.id}${opening}${resource}${event.sequence},"payload":${JSON.stringify(event.payload)}${ids}`;
      if (event.actor !== undefined) text += `,"actor":${quote(event.actor)}`;
      if (event.trace_id !== undefined) text += `,"trace_id":${quote(event.trace_id)}`;
      if (event.span_id !== undefined) text += `,"span_id":${quote(event.span_id)}`;
      if (event.idempotency_key !== undefined) text += `,"idempotency_key":${quote(event.idempotency_key)}`;
      if (event.receipt_id !== undefined) text += `,"receipt_id":${quote(event.receipt_id)}`;
      if (event.replayed !== undefined) text += `,"replayed":${event.replayed}`;
      if (event.replay !== undefined) text += `,"replay":${JSON.stringify(event.replay)}`;
      if (event.ext !== undefined) text += `,"ext":${JSON.stringify(event.ext)}`;
      return `${text}}`;
    },
  };
}

/** The part of an event's text that names its resource, up to the sequence number. */
export function resourceText({ object, id }: Pointer): string {
  return `{"object":${quote(object)},"id":${quote(id)}},"sequence":`;
}

/** The part of an event's text that names its workspace, session and task. */
export function idsText({ workspace_id, session_id, task_id }: Ids): string {
  let text = '';
  if (workspace_id !== undefined) text += `,"workspace_id":${quote(workspace_id)}`;
  if (session_id !== undefined) text += `,"session_id":${quote(session_id)}`;
  if (task_id !== undefined) text += `,"task_id":${quote(task_id)}`;
  return text;
}

const PLAIN = /^[\w.-]*$/;

function quote(value: string | null): string {
  if (value === null) return 'null';
  return PLAIN.test(value) ? `"${value}"` : JSON.stringify(value);
}

/** Returns a test that tells from an event's text whether the event is of one of these kinds. */
export function kindFilter(kinds: readonly string[]): (text: string) => boolean {
  const endings = kinds.map((kind) => JSON.stringify(kind).slice(1));
  return (text) => endings.some((ending) => text.startsWith(ending, OPENING.length));
}
