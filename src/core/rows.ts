/** Projections core keeps for itself beside the protocol's resources. No door shows them as they are. */
import type { AskKind, AskState } from '../model/asks.ts';
import type { Pointer } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import type { Row } from '../ports.ts';

/** A task that has not ended: who does it, and what it waits for. Gone when the task ends. */
export interface Run extends Row {
  readonly object: 'run';
  readonly session_id: string;
  /** Name of the backend; `none` when someone outside does the work. */
  readonly agent: string;
  /** The process that accepted or does it; null for work outside. */
  readonly instance: string | null;
  readonly cancel_requested: boolean;
  /** Questions open, or answered and not yet taken. */
  readonly asks: readonly {
    readonly id: string;
    readonly kind: AskKind;
    readonly key: string;
    readonly digest: string;
    readonly state: AskState;
  }[];
}

/** One task of a session runs at a time, in the order they were accepted. */
export interface Lane {
  readonly active: string | null;
  readonly waiting: readonly string[];
}

/** What changes in a session, kept apart so that a message does not rewrite the session: its counts, and whose turn it is. */
export interface Tally extends Row {
  readonly object: 'tally';
  /** Null when nothing runs and nothing waits. */
  readonly lane: Lane | null;
  readonly messages: number;
  readonly tip_message_id: string | null;
  /** When the newest message was said. Each is later than the one before, so that lists keep the order of the log. */
  readonly tip_at: string | null;
  readonly open_tasks: number;
  readonly compacted_through: string | null;
}

/** A session that has read what others wrote, and where that came from first. */
export interface Taint extends Row {
  readonly object: 'taint';
  readonly from: JsonObject;
}

/** Another wire's id and what it stands for here. */
export interface Binding extends Row {
  readonly object: 'binding';
  readonly protocol: string;
  readonly scope: string;
  readonly wire_id: string;
  readonly to: Pointer;
}

/** Whose a session is, or an artifact that is in none. Never changes. */
export interface Owner extends Row {
  readonly object: 'owner';
  readonly owner_id: string;
}
