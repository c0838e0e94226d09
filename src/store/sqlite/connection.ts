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
import { Fault } from '../../model/faults.ts';
import { type Generation, generationAt, openGeneration } from './generation.ts';
import { migrate } from './migrations.ts';
import { patiently } from './patience.ts';
import { damaged, environmentFault } from './trouble.ts';

export type Value = string | number | null | Uint8Array;
export interface Statement {
  run(params?: readonly Value[]): void;
  get(params?: readonly Value[]): unknown[] | undefined;
  all(params?: readonly Value[]): unknown[][];
}
export interface Connection {
  readonly path: string;
  /** The same text gives the same statement, so it may be asked for on every call. */
  prepare(sql: string): Statement;
  exec(sql: string): void;
  pragma(sql: string): unknown;
  /** Take the write lock. Fails at once when the file is no longer where it was. */
  begin(): void;
  commit(): void;
  /** Does nothing when no transaction is open. */
  rollback(): void;
  /** Changes when somebody else has committed to the file: another process, or another house in this one. */
  version(): number;
  /** How many transactions the file has seen that we know of. Holds for `version` as just asked. */
  generation(): number;
  /** Says that the transaction after this generation may be made by another thread of ours; `isOurs` tells whether the next one is. */
  expect(after: number, isOurs: () => boolean): void;
  /** What was expected was made, or will not be. */
  settled(made: boolean): void;
  /** For the connection of another thread of this process. */
  readonly counterFd: number;
  /** Copies what the write-ahead log holds into the file, when it is long enough. For a connection that does not by itself. */
  checkpoint(): void;
  close(): void;
}

/** How long a call may block the process on another one's lock; beyond it we wait without blocking. */
const BLOCK_MS = 4;

export interface ConnectionOptions {
  readonly path: string;
  readonly patienceMs: number;
  readonly maxBytes?: number;
  /** From the connection of the thread that opened the file first. */
  readonly counterFd?: number;
  /** The write-ahead log is copied into the file when that is asked for, and not by whoever happens to commit. */
  readonly checkpointsOnDemand?: boolean;
}

export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { path, patienceMs } = options;
  const marker = `${path}.born`;
  try {
    prepareFile(path, marker);
    // Another process may be creating or recovering the same file: that takes moments.
    const connection = await patiently(() => connect(options), patienceMs);
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

/** Only ever creates: opening and closing an existing file would drop the locks this process holds on it. */
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
    // Someone else's file that we may use: its owner decides who reads it.
  }
}

function connect({ path, maxBytes, counterFd, checkpointsOnDemand }: ConnectionOptions): Connection {
  const db = new Database(path, { timeout: BLOCK_MS });
  const home = statSync(path);
  const prepared = new Map<string, Statement>();
  const slots: Slot[] = [];
  const prepare = (sql: string): Statement => {
    const known = prepared.get(sql);
    if (known) return known;
    const statement = db.prepare(sql);
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
  /** Of the file, up to the last transaction that was ours or that somebody was told of. */
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
      // Left over when a rollback failed: until it is gone nothing else can begin.
      if (db.inTransaction) db.exec('ROLLBACK');
      db.exec('BEGIN IMMEDIATE');
      if (counter) look();
    },
    commit() {
      db.exec('COMMIT');
      // Nobody else could write meanwhile. Should it have changed nothing, the next look takes it for somebody else's.
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
        // So that the one file is the whole log, for whoever copies it.
        db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      } catch {
        // Someone else is using it; the log beside it is then part of it, as always.
      }
      // The driver keeps the file open as long as a statement can be reached, so let go of them all.
      for (const slot of slots) slot.statement = undefined;
      db.close();
      counter?.release();
      counter = undefined;
    },
  };
  try {
    configure(connection, checkpointsOnDemand ? 0 : CHECKPOINT_PAGES);
    migrate(connection);
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

/** A page that is written in every commit is copied to the file a quarter as often as by default; the price is 16 MB beside it. */
const CHECKPOINT_PAGES = 4_000;

/** Name, what we ask for, what the file must answer. */
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
  // Answers with what it is now: no less than what is already in use.
  connection.pragma(`max_page_count = ${pages}`);
}
