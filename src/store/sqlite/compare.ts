/**
 * Compares the stored rows with the rows the events fold to, and names a row that was edited, inserted or deleted beside the log.
 * Rows that rest on pruned events are counted and not judged, because the baseline they would be compared with is not part of any
 * proof. Reads in pages, each in one transaction with the events before it, so that writers can go on meanwhile.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Projector, RowsReport } from '../../ports/index.ts';
import type { Connection } from './connection.ts';
import { type Fresh, inTransaction, withFresh } from './fresh.ts';
import type { Log } from './log.ts';
import { columnsOf, filterInBody, ROW_TABLES, type RowTable } from './tables.ts';

const PAGE = 1_000;

type Fault = NonNullable<RowsReport['fault']>;
type Found = [object: string, id: string, unproven: number, known: number, otherBody: number, column: string | null];

export function createComparison(connection: Connection, log: Log, projector: Projector) {
  return (progress?: (position: number) => void): Promise<RowsReport> =>
    withFresh({ connection, log, projector }, (fresh) => compare(connection, fresh), progress);
}

async function compare(connection: Connection, fresh: Fresh): Promise<RowsReport> {
  const counted = { compared: 0, unproven: 0 };
  const now = <T>(look: () => T): T =>
    inTransaction(connection, () => {
      while (fresh.advance() > 0);
      return look();
    });
  for (const rowTable of ROW_TABLES) {
    const page = pages(connection, rowTable);
    for (let after: Found | undefined; ; await turn()) {
      const { found, fault } = now(() => page(after));
      if (fault) return { ...counted, fault };
      for (const [, , unproven] of found) counted[unproven ? 'unproven' : 'compared'] += 1;
      after = found.at(-1);
      if (!after) break;
    }
    const lost = now(() => missing(connection, rowTable));
    if (lost) return { ...counted, fault: lost };
  }
  return counted;
}

/** Reads the next rows of a table, and finds the first of them that differs from what the events fold to. */
function pages(connection: Connection, rowTable: RowTable) {
  const { table, holds, key, filters } = rowTable;
  const object = key.includes('object') ? 's_object' : holds.slice('object = '.length);
  // Renamed, so that an unqualified `body` is the one the events fold to.
  const renamed = columnsOf(rowTable).map((name) => `${name} AS s_${name}`);
  const columns = [
    `WHEN s_created_at IS NOT f.created_at THEN 'created_at'`,
    ...filters.map((name) => `WHEN s_${name} IS NOT ${filterInBody(name)} THEN '${name}'`),
  ];
  const select = (where: string) =>
    connection.prepare(
      `SELECT ${object}, s_id, coalesce(f.unproven, 0), f.id IS NOT NULL, s_body IS NOT f.body,
         CASE WHEN s_body IS NULL THEN NULL ${columns.join(' ')} END
       FROM (SELECT ${renamed.join(', ')} FROM ${table} WHERE ${where} ORDER BY ${key.join(', ')} LIMIT ${PAGE})
       LEFT JOIN temp.fresh f ON f.object = ${object} AND f.id = s_id
       ORDER BY ${key.map((name) => `s_${name}`).join(', ')}`,
    );
  const first = select('true');
  const next = select(`(${key.join(', ')}) > (${key.map(() => '?').join(', ')})`);
  const stored = connection.prepare(`SELECT body FROM ${table} WHERE ${key.join(' = ? AND ')} = ?`);
  const fresh = connection.prepare('SELECT body FROM temp.fresh WHERE object = ? AND id = ?');
  const keyOf = (of: string, id: string) => (key.length === 1 ? [id] : [of, id]);

  function faultIn([of, id, unproven, known, otherBody, column]: Found): Fault | undefined {
    if (unproven) return undefined;
    const about = { table, object: of, id };
    if (otherBody) {
      const [kept] = stored.get(keyOf(of, id)) as [string | null];
      if (!known) return kept === null ? undefined : { ...about, what: 'no event makes it' };
      const [made] = fresh.get([of, id]) as [string | null];
      if (!sameText(kept, made)) return { ...about, what: differing(kept, made) };
    }
    return column === null ? undefined : { ...about, what: `its column ${column} is not what its events fold to` };
  }

  return (after: Found | undefined): { found: Found[]; fault: Fault | undefined } => {
    const found = (after ? next.all(keyOf(after[0], after[1])) : first.all()) as Found[];
    for (const row of found) {
      const fault = faultIn(row);
      if (fault) return { found, fault };
    }
    return { found, fault: undefined };
  };
}

/** Finds a row that the events make and the table lacks. A dropped row may be absent. */
function missing(connection: Connection, { table, holds, key }: RowTable): Fault | undefined {
  const [object, id] =
    (connection
      .prepare(
        `SELECT object, id FROM temp.fresh f WHERE ${holds} AND body IS NOT NULL AND unproven = 0 AND NOT EXISTS
           (SELECT 1 FROM ${table} s WHERE ${key.map((name) => `s.${name} = f.${name}`).join(' AND ')})
         ORDER BY object, id LIMIT 1`,
      )
      .get() as [string, string] | undefined) ?? [];
  return object === undefined || id === undefined ? undefined : { table, object, id, what: 'it is missing' };
}

/** Members may be in another order: a row that is read back and changed gets its new members at the end. */
function sameText(kept: string | null, made: string | null): boolean {
  if (kept === null || made === null) return kept === made;
  try {
    return isDeepStrictEqual(JSON.parse(kept), JSON.parse(made));
  } catch {
    return false;
  }
}

function differing(kept: string | null, made: string | null): string {
  if (kept === null) return 'it is dropped, and its events keep it';
  return made === null ? 'its events drop it' : `its ${membersIn(kept, made)} is not what its events fold to`;
}

/** The first member that differs. */
function membersIn(kept: string, made: string): string {
  try {
    const [a, b] = [JSON.parse(kept), JSON.parse(made)] as Record<string, unknown>[];
    return Object.keys({ ...b, ...a }).find((name) => !isDeepStrictEqual(a?.[name], b?.[name])) ?? 'body';
  } catch {
    return 'body';
  }
}
