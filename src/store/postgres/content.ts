/** A schema as the rows of a log: those of one moment, to be copied elsewhere, or a new schema that becomes a log when all of them are there. */

import { Fault } from '../../model/faults.ts';
import type { FilterName, Row } from '../../ports/index.ts';
import {
  type Cell,
  type Cells,
  CONTENT,
  type Content,
  type CopyState,
  FLOOR,
  FLOOR_AT,
  type NewContent,
  pageQuery,
  type TableName,
  tableNamed,
} from '../engine/copy/content.ts';
import { holdsLog } from '../engine/copy/refused.ts';
import { filterOf } from '../engine/filters.ts';
import { type Connection, type Connections, createConnections, type Value } from './connection/connections.ts';
import { environmentFault } from './errors.ts';
import { lockKey, nameOf, type PostgresLocation, SCHEMA, targetOf } from './location.ts';
import { COPYING, filledIn, MAJOR, migrate, PARTITION, quoted, versionOf } from './schema/migrations.ts';

const OWN_LIMITS = { statementTimeoutMs: 3_600_000, connections: 1 };
const FILTERS: readonly FilterName[] = ['workspace_id', 'session_id', 'task_id', 'parent_task_id', 'state', 'owner_id'];
const NUMBERS = /^(id|one|base|resource|pruned|position|stretch|first|span|sequence|place|number|size|part)$/;
/** Where ids are text, and not numbers of our own. */
const NAMED: readonly TableName[] = ['rows', 'baseline', 'receipts'];

export async function openPostgresContent(location: PostgresLocation): Promise<Content> {
  return await opened(location, async (connections, connection, schema, name) => {
    if ((await versionOf(connection, schema)) === undefined) throw new Fault('not_found', `there is no log in ${name}`);
    await migrate(connection, schema, name);
    await connection.batch('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1');
    return {
      ...readerOf(connection, schema),
      async close() {
        await connection.end('ROLLBACK').catch(() => undefined);
        connection.release();
        await connections.close();
      },
    };
  });
}

/** A schema without a log, or with a copy that was broken off, which is begun anew. */
export async function createPostgresContent(location: PostgresLocation, state: CopyState): Promise<NewContent> {
  return await opened(location, async (connections, connection, schema, name) => {
    // Held as long as this connection: two copies into one schema would mix.
    const [taken] = await connection.query('SELECT pg_try_advisory_lock($1::bigint)', [lockKey(schema, 'copy')]);
    if (taken![0] !== true) throw new Fault('locked', `another process copies a log to ${name}`);
    const version = await versionOf(connection, schema);
    // Tables without a row are there once keys were made for the gateways to come.
    if (version?.major === MAJOR) await takeEmpty(connection, schema, name);
    await migrate(connection, schema, name, { major: COPYING });
    if (state === 'new') await empty(connection, schema);
    const sql = (text: string) => filledIn(text, schema);
    const partitions = createPartitions(connection, sql);
    return {
      ...readerOf(connection, schema),
      async write(table, rows) {
        if (rows.length === 0) return;
        if (table === 'meta') return await writeMeta(connection, sql, rows);
        if (table === 'events') await partitions.reach(rows.map(([position]) => position as number));
        await connection.query(insertInto(table, sql), columnsOf(table, rows));
      },
      async complete() {
        await connection.query(
          sql(`UPDATE $S.state SET generation = 1, partitioned = $1,
            position = greatest(floor, coalesce((SELECT max(position) FROM $S.events), 0)),
            resource = coalesce((SELECT max(id) FROM $S.resources), 0),
            location = coalesce((SELECT max(id) FROM $S.places), 0), word = coalesce((SELECT max(id) FROM $S.words), 0)`),
          [partitions.next()],
        );
        // Plans of the first queries rest on what is known about the tables.
        for (const { name } of CONTENT) await connection.query(sql(`ANALYZE $S.${name}`));
      },
      async finish() {
        await connection.batch('BEGIN; SET LOCAL synchronous_commit = on; SELECT 1');
        await connection.query(sql('UPDATE $S.schema_version SET major = $1'), [MAJOR]);
        if ((await connection.end('COMMIT')) !== 'COMMIT') throw new Error('the transaction had failed');
      },
      async close() {
        // The lock ends with the connection.
        connection.release(true);
        await connections.close();
      },
    };
  });
}

async function opened<C extends Content>(
  location: PostgresLocation,
  work: (connections: Connections, connection: Connection, schema: string, name: string) => Promise<C>,
): Promise<C> {
  const name = nameOf(location);
  // Counting a long log takes longer than a statement of a gateway may.
  const connections = createConnections(targetOf(location), { ...location, ...OWN_LIMITS });
  const guarded = async <T>(work: () => T): Promise<Awaited<T>> => {
    try {
      return await work();
    } catch (thrown) {
      throw environmentFault(thrown, name) ?? thrown;
    }
  };
  let connection: Connection | undefined;
  try {
    return await guarded(async () => {
      connection = await connections.take();
      const content = await work(connections, connection, location.schema ?? SCHEMA, name);
      // Errors of the database become faults, whichever method meets them.
      return Object.fromEntries(
        Object.entries(content).map(([member, method]) => [
          member,
          (...args: unknown[]) => guarded(() => (method as (...args: unknown[]) => unknown)(...args)),
        ]),
      ) as unknown as C;
    });
  } catch (thrown) {
    connection?.release(true);
    await connections.close();
    throw thrown;
  }
}

