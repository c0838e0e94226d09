/** What may be forgotten, and what a reader gets that asks for it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { eventId, withMembers } from '../../../src/model/events.ts';
import type { Store } from '../../../src/ports/index.ts';
import { collect, everyRow, ofRun, randomUnits, sealFor, take, taskEvent, until, watch } from './events.ts';
import type { Scene } from './scenes/scene.ts';

export function retentionPromises({ store, clock, append, fill, reopen }: Scene): void {
  describe('retention', () => {
    /** Twenty minutes of events, one a minute, in two tasks that take turns; task_a is over, task_b is as given. */
    const history = async (b: string) => {
      for (let minute = 0; minute < 20; minute++) {
        clock.set(`2026-11-16T09:${String(minute).padStart(2, '0')}:00.000Z`);
        const task = minute % 2 === 0 ? 'task_a' : 'task_b';
        await append(
          taskEvent(task, { n: minute, status: minute < 18 ? 'WORKING' : task === 'task_a' ? 'COMPLETED' : b }),
        );
      }
    };

    test('drops older events, and a read from before the cut is refused with that reason', async () => {
      await history('FAILED');
      expect(await store.retain('2026-11-16T09:10:00.000Z')).toEqual({ dropped: 10 });
      const left = await collect(store.read({ stream: { of: 'all' } }));
      expect(left.map(({ payload }) => payload.n)).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
      expect(await collect(store.read({ stream: { of: 'all' }, after: eventId(10) }))).toHaveLength(10);
      const gone: Parameters<Store['read']>[0][] = [
        { stream: { of: 'all' }, after: eventId(9) },
        { stream: { of: 'task', id: 'task_a' } },
        { stream: { of: 'resource', object: 'task', id: 'task_b' } },
        { stream: { of: 'task', id: 'task_a' }, after: eventId(3) },
      ];
      for (const range of gone) {
        await expect(collect(store.read(range))).rejects.toMatchObject({ kind: 'cursor_expired' });
        const following = store.follow({ ...range }, new AbortController().signal);
        await expect(collect(following)).rejects.toMatchObject({ kind: 'cursor_expired' });
      }
      expect(await store.event(eventId(10))).toBeUndefined();
      expect(await store.event(eventId(11))).toMatchObject({ sequence: 6 });
      expect(await store.retain('2026-11-16T09:10:00.000Z')).toEqual({ dropped: 0 });
    });

    test('keeps everything from the first event of a task that is still open', async () => {
      await history('INPUT_REQUIRED');
      expect(await store.retain('2026-11-16T09:10:00.000Z')).toEqual({ dropped: 1 });
      expect(await collect(store.read({ stream: { of: 'task', id: 'task_b' } }))).toHaveLength(10);
      await append(taskEvent('task_b', { status: 'CANCELED' }));
      expect(await store.retain('2026-11-16T09:10:00.000Z')).toEqual({ dropped: 9 });
    });

    test('a task none of whose events went can be read from its beginning', async () => {
      const session = { resource: { object: 'session', id: 'session_1' } };
      await append(taskEvent('task_x', { n: 0, status: 'COMPLETED' }, { ...session, task_id: null }));
      clock.set('2026-11-16T09:01:00.000Z');
      await append(taskEvent('task_a', { n: 1 }), taskEvent('task_a', { n: 2 }, session));
      expect(await store.retain('2026-11-16T09:00:30.000Z')).toEqual({ dropped: 1 });
      const kept = await collect(store.read({ stream: { of: 'task', id: 'task_a' } }));
      expect(kept.map(({ payload }) => payload.n)).toEqual([1, 2]);
      const cut = collect(store.read({ stream: { of: 'resource', object: 'session', id: 'session_1' } }));
      await expect(cut).rejects.toMatchObject({ kind: 'cursor_expired' });
    });

    test('numbering goes on, even when nothing is left', async () => {
      await history('COMPLETED');
      expect(await store.retain('2026-11-16T10:00:00.000Z')).toEqual({ dropped: 20 });
      expect(await collect(store.read({ stream: { of: 'all' } }))).toEqual([]);
      expect(await store.tip({ of: 'all' })).toBe('evt_0000000000000020');
      await reopen();
      clock.set('2026-11-16T08:00:00.000Z');
      const stop = new AbortController();
      const live = take(store.follow({ stream: { of: 'all' }, after: eventId(20) }, stop.signal), 1);
      const { events } = await append(taskEvent('task_b', { n: 20 }));
      expect(events[0]).toMatchObject({
        id: 'evt_0000000000000021',
        sequence: 11,
        created_at: '2026-11-16T09:19:00.000Z',
      });
      expect(await live).toEqual(events);
    });

    test('projections stay, and a rebuild still comes out the same', async () => {
      let runs = 0;
      await fc.assert(
        fc.asyncProperty(randomUnits, fc.nat(100), async (units, share) => {
          runs++;
          for (const events of units) {
            clock.set(new Date(Date.parse(clock.now()) + 1_000).toISOString());
            const over = events.map((event) => withMembers(event, { status: 'COMPLETED' }));
            await append(...over.map((event) => ofRun(event, runs)));
          }
          const before = await everyRow(store, runs);
          const ago = Math.floor((units.length * 1_000 * share) / 100);
          await store.retain(new Date(Date.parse(clock.now()) - ago).toISOString());
          expect(await everyRow(store, runs)).toEqual(before);
          expect(await store.compareRows()).not.toHaveProperty('fault');
          await store.rebuild();
          expect(await everyRow(store, runs)).toEqual(before);
        }),
        { numRuns: 10 },
      );
    });

    test('receipts stay; keys are good for a day and then forgotten', async () => {
      const keyed = (scope: string) =>
        store.commit({
          idempotency: { scope, body: 'x' },
          decide: () => ({ events: [taskEvent('task_a', { status: 'FAILED' })] }),
        });
      await keyed('old');
      await store.commit({
        decide: () => ({ events: [], receipt: { chain: 'a', seal: (head) => sealFor('1', head) } }),
      });
      clock.set('2026-11-17T08:59:00.000Z');
      await keyed('young');
      await store.retain('2026-11-17T08:59:30.000Z');
      expect(await keyed('old')).toMatchObject({ repeated: true });
      clock.set('2026-11-17T09:01:00.000Z');
      await store.retain('2026-11-17T08:59:30.000Z');
      expect(await keyed('old')).toMatchObject({ repeated: false });
      expect(await keyed('young')).toMatchObject({ repeated: true });
      expect(await store.receipts({})).toHaveLength(1);
    });

    test('a reader that is overtaken gets an error, never a gap', async () => {
      // More than a store may keep in memory: what a follower already has in hand cannot be taken from it.
      await fill(2_000, (n) => taskEvent('task_a', { n, status: 'COMPLETED' }));
      clock.set('2026-11-16T09:00:01.000Z');
      await fill(10, (n) => taskEvent('task_b', { n, status: 'COMPLETED' }));
      const slow = [
        store.read({ stream: { of: 'all' } }),
        store.follow({ stream: { of: 'all' } }, new AbortController().signal),
      ].map((events) => events[Symbol.asyncIterator]());
      for (const reading of slow) expect((await reading.next()).value.payload.n).toBe(0);
      await store.retain('2026-11-16T09:00:00.500Z');
      for (const reading of slow) {
        const rest = (async () => {
          for (let one = await reading.next(); !one.done; one = await reading.next());
        })();
        await expect(rest).rejects.toMatchObject({ kind: 'cursor_expired' });
      }
    });

    test('a follower that is up to date does not notice', async () => {
      await history('COMPLETED');
      const stop = new AbortController();
      const quiet = watch(store.follow({ stream: { of: 'task', id: 'task_z' } }, stop.signal));
      const busy = watch(store.follow({ stream: { of: 'all' } }, stop.signal));
      await until(() => busy.seen.length === 20);
      await store.retain('2026-11-16T10:00:00.000Z');
      await append(taskEvent('task_z'));
      await until(() => quiet.seen.length === 1 && busy.seen.length === 21);
      stop.abort();
      await Promise.all([quiet.over, busy.over]);
      expect(quiet.seen.map(({ id }) => id)).toEqual(['evt_0000000000000021']);
    });
  });
}
