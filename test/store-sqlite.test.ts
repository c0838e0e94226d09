import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readdir, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import Database from 'libsql';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CoreEvent, type EventDraft, eventId } from '../src/model/events.ts';
import type { Json } from '../src/model/schema.ts';
import type { Projector } from '../src/ports.ts';
import { buildEvent, createEncoder, idsText, kindFilter, resourceText } from '../src/store/sqlite/event.ts';
import { createSqliteStore, type SqliteOptions, type SqliteStore } from '../src/store/sqlite.ts';
import { contractProjector, storeContract } from './contracts/store.ts';

storeContract('SQLite', async (deps) => {
  const home = await mkdtemp(join(tmpdir(), 'store-'));
  const all: SqliteStore[] = [];
  const another = async () => {
    const store = await createSqliteStore({ path: join(home, 'log.db'), ...deps });
    all.push(store);
    return store;
  };
  let current = await another();
  return {
    store: current,
    async reopen() {
      await current.close();
      current = await another();
      return current;
    },
    second: another,
    async cleanup() {
      await Promise.all(all.map((store) => store.close()));
      await rm(home, { recursive: true, force: true });
    },
  };
});

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

const nothing: Projector = { touches: () => [], apply: () => [] };
const clock = { now: () => '2026-11-16T09:00:00.000Z' };

