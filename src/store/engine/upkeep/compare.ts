/**
 * Compares the stored rows with the rows the events fold to, and names a row that was edited, inserted or deleted beside the log.
 * Rows that rest on pruned events are counted and not judged, because the baseline they would be compared with is not part of any
 * proof. Reads in pages, each consistent with the events before it, so that writers can go on meanwhile.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { FilterName, Projector, Row, RowsReport } from '../../../ports/index.ts';
import type { Database, FoldedRow, StoredRow } from '../database.ts';
import { filterOf } from '../filters.ts';
import type { StoredLog } from '../packing/stored-log.ts';
import { andThen, type Wait } from '../wait.ts';
import { type Fresh, withFresh } from './rebuild.ts';

const PAGE = 1_000;

type Fault = NonNullable<RowsReport['fault']>;

export function compareRows(
  database: Database,
  log: StoredLog,
  projector: Projector,
  progress?: (position: number) => void,
): Promise<RowsReport> {
  return withFresh(database, log, projector, compare, progress);
}

async function compare(fresh: Fresh): Promise<RowsReport> {
  const counted = { compared: 0, unproven: 0 };
  const now = <T>(look: () => Wait<T>): Wait<T> => fresh.consistently(() => andThen(fresh.advance(), look));
  for (let after: StoredRow | undefined; ; await turn()) {
    const { stored, made } = await now(() =>
      andThen(fresh.stored(after, PAGE), (stored) => andThen(fresh.table.load(stored), (made) => ({ stored, made }))),
    );
    const byName = new Map(made.map((row) => [`${row.object}\n${row.id}`, row]));
    for (const row of stored) {
      const made = byName.get(`${row.object}\n${row.id}`);
      const what = made?.unproven ? undefined : differenceOf(row, made);
      if (what) return { ...counted, fault: { table: row.table, object: row.object, id: row.id, what } };
    }
    for (const row of stored) {
      counted[byName.get(`${row.object}\n${row.id}`)?.unproven ? 'unproven' : 'compared'] += 1;
    }
    after = stored.at(-1);
    if (!after) break;
  }
  const lost = await now(fresh.missing);
  return lost ? { ...counted, fault: { ...lost, what: 'it is missing' } satisfies Fault } : counted;
}

/** What is wrong with a stored row, beside the one its events make. */
function differenceOf({ body: kept, created_at, columns }: StoredRow, made: FoldedRow | undefined): string | undefined {
  if (!made) return kept === null ? undefined : 'no event makes it';
  if (!sameText(kept, made.body)) return differing(kept, made.body);
  if (kept === null) return undefined;
  const wrong = created_at === made.created_at ? columnIn(columns, kept) : 'created_at';
  return wrong && `its column ${wrong} is not what its events fold to`;
}

function columnIn(columns: StoredRow['columns'], body: string): string | undefined {
  const row = JSON.parse(body) as Row;
  return Object.entries(columns).find(([name, value]) => value !== filterOf(row, name as FilterName))?.[0];
}

/** Members may be in another order: a row that is read back and changed gets its new members at the end. */
function sameText(kept: string | null, made: string | null): boolean {
  if (kept === null || made === null || kept === made) return kept === made;
  try {
    return isDeepStrictEqual(JSON.parse(kept), JSON.parse(made));
  } catch {
    return false;
  }
}

function differing(kept: string | null, made: string | null): string {
  if (kept === null) return 'it is dropped, and its events keep it';
  return made === null ? 'its events drop it' : `its ${memberIn(kept, made)} is not what its events fold to`;
}

/** The first member that differs. */
function memberIn(kept: string, made: string): string {
  try {
    const [a, b] = [JSON.parse(kept), JSON.parse(made)] as Record<string, unknown>[];
    return Object.keys({ ...b, ...a }).find((name) => !isDeepStrictEqual(a?.[name], b?.[name])) ?? 'body';
  } catch {
    return 'body';
  }
}
