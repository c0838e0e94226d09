/**
 * The store of a test's gateway: a file, or memory where `TOLLBRIDGE_TEST_STORE` says so (`npm run test:fast`). Gateways on the same
 * path share a log, whichever it is.
 */
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { type OpenStore, openStore } from '../../../src/store/index.ts';
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

/** By path; forgotten with the directory. */
const logs = new Map<string, MemoryLog>();

export const openTestStore: OpenStore = async (location, options) => {
  if (!inMemory) return openStore(location, options);
  const memory = logs.get(location.path) ?? createMemoryLog();
  logs.set(location.path, memory);
  return createMemoryStore({ ...options, memory });
};

export function newestPosition(dataDir: string): number {
  const memory = logs.get(join(dataDir, 'log.db'));
  return memory ? memory.floor + memory.items.length : newestInFile(dataDir);
}

export function forgetTestStore(dataDir: string): void {
  logs.delete(join(dataDir, 'log.db'));
}
