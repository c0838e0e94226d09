/**
 * The store of a test's gateway: a file, or memory where `TOLLBRIDGE_TEST_STORE` says so (`npm run test:fast`). Gateways on the same
 * path share a log, whichever it is.
 */
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { position } from '../../../src/model/events.ts';
import type { Store } from '../../../src/ports/index.ts';
import { isDatabase, type OpenStore, openStore, type StoreLocation } from '../../../src/store/index.ts';
import { createMemoryStore } from '../../../src/store/memory/index.ts';
import { createMemoryLog, type MemoryLog } from '../../../src/store/memory/log.ts';
import { newestPosition as newestInFile } from '../oracle/contacts.mjs';

const IN_MEMORY = process.env.TOLLBRIDGE_TEST_STORE === 'memory';

let inMemory = IN_MEMORY;

/** Said by a file or a group of tests that look into the log's file, or start another process on it. */
export function needsFile(): void {
  beforeAll(() => {
    inMemory = false;
  });
  afterAll(() => {
    inMemory = IN_MEMORY;
  });
}

let inDatabase: ((path: string) => StoreLocation) | undefined;

/** Said by a file whose gateways keep their logs in a database: where the log is that would be in the file. */
export function keepsLogs(where: (path: string) => StoreLocation): void {
  beforeAll(() => {
    inDatabase = where;
  });
  afterAll(() => {
    inDatabase = undefined;
  });
}

/** By path; forgotten with the directory. */
const logs = new Map<string, MemoryLog>();

export const openTestStore: OpenStore = async (location, options) => {
  if (isDatabase(location)) return openStore(location, options);
  const { path } = location;
  if (inDatabase) return counted(path, await openStore(inDatabase(path), options));
  if (!inMemory) return openStore(location, options);
  const memory = logs.get(path) ?? createMemoryLog();
  logs.set(path, memory);
  return createMemoryStore({ ...options, memory });
};

/** A database cannot be asked at once: what it has confirmed is remembered. */
const confirmed = new Map<string, number>();
function counted(path: string, store: Store): Store {
  return {
    ...store,
    async commit(unit) {
      const committed = await store.commit(unit);
      const last = position(committed.events.at(-1)?.id ?? '') ?? 0;
      confirmed.set(path, Math.max(last, confirmed.get(path) ?? 0));
      return committed;
    },
  };
}

export function newestPosition(dataDir: string): number {
  const known = confirmed.get(join(dataDir, 'log.db'));
  if (known !== undefined) return known;
  const memory = logs.get(join(dataDir, 'log.db'));
  return memory ? memory.floor + memory.items.length : newestInFile(dataDir);
}

export function forgetTestStore(dataDir: string): void {
  logs.delete(join(dataDir, 'log.db'));
  confirmed.delete(join(dataDir, 'log.db'));
}
