/**
 * The schema of the database, step by step, and whether this program may use it. Steps of one major version only add: a replica that
 * knows fewer of them goes on working beside one that knows more. What a replica of the version before could not live with is a new
 * major version, and needs all of them stopped.
 */
import { Fault } from '../../../model/faults.ts';
import { holdsLog, incompleteCopy } from '../../engine/copy/refused.ts';
import type { Connection, Connections } from '../connection/connections.ts';
import { sqlState } from '../errors.ts';
import { lockKey } from '../location.ts';
import { FUNCTIONS } from './functions.ts';
import { LEASE_EPOCHS } from './leases.ts';
import { PRIVATE } from './private.ts';
import { TABLES } from './tables.ts';

export const MAJOR = 1;
/** The major version until all rows of a copied log are there: no version takes the schema for a log before. */
export const COPYING = 0;
/** The step at index 0 makes minor version 1. A step that has shipped is never edited. */
export const STEPS: readonly string[] = [`${TABLES}${FUNCTIONS}`, PRIVATE, LEASE_EPOCHS];
/** Events of one partition: dropped together when all of them are pruned. */
export const PARTITION = 1_048_576;

/** From this version on the server ends an idle session, which a lease rests on. */
const OLDEST_SERVER = 140_000;

export interface Version {
  readonly major: number;
  readonly minor: number;
}

/** Fills in the name of the schema, the key of its lock, and the size of a partition. */
export function filledIn(sql: string, schema: string): string {
  return sql
    .replaceAll('$S', quoted(schema))
    .replaceAll('$L', `${lockKey(schema, 'write')}::bigint`)
    .replaceAll('$P', String(PARTITION));
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Undefined: there is no log in this schema yet. */
export async function versionOf(connection: Connection, schema: string): Promise<Version | undefined> {
  try {
    const [found] = await connection.query(filledIn('SELECT major, minor FROM $S.schema_version', schema));
    return found && { major: found[0] as number, minor: found[1] as number };
  } catch (thrown) {
    if (['42P01', '3F000'].includes(sqlState(thrown) ?? '')) return undefined;
    throw thrown;
  }
}

/** Migrates on a connection of the pool, which is not used again where that failed. */
export async function prepare(connections: Connections, schema: string, name: string, major: number): Promise<void> {
  const connection = await connections.take();
  let broken = true;
  try {
    await migrate(connection, schema, name, { major });
    broken = false;
  } finally {
    connection.release(broken);
  }
}

/** Brings the schema to the newest version. Replicas that start together wait for each other. */
export async function migrate(
  connection: Connection,
  schema: string,
  name: string,
  { steps = STEPS, major = MAJOR }: { steps?: readonly string[]; major?: number } = {},
): Promise<void> {
  const [server] = await connection.query(
    "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')",
  );
  if ((server![0] as number) < OLDEST_SERVER) {
    throw new Fault('unsupported_version', `${name} is an older PostgreSQL than 14`);
  }
  if (server![1] !== 'UTF8') throw new Fault('unsupported_version', `the encoding of ${name} is not UTF8`);
  if (isCurrent(await versionOf(connection, schema), steps, major, name)) return;
  await connection.batch(
    'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 60000; SET LOCAL synchronous_commit = on; SELECT 1',
  );
  try {
    await connection.query('SELECT pg_advisory_xact_lock($1::bigint)', [lockKey(schema, 'migrate')]);
    const version = await versionNow(connection, schema);
    if (!isCurrent(version, steps, major, name)) {
      const sql = steps.slice(version?.minor ?? 0).map((step) => filledIn(step, schema));
      if (!version) {
        await connection.batch(
          filledIn(
            `CREATE SCHEMA IF NOT EXISTS $S;
             CREATE TABLE $S.schema_version (one INT PRIMARY KEY DEFAULT 1 CHECK (one = 1), major INT NOT NULL, minor INT NOT NULL);
             INSERT INTO $S.schema_version (major, minor) VALUES (${major}, 0); SELECT 1`,
            schema,
          ),
        );
      }
      for (const step of sql) await connection.batch(`${step}; SELECT 1`);
      await connection.query(filledIn('UPDATE $S.schema_version SET minor = $1', schema), [steps.length]);
    }
    await connection.end('COMMIT');
  } catch (thrown) {
    await connection.end('ROLLBACK').catch(() => undefined);
    throw thrown;
  }
}

/** Inside a transaction a failed query would end it, so the catalog is asked. */
async function versionNow(connection: Connection, schema: string): Promise<Version | undefined> {
  const [found] = await connection.query('SELECT to_regclass($1) IS NOT NULL', [`${quoted(schema)}.schema_version`]);
  return found![0] === true ? versionOf(connection, schema) : undefined;
}

function isCurrent(version: Version | undefined, steps: readonly string[], major: number, name: string): boolean {
  if (!version) return false;
  if (version.major === major) return version.minor >= steps.length;
  if (version.major === COPYING) throw incompleteCopy(name);
  if (major === COPYING) throw holdsLog(name);
  const which = version.major > major ? 'newer' : 'older';
  throw new Fault(
    'unsupported_version',
    `${name} was written by a ${which} version (schema ${version.major}, this one knows ${major}): ${
      version.major > major
        ? 'upgrade, or use another schema'
        : 'stop all gateways of that version, then see docs/postgres.md'
    }`,
  );
}
