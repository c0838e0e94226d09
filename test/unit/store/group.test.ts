/** How units share a transaction. */
import { describe, expect, test } from 'vitest';
import { eventId } from '../../../src/model/events.ts';
import { sealFor } from '../../contract/store/events.ts';
import { all, append, event, sqliteHome } from '../../contract/store/scenes/sqlite-home.ts';

const home = sqliteHome();
const { start, other } = home;

describe('group commit', () => {
  test('units that arrive together share one transaction', async () => {
    const store = await start();
    await Promise.all(Array.from({ length: 16 }, (_, n) => append(store, event(`task_${n % 9}`))));
    expect(store.commits()).toBe(1);
    await append(store, event('task_1'));
    expect(store.commits()).toBe(2);
  });

  test('receipts that are sealed together follow each other at the first try', async () => {
    const store = await start();
    const issue = (chain: string, id: string) =>
      store.commit({ decide: () => ({ events: [], receipt: { chain, seal: (head) => sealFor(id, head) } }) });
    await Promise.all([issue('a', '1'), issue('b', '2'), issue('a', '3')]);
    expect(store.commits()).toBe(1);
    expect((await store.receipts({})).map(({ position, chain, index }) => [position, chain, index])).toEqual([
      [0, 'a', 0],
      [1, 'b', 0],
      [2, 'a', 1],
    ]);
  });

  test('many units are written in several transactions, each bounded', async () => {
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