async function start(options: Partial<SqliteOptions> = {}): Promise<SqliteStore> {
  const store = await createSqliteStore({ path, clock, projector: nothing, ...options });
  stores.push(store);
  return store;
}
/** A connection of our own, as another program would have. */
function other(): Database.Database {
  const db = new Database(path, { timeout: 1_000 });
  others.push(db);
  return db;
}
const CHILD = fileURLToPath(new URL('contracts/store-child.ts', import.meta.url));
function run(...args: string[]): { child: ChildProcess; lines: AsyncIterableIterator<string> } {
  const child = spawn(process.execPath, ['--import', 'tsx', CHILD, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  return { child, lines: createInterface(child.stdout!)[Symbol.asyncIterator]() };
}
const event = (task: string, payload: EventDraft['payload'] = {}): EventDraft => ({
  event: 'vendor.tollbridge.note',
  resource: { object: 'task', id: task },
  payload,
  task_id: task,
  session_id: 'session_1',
  workspace_id: 'workspace_1',
});
const append = (store: SqliteStore, ...events: EventDraft[]) => store.commit({ decide: () => ({ events }) });
async function all(store: SqliteStore): Promise<CoreEvent[]> {
  const events: CoreEvent[] = [];
  for await (const one of store.read({ stream: { of: 'all' } })) events.push(one);
  return events;
}

describe('group commit', () => {
  test('units that arrive together share one transaction', async () => {
    const store = await start();
    await Promise.all(Array.from({ length: 16 }, (_, n) => append(store, event(`task_${n % 9}`))));
    expect(store.commits()).toBe(1);
    await append(store, event('task_1'));
    expect(store.commits()).toBe(2);
  });

  test('a crowd is written in several, each bounded', async () => {
    const store = await start();
    await Promise.all(Array.from({ length: 1_100 }, (_, n) => append(store, event(`task_${n % 9}`))));
    expect(store.commits()).toBeGreaterThanOrEqual(3);
    expect((await all(store)).map(({ id }) => id)).toEqual(Array.from({ length: 1_100 }, (_, n) => eventId(n + 1)));
  });

  test('slow decisions close a batch early, so that others get their turn', async () => {
    const store = await start();
    const decide = () => {
      const until = performance.now() + 2;
      while (performance.now() < until);
      return { events: [event('task_1')] };
    };
    await Promise.all(Array.from({ length: 64 }, () => store.commit({ decide })));
    expect(store.commits()).toBeGreaterThanOrEqual(3);
  });

  test('one that cannot be written is refused alone', async () => {
    const store = await start();
    // Longer than SQLite takes, which shows only when it is written.
    const huge = 'x'.repeat(1_000_001);
    other().exec(`CREATE TRIGGER no_giants BEFORE INSERT ON events WHEN length(NEW.body) > 1000000
      BEGIN SELECT RAISE(ABORT, 'too big'); END`);
    const outcomes = await Promise.allSettled([
      append(store, event('task_1', { n: 1 })),
      append(store, event('task_1', { huge })),
      append(store, event('task_2', { n: 2 })),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((outcomes[1] as PromiseRejectedResult).reason).toMatchObject({ kind: 'internal' });
    expect((await all(store)).map(({ id, sequence, payload }) => [id, sequence, payload.n])).toEqual([
      ['evt_0000000000000001', 1, 1],
      ['evt_0000000000000002', 1, 2],
    ]);
    expect(store.trouble()).toBeUndefined();
  });
});

describe('a disk that says no', () => {
  test('a full one refuses everyone, keeps nothing half-written, and is used again once there is room', async () => {
    const store = await start({ maxBytes: 600_000 });
    const fill = async () => {
      for (let n = 0; n < 100; n++) await append(store, event('task_1', { text: 'x'.repeat(20_000) }));
    };
    await expect(fill()).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringContaining('disk space') });
    expect(store.trouble()).toContain('disk space');
    const before = (await all(store)).length;
    const crowd = await Promise.allSettled(
      Array.from({ length: 5 }, () => append(store, event('task_2', { text: 'x'.repeat(20_000) }))),
    );
    expect(crowd.map((one) => (one as PromiseRejectedResult).reason.kind)).toEqual(Array(5).fill('unavailable'));
    expect(await all(store)).toHaveLength(before);
    await store.retain('2026-11-16T10:00:00.000Z');
    const { events } = await append(store, event('task_1', { text: 'x'.repeat(20_000) }));
    expect(events[0]).toMatchObject({ id: eventId(before + 1), sequence: before + 1 });
    expect(store.trouble()).toBeUndefined();
  });

  test('another process that keeps the lock is waited for, then named, then forgiven', async () => {
    const store = await start({ patienceMs: 60 });
    const db = other();
    db.exec('BEGIN IMMEDIATE');
    await expect(append(store, event('task_1'))).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('another process'),
    });
    await expect(store.putBlob(new Uint8Array(3))).rejects.toMatchObject({ kind: 'unavailable' });
    expect(store.trouble()).toContain('another process');
    const patient = await start({ patienceMs: 30_000 });
    const waiting = append(patient, event('task_2'));
    let turns = 0;
    const ticking = setInterval(() => turns++, 5);
    setTimeout(() => db.exec('ROLLBACK'), 200);
    await waiting;
    clearInterval(ticking);
    // It waited without blocking the process.
    expect(turns).toBeGreaterThan(2);
    await append(store, event('task_1'));
    expect(store.trouble()).toBeUndefined();
    expect((await all(store)).map(({ resource }) => resource.id)).toEqual(['task_2', 'task_1']);
  });

  test('a file that is gone is not written to, and is used again when it is back', async () => {
    const store = await start();
    await append(store, event('task_1'));
    await rename(path, `${path}.away`);
    await expect(append(store, event('task_1'))).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('put it back'),
    });
    expect(store.trouble()).toContain('put it back');
    await rename(`${path}.away`, path);
    await append(store, event('task_1'));
    expect(store.trouble()).toBeUndefined();
    expect(await all(store)).toHaveLength(2);
  });
});

