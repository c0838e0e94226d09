/** What each stream holds, and where a cursor points. */
import { describe, expect, test } from 'vitest';
import { type EventDraft, eventId, type Stream } from '../../../src/model/events.ts';
import type { Store } from '../../../src/ports/index.ts';
import { collect, taskEvent } from './events.ts';
import type { Scene } from './scenes/scene.ts';

export function streamsPromises({ store, append, fill }: Scene): void {
  describe('streams', () => {
    /** Six events, two tasks, two sessions; the fourth is inside a task but about an artifact, the last about a session. */
    const tell = () =>
      append(
        taskEvent('task_a', { n: 1 }, { event: 'task.submitted' }),
        taskEvent('task_b', { n: 2 }, { session_id: 'session_2', event: 'task.submitted' }),
        taskEvent('task_a', { n: 3 }),
        taskEvent('task_a', { n: 4 }, { resource: { object: 'artifact', id: 'art_1' }, event: 'artifact.created' }),
        taskEvent('task_a', { n: 5 }, { workspace_id: 'workspace_2', event: 'task.completed' }),
        {
          event: 'session.closed',
          resource: { object: 'session', id: 'session_1' },
          session_id: 'session_1',
          payload: { n: 6 },
        } as unknown as EventDraft,
      );
    const numbers = async (range: Parameters<Store['read']>[0]) =>
      (await collect(store.read(range))).map(({ payload }) => payload.n);

    test('each is what its ids say, in the order of the log', async () => {
      await tell();
      expect(await numbers({ stream: { of: 'all' } })).toEqual([1, 2, 3, 4, 5, 6]);
      expect(await numbers({ stream: { of: 'task', id: 'task_a' } })).toEqual([1, 3, 4, 5]);
      expect(await numbers({ stream: { of: 'session', id: 'session_1' } })).toEqual([1, 3, 4, 5, 6]);
      expect(await numbers({ stream: { of: 'session', id: 'session_2' } })).toEqual([2]);
      expect(await numbers({ stream: { of: 'workspace', id: 'workspace_1' } })).toEqual([1, 2, 3, 4]);
      expect(await numbers({ stream: { of: 'workspace', id: 'workspace_2' } })).toEqual([5]);
      expect(await numbers({ stream: { of: 'resource', object: 'task', id: 'task_a' } })).toEqual([1, 3, 5]);
      expect(await numbers({ stream: { of: 'resource', object: 'artifact', id: 'art_1' } })).toEqual([4]);
      for (const of of ['task', 'session', 'workspace'] as const) {
        expect(await numbers({ stream: { of, id: 'nobody' } })).toEqual([]);
      }
    });

    test('after is exclusive, up to inclusive, kinds choose, limit ends', async () => {
      await tell();
      const stream = { of: 'session', id: 'session_1' } as const;
      expect(await numbers({ stream, after: eventId(2) })).toEqual([3, 4, 5, 6]);
      expect(await numbers({ stream, after: eventId(3), upTo: eventId(5) })).toEqual([4, 5]);
      expect(await numbers({ stream, upTo: eventId(4), limit: 2 })).toEqual([1, 3]);
      expect(await numbers({ stream, limit: 0 })).toEqual([]);
      expect(await numbers({ stream, kinds: ['task.completed', 'session.closed'] })).toEqual([5, 6]);
      expect(await numbers({ stream, kinds: ['task.completed', 'session.closed'], limit: 1 })).toEqual([5]);
      expect(await numbers({ stream, kinds: ['task.complete'] })).toEqual([]);
      expect(await numbers({ stream, after: eventId(6) })).toEqual([]);
      expect(await numbers({ stream, after: eventId(0) })).toEqual([1, 3, 4, 5, 6]);
    });

    test('a cursor that is not of this log is expired', async () => {
      await tell();
      for (const after of ['evt_1', 'evt_0000000000000007', 'evt_000000000000000x', 'nonsense', '']) {
        const reading = collect(store.read({ stream: { of: 'all' }, after }));
        await expect(reading, after).rejects.toMatchObject({ kind: 'cursor_expired' });
        const following = store.follow({ stream: { of: 'all' }, after }, new AbortController().signal);
        await expect(collect(following), after).rejects.toMatchObject({ kind: 'cursor_expired' });
      }
    });

    test('a single event, and the newest of a stream', async () => {
      await tell();
      expect((await store.event(eventId(4)))?.payload.n).toBe(4);
      expect(await store.event(eventId(7))).toBeUndefined();
      expect(await store.event('nonsense')).toBeUndefined();
      const tips: [Stream, string | undefined][] = [
        [{ of: 'all' }, 'evt_0000000000000006'],
        [{ of: 'task', id: 'task_a' }, 'evt_0000000000000005'],
        [{ of: 'resource', object: 'artifact', id: 'art_1' }, 'evt_0000000000000004'],
        [{ of: 'session', id: 'session_2' }, 'evt_0000000000000002'],
        [{ of: 'workspace', id: 'workspace_1' }, 'evt_0000000000000004'],
        [{ of: 'task', id: 'nobody' }, undefined],
        [{ of: 'workspace', id: 'nobody' }, undefined],
      ];
      for (const [stream, tip] of tips) expect(await store.tip(stream)).toBe(tip);
    });

    test('a long log reads the same in one go, from the middle, and by any stream', async () => {
      // Longer than any page, and long pauses between the events of some streams.
      const tasks = ['task_a', 'task_b', 'task_c'];
      await fill(9_000, (n) =>
        n % 3_000 === 7
          ? taskEvent('task_rare', { n }, { session_id: 'session_rare', workspace_id: 'workspace_rare' })
          : taskEvent(tasks[n % 3]!, { n }, { session_id: `session_${n % 2}` }),
      );
      const wanted = (test: (n: number) => boolean) => Array.from({ length: 9_000 }, (_, n) => n).filter(test);
      const rare = (n: number) => n % 3_000 === 7;
      expect(await numbers({ stream: { of: 'all' } })).toEqual(wanted(() => true));
      expect(await numbers({ stream: { of: 'task', id: 'task_b' } })).toEqual(wanted((n) => n % 3 === 1 && !rare(n)));
      expect(await numbers({ stream: { of: 'session', id: 'session_1' } })).toEqual(
        wanted((n) => n % 2 === 1 && !rare(n)),
      );
      expect(await numbers({ stream: { of: 'workspace', id: 'workspace_1' }, after: eventId(4_000) })).toEqual(
        wanted((n) => n >= 4_000 && !rare(n)),
      );
      expect(await numbers({ stream: { of: 'task', id: 'task_rare' } })).toEqual([7, 3_007, 6_007]);
      expect(await numbers({ stream: { of: 'session', id: 'session_rare' }, after: eventId(8) })).toEqual([
        3_007, 6_007,
      ]);
      expect(await numbers({ stream: { of: 'workspace', id: 'workspace_rare' }, upTo: eventId(6_007) })).toEqual([
        7, 3_007,
      ]);
      expect(
        await numbers({ stream: { of: 'resource', object: 'task', id: 'task_c' }, after: eventId(8_990) }),
      ).toEqual([8_990, 8_993, 8_996, 8_999]);
      expect(await store.tip({ of: 'task', id: 'task_rare' })).toBe(eventId(6_008));
    });

    test('a read ends where the log ended when it began', async () => {
      await fill(600, (n) => taskEvent('task_a', { n }));
      let count = 0;
      for await (const _ of store.read({ stream: { of: 'all' } })) {
        if (count++ % 100 === 0) await append(taskEvent('task_a', {}));
      }
      expect(count).toBe(600);
    });
  });
}
