/** The event as core stores it: the protocol's envelope, plus `ext` for wire members we do not model. */

import type { Event, Pointer, ReplayMark } from './resources.ts';
import type { JsonObject } from './schema.ts';
import type { EventKind } from './words.ts';

/** Core never reads `ext`; doors of the same protocol render from it, so that nothing is lost in translation. */
export type CoreEvent = Event & { readonly ext?: JsonObject };

/** An event before its commit, which assigns id, sequence and time. */
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
