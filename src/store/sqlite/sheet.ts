/**
 * What one transaction adds, as plain values in the order of the columns: worked out by a batch, written by whoever holds
 * the connection, here or on another thread. Knows the tables and nothing of what is in them.
 */
import type { Connection } from './connection.ts';
import { insertMany } from './insert.ts';
import { nodePlace } from './receipts.ts';
import { columnsOf, SHELVES, type Shelf, shelfOf, type Table } from './shelves.ts';

export type Column = string | number | null;

/** Flat lists, one after the other: so many values per row as the comment names. */
export interface Sheet {
  /** number, object, name */
  readonly resources: Column[];
  /** number, resource, task, session, workspace */
  readonly places: Column[];
  /** position, resource, sequence, place, text */
  readonly events: Column[];
  /** resource, stretch, first sequence */
  readonly stretches: Column[];
  /** workspace, span */
  readonly spans: Column[];
  /** object, id, born, the filters, body: rows that are new, or filtered by something else than before */
  readonly rows: Column[];
  /** The same without object, and with the filters that are columns there */
  readonly sessions: Column[];
  readonly tasks: Column[];
  readonly messages: Column[];
  readonly outcomes: Column[];
  readonly runs: Column[];
  readonly tallies: Column[];
  /** object, id, state, body: rows filtered by another state than before, and by nothing else */
  readonly states: Column[];
  /** object, id, body: rows of which nothing but the body changed */
  readonly bodies: Column[];
  /** object, id, born */
  readonly dropped: Column[];
  /** position, chain, number, id, hash, task, body */
  readonly receipts: Column[];
  /** level, number, hash */
  readonly nodes: Column[];
  /** size, frontier; empty when no receipt was sealed */
  readonly tree: Column[];
  /** scope, digest, result, time */
  readonly answers: Column[];
}

export const blankSheet = (): Sheet => ({
  resources: [],
  places: [],
  events: [],
  stretches: [],
  spans: [],
  rows: [],
  sessions: [],
  tasks: [],
  messages: [],
  outcomes: [],
  runs: [],
  tallies: [],
  states: [],
  bodies: [],
  dropped: [],
  receipts: [],
  nodes: [],
  tree: [],
  answers: [],
});

/** A function that writes a sheet; the transaction is its caller's. */
export function createSheetWriter(connection: Connection): (sheet: Sheet) => void {
  const resources = insertMany(connection, 'resources (id, object, name)', 3);
  const places = insertMany(connection, 'places (id, resource, task, session, workspace)', 5);
  const events = insertMany(connection, 'events', 5);
  const stretches = insertMany(connection, 'stretches', 3);
  const spans = insertMany(connection, 'spans', 2, { verb: 'INSERT OR IGNORE' });
  const shelves = SHELVES.map((shelf) => ({ table: shelf.table, ...createShelfWriter(connection, shelf) }));
  const receipts = insertMany(connection, 'receipts (position, chain, number, id, hash, task_id, body)', 7);
  const nodes = insertMany(connection, 'tree_nodes', 2);
  const tree = connection.prepare('INSERT OR REPLACE INTO tree (one, size, frontier) VALUES (1, ?, ?)');
  const answers = insertMany(connection, 'idempotency (scope, digest, result, at)', 4);

  return (sheet) => {
    resources(sheet.resources);
    places(sheet.places);
    events(sheet.events);
    stretches(sheet.stretches);
    spans(sheet.spans);
    const states = byTable(sheet.states, 4);
    const bodies = byTable(sheet.bodies, 3);
    const dropped = byTable(sheet.dropped, 3);
    for (const shelf of shelves) {
      shelf.put(sheet[shelf.table]);
      shelf.states(states.get(shelf.table) ?? NOTHING);
      shelf.bodies(bodies.get(shelf.table) ?? NOTHING);
      shelf.drop(dropped.get(shelf.table) ?? NOTHING);
    }
    receipts(sheet.receipts);
    nodes(placed(sheet.nodes));
    if (sheet.tree.length > 0) tree.run(sheet.tree);
    answers(sheet.answers);
  };
}

/** Nodes of the tree, by where they are kept. */
function placed(nodes: readonly Column[]): Column[] {
  const values: Column[] = [];
  for (let at = 0; at < nodes.length; at += 3) {
    values.push(nodePlace(nodes[at] as number, nodes[at + 1] as number), nodes[at + 2] as Column);
  }
  return values;
}

const NOTHING: readonly Column[] = [];

/**
 * Naming a column in SET rewrites its index even when the value stays, so each kind of change names what it changes. What is
 * known to be there is changed by an INSERT that always meets it: many of those are one statement, and an UPDATE is one each.
 */
function createShelfWriter(connection: Connection, shelf: Shelf) {
  const { table, key, filters } = shelf;
  const meeting = (set: readonly string[]) => `(${key.join(', ')}) DO UPDATE SET ${set.join(', ')}`;
  const fresh = (name: string) => `${name} = excluded.${name}`;
  const columns = columnsOf(shelf);
  const change = (...names: string[]) =>
    insertMany(connection, `${table} (${[...key, ...names].join(', ')}, created_at)`, key.length + names.length, {
      more: ", ''",
      onConflict: meeting(names.map(fresh)),
    });
  return {
    // A row keeps the place it was first given: its age is not among what a conflict changes.
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

/** What is about rows of any kind, apart by where they lie. */
function byTable(values: readonly Column[], width: number): ReadonlyMap<Table, Column[]> {
  const apart = new Map<Table, Column[]>();
  for (let at = 0; at < values.length; at += width) {
    const { table, key } = shelfOf(values[at] as string);
    const list = apart.get(table) ?? [];
    apart.set(table, list);
    for (let next = at + 2 - key.length; next < at + width; next++) list.push(values[next] as Column);
  }
  return apart;
}
