/** A directory of its own for each test, and everything opened in it closed and removed afterwards. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import Database from 'libsql';
import { afterEach, beforeEach } from 'vitest';
import type { CoreEvent, EventDraft } from '../../../../src/model/events.ts';
import type { Projector } from '../../../../src/ports/index.ts';
import { createSqliteStore, type SqliteOptions, type SqliteStore } from '../../../../src/store/sqlite/index.ts';
import { type ContractDeps, type OpenedStore, openedOn } from './scene.ts';

const nothing: Projector = { touches: () => [], apply: () => [] };
const clock = { now: () => '2026-11-16T09:00:00.000Z' };
const CHILD = fileURLToPath(new URL('child.ts', import.meta.url));

export interface SqliteHome {
  readonly dir: string;
  /** The log, in a directory that is not there yet. */
  readonly path: string;
  start(options?: Partial<SqliteOptions>): Promise<SqliteStore>;
  /** A connection of our own, as another program would have. */
  other(): Database.Database;
  /** Another process, and the lines it says. */
  run(...args: string[]): { child: ChildProcess; lines: AsyncIterableIterator<string> };
}

/** As it runs for real: a thread of its own for writing runs what was compiled. */
export async function compiledStore(): Promise<typeof createSqliteStore> {
  const file = new URL('../../../../dist/src/store/sqlite/index.js', import.meta.url).href;
  return ((await import(file)) as { createSqliteStore: typeof createSqliteStore }).createSqliteStore;
}

/** Every batch, however small, and from the start. */
export const ALWAYS_ELSEWHERE = { units: 1, times: 0 };

/** For the contract: stores on one new file, all closed and the file removed at the end. */
export function contractOpener(
  open: (options: SqliteOptions) => Promise<SqliteStore>,
  more: Partial<SqliteOptions> = {},
) {
  return async (deps: ContractDeps): Promise<OpenedStore> => {
    const home = await mkdtemp(join(tmpdir(), 'store-'));
    return await openedOn(
      () => open({ path: join(home, 'log.db'), ...deps, ...more }),
      () => rm(home, { recursive: true, force: true }),
    );
  };
}

export function sqliteHome(open = createSqliteStore): SqliteHome {
  let dir = '';
  let path = '';
  let stores: SqliteStore[] = [];
  let children: ChildProcess[] = [];
  let others: Database.Database[] = [];
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'store-'));
    path = join(dir, 'data', 'log.db');
  });
  afterEach(async () => {
    for (const child of children) child.kill('SIGKILL');
    for (const other of others) other.close();
    await Promise.all(stores.map((store) => store.close()));
    stores = [];
    children = [];
    others = [];
    await rm(dir, { recursive: true, force: true });
  });
  return {
    get dir() {
      return dir;
    },
    get path() {
      return path;
    },
    async start(options = {}) {
      const store = await open({ path, clock, projector: nothing, ...options });
      stores.push(store);
      return store;
    },
    other() {
      const db = new Database(path, { timeout: 1_000 });
      others.push(db);
      return db;
    },
    run(...args) {
      const child = spawn(process.execPath, ['--import', 'tsx', CHILD, ...args], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      children.push(child);
      return { child, lines: createInterface(child.stdout!)[Symbol.asyncIterator]() };
    },
  };
}

export function event(task: string, payload: EventDraft['payload'] = {}): EventDraft {
  return {
    event: 'vendor.tollbridge.note',
    resource: { object: 'task', id: task },
    payload,
    task_id: task,
    session_id: 'session_1',
    workspace_id: 'workspace_1',
  };
}

export function append(store: SqliteStore, ...events: EventDraft[]) {
  return store.commit({ decide: () => ({ events }) });
}

export async function all(store: SqliteStore): Promise<CoreEvent[]> {
  const events: CoreEvent[] = [];
  for await (const one of store.read({ stream: { of: 'all' } })) events.push(one);
  return events;
}
