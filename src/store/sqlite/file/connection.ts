/**
 * One connection to one file: opened with care, checked, and closed for good. Everything in this store goes through
 * it, synchronously, so a transaction never spans a turn of the event loop.
 *
 * Two habits of the driver shape this file. A prepared BEGIN that fails with SQLITE_BUSY stays open and pins an old
 * snapshot, so transactions are begun and ended with `exec`. `get` in object mode adds members of its own, so every
 * statement is in raw mode and rows are arrays.
 */
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'libsql';
import { Fault } from '../../../model/faults.ts';
import { withLockTimeout } from '../../engine/wait.ts';
import { damaged, environmentFault, isBusy } from './errors.ts';
import { type Generation, generationAt, openGeneration } from './generation.ts';
import { APPLICATION_ID, INCOMPLETE_COPY, MIGRATIONS, migrate } from './migrations.ts';

export type Value = string | number | null | Uint8Array;
export interface Statement {
  run(params?: readonly Value[]): void;
  get(params?: readonly Value[]): unknown[] | undefined;
  all(params?: readonly Value[]): unknown[][];
}
export interface Connection {
  readonly path: string;
  /** The same SQL text returns the same statement, so callers may prepare on every call. */
  prepare(sql: string): Statement;
  exec(sql: string): void;
  pragma(sql: string): unknown;
  /** Takes the write lock. Fails at once when the file was moved or replaced. */
  begin(): void;
  commit(): void;
  /** Does nothing when no transaction is open. */
  rollback(): void;
  /** Changes when another process, or another runtime in this process, has committed to the file. */
  version(): number;
  /** The number of transactions on the file that we know of. Valid for the `version` just returned. */
  generation(): number;
  /**
   * Announces that our writer thread may make the transaction after this generation; `isOurs` tells whether the next one is that
   * one.
   */
  expect(after: number, isOurs: () => boolean): void;
  /** The expected transaction was committed (`made`), or will not be. */
  settled(made: boolean): void;
  /** Lets another thread of this process open its own connection. */
  readonly counterFd: number;
  /** Copies the write-ahead log into the file when it is long enough. For a connection with automatic checkpoints off. */
  checkpoint(): void;
  close(): void;
}

/** How long a call may block this process on another process's lock; after that we wait without blocking. */
const BLOCK_MS = 4;

interface ConnectionOptions {
  readonly path: string;
  readonly lockTimeoutMs: number;
  readonly maxBytes?: number;
  /** The file is a copy that is not complete yet, or becomes one; otherwise such a file is refused. */
  readonly incomplete?: boolean;
  /** From the connection of the thread that opened the file first. */
  readonly counterFd?: number;
  /** The write-ahead log is copied into the file only by `checkpoint()`, not inside a commit. */
  readonly checkpointsOnDemand?: boolean;
}

export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { path, lockTimeoutMs: timeoutMs } = options;
  const marker = `${path}.born`;
  try {
    prepareFile(path, marker);
    // Another process may be creating or recovering the same file, which is brief.
    const connection = await withLockTimeout(() => connect(options), { timeoutMs, isBusy });
    if (!existsSync(marker)) writeFileSync(marker, 'Says that the log beside it was once written.\n', { mode: 0o600 });
    return connection;
  } catch (thrown) {
    throw openFault(thrown, path);
  }
}

function openFault(thrown: unknown, path: string): unknown {
  const fault = environmentFault(thrown, path);
  if (fault) return fault;
  return thrown instanceof Fault ? thrown : new Fault('unavailable', `cannot open ${path}`, { cause: thrown });
}

function prepareFile(path: string, marker: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (!size && existsSync(marker)) {
    const what = size === undefined ? 'is gone' : 'is empty';
    throw new Fault(
      'unavailable',
      `${path} ${what}, and ${marker} says it once held a log. Restore it, or remove ${marker} to begin a new log`,
    );
  }
  if (size === undefined) create(path);
  else chmodOwn(path);
}

/** Only creates: opening and closing an existing file would drop the locks this process holds on it. */
function create(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown;
  }
}

function chmodOwn(path: string): void {
  try {
    chmodSync(path, 0o600);
  } catch {
    // The file belongs to another user and we may use it: its owner decides who reads it.
  }
}

