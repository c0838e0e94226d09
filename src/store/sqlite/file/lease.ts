/**
 * Leases that end with their holder's process. Each is an operating system lock on a file of its own, taken by leaving an
 * exclusive transaction open: however the process ends, the lock ends with it. The holder is not recorded anywhere, so no record
 * can be stale.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { Fault } from '../../../model/faults.ts';
import type { Closable } from '../../../ports/index.ts';
import { isBusy, sqliteCode } from './errors.ts';

interface Leases {
  take(name: string): Closable | undefined;
  /** Removes the files of leases that are not held. */
  sweep(): void;
  close(): void;
}

/** SQLite's codes for a locked file that is no longer the one at its path. */
const MOVED = ['IOERR_FSTAT', 'READONLY_DBMOVED', 'READONLY'];

export function createLeases(directory: string): Leases {
  const held = new Set<() => void>();

  function takeFile(file: string): (() => void) | undefined {
    const path = join(directory, file);
    // The last holder removes its file. A process that waited for that file has locked a deleted file, and tries again.
    for (let attempt = 0; attempt < 100; attempt++) {
      const db = openFile(path);
      try {
        db.exec('BEGIN EXCLUSIVE');
        db.exec('PRAGMA user_version = 1');
        return () => {
          rmSync(path, { force: true });
          db.exec('ROLLBACK');
          db.close();
        };
      } catch (thrown) {
        if (db.inTransaction) db.exec('ROLLBACK');
        db.close();
        if (isBusy(thrown)) return undefined;
        if (MOVED.includes(sqliteCode(thrown) ?? '')) continue;
        throw new Fault('unavailable', `cannot take a lease in ${directory}`, { cause: thrown });
      }
    }
    return undefined;
  }

  function openFile(path: string): Database.Database {
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      return new Database(path, { timeout: 0 });
    } catch (thrown) {
      throw new Fault('unavailable', `cannot take a lease in ${directory}`, { cause: thrown });
    }
  }

  return {
    take(name) {
      const release = takeFile(`${createHash('sha256').update(name).digest('hex')}.lock`);
      if (!release) return undefined;
      held.add(release);
      return {
        async close() {
          if (held.delete(release)) release();
        },
      };
    },
    sweep() {
      for (const file of list(directory)) if (file.endsWith('.lock')) takeFile(file)?.();
    },
    close() {
      for (const release of held) release();
      held.clear();
    },
  };
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
