/**
 * Which rows lie where, and by what they are found. What every task leaves behind has a table of its own, with a column for each
 * filter that somebody lists it by; all the rest shares `rows`, which has them all. A filter without a column is answered from the
 * bodies: as right, and as slow as there are rows. Knows nothing of what a row means.
 */
import type { FilterName, Row } from '../../ports.ts';

/** A table is also the name of a list on a sheet. */
export type Table = 'rows' | 'sessions' | 'tasks' | 'messages' | 'outcomes' | 'runs' | 'tallies';

export interface Shelf {
  readonly table: Table;
  /** Which of the rows in the log lie here. */
  readonly holds: string;
  /** What tells a row from the others in the table. */
  readonly key: readonly ('object' | 'id')[];
  /** Filters that are columns, in the order of the columns. */
  readonly filters: readonly FilterName[];
}

/** By object. Adding one, or a filter to one, is a step in `migrations.ts`. */
const OWN: ReadonlyMap<string, Shelf> = new Map([
  own('session', 'sessions', 'workspace_id', 'state'),
  own('task', 'tasks', 'workspace_id', 'session_id', 'state'),
  own('message', 'messages', 'session_id'),
  own('outcome', 'outcomes', 'task_id'),
  own('run', 'runs', 'session_id'),
  own('tally', 'tallies'),
]);
const ROWS: Shelf = {
  table: 'rows',
  holds: `object NOT IN (${[...OWN.keys()].map((object) => `'${object}'`).join(', ')})`,
  key: ['object', 'id'],
  filters: ['workspace_id', 'session_id', 'task_id', 'parent_task_id', 'state', 'owner_id'],
};
export const SHELVES: readonly Shelf[] = [...OWN.values(), ROWS];

function own(object: string, table: Table, ...filters: FilterName[]): [string, Shelf] {
  return [object, { table, holds: `object = '${object}'`, key: ['id'], filters }];
}

export function shelfOf(object: string): Shelf {
  return OWN.get(object) ?? ROWS;
}

export function columnsOf({ key, filters }: Shelf): readonly string[] {
  return [...key, 'created_at', ...filters, 'body'];
}

/** The value a list is filtered by; only text counts. */
export function filterOf(row: Row, name: FilterName): string | null {
  const members = row as unknown as Record<string, unknown>;
  const value = name === 'state' ? (members.status ?? members.state) : members[name];
  return typeof value === 'string' ? value : null;
}

/** The same in SQL, from a column named body. */
export function filterInBody(name: FilterName): string {
  const text = (member: string) => `CASE json_type(body, '$.${member}') WHEN 'text' THEN body ->> '$.${member}' END`;
  if (name !== 'state') return text(name);
  return `CASE WHEN coalesce(json_type(body, '$.status'), 'null') = 'null' THEN ${text('state')} ELSE ${text('status')} END`;
}
