/**
 * The store in PostgreSQL: several gateways on one log, on a database that is run, backed up and replicated already. This file only wires
 * the modules of this folder together.
 */
import { randomBytes } from 'node:crypto';
import { Fault } from '../../model/faults.ts';
import type { Database } from '../engine/database.ts';
import { createStore, type EngineOptions, type EngineStore, LOCK_TIMEOUT_MS } from '../engine/store.ts';
import type { OpenOptions, SchemaVersion } from '../index.ts';
import { createDatabaseClock } from './connection/clock.ts';
import { type Connections, createConnections, STATEMENT_MS } from './connection/connections.ts';
import { createNotices } from './connection/notices.ts';
import { createTurns } from './connection/turns.ts';
import { createVersions } from './connection/versions.ts';
import { environmentFault, isConnectionLoss, isLocked, readFault, throughPooler } from './errors.ts';
import { createLeases, LEASE_MS } from './leases.ts';
import { nameOf, type PostgresLocation, SCHEMA, targetOf } from './location.ts';
import { createLookups } from './lookups.ts';
import { createBlobRows } from './reading/blobs.ts';
import { createLog } from './reading/log.ts';
import { createLogTree, createReceipts } from './reading/receipts.ts';
import { createRows } from './reading/rows.ts';
import { createStreams } from './reading/streams.ts';
import { createWords } from './reading/words.ts';
import { COPYING, filledIn, MAJOR, prepare, STEPS, versionOf } from './schema/migrations.ts';
import { createSweep } from './upkeep/sweep.ts';
import { createUpkeep } from './upkeep/upkeep.ts';
import { createWriter } from './writing/writer.ts';

export type PostgresOptions = EngineOptions & PostgresLocation & Pick<OpenOptions, 'incomplete'>;
export type PostgresStore = EngineStore;

export function openPostgresStore(location: PostgresLocation, { serving: _, ...options }: OpenOptions) {
  return createPostgresStore({ ...options, ...location });
}

export async function createPostgresStore(options: PostgresOptions): Promise<PostgresStore> {
  return createStore(await openPostgres(options), options);
}

/** Whether there is a log already. Fails where the database cannot be asked. */
export function hasPostgresLog(location: PostgresLocation): Promise<boolean> {
  return connected(location, async (connections) => {
    const connection = await connections.take();
    try {
      return (await versionOf(connection, location.schema ?? SCHEMA)) !== undefined;
    } finally {
      connection.release();
    }
  });
}

export function hasPrivateFiles(location: PostgresLocation): Promise<boolean> {
  return connected(location, async (connections) => {
    const schema = filledIn('$S', location.schema ?? SCHEMA);
    const [there] = await connections.query('SELECT to_regclass($1) IS NOT NULL', [`${schema}.private_files`]);
    if (there![0] !== true) return false;
    return (await connections.query(`SELECT 1 FROM ${schema}.private_files LIMIT 1`)).length > 0;
  });
}

/** Read without bringing the schema up to date. */
export function schemaOfDatabase(location: PostgresLocation): Promise<SchemaVersion> {
  return connected(location, async (connections) => {
    const connection = await connections.take();
    try {
      const version = await versionOf(connection, location.schema ?? SCHEMA);
      return { found: version ? `${version.major}.${version.minor}` : 'none', newest: `${MAJOR}.${STEPS.length}` };
    } finally {
      connection.release();
    }
  });
}

/** Connections for one piece of work, whose errors are faults. */
export async function connected<T>(
  location: PostgresLocation,
  work: (connections: Connections) => Promise<T>,
): Promise<T> {
  const connections = createConnections(targetOf(location), { ...location, connections: 1 });
  try {
    return await work(connections);
  } catch (thrown) {
    throw environmentFault(thrown, nameOf(location)) ?? thrown;
  } finally {
    await connections.close();
  }
}

async function openPostgres(options: PostgresOptions): Promise<Database> {
  const {
    log: logger,
    lockTimeoutMs = LOCK_TIMEOUT_MS,
    leaseTimeoutMs = LEASE_MS,
    standby = false,
    directUrl,
  } = options;
  const name = nameOf(options);
  const schema = options.schema ?? SCHEMA;
  const writer = randomBytes(12).toString('hex');
  const target = targetOf(options);
  const direct = directUrl === undefined ? target : targetOf({ ...options, url: directUrl });
  const connections = createConnections(target, options);
  try {
    if (directUrl === undefined) await requireDirect(connections, options.statementTimeoutMs ?? STATEMENT_MS, name);
    await prepare(connections, schema, name, options.incomplete ? COPYING : MAJOR);
  } catch (thrown) {
    await connections.close();
    throw environmentFault(thrown, name) ?? thrown;
  }
  const versions = createVersions(writer, name, logger);
  const clock = createDatabaseClock(options.clock, name, logger);
  const notices = createNotices({ connections, versions, clock, target: direct, schema, writer });
  // Before anything is dated.
  await notices.ready;
  const { announce } = notices;
  const turns = createTurns(direct, versions, schema);
  const shared = { connections, versions, schema, name, writer, lockTimeoutMs, standby, announce };
  const write = createWriter({ ...shared, turns });
  const leases = createLeases({ ...shared, target: direct, timeoutMs: leaseTimeoutMs });
  const log = createLog(connections, schema, turns.state);
  const rows = createRows(connections, schema);
  const words = createWords(connections, schema);
  const sweep = createSweep(connections, schema);

  return {
    name,
    errors: {
      // The database comes back, or another takes its place: trying again soon will help.
      isBusy: (thrown) => isLocked(thrown) || isConnectionLoss(thrown),
      environment: (thrown) => environmentFault(thrown, name),
      reading: (thrown) => readFault(thrown, name),
    },
    lookups: createLookups(connections, schema),
    version: versions.version,
    end: log.end,
    ...write,
    turns,
    events: { ...createStreams(connections, schema), last: log.last, floor: log.floor, body: log.body },
    ...words,
    row: rows.body,
    list: rows.list,
    receipts: createReceipts(connections, schema),
    logTree: createLogTree(connections, schema),
    blobs: createBlobRows(connections, schema),
    upkeep: createUpkeep({ connections, log, words: words.words, schema, sweep: sweep.begin }),
    lease: leases.take,
    // A database does not say how much room it has.
    room: () => Number.POSITIVE_INFINITY,
    async close() {
      await Promise.allSettled([notices.close(), leases.close(), turns.close(), sweep.close()]);
      await connections.close();
      clock.close();
    },
  };
}

/** A pooler that drops what a client asks for when it connects would drop leases too, without a word. */
async function requireDirect(connections: Connections, statementTimeoutMs: number, name: string): Promise<void> {
  const [found] = await connections.query("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'");
  if (Number(found?.[0]) !== statementTimeoutMs) throw new Fault('unavailable', throughPooler(name));
}
