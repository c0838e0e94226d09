/**
 * Extends the write-ahead log before the space is needed. A commit that makes the file longer also waits for the file system to
 * record the new length, which about doubles its time; one that overwrites does not. SQLite keeps the length until the log is
 * closed, so this matters only for the first commits after opening. It is an optimization: on failure the store works without it.
 */
import { statSync } from 'node:fs';
import type { Connection } from '../file/connection.ts';
import { environmentFault, isBusy } from '../file/errors.ts';

const FEW_PAGES = 16;

export function makeRoom(connection: Connection, bytes: number): void {
  const size = statSync(`${connection.path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (size >= bytes) return;
  const cache = connection.pragma('cache_size') as number;
  try {
    // With next to no cache a transaction writes its pages early, and rolling it back leaves only the length.
    connection.exec(`PRAGMA cache_size = ${FEW_PAGES}`);
    connection.begin();
    connection.exec(`CREATE TABLE room (bytes BLOB); INSERT INTO room VALUES (zeroblob(${Math.floor(bytes)}))`);
  } catch (thrown) {
    // Busy, full or limited: no extension. Any other error is a bug of ours.
    if (!isBusy(thrown) && !environmentFault(thrown, connection.path)) throw thrown;
  } finally {
    connection.rollback();
    connection.exec(`PRAGMA cache_size = ${cache}`);
  }
}
