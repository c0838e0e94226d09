/**
 * Room in the write-ahead log before it is needed. A commit that makes the file longer waits for the file system to
 * write down the new length as well, which about doubles it; one that overwrites does not. SQLite keeps the length it
 * once had until the log is closed, so this is only for the first commits after opening. Never needed for anything to
 * work: when it cannot be had, things go on without.
 */
import { statSync } from 'node:fs';
import type { Connection } from './connection.ts';
import { environmentFault, isBusy } from './trouble.ts';

const FEW_PAGES = 16;

export function makeRoom(connection: Connection, bytes: number): void {
  const size = statSync(`${connection.path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (size >= bytes) return;
  const cache = connection.pragma('cache_size') as number;
  try {
    // With next to no cache a transaction writes its pages ahead, and one that is taken back leaves nothing but length.
    connection.exec(`PRAGMA cache_size = ${FEW_PAGES}`);
    connection.begin();
    connection.exec(`CREATE TABLE room (bytes BLOB); INSERT INTO room VALUES (zeroblob(${Math.floor(bytes)}))`);
  } catch (thrown) {
    // Busy, full or limited: no room. Anything else is a mistake of ours.
    if (!isBusy(thrown) && !environmentFault(thrown, connection.path)) throw thrown;
  } finally {
    connection.rollback();
    connection.exec(`PRAGMA cache_size = ${cache}`);
  }
}
