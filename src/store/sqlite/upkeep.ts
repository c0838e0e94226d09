/** The SQL of pruning, rebuilding and comparing. */
import { SPAN, stretchOf } from '../engine/commit/write-set.ts';
import type { FoldTable, FreshRows, StoredRow, Upkeep } from '../engine/database.ts';
import { createColumns } from './columns.ts';
import type { Connection, Value } from './file/connection.ts';
import type { LogRows } from './log.ts';
import { prunedHeadName } from './log-tree.ts';
import { columnsOf, filterInBody, keyValues, ROW_TABLES, type RowTable } from './tables.ts';
import type { WordRows } from './words.ts';

export function createUpkeep(connection: Connection, log: LogRows, words: WordRows, tidyRest: () => void): Upkeep {
  const nextState = connection.prepare('SELECT min(state) FROM tasks WHERE state > ?');
  const tasksIn = connection.prepare('SELECT id FROM tasks WHERE state = ?');
  const tasksWithout = connection.prepare('SELECT id FROM tasks WHERE state IS NULL AND body IS NOT NULL');
  const lastSequences = connection.prepare(
    'SELECT resource, max(sequence) FROM events WHERE position > ? AND position <= ? GROUP BY resource',
  );
  const firstInLocations = connection.prepare(
    'SELECT place, min(position) FROM events WHERE position > ? AND position <= ? GROUP BY place',
  );
  const setBase = connection.prepare('UPDATE resources SET base = ? WHERE id = ?');
  const markLocation = connection.prepare('UPDATE places SET pruned = ? WHERE id = ? AND pruned = 0');
  const removeStretches = connection.prepare('DELETE FROM stretches WHERE stretch < ?');
  const remove = connection.prepare('DELETE FROM events WHERE position <= ?');
  const setMeta = connection.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)');
  const removeSpans = connection.prepare('DELETE FROM spans WHERE span < ?');
  const removeKeys = connection.prepare(
    'DELETE FROM idempotency WHERE scope IN (SELECT scope FROM idempotency WHERE at < ? LIMIT ?)',
  );
  const changes = connection.prepare('SELECT changes()');

  return {
    openTasks(isOver) {
      const open = (tasksWithout.all() as [string][]).map(([id]) => id);
      let state = '';
      while (true) {
        const next = (nextState.get([state]) as [string | null])[0];
        if (next === null) return open;
        state = next;
        if (!isOver(state)) open.push(...(tasksIn.all([state]) as [string][]).map(([id]) => id));
      }
    },
    baseline: createFoldTable(connection, 'baseline'),
    prune({ upTo, at, heads }) {
      const floor = log.floor();
      for (const [object, text] of heads) setMeta.run([prunedHeadName(object), text]);
      for (const [resource, sequence] of lastSequences.all([floor, upTo]) as [number, number][]) {
        setBase.run([sequence, resource]);
      }
      // Remembers the first pruned event of each location, to be named to a reader that misses it.
      for (const [location, position] of firstInLocations.all([floor, upTo]) as [number, number][]) {
        markLocation.run([position, location]);
      }
      remove.run([upTo]);
      setMeta.run(['floor', String(upTo)]);
      setMeta.run(['floor_at', at]);
    },
    dropKeys(before, most) {
      removeKeys.run([before, most]);
      return (changes.get() as [number])[0];
    },
    tidy() {
      const first = log.floor() + 1;
      removeSpans.run([Math.floor(first / SPAN)]);
      removeStretches.run([stretchOf(first)]);
      words.prune(first);
      tidyRest();
    },
    columnFault: createColumns(connection, log, words),
    fresh: () => createFresh(connection),
  };
}