describe('opening', () => {
  test('makes what is missing, for this user alone', async () => {
    const store = await start();
    await append(store, event('task_1'));
    const lease = await store.lease('x');
    const modes = async (name: string) => ((await stat(name)).mode & 0o777).toString(8);
    expect(await modes(join(dir, 'data'))).toBe('700');
    expect(await modes(`${path}.leases`)).toBe('700');
    for (const name of ['log.db', 'log.db-wal', 'log.db-shm', 'log.db.born']) {
      expect([name, await modes(join(dir, 'data', name))]).toEqual([name, '600']);
    }
    await lease?.close();
  });

  test('is durable by its settings', async () => {
    await start();
    const db = other();
    expect(db.prepare('PRAGMA journal_mode').raw().get()).toEqual(['wal']);
    expect(db.prepare('PRAGMA user_version').raw().get()).toEqual([2]);
  });

  test('several processes may make the same new file at once', async () => {
    const runs = [run('append', path, '5'), run('append', path, '5'), run('append', path, '5')];
    for (const { lines } of runs) expect((await lines.next()).value).toBe('ready');
    for (const { child } of runs) child.stdin!.write('go\n');
    for (const { lines } of runs) expect((await lines.next()).value).toBe('done');
    const events = await all(await start());
    expect(events.map(({ id, sequence }) => [id, sequence])).toEqual(
      Array.from({ length: 15 }, (_, n) => [eventId(n + 1), n + 1]),
    );
  });

  test('a file that is not a database is left alone', async () => {
    await (await start()).close();
    await writeFile(path, 'not a database at all '.repeat(500));
    await expect(start()).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('restore a backup'),
    });
    expect((await stat(path)).size).toBe(11_000);
  });

  test('a file cut short is damage, not a new beginning', async () => {
    const store = await start();
    await append(store, ...Array.from({ length: 400 }, () => event('task_1', { text: 'x'.repeat(500) })));
    await store.close();
    for (const name of await readdir(join(dir, 'data')))
      if (/-(wal|shm)$/.test(name)) await rm(join(dir, 'data', name));
    await truncate(path, 40_960);
    await expect(start()).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('restore a backup'),
    });
  });

  test('an empty or missing file where a log once was is not begun again', async () => {
    await (await start()).close();
    await truncate(path, 0);
    await expect(start()).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringContaining('is empty') });
    await rm(path);
    await expect(start()).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringContaining('is gone') });
    await rm(`${path}.born`);
    expect(await all(await start())).toEqual([]);
  });

  test('damage found later is a fault that says what to do', async () => {
    const store = await start();
    await append(store, ...Array.from({ length: 2_000 }, () => event('task_1', { text: 'x'.repeat(500) })));
    await store.close();
    const file = await open(path, 'r+');
    // Past the first pages, so that it still opens.
    await file.write(Buffer.alloc(200_000, 0xee), 0, 200_000, 400_000);
    await file.close();
    const hurt = await start();
    await expect(all(hurt)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('restore a backup'),
    });
  });

  test("another program's database is refused", async () => {
    await (await start()).close();
    await rm(path);
    await rm(`${path}.born`);
    const db = other();
    db.exec('CREATE TABLE theirs (a)');
    await expect(start()).rejects.toMatchObject({ message: expect.stringContaining("another program's") });
    expect(db.prepare('SELECT name FROM sqlite_schema').raw().all()).toEqual([['theirs']]);
  });

  test('a directory that cannot be made is a fault', async () => {
    await writeFile(join(dir, 'data'), '');
    await expect(start()).rejects.toMatchObject({ kind: 'unavailable' });
  });
});