function connect({ path, maxBytes, counterFd, checkpointsOnDemand, incomplete }: ConnectionOptions): Connection {
  const db = new Database(path, { timeout: BLOCK_MS });
  const home = statSync(path);
  const prepared = new Map<string, Statement>();
  const slots: Slot[] = [];
  const prepare = (sql: string): Statement => {
    const known = prepared.get(sql);
    if (known) return known;
    const statement = db.prepare(sql);
    // `raw()` changes what the rows of a statement are, and not its type.
    const slot: Slot = { statement: (statement.reader ? statement.raw() : statement) as unknown as Statement };
    slots.push(slot);
    const fresh: Statement = {
      run: (params = []) => (slot.statement ?? gone(path)).run(params),
      get: (params = []) => (slot.statement ?? gone(path)).get(params),
      all: (params = []) => (slot.statement ?? gone(path)).all(params),
    };
    prepared.set(sql, fresh);
    return fresh;
  };
  let counter: Generation | undefined;
  /** Generation of the file, up to the last transaction that was ours or that changed `version`. */
  let generation = 0;
  let version = 0;
  let expected: { readonly after: number; readonly isOurs: () => boolean } | undefined;

  function look(): number {
    const now = (counter ?? gone(path)).look();
    if (now === generation || (expected && now === expected.after + 1 && expected.isOurs())) return version;
    generation = now;
    version++;
    return version;
  }

  const connection: Connection = {
    path,
    prepare,
    exec: (sql) => {
      db.exec(sql);
    },
    pragma: (sql) => (db.prepare(`PRAGMA ${sql}`).raw().all() as unknown[][])[0]?.[0],
    begin() {
      const now = statSync(path, { throwIfNoEntry: false });
      if (now?.ino !== home.ino || now.dev !== home.dev) {
        throw new Fault('unavailable', `${path} was moved, removed or replaced: put it back, or restart`);
      }
      // Left over when a rollback failed: no transaction can begin until it is gone.
      if (db.inTransaction) db.exec('ROLLBACK');
      db.exec('BEGIN IMMEDIATE');
      if (counter) look();
    },
    commit() {
      db.exec('COMMIT');
      // The lock kept other writers out. If this commit changed nothing, the next look counts a foreign one too many, which only
      // drops the caches.
      generation++;
    },
    rollback() {
      if (db.inTransaction) db.exec('ROLLBACK');
    },
    version: look,
    generation: () => generation,
    get counterFd() {
      return counter!.fd;
    },
    expect(after, isOurs) {
      expected = { after, isOurs };
    },
    settled(made) {
      if (made && expected && generation === expected.after) generation++;
      expected = undefined;
    },
    checkpoint() {
      if ((counter ?? gone(path)).frames() >= CHECKPOINT_PAGES) db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    },
    close() {
      try {
        // So that the one file is the whole log and can be copied alone.
        db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      } catch {
        // Another connection is using the file; then the write-ahead log beside it remains part of it.
      }
      // The driver keeps the file open while any statement is reachable, so drop them all.
      for (const slot of slots) slot.statement = undefined;
      db.close();
      counter?.release();
      counter = undefined;
    },
  };
  try {
    configure(connection, checkpointsOnDemand ? 0 : CHECKPOINT_PAGES);
    migrate(connection, MIGRATIONS, incomplete ? INCOMPLETE_COPY : APPLICATION_ID);
    counter = counterFd === undefined ? openGeneration(path) : generationAt(counterFd);
    generation = counter.look();
    if (maxBytes !== undefined) limit(connection, maxBytes);
    return connection;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

interface Slot {
  statement: Statement | undefined;
}

function gone(path: string): never {
  throw new Fault('unavailable', `${path} is closed`);
}

/** Pages written in every commit are copied to the file a quarter as often as by default; the price is a 16 MB log beside it. */
const CHECKPOINT_PAGES = 4_000;

/** Pragma name, the value to set, the value that reading it back must give. */
const SETTINGS = [
  ['journal_mode', 'WAL', 'wal'],
  ['synchronous', 'FULL', 2],
  ['busy_timeout', BLOCK_MS, BLOCK_MS],
  ['foreign_keys', 'OFF', 0],
  ['cache_size', -32_000, -32_000],
  ['journal_size_limit', 67_108_864, 67_108_864],
] as const;

function configure(connection: Connection, autocheckpoint: number): void {
  for (const [name, wanted, expected] of [
    ...SETTINGS,
    ['wal_autocheckpoint', autocheckpoint, autocheckpoint] as const,
  ]) {
    connection.exec(`PRAGMA ${name} = ${wanted}`);
    const actual = connection.pragma(name);
    if (actual !== expected) {
      throw damaged(connection.path, undefined, `cannot be used: ${name} is ${String(actual)}, not ${expected}`);
    }
  }
}

function limit(connection: Connection, bytes: number): void {
  const pages = Math.floor(bytes / (connection.pragma('page_size') as number));
  // SQLite never lowers the limit below the number of pages already in use.
  connection.pragma(`max_page_count = ${pages}`);
}

/** Read without bringing the file up to date. */
export async function schemaOfFile(path: string): Promise<{ found: string; newest: string }> {
  const file = new Database(path, { readonly: true });
  try {
    const [[found]] = file.prepare('PRAGMA user_version').raw().all() as [[number]];
    return { found: String(found), newest: String(MIGRATIONS.length) };
  } catch (thrown) {
    throw environmentFault(thrown, path) ?? thrown;
  } finally {
    file.close();
  }
}
