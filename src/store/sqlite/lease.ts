/**
 * Leases that die with their holder. Each is a lock of the operating system on a file of its own, taken by leaving an
 * exclusive transaction open: however the process ends, the lock ends with it. Nothing is ever written down about who
 * holds what, so nothing can be stale.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { Fault } from '../../model/faults.ts';
import type { Closable } from '../../ports.ts';
import { isBusy, sqliteCode } from './trouble.ts';

export interface Leases {
  take(name: string): Closable | undefined;
  /** Remove the files of leases nobody holds. */
  sweep(): void;
  close(): void;
}

/** What SQLite says when the file it locked is no longer the one at that path. */
const MOVED = ['IOERR_FSTAT', 'READONLY_DBMOVED', 'READONLY'];

export function createLeases(directory: string): Leases {
  const held = new Set<() => void>();

  function takeFile(file: string): (() => void) | undefined {
    const path = join(directory, file);
    // The last holder removes its file. Who waited for that very file holds a lock on nothing, and tries again.
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
