/** The file: what it is opened as, and what happens when it cannot be written. */
import { open, readdir, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventId } from '../../../src/model/events.ts';
import { all, append, event, sqliteHome } from '../../contract/store/scenes/sqlite-home.ts';

const home = sqliteHome();
const { start, other, run } = home;

describe('opening', () => {
  test('makes what is missing, for this user alone', async () => {
    const store = await start();
    await append(store, event('task_1'));
    const lease = await store.lease('x');
    const modes = async (name: string) => ((await stat(name)).mode & 0o777).toString(8);
    expect(await modes(join(home.dir, 'data'))).toBe('700');
    expect(await modes(`${home.path}.leases`)).toBe('700');
    for (const name of ['log.db', 'log.db-wal', 'log.db-shm', 'log.db.born']) {
      expect([name, await modes(join(home.dir, 'data', name))]).toEqual([name, '600']);
    }
    await lease?.close();
  });

  test('is durable by its settings', async () => {
    await start();
    const db = other();
    expect(db.prepare('PRAGMA journal_mode').raw().get()).toEqual(['wal']);
    expect(db.prepare('PRAGMA user_version').raw().get()).toEqual([5]);
  });

  test('several processes may make the same new file at once', async () => {
    const runs = [run('append', home.path, '5'), run('append', home.path, '5'), run('append', home.path, '5')];
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
    await writeFile(home.path, 'not a database at all '.repeat(500));
    await expect(start()).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('restore a backup'),
    });
    expect((await stat(home.path)).size).toBe(11_000);
  });

  test('a file cut short is damage, not a new beginning', async () => {
    const store = await start();
    await append(store, ...Array.from({ length: 400 }, () => event('task_1', { text: 'x'.repeat(500) })));
    await store.close();
    for (const name of await readdir(join(home.dir, 'data')))
      if (/-(wal|shm)$/.test(name)) await rm(join(home.dir, 'data', name), { force: true });
    await truncate(home.path, 40_960);
    await expect(start()).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('restore a backup'),
    });
  });

  test('an empty or missing file where a log once was is not begun again', async () => {
    await (await start()).close();
    await truncate(home.path, 0);
    await expect(start()).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringContaining('is empty') });
    await rm(home.path);
    await expect(start()).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringContaining('is gone') });
    await rm(`${home.path}.born`);
    expect(await all(await start())).toEqual([]);
  });

  test('damage found later is a fault that says what to do', async () => {
    const store = await start();
    await append(store, ...Array.from({ length: 2_000 }, () => event('task_1', { text: 'x'.repeat(500) })));
    await store.close();
    const file = await open(home.path, 'r+');
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
    await rm(home.path);
    await rm(`${home.path}.born`);
    const db = other();
    db.exec('CREATE TABLE theirs (a)');
    await expect(start()).rejects.toMatchObject({ message: expect.stringContaining("another program's") });
    expect(db.prepare('SELECT name FROM sqlite_schema').raw().all()).toEqual([['theirs']]);
  });

  test('a directory that cannot be made is a fault', async () => {
    await writeFile(join(home.dir, 'data'), '');
    await expect(start()).rejects.toMatchObject({ kind: 'unavailable' });
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
    const writers = await Promise.allSettled(
      Array.from({ length: 5 }, () => append(store, event('task_2', { text: 'x'.repeat(20_000) }))),
    );
    expect(writers.map((one) => (one as PromiseRejectedResult).reason.kind)).toEqual(Array(5).fill('unavailable'));
    expect(await all(store)).toHaveLength(before);
    await store.retain('2026-11-16T10:00:00.000Z');
    const { events } = await append(store, event('task_1', { text: 'x'.repeat(20_000) }));
    expect(events[0]).toMatchObject({ id: eventId(before + 1), sequence: before + 1 });
    expect(store.trouble()).toBeUndefined();
  });

  test('another process that keeps the lock is waited for, then named, then forgiven', async () => {
    const store = await start({ lockTimeoutMs: 60 });
    const db = other();
    db.exec('BEGIN IMMEDIATE');
    await expect(append(store, event('task_1'))).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('another process'),
    });
    await expect(store.putBlob(new Uint8Array(3))).rejects.toMatchObject({ kind: 'unavailable' });
    expect(store.trouble()).toContain('another process');
    const patient = await start({ lockTimeoutMs: 30_000 });
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
    await rename(home.path, `${home.path}.away`);
    await expect(append(store, event('task_1'))).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('put it back'),
    });
    expect(store.trouble()).toContain('put it back');
    await rename(`${home.path}.away`, home.path);
    await append(store, event('task_1'));
    expect(store.trouble()).toBeUndefined();
    expect(await all(store)).toHaveLength(2);
  });
});
