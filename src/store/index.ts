/**
 * Opens the store that the configuration names. Everything outside this folder gets a store here; another kind of store is a folder
 * and a line in `kindOf`.
 */
import { existsSync } from 'node:fs';
import type { Store } from '../ports/index.ts';
import type { Content, CopyState, NewContent } from './engine/copy/content.ts';
import type { EngineOptions } from './engine/store.ts';
import { nameOf, type PostgresLocation } from './postgres/location.ts';
import type { DatabaseFiles } from './postgres/private/files.ts';

/** A log in one file. */
export interface FileLocation {
  readonly path: string;
  /** Beyond this size writes fail as on a full disk. */
  readonly maxBytes?: number;
  /** How long a write waits for another process before it is refused. */
  readonly lockTimeoutMs?: number;
}
export type { PostgresLocation } from './postgres/location.ts';
export type { DatabaseFiles } from './postgres/private/files.ts';

/** Where a log is, as the configuration says. */
export type StoreLocation = FileLocation | PostgresLocation;

export interface OpenOptions extends Omit<EngineOptions, 'lockTimeoutMs'> {
  /** The process serves many callers for a long time: worth some memory and a slower start. */
  readonly serving?: boolean;
  /** It is a copy that is not complete yet; otherwise such a log is refused. */
  readonly incomplete?: boolean;
}

/** Of the tables of a log, and of those that this program makes. */
export interface SchemaVersion {
  readonly found: string;
  readonly newest: string;
}

interface Kind {
  /** How messages name it: never with a secret. */
  readonly name: string;
  /** Whether there is a log already; opening would begin one. Fails where nobody can be asked. */
  exists(): Promise<boolean>;
  open(options: OpenOptions): Promise<Store>;
  schema(): Promise<SchemaVersion>;
  content(): Promise<Content>;
  newContent(state: CopyState): Promise<NewContent>;
}

// Their code is loaded when it is needed: most commands need no store, and most stores are files.
const sqlite = (location: FileLocation): Kind => ({
  name: location.path,
  exists: async () => existsSync(location.path),
  open: async (options) => (await import('./sqlite/index.ts')).openSqliteStore(location, options),
  content: async () => (await import('./sqlite/content.ts')).openSqliteContent(location.path),
  newContent: async (state) => (await import('./sqlite/content.ts')).createSqliteContent(location.path, state),
  schema: async () => (await import('./sqlite/file/connection.ts')).schemaOfFile(location.path),
});
const postgres = (location: PostgresLocation): Kind => ({
  name: nameOf(location),
  exists: async () => (await import('./postgres/index.ts')).hasPostgresLog(location),
  open: async (options) => (await import('./postgres/index.ts')).openPostgresStore(location, options),
  content: async () => (await import('./postgres/content.ts')).openPostgresContent(location),
  newContent: async (state) => (await import('./postgres/content.ts')).createPostgresContent(location, state),
  schema: async () => (await import('./postgres/index.ts')).schemaOfDatabase(location),
});

export const isDatabase = (location: StoreLocation): location is PostgresLocation => 'url' in location;

const kindOf = (location: StoreLocation): Kind => (isDatabase(location) ? postgres(location) : sqlite(location));

export type OpenStore = (location: StoreLocation, options: OpenOptions) => Promise<Store>;

export const openStore: OpenStore = (location, options) => kindOf(location).open(options);

export const storeName = (location: StoreLocation): string => kindOf(location).name;

export const hasLog = (location: StoreLocation): Promise<boolean> => kindOf(location).exists();

/** The rows of a log, as they are at this moment. */
export const openContent = (location: StoreLocation): Promise<Content> => kindOf(location).content();
/** Where a log is to be copied to, emptied; or one whose rows are all there. It is refused where there is a log already. */
export const createContent = (location: StoreLocation, state: CopyState = 'new'): Promise<NewContent> =>
  kindOf(location).newContent(state);

export const schemaOf = (location: StoreLocation): Promise<SchemaVersion> => kindOf(location).schema();

/** Whether private files lie there, sealed under a secret. */
export const hasPrivateFiles = async (location: PostgresLocation): Promise<boolean> =>
  (await import('./postgres/index.ts')).hasPrivateFiles(location);

/** Private files of the installation, in the database of its log. */
export async function openDatabaseFiles(
  location: PostgresLocation,
  { incomplete }: Pick<OpenOptions, 'incomplete'> = {},
): Promise<DatabaseFiles> {
  if (!location.keys) throw new Error('the location names no secret for private files');
  const { openDatabaseFiles: open } = await import('./postgres/private/files.ts');
  return await open(location, await location.keys(), incomplete);
}

/** What an operator wants to know of a database before a gateway writes to it. */
export const reportOn = async (location: PostgresLocation) => (await import('./postgres/report.ts')).reportOn(location);