describe('versions of the file', () => {
  /** A log as version 1 wrote it: two tasks, five events, the first two pruned. */
  const VERSION_1 = `
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE resources (
      id INTEGER PRIMARY KEY, object TEXT NOT NULL, name TEXT NOT NULL, base INTEGER NOT NULL DEFAULT 0,
      UNIQUE (object, name)
    ) STRICT;
    CREATE TABLE places (
      id INTEGER PRIMARY KEY, resource INTEGER NOT NULL REFERENCES resources, task TEXT, session TEXT, workspace TEXT
    ) STRICT;
    CREATE INDEX places_by_resource ON places (resource);
    CREATE INDEX places_by_task ON places (task, id, resource) WHERE task IS NOT NULL;
    CREATE INDEX places_by_session ON places (session, id, resource) WHERE session IS NOT NULL;
    CREATE TABLE events (
      position INTEGER PRIMARY KEY, resource INTEGER NOT NULL, sequence INTEGER NOT NULL, place INTEGER NOT NULL,
      body TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX events_by_resource ON events (resource, sequence);
    CREATE TABLE spans (workspace TEXT NOT NULL, span INTEGER NOT NULL, PRIMARY KEY (workspace, span)) STRICT, WITHOUT ROWID;
    CREATE TABLE rows (
      object TEXT NOT NULL, id TEXT NOT NULL, created_at TEXT NOT NULL,
      workspace_id TEXT, session_id TEXT, task_id TEXT, parent_task_id TEXT, state TEXT, owner_id TEXT,
      body TEXT, PRIMARY KEY (object, id)
    ) STRICT;
    CREATE INDEX rows_by_age ON rows (object, created_at, id) WHERE body IS NOT NULL;
    CREATE INDEX rows_by_workspace ON rows (object, workspace_id, created_at, id) WHERE workspace_id IS NOT NULL;
    CREATE INDEX rows_by_session ON rows (object, session_id, created_at, id) WHERE session_id IS NOT NULL;
    CREATE INDEX rows_by_task ON rows (object, task_id, created_at, id) WHERE task_id IS NOT NULL;
    CREATE INDEX rows_by_parent ON rows (object, parent_task_id, created_at, id) WHERE parent_task_id IS NOT NULL;
    CREATE INDEX rows_by_state ON rows (object, state, created_at, id) WHERE state IS NOT NULL;
    CREATE INDEX rows_by_owner ON rows (object, owner_id, created_at, id) WHERE owner_id IS NOT NULL;
    CREATE TABLE baseline (
      object TEXT NOT NULL, id TEXT NOT NULL, created_at TEXT NOT NULL, body TEXT, PRIMARY KEY (object, id)
    ) STRICT;
    CREATE TABLE idempotency (scope TEXT PRIMARY KEY, digest TEXT NOT NULL, result TEXT, at TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE INDEX idempotency_by_age ON idempotency (at);
    CREATE TABLE receipts (
      position INTEGER PRIMARY KEY, chain TEXT NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,
      hash TEXT NOT NULL, task_id TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (chain, number)
    ) STRICT;
    CREATE INDEX receipts_by_task ON receipts (task_id);
    CREATE TABLE tree (one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL, frontier TEXT NOT NULL) STRICT;
    CREATE TABLE tree_nodes (
      level INTEGER NOT NULL, number INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (level, number)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE blobs (sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE blob_parts (
      sha256 TEXT NOT NULL, part INTEGER NOT NULL, digest TEXT NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (sha256, part)
    ) STRICT;
    PRAGMA application_id = 0x746f6c6c;
    PRAGMA user_version = 1;

    INSERT INTO meta VALUES ('floor', '2'), ('floor_at', '2026-11-01T00:00:02.000Z');
    INSERT INTO resources VALUES (1, 'task', 'task_a', 1), (2, 'task', 'task_b', 1);
    INSERT INTO places VALUES (1, 1, 'task_a', 'session_1', 'workspace_1'), (2, 2, 'task_b', 'session_1', 'workspace_1');
    INSERT INTO spans VALUES ('workspace_1', 0);
    INSERT INTO events VALUES
      (3, 1, 2, 1, '{"id":"evt_0000000000000003","object":"event","event":"task.started","created_at":"2026-11-01T00:00:03.000Z","updated_at":"2026-11-01T00:00:03.000Z","metadata":{},"resource":{"object":"task","id":"task_a"},"sequence":2,"payload":{"n":3},"workspace_id":"workspace_1","session_id":"session_1","task_id":"task_a"}'),
      (4, 2, 2, 2, '{"id":"evt_0000000000000004","object":"event","event":"task.started","created_at":"2026-11-01T00:00:04.000Z","updated_at":"2026-11-01T00:00:04.000Z","metadata":{},"resource":{"object":"task","id":"task_b"},"sequence":2,"payload":{"n":4},"workspace_id":"workspace_1","session_id":"session_1","task_id":"task_b"}'),
      (5, 1, 3, 1, '{"id":"evt_0000000000000005","object":"event","event":"task.completed","created_at":"2026-11-01T00:00:05.000Z","updated_at":"2026-11-01T00:00:05.000Z","metadata":{},"resource":{"object":"task","id":"task_a"},"sequence":3,"payload":{"n":5},"workspace_id":"workspace_1","session_id":"session_1","task_id":"task_a"}');
    INSERT INTO rows (object, id, created_at, session_id, state, body) VALUES ('task', 'task_a', '2026-11-01T00:00:01.000Z',
      'session_1', 'COMPLETED', '{"id":"task_a","object":"task","created_at":"2026-11-01T00:00:01.000Z","updated_at":"2026-11-01T00:00:05.000Z","status":"COMPLETED","session_id":"session_1"}');
    INSERT INTO idempotency VALUES ('key-1', '2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881', '"first"', '2026-11-01T00:00:05.000Z');
    INSERT INTO receipts VALUES (0, 'chain', 0, 'receipt_1', 'sha256:aa', 'task_a', '{"id":"receipt_1"}');
    INSERT INTO tree VALUES (1, 1, '["aa"]');
  `;
  const makeVersion1 = async (then = '') => {
    await (await start()).close();
    for (const name of await readdir(join(dir, 'data'))) await rm(join(dir, 'data', name), { recursive: true });
    const db = new Database(path);
    db.exec(VERSION_1 + then);
    db.close();
  };

  test('a file of version 1 is read, and goes on where it was', async () => {
    await makeVersion1();
    const store = await start();
    const numbers = async (stream: Parameters<SqliteStore['read']>[0]['stream']) => {
      const found: unknown[] = [];
      for await (const { payload } of store.read({ stream, after: eventId(2) })) found.push(payload.n);
      return found;
    };
    expect(await numbers({ of: 'all' })).toEqual([3, 4, 5]);
    expect(await numbers({ of: 'task', id: 'task_a' })).toEqual([3, 5]);
    expect(await numbers({ of: 'session', id: 'session_1' })).toEqual([3, 4, 5]);
    expect(await numbers({ of: 'workspace', id: 'workspace_1' })).toEqual([3, 4, 5]);
    expect(await store.get('task', 'task_a')).toMatchObject({ status: 'COMPLETED' });
    expect(await store.receipt('receipt_1')).toMatchObject({ position: 0, index: 0, hash: 'sha256:aa' });
    const { events } = await append(store, event('task_a'), event('task_b'));
    expect(events.map(({ id, sequence }) => [id, sequence])).toEqual([
      ['evt_0000000000000006', 4],
      ['evt_0000000000000007', 3],
    ]);
    const repeat = await store.commit({ idempotency: { scope: 'key-1', body: 'x' }, decide: () => ({ events: [] }) });
    expect(repeat).toMatchObject({ repeated: true, result: 'first' });
    expect(other().prepare('PRAGMA user_version').raw().get()).toEqual([2]);
  });

  test('an upgrade that fails leaves the old file as it was', async () => {
    await makeVersion1('CREATE TABLE stretches (in_the_way);');
    await expect(start()).rejects.toMatchObject({ kind: 'unavailable' });
    const db = other();
    expect(db.prepare('PRAGMA user_version').raw().get()).toEqual([1]);
    expect(db.prepare(`SELECT count(*) FROM sqlite_schema WHERE name = 'events_by_resource'`).raw().get()).toEqual([1]);
  });

  test('a file from a newer version is refused', async () => {
    await makeVersion1('PRAGMA user_version = 99;');
    await expect(start()).rejects.toMatchObject({
      kind: 'unsupported_version',
      message: expect.stringContaining('schema 99'),
    });
  });

  test('a sequence can not be given twice, neither nearby nor far away', async () => {
    const store = await start();
    await append(store, event('task_1'), event('task_1'));
    const db = other();
    const insert = (position: number, sequence: number) =>
      db.exec(`INSERT INTO events VALUES (${position}, 1, ${sequence}, 1, '{}')`);
    expect(() => insert(3, 2)).toThrow('UNIQUE');
    expect(() => db.exec('INSERT INTO stretches VALUES (1, 7, 2)')).toThrow('given twice');
    db.exec('INSERT INTO stretches VALUES (1, 7, 3)');
  });
});

