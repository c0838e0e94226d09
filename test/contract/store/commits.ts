/** What a commit promises. */
import { describe, expect, test } from 'vitest';
import { type EventDraft, vendorEvent } from '../../../src/model/events.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { Json } from '../../../src/model/schema.ts';
import type { At } from '../../../src/ports/index.ts';
import { collect, taskEvent } from './events.ts';
import type { Counted } from './projector.ts';
import type { Scene } from './scenes/scene.ts';

export function commitsPromises({ store, clock, append, reopen }: Scene): void {
  describe('commit', () => {
    test('gives ids from one counter, sequences per resource, the time of the clock and empty metadata', async () => {
      const first = await append(taskEvent('task_a', { n: 1 }), taskEvent('task_b', { n: 2 }));
      clock.set('2026-11-16T09:00:01.000Z');
      const second = await append(taskEvent('task_a', { n: 3 }, { metadata: { by: 'hand' }, actor: 'ann' }));
      expect([...first.events, ...second.events]).toEqual([
        {
          id: 'evt_0000000000000001',
          object: 'event',
          event: 'vendor.tollbridge.note',
          created_at: '2026-11-16T09:00:00.000Z',
          updated_at: '2026-11-16T09:00:00.000Z',
          metadata: {},
          resource: { object: 'task', id: 'task_a' },
          sequence: 1,
          payload: { n: 1 },
          workspace_id: 'workspace_1',
          session_id: 'session_1',
          task_id: 'task_a',
        },
        {
          id: 'evt_0000000000000002',
          object: 'event',
          event: 'vendor.tollbridge.note',
          created_at: '2026-11-16T09:00:00.000Z',
          updated_at: '2026-11-16T09:00:00.000Z',
          metadata: {},
          resource: { object: 'task', id: 'task_b' },
          sequence: 1,
          payload: { n: 2 },
          workspace_id: 'workspace_1',
          session_id: 'session_1',
          task_id: 'task_b',
        },
        {
          id: 'evt_0000000000000003',
          object: 'event',
          event: 'vendor.tollbridge.note',
          created_at: '2026-11-16T09:00:01.000Z',
          updated_at: '2026-11-16T09:00:01.000Z',
          metadata: { by: 'hand' },
          resource: { object: 'task', id: 'task_a' },
          sequence: 2,
          payload: { n: 3 },
          workspace_id: 'workspace_1',
          session_id: 'session_1',
          task_id: 'task_a',
          actor: 'ann',
        },
      ]);
      expect(first).toMatchObject({ repeated: false, result: undefined, receipt: undefined });
    });

    test('keeps every member of a draft as it was, and reads back what it answered', async () => {
      const full: EventDraft = {
        event: vendorEvent('vendor."quoted"\\.kind'),
        resource: { object: 'task', id: 'task_a' },
        payload: { text: 'päyload \u2028 "\\ \u0000 \ud83d\ude00', deep: [{ a: [null, true, 1.5e300] }] },
        workspace_id: null,
        session_id: 'session_x',
        task_id: 'task_a',
        actor: 'ann "the" actor',
        trace_id: 'trace/1',
        span_id: null,
        idempotency_key: 'key\n1',
        receipt_id: 'receipt_1',
        replayed: true,
        replay: { source_event_id: 'evt_0000000000000009' } as unknown as NonNullable<EventDraft['replay']>,
        metadata: { m: { n: 'ü' } },
        ext: { acp: { raw: '{"a": 1}' } },
      };
      const { events } = await append(full);
      const expected = {
        ...full,
        id: 'evt_0000000000000001',
        object: 'event',
        sequence: 1,
        created_at: '2026-11-16T09:00:00.000Z',
        updated_at: '2026-11-16T09:00:00.000Z',
      };
      expect(events).toEqual([expected]);
      expect(await store.event('evt_0000000000000001')).toEqual(expected);
      expect(await collect(store.read({ stream: { of: 'all' } }))).toEqual([expected]);
    });

    test('a decision sees what it named, as of the commit, and the time of the commit', async () => {
      await append(taskEvent('task_a'), taskEvent('task_a'));
      clock.set('2026-11-16T10:00:00.000Z');
      const seen: unknown[] = [];
      await store.commit({
        reads: [
          { object: 'task', id: 'task_a' },
          { object: 'task', id: 'task_new' },
        ],
        decide: (at) => {
          // It may be asked again, for the same answer.
          seen.length = 0;
          seen.push(at.get<Counted>('task', 'task_a')?.count, at.sequence('task', 'task_a'));
          seen.push(at.get('task', 'task_new'), at.sequence('task', 'task_new'), at.now);
          return { events: [] };
        },
      });
      expect(seen).toEqual([2, 2, undefined, 0, '2026-11-16T10:00:00.000Z']);
    });

    test('a decision that looks at what it did not name is refused', async () => {
      const asking = (look: (at: At) => unknown) =>
        store.commit({
          reads: [{ object: 'task', id: 'task_a' }],
          decide: (at) => {
            look(at);
            return { events: [taskEvent('task_a')] };
          },
        });
      await expect(asking((at) => at.get('task', 'task_b'))).rejects.toThrow('task task_b');
      await expect(asking((at) => at.sequence('session', 'task_a'))).rejects.toThrow('session task_a');
      expect(await collect(store.read({ stream: { of: 'all' } }))).toEqual([]);
    });

    test('every unit sees what the ones before it did, also when they are committed together', async () => {
      const counts = await Promise.all(
        Array.from({ length: 40 }, () =>
          store.commit({
            reads: [{ object: 'task', id: 'task_a' }],
            decide: (at) => ({
              events: [taskEvent('task_a')],
              result: [at.get<Counted>('task', 'task_a')?.count ?? 0, at.sequence('task', 'task_a')],
            }),
          }),
        ),
      );
      expect(counts.map(({ result }) => result)).toEqual(Array.from({ length: 40 }, (_, i) => [i, i]));
      expect((await store.get<Counted>('task', 'task_a'))?.count).toBe(40);
    });

    test('a refused unit writes nothing and disturbs no neighbour', async () => {
      const outcomes = await Promise.allSettled([
        append(taskEvent('task_a', { n: 1 })),
        store.commit({
          decide: () => {
            throw new Fault('conflict', 'task task_a already ended');
          },
        }),
        append(taskEvent('task_a', { n: 2 }), taskEvent('task_b', { poison: 'projector' })),
        store.commit({
          decide: () => ({
            events: [taskEvent('task_a', { n: 3 })],
            receipt: {
              chain: 'c',
              seal: () => {
                throw new Fault('internal', 'no key');
              },
            },
            result: 'kept?',
          }),
          idempotency: { scope: 'seal', body: 'x' },
        }),
        append(taskEvent('task_a', { n: 4n as unknown as Json })),
        append(taskEvent('task_a', { n: 5 })),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'rejected',
        'rejected',
        'rejected',
        'fulfilled',
      ]);
      expect((outcomes[1] as PromiseRejectedResult).reason).toMatchObject({ kind: 'conflict' });
      const events = await collect(store.read({ stream: { of: 'all' } }));
      expect(events.map(({ id, sequence, payload }) => [id, sequence, payload.n])).toEqual([
        ['evt_0000000000000001', 1, 1],
        ['evt_0000000000000002', 2, 5],
      ]);
      expect((await store.get<Counted>('task', 'task_a'))?.count).toBe(2);
      expect(await store.get('task', 'task_b')).toBeUndefined();
      expect(await store.tree()).toEqual({ size: 0, frontier: [] });
    });

    test('time does not go backwards, even when the clock does', async () => {
      await append(taskEvent('task_a'));
      clock.set('2026-11-16T08:00:00.000Z');
      const { events } = await append(taskEvent('task_a'));
      await reopen();
      const later = await append(taskEvent('task_a'));
      expect([events[0]?.created_at, later.events[0]?.created_at]).toEqual([
        '2026-11-16T09:00:00.000Z',
        '2026-11-16T09:00:00.000Z',
      ]);
    });

    test('what is said to be new is taken for new, and is as well known afterwards as anything', async () => {
      const bear = (id: string) =>
        store.commit({ decide: () => ({ events: [taskEvent(id), taskEvent(id)], born: [id] }) });
      await Promise.all([bear('task_a'), bear('task_b')]);
      const { events } = await append(taskEvent('task_a'), taskEvent('task_b'));
      expect(events.map(({ sequence }) => sequence)).toEqual([3, 3]);
      expect((await store.get<Counted>('task', 'task_a'))?.count).toBe(3);
      expect(await collect(store.read({ stream: { of: 'task', id: 'task_b' } }))).toHaveLength(3);
    });

    test('what was committed is there after opening again, and numbering goes on', async () => {
      await append(taskEvent('task_a', { n: 1 }), taskEvent('task_b', { n: 2 }));
      await reopen();
      const { events } = await append(taskEvent('task_b', { n: 3 }), taskEvent('task_c', { n: 4 }));
      expect(events.map(({ id, sequence }) => [id, sequence])).toEqual([
        ['evt_0000000000000003', 2],
        ['evt_0000000000000004', 1],
      ]);
      expect((await collect(store.read({ stream: { of: 'all' } }))).map(({ payload }) => payload.n)).toEqual([
        1, 2, 3, 4,
      ]);
      expect((await store.get<Counted>('session', 'session_1'))?.count).toBe(3);
    });
  });
}
