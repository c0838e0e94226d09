/** With a thread of its own for writing, the store keeps every promise that it keeps without. */
import { statSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { eventId } from '../../../src/model/events.ts';
import { createSqliteStore, type SqliteStore } from '../../../src/store/sqlite/index.ts';
import { contractProjector } from '../../contract/store/projector.ts';
import {
  ALWAYS_ELSEWHERE,
  all,
  append,
  compiledStore,
  contractOpener,
  event,
  sqliteHome,
} from '../../contract/store/scenes/sqlite-home.ts';
import { storeContract } from '../../contract/store.ts';
import { eventually } from '../../support/eventually.ts';

const open = await compiledStore();

storeContract('SQLite with a writer thread', contractOpener(open, { concurrentWriters: ALWAYS_ELSEWHERE }));

const home = sqliteHome(open);
const { start, other, run } = home;
const writers = (store: SqliteStore, size: number) =>
  Promise.all(Array.from({ length: size }, (_, n) => append(store, event(`task_${n % 9}`, { n }))));

describe('a thread of its own', () => {
  test('writes for many clients at once, once there have been some', async () => {
    const store = await start({ concurrentWriters: { units: 8, times: 3 } });
    await writers(store, 7);
    for (let tries = 0; store.commitsElsewhere() === 0 && tries < 500; tries++) await writers(store, 16);
    expect(store.commitsElsewhere()).toBeGreaterThan(0);
    const elsewhere = store.commitsElsewhere();
    await append(store, event('task_1'));
    expect(store.commitsElsewhere()).toBe(elsewhere);
    const events = await all(store);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, n) => eventId(n + 1)));
  });

  test('has its units decided again when another process wrote in between', async () => {
    const store = await start({ concurrentWriters: ALWAYS_ELSEWHERE, projector: contractProjector });
    const another = await start({ projector: contractProjector });
    const count = (of: SqliteStore) =>
      of.commit({
        reads: [{ object: 'task', id: 'task_1' }],
        decide(at) {
          const before = at.get('task', 'task_1') as { count?: number } | undefined;
          return { events: [event('task_1', { before: before?.count ?? 0 })] };
        },
      });
    await Promise.all(Array.from({ length: 40 }, (_, n) => count(n % 4 === 0 ? another : store)));
    for (let n = 0; n < 40; n++) await Promise.all([count(store), count(another)]);
    // Each saw exactly what was there before it.
    expect((await all(store)).map(({ payload }) => payload.before)).toEqual(Array.from({ length: 120 }, (_, n) => n));
    expect(store.commitsElsewhere()).toBeGreaterThan(0);
  });

  test('leaves it to the main thread to report what cannot be written, and why', async () => {
    const store = await start({ concurrentWriters: ALWAYS_ELSEWHERE });
    await append(store, event('task_1', { n: 0 }));
    other().exec(`CREATE TRIGGER no_giants BEFORE INSERT ON events WHEN length(NEW.body) > 100000
      BEGIN SELECT RAISE(ABORT, 'too big'); END`);
    const outcomes = await Promise.allSettled([
      append(store, event('task_1', { n: 1 })),
      append(store, event('task_1', { huge: 'x'.repeat(100_001) })),
      append(store, event('task_2', { n: 2 })),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((await all(store)).map(({ payload }) => payload.n)).toEqual([0, 1, 2]);
  });

  test('meets a full disk, and goes on when there is room', async () => {
    const store = await start({ concurrentWriters: ALWAYS_ELSEWHERE, maxBytes: 600_000 });
    const text = 'x'.repeat(20_000);
    const fill = async () => {
      for (let n = 0; n < 100; n++) await append(store, event('task_1', { text }));
    };
    await expect(fill()).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringContaining('disk space') });
    expect(store.commitsElsewhere()).toBeGreaterThan(0);
    const before = (await all(store)).length;
    await store.retain('2026-11-16T10:00:00.000Z');
    const { events } = await append(store, event('task_1', { text }));
    expect(events[0]).toMatchObject({ id: eventId(before + 1), sequence: before + 1 });
    expect(store.trouble()).toBeUndefined();
  });

  test('what it writes does not pile up beside the file', async () => {
    const store = await start({ concurrentWriters: ALWAYS_ELSEWHERE });
    const text = 'x'.repeat(1_000_000);
    let longest = 0;
    for (let n = 0; n < 60; n++) {
      await Promise.all([append(store, event('task_1', { text })), append(store, event('task_2', { n }))]);
      longest = Math.max(longest, statSync(`${home.path}-wal`).size);
    }
    expect(store.commitsElsewhere()).toBeGreaterThanOrEqual(60);
    // 60 MB went through it; it is copied into the file when it has 16.
    expect(longest).toBeLessThan(24_000_000);
    expect(statSync(home.path).size).toBeGreaterThan(40_000_000);
  });

  test('waits for a lock that another caller holds', async () => {
    const store = await start({ concurrentWriters: ALWAYS_ELSEWHERE });
    const db = other();
    db.exec('BEGIN IMMEDIATE');
    let decided = 0;
    let answered = false;
    const waiting = store
      .commit({
        decide() {
          decided += 1;
          return { events: [event('task_1')] };
        },
      })
      .finally(() => {
        answered = true;
      });
    await eventually(() => decided === 1, 'a unit that was decided without the lock');
    // Longer than SQLite itself waits for a lock: the thread has met it, and units are not decided again while it is taken.
    const before = performance.now();
    await eventually(() => performance.now() - before > 50, 'a write that met the lock');
    expect({ decided, answered }).toEqual({ decided: 1, answered: false });
    db.exec('ROLLBACK');
    expect((await waiting).events[0]).toMatchObject({ sequence: 1 });
    expect(decided).toBe(2);
  });

  test('killed with its process, it loses nothing that was promised', async () => {
    const { child, lines } = run('write elsewhere', home.path);
    let promised = 0;
    let received = 0;
    for await (const line of lines) {
      promised = Math.max(promised, Number(line.slice(-16)));
      if (++received === 150) child.kill('SIGKILL');
    }
    const store = await start({ projector: contractProjector });
    const events = await all(store);
    expect(promised).toBeGreaterThan(100);
    expect(events.length).toBeGreaterThanOrEqual(promised);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, n) => eventId(n + 1)));
    const rows = await store.list({ object: 'task' });
    await store.rebuild();
    expect(await store.list({ object: 'task' })).toEqual(rows);
  });

  test('that cannot be started is logged once and done without', async () => {
    const warn = vi.fn();
    const log = { info() {}, warn, error() {} };
    const clock = { now: () => '2026-11-16T09:00:00.000Z' };
    // From the source, where there is nothing compiled to run.
    const store = await createSqliteStore({
      ...{ path: home.path, clock, projector: contractProjector, log },
      concurrentWriters: ALWAYS_ELSEWHERE,
    });
    await writers(store, 20);
    await writers(store, 20);
    expect(store.commitsElsewhere()).toBe(0);
    expect(await all(store)).toHaveLength(40);
    await store.close();
    expect(warn).toHaveBeenCalledOnce();
  });
});
