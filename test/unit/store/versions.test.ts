/** The file as earlier versions wrote it, and as later ones might: what it is upgraded from, and what is refused. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'libsql';
import { describe, expect, test } from 'vitest';
import { eventId } from '../../../src/model/events.ts';
import type { SqliteStore } from '../../../src/store/sqlite/index.ts';
import { all, append, event, sqliteHome } from '../../contract/store/scenes/sqlite-home.ts';
import { spellOut } from '../../support/store/spell-out.ts';

const home = sqliteHome();
const { start, other } = home;

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
  /** What version 2 made of that, and rows of every kind in it: as they are, changed, dropped. */
  const VERSION_2 = `
    DROP INDEX events_by_resource;
    CREATE UNIQUE INDEX events_by_stretch ON events (position >> 12, resource, sequence);
    CREATE TABLE stretches (
      resource INTEGER NOT NULL, stretch INTEGER NOT NULL, first INTEGER NOT NULL, PRIMARY KEY (resource, stretch)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO stretches SELECT resource, position >> 12, min(sequence) FROM events GROUP BY 1, 2;
    CREATE TRIGGER stretches_go_on BEFORE INSERT ON stretches
    WHEN EXISTS (
      SELECT 1 FROM events WHERE resource = NEW.resource AND sequence >= NEW.first AND position >> 12 =
        (SELECT max(stretch) FROM stretches WHERE resource = NEW.resource AND stretch < NEW.stretch)
    )
    BEGIN SELECT RAISE(ABORT, 'a sequence was given twice'); END;
    ALTER TABLE places ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0;
    UPDATE places SET pruned = 1 WHERE resource IN (SELECT id FROM resources WHERE base > 0);
    CREATE INDEX receipts_by_chain ON receipts (chain, position);
    PRAGMA user_version = 2;

    INSERT INTO rows (object, id, created_at, workspace_id, session_id, task_id, parent_task_id, state, owner_id, body) VALUES
      ('session', 's1', '2026-11-01T00:00:01.000Z', 'w1', NULL, NULL, NULL, 'ACTIVE', NULL, '{"object":"session","id":"s1","workspace_id":"w1","state":"ACTIVE"}'),
      ('session', 's2', '2026-11-01T00:00:01.000Z', 'w2', NULL, NULL, NULL, 'CLOSED', NULL, '{"object":"session","id":"s2","workspace_id":"w2","state":"CLOSED"}'),
      ('tally', 's1', '2026-11-01T00:00:01.000Z', NULL, NULL, NULL, NULL, NULL, NULL, '{"object":"tally","id":"s1","messages":2}'),
      ('task', 't2', '2026-11-01T00:00:02.000Z', 'w1', 's1', NULL, 't1', 'WORKING', NULL, '{"object":"task","id":"t2","workspace_id":"w1","session_id":"s1","parent_task_id":"t1","status":"WORKING"}'),
      ('task', 't1', '2026-11-01T00:00:02.000Z', 'w1', 's1', NULL, NULL, 'COMPLETED', NULL, '{"object":"task","id":"t1","workspace_id":"w1","session_id":"s1","status":"COMPLETED"}'),
      ('task', 't3', '2026-11-01T00:00:01.500Z', 'w2', 's2', NULL, NULL, 'COMPLETED', NULL, '{"object":"task","id":"t3","workspace_id":"w2","session_id":"s2","status":"COMPLETED"}'),
      ('run', 't2', '2026-11-01T00:00:02.000Z', NULL, 's1', NULL, NULL, NULL, NULL, '{"object":"run","id":"t2","session_id":"s1"}'),
      ('run', 't1', '2026-11-01T00:00:02.000Z', NULL, NULL, NULL, NULL, NULL, NULL, NULL),
      ('message', 'm2', '2026-11-01T00:00:03.000Z', 'w1', 's1', 't1', NULL, NULL, NULL, '{"object":"message","id":"m2","workspace_id":"w1","session_id":"s1","task_id":"t1"}'),
      ('message', 'm1', '2026-11-01T00:00:02.000Z', 'w1', 's1', 't1', NULL, NULL, NULL, '{"object":"message","id":"m1","workspace_id":"w1","session_id":"s1","task_id":"t1"}'),
      ('message', 'm0', '2026-11-01T00:00:01.000Z', NULL, NULL, NULL, NULL, NULL, NULL, NULL),
      ('outcome', 'o1', '2026-11-01T00:00:04.000Z', 'w1', 's1', 't1', NULL, 'SUCCEEDED', NULL, '{"object":"outcome","id":"o1","workspace_id":"w1","session_id":"s1","task_id":"t1","status":"SUCCEEDED"}'),
      ('memory', 'y1', '2026-11-01T00:00:04.000Z', 'w1', NULL, NULL, NULL, NULL, 's1', '{"object":"memory","id":"y1","workspace_id":"w1","owner_id":"s1"}'),
      ('memory', 'y0', '2026-11-01T00:00:03.000Z', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    INSERT INTO receipts VALUES
      (1, 'other', 0, 'receipt_2', 'sha256:bb', 'task_b', '{"id":"receipt_2"}'),
      (2, 'chain', 1, 'receipt_3', 'sha256:cc', 'task_b', '{"id":"receipt_3"}');
    INSERT OR REPLACE INTO tree VALUES (1, 3, '["aabb","cc"]');
    INSERT INTO tree_nodes VALUES (0, 0, 'aa'), (0, 1, 'bb'), (1, 0, 'aabb'), (0, 2, 'cc');
  `;
  const makeVersion1 = async (then = '') => {
    await (await start()).close();
    for (const name of await readdir(join(home.dir, 'data')))
      await rm(join(home.dir, 'data', name), { recursive: true, force: true });
    const db = new Database(home.path);
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
    expect(other().prepare('PRAGMA user_version').raw().get()).toEqual([5]);
  });

  test('a file of version 2 gives the same lists, and goes on', async () => {
    await makeVersion1(VERSION_2);
    const store = await start();
    const ids = async (object: string, where: object = {}, more: object = {}) =>
      (await store.list({ object, where, ...more })).map(({ id }) => id);
    expect(await ids('task')).toEqual(['task_a', 't3', 't1', 't2']);
    expect(await ids('task', {}, { newestFirst: true, after: 't2' })).toEqual(['t1', 't3', 'task_a']);
    expect(await ids('task', { session_id: 's1' })).toEqual(['t1', 't2']);
    expect(await ids('task', { state: 'COMPLETED' })).toEqual(['task_a', 't3', 't1']);
    expect(await ids('task', { workspace_id: 'w1', state: ['WORKING', 'FAILED'] })).toEqual(['t2']);
    expect(await ids('task', { parent_task_id: 't1' })).toEqual(['t2']);
    expect(await ids('session')).toEqual(['s1', 's2']);
    expect(await ids('session', { workspace_id: 'w2' })).toEqual(['s2']);
    expect(await ids('session', { state: 'ACTIVE' })).toEqual(['s1']);
    expect(await ids('message', { session_id: 's1' })).toEqual(['m1', 'm2']);
    expect(await ids('message', {}, { after: 'm0' })).toEqual(['m1', 'm2']);
    expect(await ids('outcome', { task_id: 't1', state: 'SUCCEEDED' })).toEqual(['o1']);
    expect(await ids('run')).toEqual(['t2']);
    expect(await ids('run', {}, { after: 't1' })).toEqual(['t2']);
    expect(await ids('run', { session_id: 's1' })).toEqual(['t2']);
    expect(await ids('memory', { owner_id: 's1' })).toEqual(['y1']);
    expect(await ids('memory', {}, { after: 'y0' })).toEqual(['y1']);
    expect(await store.get('tally', 's1')).toEqual({ object: 'tally', id: 's1', messages: 2 });
    expect(await store.get('run', 't1')).toBeUndefined();
    expect((await store.receipts({ chain: 'chain' })).map(({ position }) => position)).toEqual([0, 2]);
    const wanted = [0, 1, 2].map((index) => ({ level: 0, index }));
    expect((await store.nodes([...wanted, { level: 1, index: 0 }])).map(({ hash }) => hash)).toEqual([
      'aa',
      'bb',
      'cc',
      'aabb',
    ]);
    expect(other().prepare('PRAGMA integrity_check').raw().all()).toEqual([['ok']]);
    const { events } = await append(store, event('task_a'));
    expect(events.map(({ id, sequence }) => [id, sequence])).toEqual([['evt_0000000000000006', 4]]);
  });

  test('a file of version 4, whose bodies are JSON, is not rewritten, and old and new events read alike', async () => {
    const first = await start();
    await append(first, ...Array.from({ length: 20 }, (_, n) => event(`task_${n % 3}`, { step: 'the same words', n })));
    const written = (await all(first)).map((one) => JSON.stringify(one));
    await first.close();
    spellOut(home.path);
    const db = other();
    db.exec('DROP TABLE words; PRAGMA user_version = 4');
    const bodies = () => db.prepare('SELECT body FROM events WHERE position <= 20').raw().all();
    expect(bodies()).toEqual(written.map((text) => [text]));

    const store = await start();
    const { events } = await append(
      store,
      ...Array.from({ length: 20 }, (_, n) => event(`task_${n % 3}`, { step: 'the same words', n })),
    );
    expect(bodies()).toEqual(written.map((text) => [text]));
    const both = [...written, ...events.map((one) => JSON.stringify(one))];
    expect((await all(store)).map((one) => JSON.stringify(one))).toEqual(both);
    expect(db.prepare(`SELECT count(*) FROM events WHERE body LIKE '{%'`).raw().get()).toEqual([21]);
    expect(await store.columnFault()).toBeUndefined();
    expect(await store.compareRows()).toMatchObject({ unproven: 0 });
    await store.rebuild();
    await store.close();
    expect((await all(await start())).map((one) => JSON.stringify(one))).toEqual(both);
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