describe('other processes', () => {
  test('a killed writer loses nothing it was promised and leaves nothing half done', async () => {
    let promised = 0;
    for (let round = 0; round < 4; round++) {
      const { child, lines } = run('write', path);
      const wanted = 20 + round * 37;
      let heard = 0;
      for await (const line of lines) {
        promised = Math.max(promised, Number(line.slice(-16)));
        if (++heard === wanted) child.kill('SIGKILL');
      }
      const store = await start({ projector: contractProjector });
      const events = await all(store);
      expect(events.length).toBeGreaterThanOrEqual(promised);
      expect(events.map(({ id }) => id)).toEqual(events.map((_, n) => eventId(n + 1)));
      const tasks = new Map<string, number>();
      for (const { resource, sequence } of events) {
        expect(sequence).toBe((tasks.get(resource.id) ?? 0) + 1);
        tasks.set(resource.id, sequence);
      }
      // Units of two: an odd number would be half of one.
      for (const count of tasks.values()) expect(count % 2).toBe(0);
      const rows = await store.list({ object: 'task' });
      expect(rows.map((row) => [row.id, (row as unknown as { count: number }).count])).toEqual(
        [...tasks].toSorted(([a], [b]) => (a < b ? -1 : 1)),
      );
      await store.rebuild();
      expect(await store.list({ object: 'task' })).toEqual(rows);
      await store.close();
    }
    expect(promised).toBeGreaterThan(100);
  });

  test('what another process appends is followed here, in order with our own', async () => {
    const store = await start();
    const stop = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      for await (const { id, sequence } of store.follow({ stream: { of: 'task', id: 'task_1' } }, stop.signal)) {
        seen.push(`${id} ${sequence}`);
        if (seen.length === 60) stop.abort();
      }
    })();
    const { child, lines } = run('append', path, '40');
    await lines.next();
    child.stdin!.write('go\n');
    for (let n = 0; n < 20; n++) {
      await append(store, event('task_1'));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect((await lines.next()).value).toBe('done');
    await following;
    expect(seen).toEqual(Array.from({ length: 60 }, (_, n) => `${eventId(n + 1)} ${n + 1}`));
  });

  test('a lease ends with the process that held it, however it ended', async () => {
    const store = await start();
    const { child, lines } = run('lease', path, 'instance:1');
    expect((await lines.next()).value).toBe('held');
    expect(await store.lease('instance:1')).toBeUndefined();
    const dead = once(child, 'exit');
    child.kill('SIGKILL');
    await dead;
    const lease = await store.lease('instance:1');
    expect(lease).toBeDefined();
    await lease?.close();
    // Nothing is left lying about: neither by us nor, after a retention, by the dead.
    const { child: next, lines: more } = run('lease', path, 'instance:2');
    expect((await more.next()).value).toBe('held');
    const ended = once(next, 'exit');
    next.kill('SIGKILL');
    await ended;
    expect(await readdir(`${path}.leases`)).not.toEqual([]);
    const kept = await store.lease('instance:3');
    await store.retain('2026-11-16T00:00:00.000Z');
    expect((await readdir(`${path}.leases`)).filter((name) => name.endsWith('.lock'))).toHaveLength(1);
    expect(await store.lease('instance:3')).toBeUndefined();
    await kept?.close();
  });
});

