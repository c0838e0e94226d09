/**
 * Which table holds which rows, and by which columns they are listed. The kinds of row that every task produces have tables of
 * their own, with a column for each filter they are listed by; all other rows share `rows`, which has a column for every filter.
 * A filter without a column is answered from the bodies: correct, but it reads every row. Knows nothing of what a row means.
 */
import type { FilterName } from '../../ports/index.ts';
import { FILTERS } from '../engine/filters.ts';

export type Table = 'rows' | 'sessions' | 'tasks' | 'messages' | 'outcomes' | 'runs' | 'tallies';

export interface RowTable {
  readonly table: Table;
  /** The one kind of row it holds; absent: several. */
  readonly object?: string;
  /** SQL condition that selects this table's rows among all projections. */
  readonly holds: string;
  /** The primary key. */
  readonly key: readonly ('object' | 'id')[];
  /** Filters that are columns, in the order of the columns. */
  readonly filters: readonly FilterName[];
}

/** By object. Adding a table, or a filter to a table, is a step in `migrations.ts`. */
const OWN: ReadonlyMap<string, RowTable> = new Map([
  own('session', 'sessions', 'workspace_id', 'state'),
  own('task', 'tasks', 'workspace_id', 'session_id', 'state'),
  own('message', 'messages', 'session_id'),
  own('outcome', 'outcomes', 'task_id'),
  own('run', 'runs', 'session_id'),
  own('tally', 'tallies'),
]);
const ROWS: RowTable = {
  table: 'rows',
  holds: `object NOT IN (${[...OWN.keys()].map((object) => `'${object}'`).join(', ')})`,
  key: ['object', 'id'],
  filters: FILTERS,
};
export const ROW_TABLES: readonly RowTable[] = [...OWN.values(), ROWS];

function own(object: string, table: Table, ...filters: FilterName[]): [string, RowTable] {
  return [object, { table, object, holds: `object = '${object}'`, key: ['id'], filters }];
}

export function rowTableOf(object: string): RowTable {
  return OWN.get(object) ?? ROWS;
}

export function columnsOf({ key, filters }: RowTable): readonly string[] {
  return [...key, 'created_at', ...filters, 'body'];
}

/** The value a list is filtered by, in SQL, from a column named body: the same as `filterOf`. */
export function filterInBody(name: FilterName): string {
  const text = (member: string) => `CASE json_type(body, '$.${member}') WHEN 'text' THEN body ->> '$.${member}' END`;
  if (name !== 'state') return text(name);
  return `CASE WHEN coalesce(json_type(body, '$.status'), 'null') = 'null' THEN ${text('state')} ELSE ${text('status')} END`;
}

export function keyValues(key: RowTable['key'], object: string, id: string): string[] {
  return key.length === 1 ? [id] : [object, id];
}