/** `table` has object, id, created_at and body; `unproven` names a column that the baseline, which rests on nothing else, lacks. */
function createFoldTable(connection: Connection, table: string, unproven?: 'unproven'): FoldTable {
  const select = connection.prepare(
    `SELECT created_at, body, ${unproven ?? 0} FROM ${table} WHERE object = ? AND id = ?`,
  );
  const columns = ['object', 'id', 'created_at', 'body', ...(unproven ? [unproven] : [])];
  const changed = columns.slice(3).map((name) => `${name} = excluded.${name}`);
  const upsert = connection.prepare(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
     ON CONFLICT (object, id) DO UPDATE SET ${changed.join(', ')}`,
  );
  return {
    load: (pointers) =>
      pointers.flatMap(({ object, id }) => {
        const found = select.get([object, id]) as [string, string | null, number] | undefined;
        return found ? [{ object, id, created_at: found[0], body: found[1], unproven: found[2] === 1 }] : [];
      }),
    save(rows) {
      for (const row of rows) {
        const values: Value[] = [row.object, row.id, row.created_at, row.body];
        upsert.run(unproven ? [...values, row.unproven ? 1 : 0] : values);
      }
    },
  };
}

const EXCHANGE = ROW_TABLES.map((rowTable) => {
  const values = [...rowTable.key, 'created_at', ...rowTable.filters.map(filterInBody), 'body'];
  return `
    DELETE FROM ${rowTable.table};
    INSERT INTO ${rowTable.table} (${columnsOf(rowTable).join(', ')})
    SELECT ${values.join(', ')} FROM temp.fresh WHERE ${rowTable.holds} ORDER BY rowid;
  `;
}).join('');

/** In a temporary table of this connection, in a file: the driver keeps temporary tables in memory by default. */
function createFresh(connection: Connection): FreshRows {
  connection.exec(`DROP TABLE IF EXISTS temp.fresh; PRAGMA temp_store = FILE; CREATE TEMP TABLE fresh
    (object TEXT NOT NULL, id TEXT NOT NULL, created_at TEXT NOT NULL, body TEXT, unproven INTEGER NOT NULL DEFAULT 0,
     PRIMARY KEY (object, id))`);

  function storedIn(rowTable: RowTable, after: StoredRow | undefined, most: number): StoredRow[] {
    const { table, key, filters, holds } = rowTable;
    const columns = columnsOf(rowTable);
    const behind = after ? `WHERE (${key.join(', ')}) > (${key.map(() => '?').join(', ')})` : '';
    const select = connection.prepare(
      `SELECT ${columns.join(', ')} FROM ${table} ${behind} ORDER BY ${key.join(', ')} LIMIT ?`,
    );
    const found = select.all([...(after ? keyValues(key, after.object, after.id) : []), most]) as (string | null)[][];
    return found.map((values) => {
      const value = (name: string) => values[columns.indexOf(name)] as string;
      return {
        table,
        object: key.includes('object') ? value('object') : holds.slice("object = '".length, -1),
        id: value('id'),
        created_at: value('created_at'),
        body: value('body') as string | null,
        columns: Object.fromEntries(filters.map((name) => [name, value(name)])),
      };
    });
  }

  return {
    table: createFoldTable(connection, 'temp.fresh', 'unproven'),
    restart: () =>
      connection.exec(
        'DELETE FROM temp.fresh; INSERT INTO temp.fresh SELECT object, id, created_at, body, 1 FROM baseline',
      ),
    consistently(work) {
      connection.exec('BEGIN');
      try {
        const result = work();
        connection.commit();
        return result;
      } catch (thrown) {
        connection.rollback();
        throw thrown;
      }
    },
    exchange: () => connection.exec(EXCHANGE),
    stored(after, most) {
      const from = after ? ROW_TABLES.findIndex(({ table }) => table === after.table) : 0;
      for (const [at, rowTable] of ROW_TABLES.entries()) {
        if (at < from) continue;
        const found = storedIn(rowTable, at === from ? after : undefined, most);
        if (found.length > 0) return found;
      }
      return [];
    },
    missing() {
      for (const { table, holds, key } of ROW_TABLES) {
        const select = connection.prepare(
          `SELECT object, id FROM temp.fresh f WHERE ${holds} AND body IS NOT NULL AND unproven = 0 AND NOT EXISTS
             (SELECT 1 FROM ${table} s WHERE ${key.map((name) => `s.${name} = f.${name}`).join(' AND ')})
           ORDER BY object, id LIMIT 1`,
        );
        const [object, id] = (select.get() as [string, string] | undefined) ?? [];
        if (object !== undefined && id !== undefined) return { table, object, id };
      }
      return undefined;
    },
    close: () => connection.exec('DROP TABLE IF EXISTS temp.fresh; PRAGMA temp_store = DEFAULT'),
  };
}
