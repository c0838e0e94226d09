/**
 * What a log consists of, table by table, so that it can be copied between databases row by row. Bodies stay as they are stored, with
 * the words they refer to; what a database keeps beside them for its own lookups is made anew. Not part of a log: leases and epochs.
 */
import type { Wait } from '../wait.ts';

export type Cell = string | number | null | Uint8Array;
export type Cells = readonly Cell[];

export interface ContentTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** Columns that no two rows share; pages are in their order, text compared by its bytes. */
  readonly key: readonly string[];
  /** Rows of a page, where rows are long. */
  readonly page?: number;
}

/** In the order they are written: what finds events comes before them. */
export const CONTENT = [
  table('meta', ['name'], 'value'),
  table('resources', ['id'], 'object', 'name', 'base'),
  table('places', ['id'], 'resource', 'task', 'session', 'workspace', 'pruned'),
  table('words', ['id'], 'position', 'text'),
  table('stretches', ['resource', 'stretch'], 'first'),
  table('spans', ['workspace', 'span']),
  table('events', ['position'], 'resource', 'sequence', 'place', 'body'),
  table('rows', ['object', 'id'], 'created_at', 'body'),
  table('baseline', ['object', 'id'], 'created_at', 'body'),
  table('idempotency', ['scope'], 'digest', 'result', 'at'),
  table('receipts', ['position'], 'chain', 'number', 'id', 'hash', 'task_id', 'body'),
  table('tree', ['one'], 'size', 'frontier'),
  table('tree_nodes', ['place'], 'hash'),
  table('log_tree', ['one'], 'first', 'size', 'frontier'),
  table('log_nodes', ['place'], 'hash'),
  table('blobs', ['sha256'], 'size'),
  { ...table('blob_parts', ['sha256', 'part'], 'digest', 'bytes'), page: 16 },
] as const satisfies readonly ContentTable[];

function table<N extends string>(name: N, key: readonly string[], ...others: readonly string[]) {
  return { name, key, columns: [...key, ...others] } as const;
}

export type TableName = (typeof CONTENT)[number]['name'];
/** Names in `meta` that say how far a log was pruned: last position, and its time. */
export const FLOOR = 'floor';
export const FLOOR_AT = 'floor_at';

export const tableNamed = (name: TableName): ContentTable => CONTENT.find((each) => each.name === name)!;

/** The rows of one moment, whatever is written meanwhile. */
export interface Content {
  count(name: TableName): Wait<number>;
  /** The next rows behind the row `after`; fewer than `most` when none is left. */
  page(name: TableName, after: Cells | undefined, most: number): Wait<readonly Cells[]>;
  close(): Wait<void>;
}

/** Whether a copy is begun, or all of its rows are there and were verified. */
export type CopyState = 'new' | 'complete';

/** A log that is being written. Opening its store is refused until `finish`. */
export interface NewContent extends Content {
  write(name: TableName, rows: readonly Cells[]): Wait<void>;
  /** Makes what the database keeps beside the rows. */
  complete(): Wait<void>;
  /** From now on it is a log. */
  finish(): Wait<void>;
}

/** The condition and order of a page, in SQL that SQLite and PostgreSQL share. `parameter` writes the nth one, from 1. */
export function pageQuery(
  { columns, key }: ContentTable,
  from: string,
  continued: boolean,
  parameter: (n: number) => string,
): string {
  const keys = key.join(', ');
  const behind = continued ? ` WHERE (${keys}) > (${key.map((_, at) => parameter(at + 1)).join(', ')})` : '';
  const most = parameter(continued ? key.length + 1 : 1);
  return `SELECT ${columns.join(', ')} FROM ${from}${behind} ORDER BY ${keys} LIMIT ${most}`;
}

/** The key of a row, to go on behind it. */
export const keyOf = ({ key }: ContentTable, row: Cells): Cells => row.slice(0, key.length);
