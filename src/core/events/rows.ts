/** Core's own projections beside the protocol's resources. No door shows them. */
import type { AskKind, AskState } from '../../model/asks.ts';
import type { EventPayloads } from '../../model/payloads.ts';
import type { Pointer } from '../../model/resources.ts';
import type { Row } from '../../ports/index.ts';

/** A task that has not ended: its backend, its process and its open questions. Deleted when the task ends. */
export interface RunRow extends Row {
  readonly object: 'run';
  readonly session_id: string;
  /** Name of the backend; `none` for work outside the gateway. */
  readonly agent: string;
  /** The process that accepted or runs it; null for work outside the gateway. */
  readonly instance: string | null;
  /** For work outside the gateway: the process its calls or reports come through, if there is one. */
  readonly served_by?: string;
  /** How long the work is kept open after that process is gone. Absent: it is ended at once. */
  readonly away_ms?: number;
  /** False when its agent cannot continue after a crash, so that the process that finds it may end it. */
  readonly resumes?: false;
  readonly cancel_requested: boolean;
  /** The time up to which its time is charged. In the future: a process is counting it. */
  readonly timed_until?: string;
  /** Quotas that count it as concurrent work; released when it ends. */
  readonly holds?: readonly string[];
  /** Questions that are open, or answered and not yet spent. */
  readonly asks: readonly {
    readonly id: string;
    readonly kind: AskKind;
    readonly key: string;
    readonly digest: string;
    readonly state: AskState;
  }[];
}

/** One task of a session runs at a time, in the order of acceptance. */
export interface Lane {
  readonly active: string | null;
  readonly waiting: readonly string[];
}

/** The changing state of a session, a separate row so that a message does not rewrite the session: its counts and its lane. */
export interface Tally extends Row {
  readonly object: 'tally';
  /** Null when no task runs or waits. */
  readonly lane: Lane | null;
  readonly messages: number;
  readonly tip_message_id: string | null;
  /** The time of the newest message. Each is later than the one before, so that lists keep log order. */
  readonly tip_at: string | null;
  readonly open_tasks: number;
  readonly compacted_through: string | null;
}

/** A tainted session, the first source of its taint, and whether there was another one since. */
export interface TaintRow extends Row {
  readonly object: 'taint';
  readonly from: EventPayloads['vendor.tollbridge.tainted'];
  readonly several?: true;
}

/** A wire id and the resource it stands for. */
export interface Binding extends Row {
  readonly object: 'binding';
  readonly protocol: string;
  readonly scope: string;
  readonly wire_id: string;
  readonly to: Pointer;
}

/** The owner of a session, or of an artifact outside any session. Never changes. */
export interface Owner extends Row {
  readonly object: 'owner';
  readonly owner_id: string;
}

/** Quotas of a tenant, or of the installation, that apply without being named. One short row each, found by its key. */
export interface ScopedQuotas extends Row {
  readonly object: 'scoped_quotas';
  readonly quotas: readonly { readonly id: string; readonly scope: string }[];
}

export function scopeKey(tenant: string | undefined): string {
  return tenant === undefined ? 'installation' : `tenant ${tenant}`;
}
