/**
 * Opens the store that the configuration names. Everything outside this folder gets a store here; another kind of store is a folder
 * and a line in `kindOf`.
 */
import { existsSync } from 'node:fs';
import type { Store } from '../ports/index.ts';
import type { EngineOptions } from './engine/store.ts';
import { nameOf, type PostgresLocation } from './postgres/location.ts';

/** A log in one file. */
export interface FileLocation {
  readonly path: string;
  /** Beyond this size writes fail as on a full disk. */
  readonly maxBytes?: number;
  /** How long a write waits for another process before it is refused. */
  readonly lockTimeoutMs?: number;
}
export type { PostgresLocation } from './postgres/location.ts';

/** Where a log is, as the configuration says. */
export type StoreLocation = FileLocation | PostgresLocation;

export interface OpenOptions extends Omit<EngineOptions, 'lockTimeoutMs'> {
  /** The process serves many callers for a long time: worth some memory and a slower start. */
  readonly serving?: boolean;
}

interface Kind {
  /** How messages name it: never with a secret. */
  readonly name: string;
  /** Whether there is a log already; opening would begin one. Fails where nobody can be asked. */
  exists(): Promise<boolean>;
  open(options: OpenOptions): Promise<Store>;
}

// Their code is loaded when it is needed: most commands need no store, and most stores are files.
const sqlite = (location: FileLocation): Kind => ({
  name: location.path,
  exists: async () => existsSync(location.path),
  open: async (options) => (await import('./sqlite/index.ts')).openSqliteStore(location, options),
});
const postgres = (location: PostgresLocation): Kind => ({
  name: nameOf(location),
  exists: async () => (await import('./postgres/index.ts')).hasPostgresLog(location),
  open: async (options) => (await import('./postgres/index.ts')).openPostgresStore(location, options),
});

export const isDatabase = (location: StoreLocation): location is PostgresLocation => 'url' in location;

const kindOf = (location: StoreLocation): Kind => (isDatabase(location) ? postgres(location) : sqlite(location));

export type OpenStore = (location: StoreLocation, options: OpenOptions) => Promise<Store>;

export const openStore: OpenStore = (location, options) => kindOf(location).open(options);

export const storeName = (location: StoreLocation): string => kindOf(location).name;

export const hasLog = (location: StoreLocation): Promise<boolean> => kindOf(location).exists();

/** What an operator wants to know of a database before a gateway writes to it. */
export const reportOn = async (location: PostgresLocation) => (await import('./postgres/report.ts')).reportOn(location);
