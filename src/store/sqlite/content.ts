/** A file as the rows of a log: those of one moment, to be copied elsewhere, or a new file that becomes a log when all of them are there. */
import { rmSync } from 'node:fs';
import { Fault } from '../../model/faults.ts';
import type { Row } from '../../ports/index.ts';
import {
  type Cell,
  type Cells,
  type Content,
  type CopyState,
  type NewContent,
  pageQuery,
  type TableName,
  tableNamed,
} from '../engine/copy/content.ts';
import { filterOf } from '../engine/filters.ts';
import { LOCK_TIMEOUT_MS } from '../engine/store.ts';
import { type Connection, openConnection } from './file/connection.ts';
import { createLeases } from './file/lease.ts';
import { APPLICATION_ID } from './file/migrations.ts';
import { columnsOf, keyValues, ROW_TABLES, rowTableOf } from './tables.ts';
import { insertMany } from './writing/insert.ts';

export async function openSqliteContent(path: string): Promise<Content> {
  const connection = await openConnection({ path, lockTimeoutMs: LOCK_TIMEOUT_MS });
  // Reading pins the moment; writers go on, in the write-ahead log.
  connection.exec('BEGIN');
  connection.prepare('SELECT count(*) FROM meta').get();
  return { ...readerOf(connection), close: () => close(connection) };
}

/** A file that does not exist yet, or holds a copy that was broken off, which is begun anew. */
export async function createSqliteContent(path: string, state: CopyState): Promise<NewContent> {
  const leases = createLeases(`${path}.leases`);
  const lease = leases.take('copy');
  if (!lease) throw new Fault('locked', `another process copies a log to ${path}`);
  try {
    const options = { path, lockTimeoutMs: LOCK_TIMEOUT_MS, incomplete: true };
    // Refused where it is anything but a copy that was broken off.
    let connection = await openConnection(options);
    if (state === 'new') {
      connection.close();
      for (const file of filesOf(path)) rmSync(file, { force: true });
      connection = await openConnection(options);
    }
    return {
      ...readerOf(connection),
      write: (name, rows) => inTransaction(connection, () => writeRows(connection, name, rows)),
      complete() {},
      finish: () => inTransaction(connection, () => connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`)),
      async close() {
        close(connection);
        await lease.close();
        leases.close();
      },
    };
  } catch (thrown) {
    await lease.close();
    leases.close();
    throw thrown;
  }
}

const filesOf = (path: string): readonly string[] => [path, `${path}-wal`, `${path}-shm`, `${path}.born`];

function close(connection: Connection): void {
  connection.rollback();
  connection.close();
}

function inTransaction(connection: Connection, work: () => void): void {
  connection.begin();
  try {
    work();
    connection.commit();
  } catch (thrown) {
    connection.rollback();
    throw thrown;
  }
}

function readerOf(connection: Connection): Pick<Content, 'count' | 'page'> {
  const all = (sql: string, params: Cells = []) => connection.prepare(sql).all(params) as Cell[][];
  const counted = (table: string) => all(`SELECT count(*) FROM ${table}`)[0]![0] as number;

  /** Kinds of row that have a table of their own, and those that share one, in the order of their names. */
  function objects(): readonly string[] {
    const shared = all('SELECT DISTINCT object FROM rows').map(([object]) => object as string);
    const own = ROW_TABLES.flatMap(({ object }) => object ?? []);
    return [...own, ...shared].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  }

  function pageOfRows(after: Cells | undefined, most: number): readonly Cells[] {
    const page: Cells[] = [];
    for (const object of objects()) {
      if (after && Buffer.compare(Buffer.from(object), Buffer.from(after[0] as string)) < 0) continue;
      const from = after?.[0] === object ? (after[1] as string) : undefined;
      const { table, key } = rowTableOf(object);
      const terms = [...(key.includes('object') ? ['object = ?'] : []), ...(from === undefined ? [] : ['id > ?'])];
      const found = all(
        `SELECT id, created_at, body FROM ${table}${terms.length > 0 ? ` WHERE ${terms.join(' AND ')}` : ''} ORDER BY id LIMIT ?`,
        [...(key.includes('object') ? [object] : []), ...(from === undefined ? [] : [from]), most - page.length],
      );
      for (const row of found) page.push([object, ...row]);
      if (page.length === most) return page;
    }
    return page;
  }

  return {
    count: (name) => (name === 'rows' ? ROW_TABLES.reduce((sum, { table }) => sum + counted(table), 0) : counted(name)),
    page(name, after, most) {
      if (name === 'rows') return pageOfRows(after, most);
      const sql = pageQuery(tableNamed(name), name, after !== undefined, () => '?');
      return all(sql, [...(after ?? []), most]);
    },
  };
}

function writeRows(connection: Connection, name: TableName, rows: readonly Cells[]): void {
  if (name !== 'rows') {
    const { columns } = tableNamed(name);
    insertMany(connection, `${name} (${columns.join(', ')})`, columns.length)(rows.flat());
    return;
  }
  for (const [object = '', id = '', born = '', body = null] of rows as readonly (string | null)[][]) {
    const table = rowTableOf(object!);
    const row = body === null ? undefined : (JSON.parse(body) as Row);
    const filters = table.filters.map((filter) => (row ? filterOf(row, filter) : null));
    const columns = columnsOf(table);
    insertMany(
      connection,
      `${table.table} (${columns.join(', ')})`,
      columns.length,
    )([...keyValues(table.key, object!, id!), ...[born, ...filters, body]]);
  }
}
