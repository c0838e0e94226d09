/**
 * Rows while events are folded into them: the baseline, and a table of its own for rows that are computed anew. That table is not
 * written to the write-ahead log, and is dropped afterwards; one whose gateway died is dropped a day later.
 */
import { randomBytes } from 'node:crypto';
import type { Row } from '../../../ports/index.ts';
import type { FoldedRow, FoldTable, FreshRows, StoredRow } from '../../engine/database.ts';
import { FILTERS, filterOf } from '../../engine/filters.ts';
import type { Connections, Transaction } from '../connection/connections.ts';
import { filledIn } from '../schema/migrations.ts';

const COLUMNS = `object, id, created_at, ${FILTERS.join(', ')}, body`;
export const FRESH = 'fresh_';

/** `unproven`: whether the table has that column; the baseline rests on nothing else. */
export function createFoldTable(
  connections: Connections,
  table: string,
  unproven: boolean,
  changed: () => void = () => undefined,
): FoldTable {
  const columns = unproven ? `${COLUMNS}, unproven` : COLUMNS;
  const set = [...FILTERS, 'body', ...(unproven ? ['unproven'] : [])].map((name) => `${name} = excluded.${name}`);
  const LOAD = `SELECT t.object, t.id, t.created_at, t.body, ${unproven ? 't.unproven' : 'false'}
    FROM unnest($1::text[], $2::text[]) AS q (object, id) JOIN ${table} t ON t.object = q.object AND t.id = q.id`;
  const types = [...columns.split(', ')].map((name, at) => `$${at + 1}::${name === 'unproven' ? 'boolean' : 'text'}[]`);
  const SAVE = `INSERT INTO ${table} (${columns}) SELECT * FROM unnest(${types.join(', ')})
    ON CONFLICT (object, id) DO UPDATE SET created_at = excluded.created_at, ${set.join(', ')}`;
  return {
    async load(pointers) {
      if (pointers.length === 0) return [];
      const values = [pointers.map(({ object }) => object), pointers.map(({ id }) => id)];
      // The columns of the statement.
      const found = (await connections.query(LOAD, values)) as unknown as [
        string,
        string,
        string,
        string | null,
        boolean,
      ][];
      return found.map(([object, id, created_at, body, unproven]) => ({ object, id, created_at, body, unproven }));
    },
    async save(rows) {
      if (rows.length === 0) return;
      changed();
      const parsed = rows.map(({ body }) => (body === null ? undefined : (JSON.parse(body) as Row)));
      await connections.query(SAVE, [
        ...[textsOf(rows, 'object'), textsOf(rows, 'id'), textsOf(rows, 'created_at')],
        ...FILTERS.map((name) => parsed.map((row) => (row ? filterOf(row, name) : null))),
        textsOf(rows, 'body'),
        ...(unproven ? [rows.map((row) => String(row.unproven))] : []),
      ]);
    },
  };
}

function textsOf(rows: readonly FoldedRow[], name: 'object' | 'id' | 'created_at' | 'body'): (string | null)[] {
  return rows.map((row) => row[name]);
}

export async function createFresh(connections: Connections, schema: string, changed: () => void): Promise<FreshRows> {
  const sql = (text: string) => filledIn(text, schema);
  const name = `${FRESH}${Math.floor(Date.now() / 1000)}_${randomBytes(6).toString('hex')}`;
  const table = sql(`$S.${name}`);
  await connections.query(
    sql(`CREATE UNLOGGED TABLE ${table} (LIKE $S.rows INCLUDING DEFAULTS, unproven BOOLEAN NOT NULL DEFAULT false,
      PRIMARY KEY (object, id))`),
  );
  const STORED = sql(
    `SELECT ${COLUMNS} FROM $S.rows WHERE $1::text IS NULL OR (object, id) > ($1, $2) ORDER BY object, id LIMIT $3`,
  );
  const MISSING = sql(
    `SELECT object, id FROM ${table} f WHERE body IS NOT NULL AND NOT unproven
     AND NOT EXISTS (SELECT 1 FROM $S.rows r WHERE r.object = f.object AND r.id = f.id) ORDER BY object, id LIMIT 1`,
  );

  return {
    table: createFoldTable(connections, table, true),
    async restart() {
      await connections.query(`DELETE FROM ${table}`);
      await connections.query(
        sql(`INSERT INTO ${table} (${COLUMNS}, unproven) SELECT ${COLUMNS}, true FROM $S.baseline`),
      );
    },
    async consistently(work) {
      const connection = await connections.take();
      let broken = true;
      const transaction: Transaction = { query: connection.query, over: false, noticed: false };
      try {
        await connection.batch('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
        const result = await connections.within(transaction, work);
        transaction.over = true;
        await connection.end('COMMIT');
        broken = false;
        return result;
      } finally {
        transaction.over = true;
        connection.release(broken);
      }
    },
    async exchange() {
      changed();
      await connections.query(sql('DELETE FROM $S.rows'));
      await connections.query(sql(`INSERT INTO $S.rows (${COLUMNS}) SELECT ${COLUMNS} FROM ${table}`));
    },
    async stored(after, most) {
      const found = await connections.query(STORED, [after?.object ?? null, after?.id ?? null, most]);
      return found.map(([object, id, created_at, ...rest]) => {
        const values = rest as (string | null)[];
        return {
          table: 'rows',
          ...{ object, id, created_at },
          body: values.at(-1) ?? null,
          columns: Object.fromEntries(FILTERS.map((name, at) => [name, values[at] ?? null])),
        } as StoredRow;
      });
    },
    async missing() {
      const [found] = await connections.query(MISSING);
      return found && { table: 'rows', object: found[0] as string, id: found[1] as string };
    },
    async close() {
      await connections.query(`DROP TABLE IF EXISTS ${table}`);
    },
  };
}