function readerOf(connection: Connection, schema: string): Pick<Content, 'count' | 'page'> {
  const sql = (text: string) => filledIn(text, schema);
  /** How far the log was pruned is a row of `meta` in a copy, and columns of `state` here. */
  const META = sql(`SELECT name, value FROM $S.meta UNION ALL
    SELECT f.name, f.value FROM $S.state s CROSS JOIN LATERAL
      (VALUES ('${FLOOR}', s.floor::text), ('${FLOOR_AT}', s.floor_at)) f (name, value) WHERE s.floor > 0`);
  // What lies below the floor is deleted some time after it was pruned, and is no part of the log.
  const from = (name: TableName): string => {
    if (name === 'meta') return `(SELECT name COLLATE "C" AS name, value FROM (${META}) m) m`;
    if (name === 'events') return sql('(SELECT * FROM $S.events WHERE position > (SELECT floor FROM $S.state)) kept');
    return sql(`$S.${name}`);
  };
  return {
    async count(name) {
      return (await connection.query(`SELECT count(*) FROM ${from(name)}`))[0]![0] as number;
    },
    async page(name, after, most) {
      const text = pageQuery(tableNamed(name), from(name), after !== undefined, (n) => `$${n}`);
      return (await connection.query(text, [...((after ?? []) as Value[]), most])) as readonly Cells[];
    },
  };
}

async function takeEmpty(connection: Connection, schema: string, name: string): Promise<void> {
  await migrate(connection, schema, name);
  const sql = (text: string) => filledIn(text, schema);
  const [taken] = await connection.query(
    sql(`UPDATE $S.schema_version SET major = $1 WHERE (SELECT position FROM $S.state) = 0
      AND NOT EXISTS (SELECT 1 FROM $S.rows) RETURNING 1`),
    [COPYING],
  );
  if (!taken) throw holdsLog(name);
}

async function empty(connection: Connection, schema: string): Promise<void> {
  const sql = (text: string) => filledIn(text, schema);
  await connection.batch(`TRUNCATE ${CONTENT.map(({ name }) => sql(`$S.${name}`)).join(', ')}; SELECT 1`);
  const partitions = await connection.query(
    `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
     JOIN pg_namespace n ON n.oid = p.relnamespace WHERE n.nspname = $1 AND p.relname = 'events'`,
    [schema],
  );
  for (const [name] of partitions) await connection.query(`DROP TABLE ${sql('$S')}.${quoted(name as string)}`);
  await connection.query(
    sql(`UPDATE $S.state SET generation = 0, writer = '', position = 0, resource = 0, location = 0, word = 0,
      floor = 0, floor_at = '', partitioned = 0`),
  );
}

/** Partitions for the positions that are written. Those below a pruned log are never made. */
function createPartitions(connection: Connection, sql: (text: string) => string) {
  let next: number | undefined;
  return {
    next: () => next ?? 0,
    async reach(positions: readonly number[]): Promise<void> {
      next ??= Math.floor(positions[0]! / PARTITION) * PARTITION;
      for (const last = positions.at(-1)!; last >= next; next += PARTITION)
        await connection.query(sql('SELECT $S.partition_1($1, $2)'), [next, next + PARTITION]);
    },
  };
}

async function writeMeta(connection: Connection, sql: (text: string) => string, rows: readonly Cells[]): Promise<void> {
  for (const [name, value] of rows as readonly (readonly string[])[]) {
    if (name === FLOOR) await connection.query(sql('UPDATE $S.state SET floor = $1'), [Number(value)]);
    else if (name === FLOOR_AT) await connection.query(sql('UPDATE $S.state SET floor_at = $1'), [value!]);
    else await connection.query(sql('INSERT INTO $S.meta (name, value) VALUES ($1, $2)'), [name!, value!]);
  }
}

/** Rows have the members they are listed by in columns of their own. */
const isProjection = (name: TableName): boolean => name === 'rows' || name === 'baseline';

function insertInto(name: TableName, sql: (text: string) => string): string {
  const columns = [...tableNamed(name).columns, ...(isProjection(name) ? FILTERS : [])];
  const types = columns.map((column, at) => `$${at + 1}::${typeOf(name, column)}[]`);
  return sql(`INSERT INTO $S.${name} (${columns.join(', ')}) SELECT * FROM unnest(${types.join(', ')})`);
}

function typeOf(name: TableName, column: string): string {
  if (column === 'bytes' || (name === 'log_nodes' && column === 'hash')) return 'bytea';
  return NUMBERS.test(column) && !(column === 'id' && NAMED.includes(name)) ? 'bigint' : 'text';
}

function columnsOf(name: TableName, rows: readonly Cells[]): Value[] {
  const { columns } = tableNamed(name);
  const lists = columns.map((_, at) => rows.map((row) => cellValue(row[at]!)));
  if (!isProjection(name)) return lists;
  const body = columns.indexOf('body');
  const parsed = rows.map((row) => (row[body] === null ? undefined : (JSON.parse(row[body] as string) as Row)));
  return [...lists, ...FILTERS.map((filter) => parsed.map((row) => (row ? filterOf(row, filter) : null)))];
}

const cellValue = (cell: Cell): string | number | null | Buffer =>
  cell instanceof Uint8Array ? Buffer.from(cell.buffer, cell.byteOffset, cell.byteLength) : cell;