describe('bytes', () => {
  test('damaged ones are a fault, whichever part is asked for', async () => {
    const store = await start();
    const sha256 = await store.putBlob(new Uint8Array(600_000).fill(5));
    const db = other();
    expect(db.prepare('SELECT count(*), max(length(bytes)) FROM blob_parts').raw().get()).toEqual([3, 262_144]);
    db.exec(`UPDATE blob_parts SET bytes = zeroblob(length(bytes)) WHERE part = 1`);
    await expect(store.blob(sha256)).rejects.toMatchObject({ kind: 'internal' });
    await expect(store.blob(sha256, { start: 300_000, end: 300_001 })).rejects.toMatchObject({ kind: 'internal' });
    expect(await store.blob(sha256, { start: 0, end: 3 })).toEqual(new Uint8Array([5, 5, 5]));
    db.exec(`UPDATE blob_parts SET bytes = x'00' WHERE part = 2`);
    await expect(store.blob(sha256, { start: 599_999, end: 600_000 })).rejects.toMatchObject({ kind: 'internal' });
    db.exec('DELETE FROM blob_parts');
    await expect(store.blob(sha256)).rejects.toMatchObject({ kind: 'internal' });
  });

  test('a put that was cut off leaves nothing to read, and its parts are swept up', async () => {
    const store = await start();
    const db = other();
    db.exec(`INSERT INTO blob_parts VALUES ('abc', 0, 'abc', x'01')`);
    expect(await store.hasBlob('abc')).toBe(false);
    await store.retain('2026-11-16T00:00:00.000Z');
    expect(db.prepare('SELECT count(*) FROM blob_parts').raw().get()).toEqual([0]);
  });
});

