/** The event as core keeps it: the protocol's envelope, plus what a wire said that we do not model. */

import type { Event, Pointer, ReplayMark } from './resources.ts';
import type { JsonObject } from './schema.ts';
import type { EventKind } from './words.ts';

/** Core never reads `ext`; doors of the same protocol render from it, so that nothing is lost in translation. */
export type CoreEvent = Event & { readonly ext?: JsonObject };

/** An event on its way into the log. Id, sequence and time are given to it by the commit. */
export interface EventDraft {
  readonly event: EventKind;
  readonly resource: Pointer;
  readonly payload: JsonObject;
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

/** A place in the log: the id of the last event seen. */
export type Cursor = string;

/** Event ids sort as text because the number is padded. */
export function eventId(position: number): Cursor {
  return `evt_${String(position).padStart(16, '0')}`;
}

/** The number behind a cursor, or undefined when it is not one of ours. */
export function position(cursor: Cursor): number | undefined {
  const digits = /^evt_(\d{16})$/.exec(cursor)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** What one can read or follow. A task's stream is everything that happened inside it. */
export type Stream =
  | { readonly of: 'all' }
  | { readonly of: 'workspace' | 'session' | 'task'; readonly id: string }
  | { readonly of: 'resource'; readonly object: string; readonly id: string };
