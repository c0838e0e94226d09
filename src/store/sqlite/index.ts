/**
 * The store in one SQLite file: durable with nothing to set up, safe with several processes on the same file. This file only
 * wires the modules of this folder together.
 */
import type { Database } from '../engine/database.ts';
import { createStore, type EngineOptions, type EngineStore, LOCK_TIMEOUT_MS } from '../engine/store.ts';
import type { FileLocation, OpenOptions } from '../index.ts';
import { createBlobRows } from './blobs.ts';
import { openConnection } from './file/connection.ts';
import { environmentFault, isBusy, readFault } from './file/errors.ts';
import { createFreeRoom } from './file/free-space.ts';
import { createLeases } from './file/lease.ts';
import { createLog } from './log.ts';
import { createLogTree } from './log-tree.ts';
import { createLookups } from './lookups.ts';
import { createReaders } from './reading/reader.ts';
import { createReceipts } from './receipts.ts';
import { createRows } from './rows.ts';
import { createUpkeep } from './upkeep.ts';
import { createWordRows } from './words.ts';
import { createTableWriter, tableRowsOf } from './writing/table-rows.ts';
import { createWriterThread, type WriterThreadThreshold } from './writing/writer-thread.ts';

export interface SqliteOptions extends EngineOptions {
  /** The database file. It is created when missing, and so is its directory; both are accessible to this user alone. */
  readonly path: string;
  /** The file is refused growth beyond this size, as if the disk were full. */
  readonly maxBytes?: number;
  /** The load from which a writer thread does the writing. Absent: never. */
  readonly concurrentWriters?: WriterThreadThreshold;
  /** It is a copy that is not complete yet. */
  readonly incomplete?: boolean;
}

export type SqliteStore = EngineStore;

/** From this many concurrent units, writing on another thread is quicker. */
const SERVING_CONCURRENCY = { units: 8, times: 64 };

export function openSqliteStore(location: FileLocation, { serving, ...options }: OpenOptions): Promise<SqliteStore> {
  return createSqliteStore({
    ...options,
    ...location,
    ...(serving && { concurrentWriters: SERVING_CONCURRENCY }),
  });
}

export async function createSqliteStore(options: SqliteOptions): Promise<SqliteStore> {
  return createStore(await openSqlite(options), options);
}

async function openSqlite(options: SqliteOptions): Promise<Database> {
  const { path, log: logger, maxBytes, lockTimeoutMs = LOCK_TIMEOUT_MS, concurrentWriters, incomplete } = options;
  const limits = { ...(maxBytes !== undefined && { maxBytes }), ...(logger && { logger }) };
  const connection = await openConnection({ path, lockTimeoutMs, ...limits, ...(incomplete && { incomplete }) });
  const log = createLog(connection);
  const readers = createReaders(connection, log);
  const rows = createRows(connection);
  const receipts = createReceipts(connection);
  const words = createWordRows(connection);
  const blobs = createBlobRows(connection);
  const leases = createLeases(`${path}.leases`);
  const write = createTableWriter(connection);
  const ahead = concurrentWriters && createWriterThread({ connection, log, threshold: concurrentWriters, ...limits });
  if (concurrentWriters?.times === 0) await ahead?.begin();

  /** Synchronous from beginning to end, so no reader of this connection sees half of it. */
  function transact<T>(work: () => T): T {
    try {
      connection.begin();
      const result = work();
      connection.commit();
      return result;
    } catch (thrown) {
      undo();
      throw thrown;
    }
  }
  function undo(): void {
    try {
      connection.rollback();
    } catch {
      // The next transaction rolls it back before it begins.
    }
  }

  return {
    name: path,
    errors: {
      isBusy,
      environment: (thrown) => environmentFault(thrown, path),
      reading: (thrown) => readFault(thrown, path),
    },
    lookups: createLookups(connection, rows, receipts),
    version: connection.version,
    end: log.end,
    transact,
    commit(decide) {
      try {
        connection.begin();
        const writeSet = decide();
        if (writeSet instanceof Promise) throw new Error('a decision on a file waits for nothing');
        if (!writeSet) return connection.rollback();
        write(tableRowsOf(writeSet));
        connection.commit();
      } catch (thrown) {
        undo();
        throw thrown;
      }
    },
    ...(ahead && { ahead }),
    events: { ...log, ...readers },
    words: words.words,
    recentWords: words.recentWords,
    row: rows.body,
    list: rows.list,
    receipts,
    logTree: createLogTree(connection),
    blobs,
    upkeep: createUpkeep(connection, log, words, () => {
      blobs.sweep();
      leases.sweep();
    }),
    lease(name) {
      const held = leases.take(name);
      return held && { ...held, epoch: 0 };
    },
    room: createFreeRoom(connection, maxBytes),
    close() {
      leases.close();
      connection.close();
    },
  };
}
