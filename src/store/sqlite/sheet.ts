/**
 * What one transaction adds, as plain values in the order of the columns: worked out by a batch, written by whoever holds
 * the connection, here or on another thread. Knows the tables and nothing of what is in them.
 */
import type { Connection } from './connection.ts';
import { insertMany } from './insert.ts';
import { FILTERS } from './rows.ts';

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
  /** body, object, id: rows of which nothing but the body changed */
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
  bodies: [],
  dropped: [],
  receipts: [],
  nodes: [],
  tree: [],
  answers: [],
});

const ROW_COLUMNS = ['object', 'id', 'created_at', ...FILTERS, 'body'];
const each = (assignment: (name: string) => string): string => FILTERS.map(assignment).join(', ');

/** A function that writes a sheet; the transaction is its caller's. */
export function createSheetWriter(connection: Connection): (sheet: Sheet) => void {
  const resources = insertMany(connection, 'resources (id, object, name)', 3);
  const places = insertMany(connection, 'places (id, resource, task, session, workspace)', 5);
  const events = insertMany(connection, 'events', 5);
  const stretches = insertMany(connection, 'stretches', 3);
  const spans = insertMany(connection, 'spans', 2, { verb: 'INSERT OR IGNORE' });
  // A row keeps the place it was first given: its age is not among what a conflict changes.
  const rows = insertMany(connection, `rows (${ROW_COLUMNS.join(', ')})`, ROW_COLUMNS.length, {
    onConflict: `(object, id) DO UPDATE SET ${each((name) => `${name} = excluded.${name}`)}, body = excluded.body`,
  });
  // Naming a column in SET rewrites its indexes even when the value stays, so the usual change names none of them.
  const body = connection.prepare('UPDATE rows SET body = ? WHERE object = ? AND id = ?');
  const dropped = insertMany(connection, 'rows (object, id, created_at)', 3, {
    onConflict: `(object, id) DO UPDATE SET ${each((name) => `${name} = NULL`)}, body = NULL`,
  });
  const receipts = insertMany(connection, 'receipts (position, chain, number, id, hash, task_id, body)', 7);
  const nodes = insertMany(connection, 'tree_nodes (level, number, hash)', 3);
  const tree = connection.prepare('INSERT OR REPLACE INTO tree (one, size, frontier) VALUES (1, ?, ?)');
  const answers = insertMany(connection, 'idempotency (scope, digest, result, at)', 4);

  return (sheet) => {
    resources(sheet.resources);
    places(sheet.places);
    events(sheet.events);
    stretches(sheet.stretches);
    spans(sheet.spans);
    rows(sheet.rows);
    for (let at = 0; at < sheet.bodies.length; at += 3) body.run(sheet.bodies.slice(at, at + 3));
    dropped(sheet.dropped);
    receipts(sheet.receipts);
    nodes(sheet.nodes);
    if (sheet.tree.length > 0) tree.run(sheet.tree);
    answers(sheet.answers);
  };
}
