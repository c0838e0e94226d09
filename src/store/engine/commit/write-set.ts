/**
 * What one transaction adds: computed by a batch, written by a database. Flat lists where there is one entry for each event, because a
 * batch has hundreds; each comment names the values of one entry.
 */
import type { Row } from '../../../ports/index.ts';

export type Column = string | number | null;

export interface WriteSet {
  /** number, object, id */
  readonly resources: Column[];
  /** number, number of the resource, task, session, workspace */
  readonly locations: Column[];
  /** number, position of the event that brought it (0: a receipt did), text */
  readonly words: Column[];
  /** position, number of the resource, sequence, number of the location, body: packed, or JSON */
  readonly events: Column[];
  /** number of a resource, stretch of the log in which it now has events, its first sequence there */
  readonly stretches: Column[];
  /** workspace, span of the log in which it now has events */
  readonly spans: Column[];
  readonly rows: RowChange[];
  /** position, chain, number, id, hash, task, body: packed, or JSON */
  readonly receipts: Column[];
  /** level, number, hash */
  readonly nodes: Column[];
  /** size, frontier; empty when no receipt was sealed */
  readonly tree: Column[];
  /** scope, digest, result, time */
  readonly answers: Column[];
}

export interface RowChange {
  readonly object: string;
  readonly id: string;
  /** Sort key of a new row; a known row keeps the one it has. */
  readonly born: string;
  /** Undefined: the row is dropped. */
  readonly row: Row | undefined;
  /** The JSON text of `row`. */
  readonly body: string | null;
  /** The row as it was stored. */
  readonly before: Row | undefined;
}

export const emptyWriteSet = (): WriteSet => ({
  resources: [],
  locations: [],
  words: [],
  events: [],
  stretches: [],
  spans: [],
  rows: [],
  receipts: [],
  nodes: [],
  tree: [],
  answers: [],
});

/** An index of workspaces has a granularity of this many positions. */
export const SPAN = 256;

/** An index of resources has a granularity of 4096 positions. */
export const stretchOf = (position: number): number => Math.floor(position / 4096);
export const lastOfStretch = (stretch: number): number => stretch * 4096 + 4095;

/** Events refer to words of their own era, 16,384 positions, so that words go with the events that use them. */
export const eraOf = (position: number): number => Math.floor(position / 16_384);
export const firstOfEra = (era: number): number => era * 16_384;