describe('bytes in the making', () => {
  test('a put survives a sweep in the middle of it', async () => {
    const store = await start();
    const bytes = new Uint8Array(9_000_000).map((_, i) => i % 253);
    const putting = store.putBlob(bytes);
    const db = other();
    while ((db.prepare('SELECT count(*) FROM blob_parts').raw().get() as [number])[0] === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    db.exec('DELETE FROM blob_parts');
    const sha256 = await putting;
    expect(Buffer.compare((await store.blob(sha256))!, bytes)).toBe(0);
  });
});

describe('the text of an event', () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('task_1', 'a"b', '\\', '\u2028'));
  const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(fc.option(value, { nil: null }), { nil: undefined });
  const json = fc.dictionary(fc.string(), fc.jsonValue()) as fc.Arbitrary<Record<string, Json>>;
  const draft = fc.record(
    {
      event: text,
      resource: fc.record({ object: text, id: text }),
      payload: json,
      workspace_id: maybe(text),
      session_id: maybe(text),
      task_id: maybe(text),
      actor: maybe(text),
      trace_id: maybe(text),
      span_id: maybe(text),
      idempotency_key: maybe(text),
      receipt_id: maybe(text),
      replayed: fc.boolean(),
      metadata: json,
      ext: json,
    },
    { requiredKeys: ['event', 'resource', 'payload'] },
  );

  test('is what JSON.stringify gives, for any draft', () => {
    fc.assert(
      fc.property(draft, fc.nat(), fc.nat(), (given, position, sequence) => {
        const wanted = given as EventDraft;
        const now = '2026-11-16T09:00:00.000Z';
        const built = buildEvent(wanted, position, sequence, now);
        const encoded = createEncoder(now).encode(built, wanted, resourceText(wanted.resource), idsText(wanted));
        expect(encoded).toBe(JSON.stringify(built));
        expect(kindFilter([wanted.event])(encoded)).toBe(true);
        expect(kindFilter([`${wanted.event}x`, `x${wanted.event}`])(encoded)).toBe(false);
      }),
      { numRuns: 500 },
    );
  });
});
