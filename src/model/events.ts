/**
 * The event as core stores it: the protocol's envelope, plus `ext` for wire members we do not model. Its kind tells the type of its
 * payload.
 */
import { EVENT_PAYLOADS, type EventKind, type PayloadOf } from './payloads.ts';
import type { Event, Pointer, ReplayMark } from './resources.ts';
import type { JsonObject } from './schema.ts';

/**
 * The kind of an event that no table here knows. Only `vendorEvent` makes one. The prefix is in the type alone, to tell these kinds
 * from ours: TypeScript narrows a union by a pattern, and does not by a branded string.
 */
export type VendorKind = `of another vendor: ${string}`;

/** The payload of events of one kind; of a vendor's kind nothing is known. */
type Payload<K extends EventKind | VendorKind> = K extends EventKind ? PayloadOf<K> : JsonObject;

/** Core never reads `ext`; doors of the same protocol render from it, so that nothing is lost in translation. */
export type EventEnvelope = Omit<Event, 'event' | 'payload'> & { readonly ext?: JsonObject };
export type CoreEvent<K extends EventKind | VendorKind = EventKind | VendorKind> = K extends unknown
  ? EventEnvelope & { readonly event: K; readonly payload: Payload<K> }
  : never;

/** What surrounds the payload of an event before its commit, which assigns id, sequence and time. */
export interface DraftEnvelope {
  readonly resource: Pointer;
  readonly workspace_id?: string | null;
  readonly session_id?: string | null;
  readonly task_id?: string | null;
  readonly actor?: string | null;
  readonly trace_id?: string | null;
  readonly span_id?: string | null;
  readonly idempotency_key?: string | null;
  readonly receipt_id?: string | null;
  readonly replayed?: boolean;
  readonly replay?: ReplayMark;
  readonly metadata?: JsonObject;
  readonly ext?: JsonObject;
}
export type EventDraft<K extends EventKind | VendorKind = EventKind | VendorKind> = K extends unknown
  ? DraftEnvelope & { readonly event: K; readonly payload: Payload<K> }
  : never;

export function isEventKind(name: string): name is EventKind {
  return Object.hasOwn(EVENT_PAYLOADS, name);
}

/** An event of a kind that no table here knows, as another vendor or a later protocol revision spells it. */
export function vendorEvent(kind: string): VendorKind {
  if (isEventKind(kind)) throw new TypeError(`${kind} is one of our kinds`);
  return kind as VendorKind;
}

/** Whether an event tells of a state of a task. */
export function isTaskEvent(name: string): name is Extract<EventKind, `task.${string}`> {
  return name.startsWith('task.') && isEventKind(name);
}

/** The kind that an event from outside has by its name: one of ours or another vendor's. */
export function eventKind(name: string): EventKind | VendorKind {
  return isEventKind(name) ? name : vendorEvent(name);
}

/** A kind that a reader of events leaves out, and why. */
export interface LeftOut {
  readonly leftOut: string;
}
type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;

/** Rows for the kinds that a table leaves out: `...leaveOut('why', 'task.started task.completed')`. */
export function leaveOut<const Kinds extends string>(
  why: string,
  kinds: Words<Kinds> extends EventKind ? Kinds : never,
): { readonly [K in Words<Kinds>]: LeftOut } {
  const rows = kinds.split(' ').map((kind) => [kind, { leftOut: why }] as const);
  return Object.fromEntries(rows) as { readonly [K in Words<Kinds>]: LeftOut };
}

/**
 * For the `default` of a `switch` over kinds: nothing is rendered. Does not compile while a kind is neither a case nor in the table.
 */
export function leftOut<Kind extends EventKind>(
  _table: Readonly<Record<Kind, LeftOut>>,
  _kind: NoInfer<Kind> | VendorKind,
): never[] {
  return [];
}

/** One row per kind, so that a new kind does not compile until each reader has said what it does with it. */
export type EventTable<Rest extends readonly unknown[], Result> = {
  readonly [K in EventKind]: ((event: CoreEvent<K>, ...rest: Rest) => Result) | LeftOut;
};

/** The row for an event; undefined when the table leaves its kind out, and for kinds of other vendors. */
export function rowFor<Rest extends readonly unknown[], Result>(
  table: EventTable<Rest, Result>,
  { event }: Pick<CoreEvent, 'event'>,
): ((event: CoreEvent, ...rest: Rest) => Result) | undefined {
  const row = isEventKind(event) ? table[event] : undefined;
  // A row takes events of its own kind only, and this one was found by the kind of the event it will be given.
  return typeof row === 'function' ? (row as (event: CoreEvent, ...rest: Rest) => Result) : undefined;
}

/** The same event with further or other members in its payload. */
export function withMembers<E extends EventDraft | CoreEvent>(event: E, members: JsonObject): E {
  return { ...event, payload: { ...event.payload, ...members } };
}

/** A position in the log: the id of the last event seen. */
export type Cursor = string;

/** Event ids sort as text because the number is padded. */
export function eventId(position: number): Cursor {
  return `evt_${String(position).padStart(16, '0')}`;
}

/** The number in a cursor, or undefined when the cursor is not one of ours. */
export function position(cursor: Cursor): number | undefined {
  const digits = /^evt_(\d{16})$/.exec(cursor)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The streams a client can read or follow. A task's stream holds everything that happened inside it. */
export type Stream =
  | { readonly of: 'all' }
  | { readonly of: 'workspace' | 'session' | 'task'; readonly id: string }
  | { readonly of: 'resource'; readonly object: string; readonly id: string };

/** A signed head of one of the log's trees. */
export const TREE_HEAD = 'vendor.tollbridge.tree_head';
