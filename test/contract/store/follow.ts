/** Past, then live, without gap or repeat. */
import { describe, expect, test } from 'vitest';
import { eventId, type Stream } from '../../../src/model/events.ts';
import { collect, take, taskEvent, until, watch } from './events.ts';
import type { Scene } from './scenes/scene.ts';

export function followPromises({ store, append, fill }: Scene): void {
  describe('follow', () => {
    test('the past, then what comes, without gap or repeat', async () => {
      await fill(300, (n) => taskEvent('task_a', { n }));
      const stop = new AbortController();
      const seen: unknown[] = [];
      const following = (async () => {
        for await (const { payload } of store.follow({ stream: { of: 'task', id: 'task_a' } }, stop.signal)) {
          seen.push(payload.n);
          if (seen.length === 500) stop.abort();
        }
      })();
      for (let n = 300; n < 500; n++) await append(taskEvent('task_b', {}), taskEvent('task_a', { n }));
      await following;
      expect(seen).toEqual(Array.from({ length: 500 }, (_, n) => n));
    });

    test('what is there already can be taken without waiting, in order with what is waited for', async () => {
      const stop = new AbortController();
      const events = store.follow({ stream: { of: 'all' }, after: 'now' }, stop.signal);
      const iterator = events[Symbol.asyncIterator]();
      const seen: unknown[] = [];
      let taken = 0;
      for (let batch = 0; batch < 4; batch += 1) {
        const first = iterator.next();
        expect(events.ready?.(), 'the next one is promised to the one who waits').toBeUndefined();
        const wanted = seen.length + 5;
        await append(...Array.from({ length: 5 }, (_, n) => taskEvent('task_a', { n: batch * 5 + n })));
        seen.push((await first).value.payload.n);
        while (seen.length < wanted) {
          const event = events.ready?.();
          if (event) taken += 1;
          seen.push(event ? event.payload.n : (await iterator.next()).value.payload.n);
        }
      }
      expect(seen).toEqual(Array.from({ length: 20 }, (_, n) => n));
      expect(taken).toBeGreaterThan(0);
      stop.abort();
      expect(await iterator.next()).toMatchObject({ done: true });
      expect(events.ready?.()).toBeUndefined();
    });

    test('from a cursor, and from now', async () => {
      await append(taskEvent('task_a', { n: 1 }), taskEvent('task_a', { n: 2 }));
      const stop = new AbortController();
      const all = { of: 'all' } as const;
      const fromCursor = take(store.follow({ stream: all, after: eventId(1) }, stop.signal), 2);
      // Now is the moment of the call, not of the first look.
      const now = store.follow({ stream: all, after: 'now' }, stop.signal);
      await append(taskEvent('task_a', { n: 3 }));
      expect((await fromCursor).map(({ payload }) => payload.n)).toEqual([2, 3]);
      expect((await take(now, 1)).map(({ payload }) => payload.n)).toEqual([3]);
    });

    test('every kind of stream gets its own events and no others', async () => {
      const stop = new AbortController();
      const streams: Stream[] = [
        { of: 'all' },
        { of: 'task', id: 'task_a' },
        { of: 'session', id: 'session_1' },
        { of: 'workspace', id: 'workspace_1' },
        { of: 'resource', object: 'artifact', id: 'art_1' },
      ];
      const sights = streams.map((stream) => watch(store.follow({ stream }, stop.signal)));
      await append(taskEvent('task_a', { n: 1 }));
      await append(taskEvent('task_b', { n: 2 }, { session_id: null }));
      await append(taskEvent('task_a', { n: 3 }, { resource: { object: 'artifact', id: 'art_1' } }));
      await append(taskEvent('task_c', { n: 4 }, { workspace_id: 'workspace_2' }));
      await until(() => sights[0]!.seen.length === 4);
      stop.abort();
      await Promise.all(sights.map(({ over }) => over));
      expect(sights.map(({ seen }) => seen.map(({ payload }) => payload.n))).toEqual([
        [1, 2, 3, 4],
        [1, 3],
        [1, 3, 4],
        [1, 2, 3],
        [3],
      ]);
    });

    test('kinds choose, in the past and live, and others do not fill the queue', async () => {
      const odd = (n: number) => taskEvent('task_a', { n }, { event: n % 2 === 1 ? 'task.completed' : 'task.started' });
      await fill(300, odd);
      const stop = new AbortController();
      const stream = { of: 'task', id: 'task_a' } as const;
      const kinds = ['task.completed', 'task.failed'];
      const seen: unknown[] = [];
      const following = (async () => {
        for await (const { payload } of store.follow({ stream, kinds }, stop.signal)) {
          seen.push(payload.n);
          if (seen.length === 200) stop.abort();
        }
      })();
      for (let n = 300; n < 400; n++) await append(odd(n));
      await following;
      expect(seen).toEqual(Array.from({ length: 200 }, (_, n) => 2 * n + 1));
      const late = take(store.follow({ stream, after: eventId(396), kinds }, new AbortController().signal), 2);
      expect((await late).map(({ payload }) => payload.n)).toEqual([397, 399]);
    });

    test('a live event is the event as it is kept', async () => {
      const stop = new AbortController();
      const sight = watch(store.follow({ stream: { of: 'all' } }, stop.signal));
      await append(taskEvent('task_a', { n: 1 }, { ext: { mcp: { _meta: {} } } }));
      await until(() => sight.seen.length === 1);
      stop.abort();
      expect(sight.seen).toEqual(await collect(store.read({ stream: { of: 'all' } })));
    });

    test('a follower that does not keep up still gets everything', async () => {
      const stop = new AbortController();
      const following = store.follow({ stream: { of: 'task', id: 'task_a' } }, stop.signal)[Symbol.asyncIterator]();
      const first = following.next();
      await append(taskEvent('task_a', { n: 0 }));
      expect((await first).value.payload.n).toBe(0);
      const seen = [0];
      // Bursts longer than any queue, with the reader taking a few in between.
      for (let from = 1; from < 6_000; from += 2_000) {
        await fill(2_000, (n) => taskEvent('task_a', { n: from + n }));
        for (let i = 0; i < 50; i++) seen.push((await following.next()).value.payload.n);
      }
      while (seen.length <= 6_000) seen.push((await following.next()).value.payload.n);
      stop.abort();
      expect(seen).toEqual(Array.from({ length: 6_001 }, (_, n) => n));
    });

    test('a signal ends it while waiting, while reading and before it began', async () => {
      await fill(300, (n) => taskEvent('task_a', { n }));
      const stop = new AbortController();
      const waiting = collect(store.follow({ stream: { of: 'task', id: 'nobody' } }, stop.signal));
      const reading = store.follow({ stream: { of: 'all' } }, stop.signal)[Symbol.asyncIterator]();
      expect((await reading.next()).value.id).toBe('evt_0000000000000001');
      stop.abort();
      expect(await waiting).toEqual([]);
      expect(await reading.next()).toEqual({ value: undefined, done: true });
      expect(await collect(store.follow({ stream: { of: 'all' } }, stop.signal))).toEqual([]);
    });

    test('leaving the loop leaves no listener on the signal', async () => {
      await append(taskEvent('task_a'));
      const { signal } = new AbortController();
      let listeners = 0;
      const add = signal.addEventListener.bind(signal);
      const remove = signal.removeEventListener.bind(signal);
      signal.addEventListener = (...args: Parameters<typeof add>) => {
        listeners++;
        add(...args);
      };
      signal.removeEventListener = (...args: Parameters<typeof remove>) => {
        listeners--;
        remove(...args);
      };
      for (let i = 0; i < 20; i++) await take(store.follow({ stream: { of: 'all' } }, signal), 1);
      expect(listeners).toBe(0);
    });

    test('several looks at once are answered in order', async () => {
      const stop = new AbortController();
      const following = store.follow({ stream: { of: 'all' } }, stop.signal)[Symbol.asyncIterator]();
      const looks = [following.next(), following.next(), following.next(), following.next()];
      await append(taskEvent('task_a', { n: 1 }), taskEvent('task_a', { n: 2 }), taskEvent('task_a', { n: 3 }));
      const answers = [await looks[0], await looks[1], await looks[2]];
      stop.abort();
      expect(answers.map((answer) => answer?.value.payload.n)).toEqual([1, 2, 3]);
      expect(await looks[3]).toEqual({ value: undefined, done: true });
    });
  });
}
