/** Two instances on one log. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { eventId, vendorEvent } from '../../../src/model/events.ts';
import type { Store } from '../../../src/ports/index.ts';
import { collect, taskEvent, until, watch } from './events.ts';
import type { Counted } from './projector.ts';
import type { Scene } from './scenes/scene.ts';

export function twoPromises({ store, clock, append, fill, second }: Scene): void {
  describe('two on one log', () => {
    test('each sees what the other wrote, in caches and streams alike', async () => {
      const two = await second();
      const stop = new AbortController();
      const sight = watch(store.follow({ stream: { of: 'task', id: 'task_a' } }, stop.signal));
      const count = (who: Store) =>
        who.commit({
          reads: [{ object: 'task', id: 'task_a' }],
          decide: (at) => ({
            events: [taskEvent('task_a')],
            result: [at.get<Counted>('task', 'task_a')?.count ?? 0, at.sequence('task', 'task_a')],
          }),
        });
      const results: unknown[] = [];
      for (let i = 0; i < 20; i++) results.push((await count(i % 3 === 0 ? two : store)).result);
      expect(results).toEqual(Array.from({ length: 20 }, (_, i) => [i, i]));
      await until(() => sight.seen.length === 20);
      stop.abort();
      expect(sight.seen.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    });

    test('a row that was looked at before is the one the other wrote last', async () => {
      const two = await second();
      const counts: unknown[] = [];
      for (let i = 0; i < 6; i++) {
        await (i % 2 ? store : two).commit({ decide: () => ({ events: [taskEvent('task_a')] }) });
        const rows = [await store.get<Counted>('task', 'task_a'), await two.get<Counted>('task', 'task_a')];
        counts.push(rows.map((row) => row?.count));
      }
      expect(counts).toEqual([
        [1, 1],
        [2, 2],
        [3, 3],
        [4, 4],
        [5, 5],
        [6, 6],
      ]);
      await two.commit({
        decide: () => ({ events: [taskEvent('task_a', {}, { event: vendorEvent('task.withdrawn') })] }),
      });
      expect(await store.get('task', 'task_a')).toBeUndefined();
    });

    test('what a caller tries to do to a row reaches nobody else', async () => {
      await append(taskEvent('task_a', { status: 'WORKING' }));
      const mine = (await store.get<Counted>('task', 'task_a')) as unknown as { count: number };
      // A store may hand out copies, or rows that cannot be changed.
      Reflect.set(mine, 'count', 99);
      expect((await store.get<Counted>('task', 'task_a'))?.count).toBe(1);
      await append(taskEvent('task_a'));
      expect((await store.get<Counted>('task', 'task_a'))?.count).toBe(2);
    });

    test('a follower that read what is still to be announced does not get it twice', async () => {
      const two = await second();
      const stop = new AbortController();
      const early = watch(store.follow({ stream: { of: 'all' } }, stop.signal));
      await append(taskEvent('task_a', { n: 1 }));
      await until(() => early.seen.length === 1);
      for (const n of [2, 3, 4]) await two.commit({ decide: () => ({ events: [taskEvent('task_a', { n })] }) });
      const late = watch(store.follow({ stream: { of: 'task', id: 'task_a' } }, stop.signal));
      await until(() => late.seen.length >= 4);
      await append(taskEvent('task_a', { n: 5 }));
      await until(() => [early, late].every(({ seen }) => seen.at(-1)?.payload.n === 5));
      stop.abort();
      for (const { seen } of [early, late]) expect(seen.map(({ payload }) => payload.n)).toEqual([1, 2, 3, 4, 5]);
    });

    test('both may write about tasks, sessions and workspaces that are new to the log', async () => {
      const two = await second();
      for (let n = 0; n < 12; n++) {
        const event = taskEvent(`task_${n}`, { n }, { session_id: `session_${n}`, workspace_id: `workspace_${n % 2}` });
        await (n % 2 ? two : store).commit({ decide: () => ({ events: [event] }) });
      }
      for (let n = 0; n < 12; n++) {
        const inside = await collect(store.read({ stream: { of: 'session', id: `session_${n}` } }));
        expect(inside.map(({ payload }) => payload.n)).toEqual([n]);
      }
      const odd = await collect(store.read({ stream: { of: 'workspace', id: 'workspace_1' } }));
      expect(odd.map(({ payload }) => payload.n)).toEqual([1, 3, 5, 7, 9, 11]);
    });

    test('what the other prunes and rebuilds is seen here', async () => {
      const two = await second();
      await fill(1_000, (n) => taskEvent(`task_${n % 3}`, { status: 'COMPLETED' }));
      clock.set('2026-11-16T09:00:01.000Z');
      expect(await two.retain('2026-11-16T09:00:00.500Z')).toEqual({ dropped: 1_000 });
      await expect(collect(store.read({ stream: { of: 'all' }, after: eventId(5) }))).rejects.toMatchObject({
        kind: 'cursor_expired',
      });
      await two.rebuild();
      const { events } = await append(taskEvent('task_0'));
      expect(events[0]).toMatchObject({ id: 'evt_0000000000001001', sequence: 335 });
      expect((await two.get<Counted>('task', 'task_0'))?.count).toBe(335);
    });

    test('a rebuild here while the other prunes loses nothing', async () => {
      await fill(6_000, (n) => taskEvent(`task_${n % 7}`, { status: 'COMPLETED' }));
      clock.set('2026-11-16T09:00:01.000Z');
      const two = await second();
      const [, { dropped }] = await Promise.all([store.rebuild(), two.retain('2026-11-16T09:00:00.500Z')]);
      expect(dropped).toBe(6_000);
      const counts = (await store.list<Counted>({ object: 'task' })).map(({ count }) => count);
      expect(counts).toEqual([858, 857, 857, 857, 857, 857, 857]);
    });

    test('leases exclude each other', async () => {
      const two = await second();
      const held = await store.lease('x');
      expect(await two.lease('x')).toBeUndefined();
      await held?.close();
      expect(await two.lease('x')).toBeDefined();
    });

    test('any interleaving gives one gapless order that both followers see', async () => {
      const two = await second();
      let before = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.boolean(), fc.nat(3), fc.integer({ min: 1, max: 4 }), fc.boolean()), {
            minLength: 1,
            maxLength: 40,
          }),
          async (steps) => {
            const stop = new AbortController();
            const from = { stream: { of: 'all' }, after: 'now' } as const;
            const sights = [watch(store.follow(from, stop.signal)), watch(two.follow(from, stop.signal))];
            const committing: Promise<unknown>[] = [];
            let total = 0;
            for (const [first, task, size, pause] of steps) {
              const events = Array.from({ length: size }, () => taskEvent(`task_${task}`));
              total += size;
              const done = (first ? store : two).commit({ decide: () => ({ events }) });
              committing.push(done);
              if (pause) await done;
            }
            await Promise.all(committing);
            await until(() => sights.every(({ seen }) => seen.length >= total));
            stop.abort();
            await Promise.all(sights.map(({ over }) => over));
            expect(sights[0]!.seen).toEqual(sights[1]!.seen);
            expect(sights[0]!.seen.map(({ id }) => id)).toEqual(
              Array.from({ length: total }, (_, i) => eventId(before + i + 1)),
            );
            before += total;
          },
        ),
        { numRuns: 15 },
      );
      const sequences = new Map<string, number>();
      for await (const { resource, sequence } of store.read({ stream: { of: 'all' } })) {
        expect(sequence).toBe((sequences.get(resource.id) ?? 0) + 1);
        sequences.set(resource.id, sequence);
      }
      expect((await store.list<Counted>({ object: 'task' })).map(({ id, count }) => [id, count])).toEqual(
        [...sequences].toSorted(([a], [b]) => (a < b ? -1 : 1)),
      );
    });
  });
}
