/** A copy of the log that can be looked at and rebuilt while the true one stays as the dead gateways left it. */
import { join } from 'node:path';
import Database from 'libsql';
import { projector } from '../../src/core/events/projector.ts';
import type { PostgresLocation } from '../../src/store/index.ts';
import { createPostgresStore } from '../../src/store/postgres/index.ts';
import { createSqliteStore } from '../../src/store/sqlite/index.ts';
import { Broken } from './broken.ts';

export type StoredRow = readonly [object: string, id: string, body: string | null];

export interface CopiedLog {
  readonly store: Awaited<ReturnType<typeof createSqliteStore>>;
  /** All projections, in the order of their keys. */
  rows(): Promise<StoredRow[]>;
  close(): Promise<void>;
}
/** `copy` is the directory that the data directory was copied to. */
export type CopyLog = (copy: string) => Promise<CopiedLog>;

const clock = { now: () => new Date().toISOString() };

export const fileLog: CopyLog = async (copy) => {
  const path = join(copy, 'log.db');
  const asked = (sql: string): unknown[][] => {
    const db = new Database(path);
    try {
      return db.prepare(sql).raw().all() as unknown[][];
    } finally {
      db.close();
    }
  };
  const found = asked('PRAGMA integrity_check');
  if (found.length !== 1 || found[0]?.[0] !== 'ok') throw new Broken('the file is sound', 'integrity_check', found);
  const store = await createSqliteStore({ path, clock, projector });
  return {
    store,
    rows: async () => asked('SELECT object, id, body FROM projections ORDER BY object, id') as unknown as StoredRow[],
    close: () => store.close(),
  };
};

export interface DatabaseToCopy {
  readonly locate: (database: string) => PostgresLocation;
  readonly query: (text: string, database?: string) => Promise<unknown[][]>;
}

/** A database is copied whole by its server, once nobody is connected to it any more. */
export function databaseLog(name: string, { locate, query }: DatabaseToCopy): CopyLog {
  const copy = `${name}_copy`;
  return async () => {
    await query(`DROP DATABASE IF EXISTS ${copy} WITH (FORCE)`);
    await query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${name}'`);
    await query(`CREATE DATABASE ${copy} TEMPLATE ${name}`);
    const store = await createPostgresStore({ ...locate(copy), clock, projector });
    const rows = 'SELECT object, id, body FROM tollbridge.rows ORDER BY object, id';
    return {
      store,
      rows: async () => (await query(rows, copy)) as unknown as StoredRow[],
      async close() {
        await store.close();
        await query(`DROP DATABASE ${copy} WITH (FORCE)`);
      },
    };
  };
}
