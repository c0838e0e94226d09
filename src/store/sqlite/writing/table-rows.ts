/**
 * A write set as rows of the tables, in flat lists that either thread's connection writes. Knows the tables and nothing of what is in
 * them.
 */
import type { Column, RowChange, WriteSet } from '../../engine/commit/write-set.ts';
import { filterOf } from '../../engine/filters.ts';
import type { Connection } from '../file/connection.ts';
import { nodePosition } from '../receipts.ts';
import { columnsOf, keyValues, ROW_TABLES, type RowTable, rowTableOf, type Table } from '../tables.ts';
import { insertMany } from './insert.ts';

/** Flat lists of rows, one after the other; each comment names the values of one row. Other lists are those of the write set. */
export interface TableRows extends Omit<Record<keyof WriteSet, readonly Column[]>, 'rows'>, Record<Table, Column[]> {
  /** object, id, state, body: rows whose only changed filter is the state */
  readonly states: Column[];
  /** object, id, body: rows of which only the body changed */
  readonly bodies: Column[];
  /** object, id, born */
  readonly dropped: Column[];
}

/** Rows that are new, or that have another filter value than before, go to the list of their table with all columns. */
export function tableRowsOf(writeSet: WriteSet): TableRows {
  const rows: TableRows = {
    ...writeSet,
    ...{ rows: [], sessions: [], tasks: [], messages: [], outcomes: [], runs: [], tallies: [] },
    ...{ states: [], bodies: [], dropped: [] },
  };
  for (const change of writeSet.rows) putRow(rows, change);
  return rows;
}

function putRow(rows: TableRows, { object, id, born, row, body, before }: RowChange): void {
  if (!row) {
    rows.dropped.push(object, id, born);
    return;
  }
  const { table, filters, key } = rowTableOf(object);
  const changed = before && filters.filter((name) => filterOf(before, name) !== filterOf(row, name));
  if (changed?.length === 0) {
    rows.bodies.push(object, id, body);
  } else if (changed?.length === 1 && changed[0] === 'state') {
    rows.states.push(object, id, filterOf(row, 'state'), body);
  } else {
    const list = rows[table];
    list.push(...keyValues(key, object, id), born);
    for (const name of filters) list.push(filterOf(row, name));
    list.push(body);
  }
}

/** Returns a function that writes rows in the caller's transaction. */
export function createTableWriter(connection: Connection): (rows: TableRows) => void {
  const resources = insertMany(connection, 'resources (id, object, name)', 3);
  const locations = insertMany(connection, 'places (id, resource, task, session, workspace)', 5);
  const words = insertMany(connection, 'words', 3);
  const events = insertMany(connection, 'events', 5);
  const stretches = insertMany(connection, 'stretches', 3);
  const spans = insertMany(connection, 'spans', 2, { verb: 'INSERT OR IGNORE' });
  const rowWriters = ROW_TABLES.map((rowTable) => ({
    table: rowTable.table,
    ...createRowTableWriter(connection, rowTable),
  }));
  const receipts = insertMany(connection, 'receipts (position, chain, number, id, hash, task_id, body)', 7);
  const nodes = insertMany(connection, 'tree_nodes', 2);
  const tree = connection.prepare('INSERT OR REPLACE INTO tree (one, size, frontier) VALUES (1, ?, ?)');
  const answers = insertMany(connection, 'idempotency (scope, digest, result, at)', 4);

  return (writeSet) => {
    resources(writeSet.resources);
    locations(writeSet.locations);
    words(writeSet.words);
    events(writeSet.events);
    stretches(writeSet.stretches);
    spans(writeSet.spans);
    const states = byTable(writeSet.states, 4);
    const bodies = byTable(writeSet.bodies, 3);
    const dropped = byTable(writeSet.dropped, 3);
    for (const rowTable of rowWriters) {
      rowTable.put(writeSet[rowTable.table]);
      rowTable.states(states.get(rowTable.table) ?? NOTHING);
      rowTable.bodies(bodies.get(rowTable.table) ?? NOTHING);
      rowTable.drop(dropped.get(rowTable.table) ?? NOTHING);
    }
    receipts(writeSet.receipts);
    nodes(placed(writeSet.nodes));
    if (writeSet.tree.length > 0) tree.run(writeSet.tree);
    answers(writeSet.answers);
  };
}

/** Nodes of the tree, keyed by their position in the table. */
function placed(nodes: readonly Column[]): Column[] {
  const values: Column[] = [];
  for (let at = 0; at < nodes.length; at += 3) {
    values.push(nodePosition(nodes[at] as number, nodes[at + 1] as number), nodes[at + 2] as Column);
  }
  return values;
}

const NOTHING: readonly Column[] = [];

/**
 * Naming a column in SET rewrites its index even when the value stays, so each kind of change names only what it changes. Rows
 * known to exist are changed by an INSERT that always conflicts: one statement takes many rows, whereas an UPDATE takes one.
 */
function createRowTableWriter(connection: Connection, rowTable: RowTable) {
  const { table, key, filters } = rowTable;
  const meeting = (set: readonly string[]) => `(${key.join(', ')}) DO UPDATE SET ${set.join(', ')}`;
  const fresh = (name: string) => `${name} = excluded.${name}`;
  const columns = columnsOf(rowTable);
  const change = (...names: string[]) =>
    insertMany(connection, `${table} (${[...key, ...names].join(', ')}, created_at)`, key.length + names.length, {
      more: ", ''",
      onConflict: meeting(names.map(fresh)),
    });
  return {
    // A row keeps its first sort key: created_at is not among the columns a conflict changes.
    put: insertMany(connection, `${table} (${columns.join(', ')})`, columns.length, {
      onConflict: meeting([...filters, 'body'].map(fresh)),
    }),
    states: change('state', 'body'),
    bodies: change('body'),
    drop: insertMany(connection, `${table} (${[...key, 'created_at'].join(', ')})`, key.length + 1, {
      onConflict: meeting([...filters, 'body'].map((name) => `${name} = NULL`)),
    }),
  };
}

/** Splits values about rows of any kind by the table they belong to. */
function byTable(values: readonly Column[], width: number): ReadonlyMap<Table, Column[]> {
  const apart = new Map<Table, Column[]>();
  for (let at = 0; at < values.length; at += width) {
    const { table, key } = rowTableOf(values[at] as string);
    const list = apart.get(table) ?? [];
    apart.set(table, list);
    for (let next = at + 2 - key.length; next < at + width; next++) list.push(values[next] as Column);
  }
  return apart;
}
