/**
 * Opens the store that the configuration names. Everything outside this folder gets a store here; another kind of store is a folder
 * and a line in `KINDS`.
 */
import { existsSync } from 'node:fs';
import type { Store } from '../ports/index.ts';
import type { EngineOptions } from './engine/store.ts';

/** Where a log is, as the configuration says. */
export interface StoreLocation {
  readonly path: string;
  /** Beyond this size writes fail as on a full disk. */
  readonly maxBytes?: number;
  /** How long a write waits for another process before it is refused. */
  readonly lockTimeoutMs?: number;
}

export interface OpenOptions extends Omit<EngineOptions, 'lockTimeoutMs'> {
  /** The process serves many callers for a long time: worth some memory and a slower start. */
  readonly serving?: boolean;
}

interface Kind {
  /** Whether there is a log already; opening would begin one. */
  exists(location: StoreLocation): boolean;
  open(location: StoreLocation, options: OpenOptions): Promise<Store>;
}

const KINDS = {
  // Loaded when it is needed: most commands need no store.
  sqlite: {
    exists: ({ path }) => existsSync(path),
    open: async (location, options) => (await import('./sqlite/index.ts')).openSqliteStore(location, options),
  },
} satisfies Record<string, Kind>;

const kindOf = (_location: StoreLocation): Kind => KINDS.sqlite;

export type OpenStore = Kind['open'];

export const openStore: OpenStore = (location, options) => kindOf(location).open(location, options);

export function hasLog(location: StoreLocation): boolean {
  return kindOf(location).exists(location);
}
