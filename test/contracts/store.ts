/**
 * What every store promises, whatever it is made of. A store is opened with the clock and the projector given here, so
 * that the same expectations hold for all of them.
 */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CoreEvent, type EventDraft, eventId, type Stream } from '../../src/model/events.ts';
import { Fault } from '../../src/model/faults.ts';
import type { Receipt } from '../../src/model/receipt.ts';
import type { Json } from '../../src/model/schema.ts';
import type { At, ChainHead, Change, Clock, Draft, Projector, Row, SealedReceipt, Store } from '../../src/ports.ts';

export interface OpenedStore {
  readonly store: Store;
  /** Close it and open the same log again. */
  reopen(): Promise<Store>;
  /** Another instance on the same log, beside the first. */
  second(): Promise<Store>;
  cleanup(): Promise<void>;
}
export interface ContractDeps {
  readonly clock: Clock;
  readonly projector: Projector;
}

/** Moves only when told to. */
interface TestClock extends Clock {
  set(time: string): void;
}
function testClock(): TestClock {
  let time = '2026-11-16T09:00:00.000Z';
  return {
    now: () => time,
    set(next) {
      time = next;
    },
  };
}

interface Counted extends Row {
  readonly count: number;
  readonly status?: string;
  readonly session_id?: string;
  readonly workspace_id?: string;
}

/**
 * Counts events per task, tasks per session; a task can be withdrawn and comes back with its next event. Reads across
 * resources, drops rows, and fails on demand: enough to tell a right store from a wrong one.
 */
export const contractProjector: Projector = {
  touches(draft) {
    const pointers = [draft.resource];
    if (draft.session_id) pointers.push({ object: 'session', id: draft.session_id });
    return pointers;
  },
  apply(event, get) {
    if (event.payload.poison === 'projector') throw new Error('this event cannot be projected');
    const { object, id } = event.resource;
    const before = get<Counted>(object, id);
    if (event.event === 'task.withdrawn') return [{ drop: { object, id } }];
    const changes: Change[] = [
      {
        put: {
          id,
          object,
          created_at: before?.created_at ?? event.created_at,
          updated_at: event.created_at,
          count: (before?.count ?? 0) + 1,
          ...(typeof event.payload.status === 'string' ? { status: event.payload.status } : keep(before, 'status')),
          ...(event.session_id && { session_id: event.session_id }),
          ...(event.workspace_id && { workspace_id: event.workspace_id }),
          ...(typeof event.payload.owner_id === 'string' && { owner_id: event.payload.owner_id }),
        } as Row,
      },
    ];
    if (event.session_id && object === 'task' && !before) {
      const session = get<Counted>('session', event.session_id);
      const count = (session?.count ?? 0) + 1;
      const created_at = session?.created_at ?? event.created_at;
      const row = { id: event.session_id, object: 'session', created_at, updated_at: event.created_at, count };
      changes.push({ put: row as Row });
    }
    return changes;
  },
};
function keep(row: Counted | undefined, name: 'status'): Partial<Counted> {
  return row?.[name] === undefined ? {} : { [name]: row[name] };
}

/** An event as core writes them: inside a task, with the task as its resource. */
function taskEvent(task: string, payload: EventDraft['payload'] = {}, rest: Partial<EventDraft> = {}): EventDraft {
  return {
    event: 'vendor.tollbridge.note',
    resource: { object: 'task', id: task },
    payload,
    task_id: task,
    session_id: 'session_1',
    workspace_id: 'workspace_1',
    ...rest,
  };
}

export function storeContract(name: string, open: (deps: ContractDeps) => Promise<OpenedStore>): void {
  describe(`${name} keeps the store's promises`, () => {
    let opened: OpenedStore;
    let store: Store;
    let clock: TestClock;

    beforeEach(async () => {
      clock = testClock();
      opened = await open({ clock, projector: contractProjector });
      store = opened.store;
    });
    afterEach(async () => {
      await opened.cleanup();
    });

    const append = (...events: EventDraft[]) => store.commit({ decide: () => ({ events }) });
    const fill = async (count: number, make: (n: number) => EventDraft) => {
      for (let from = 0; from < count; from += 500) {
        const size = Math.min(500, count - from);
        await append(...Array.from({ length: size }, (_, i) => make(from + i)));
      }
    };
    const reopen = async () => {
      store = await opened.reopen();
    };

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
          event: 'vendor."quoted"\\.kind',
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

    describe('idempotency', () => {
      const keyed = (body: string, task = 'task_a', decide?: () => Draft) =>
        store.commit({
          idempotency: { scope: 'POST /v1/tasks ann key-1', body },
          decide: decide ?? (() => ({ events: [taskEvent(task)], result: { task, list: [1, null] } })),
        });

      test('a repeat is answered from the first result and writes nothing', async () => {
        const first = await keyed('{"a":1}');
        await reopen();
        const again = await keyed('{"a":1}', 'task_b');
        expect(first).toMatchObject({ repeated: false, result: { task: 'task_a', list: [1, null] } });
        expect(again).toEqual({
          events: [],
          result: { task: 'task_a', list: [1, null] },
          receipt: undefined,
          repeated: true,
        });
        expect(await store.tip({ of: 'all' })).toBe('evt_0000000000000001');
      });

      test('another body under the same key is a fault', async () => {
        await keyed('{"a":1}');
        await expect(keyed('{"a":2}')).rejects.toMatchObject({ kind: 'idempotency_key_reused' });
        expect(await store.tip({ of: 'all' })).toBe('evt_0000000000000001');
      });

      test('repeats that arrive together do the work once', async () => {
        const answers = await Promise.allSettled([keyed('x'), keyed('x', 'task_b'), keyed('y'), keyed('x', 'task_c')]);
        expect(answers.map((a) => (a.status === 'fulfilled' ? a.value.repeated : a.reason.kind))).toEqual([
          false,
          true,
          'idempotency_key_reused',
          true,
        ]);
        expect(await store.tip({ of: 'all' })).toBe('evt_0000000000000001');
      });

      test('a refusal is not remembered', async () => {
        const refusal = keyed('x', 'task_a', () => {
          throw new Fault('conflict', 'not now');
        });
        await expect(refusal).rejects.toMatchObject({ kind: 'conflict' });
        expect(await keyed('x')).toMatchObject({ repeated: false });
      });

      test('no result is remembered as no result', async () => {
        await keyed('x', 'task_a', () => ({ events: [] }));
        expect(await keyed('x')).toMatchObject({ repeated: true, result: undefined });
      });
    });

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
          },
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

    describe('projections', () => {
      const ids = async (query: Omit<Parameters<Store['list']>[0], 'object'> = {}) =>
        (await store.list({ object: 'task', ...query })).map(({ id }) => id);

      test('are listed oldest first by creation and id, and can be paged either way', async () => {
        await append(taskEvent('task_b'), taskEvent('task_a'));
        clock.set('2026-11-16T09:00:01.000Z');
        await append(taskEvent('task_0'), taskEvent('task_b'));
        expect(await ids()).toEqual(['task_a', 'task_b', 'task_0']);
        expect(await ids({ newestFirst: true })).toEqual(['task_0', 'task_b', 'task_a']);
        expect(await ids({ after: 'task_a', limit: 1 })).toEqual(['task_b']);
        expect(await ids({ after: 'task_b', newestFirst: true })).toEqual(['task_a']);
        expect(await ids({ after: 'task_0' })).toEqual([]);
        await expect(ids({ after: 'task_never' })).rejects.toMatchObject({ kind: 'invalid_request', param: 'after' });
      });

      test('are filtered by the members a list may be filtered by', async () => {
        await append(
          taskEvent('task_1', { status: 'WORKING', owner_id: 'ann' }),
          taskEvent('task_2', { status: 'COMPLETED' }, { session_id: 'session_2' }),
          taskEvent('task_3', { status: 'FAILED' }, { workspace_id: 'workspace_2' }),
          taskEvent('task_4', {}, { session_id: null, workspace_id: null }),
        );
        await append(taskEvent('task_1', { status: 'CANCELED' }));
        expect(await ids({ where: { state: 'WORKING' } })).toEqual([]);
        expect(await ids({ where: { state: ['COMPLETED', 'CANCELED'] } })).toEqual(['task_1', 'task_2']);
        expect(await ids({ where: { session_id: 'session_1' } })).toEqual(['task_1', 'task_3']);
        expect(await ids({ where: { session_id: 'session_1', workspace_id: 'workspace_2' } })).toEqual(['task_3']);
        expect(await ids({ where: { owner_id: ['ann'] } })).toEqual([]);
        expect(await ids({ where: { state: [] } })).toEqual([]);
        expect(await ids()).toEqual(['task_1', 'task_2', 'task_3', 'task_4']);
        expect((await store.list({ object: 'session' })).map(({ id }) => id)).toEqual(['session_1', 'session_2']);
      });

      test('fifty at a time unless told otherwise', async () => {
        await append(...Array.from({ length: 60 }, (_, n) => taskEvent(`task_${n + 10}`)));
        expect((await ids()).length).toBe(50);
        expect((await ids({ limit: 55 })).length).toBe(55);
        expect((await ids({ after: 'task_59' })).length).toBe(10);
      });

      test('a page goes on after a row that was changed or withdrawn meanwhile', async () => {
        await append(taskEvent('task_1'), taskEvent('task_2'), taskEvent('task_3'));
        await append(taskEvent('task_2', {}, { event: 'task.withdrawn' }));
        expect(await store.get('task', 'task_2')).toBeUndefined();
        expect(await ids()).toEqual(['task_1', 'task_3']);
        expect(await ids({ after: 'task_2' })).toEqual(['task_3']);
        await append(taskEvent('task_1', { status: 'WORKING' }));
        expect(await ids({ after: 'task_1' })).toEqual(['task_3']);
        clock.set('2026-11-16T09:30:00.000Z');
        await append(taskEvent('task_2'), taskEvent('task_4'));
        await append(taskEvent('task_4', {}, { event: 'task.withdrawn' }), taskEvent('task_5'));
        expect(await ids()).toEqual(['task_1', 'task_2', 'task_3', 'task_5']);
        expect(await ids({ after: 'task_4' })).toEqual(['task_5']);
      });

      test('rebuilt from the log they come out as they were', async () => {
        let runs = 0;
        await fc.assert(
          fc.asyncProperty(randomUnits, async (units) => {
            runs++;
            for (const events of units) await append(...events.map((event) => ofRun(event, runs)));
            const before = await everyRow(store, runs);
            await store.rebuild();
            expect(await everyRow(store, runs)).toEqual(before);
          }),
          { numRuns: 10 },
        );
      });

      test('a rebuild while others write loses nothing', async () => {
        await fill(2_000, (n) => taskEvent(`task_${n % 7}`));
        const writing = (async () => {
          for (let n = 0; n < 60; n++) await append(taskEvent(`task_${n % 7}`));
        })();
        await Promise.all([store.rebuild(), writing]);
        const counts = (await store.list<Counted>({ object: 'task' })).map(({ count }) => count);
        expect(counts.reduce((a, b) => a + b)).toBe(2_060);
      });
    });

    describe('receipts', () => {
      const issue = (chain: string, id: string) =>
        store.commit({
          decide: () => ({ events: [taskEvent(`task_${id}`)], receipt: { chain, seal: (head) => sealFor(id, head) } }),
        });

      test('each has exactly one predecessor in its chain and one place in the tree', async () => {
        const committed = await Promise.all([issue('a', '1'), issue('b', '2'), issue('a', '3')]);
        await reopen();
        await issue('a', '4');
        expect(committed.map(({ receipt }) => receipt)).toMatchObject([{ id: '1' }, { id: '2' }, { id: '3' }]);
        const stored = await store.receipts({});
        expect(stored.map(({ position, chain, index, hash }) => ({ position, chain, index, hash }))).toEqual([
          { position: 0, chain: 'a', index: 0, hash: 'hash-1' },
          { position: 1, chain: 'b', index: 0, hash: 'hash-2' },
          { position: 2, chain: 'a', index: 1, hash: 'hash-3' },
          { position: 3, chain: 'a', index: 2, hash: 'hash-4' },
        ]);
        expect(stored.map(({ receipt }) => receipt)).toEqual([
          { id: '1', previous: null, size: 0 },
          { id: '2', previous: null, size: 1 },
          { id: '3', previous: 'hash-1', size: 2 },
          { id: '4', previous: 'hash-3', size: 3 },
        ]);
        expect(await store.tree()).toEqual({ size: 4, frontier: ['1', '2', '3', '4'] });
      });

      test('are found by id, chain and task, page by page', async () => {
        for (const [chain, id] of [
          ['a', '1'],
          ['b', '2'],
          ['a', '3'],
          ['a', '4'],
        ] as const)
          await issue(chain, id);
        expect(await store.receipt('3')).toEqual({
          position: 2,
          chain: 'a',
          index: 1,
          hash: 'hash-3',
          receipt: { id: '3', previous: 'hash-1', size: 2 },
        });
        expect(await store.receipt('9')).toBeUndefined();
        const ids = async (query: Parameters<Store['receipts']>[0]) =>
          (await store.receipts(query)).map(({ receipt }) => (receipt as unknown as { id: string }).id);
        expect(await ids({ chain: 'a' })).toEqual(['1', '3', '4']);
        expect(await ids({ chain: 'a', after: 0, limit: 1 })).toEqual(['3']);
        expect(await ids({ task: 'task_2' })).toEqual(['2']);
        expect(await ids({ task: 'task_2', chain: 'a' })).toEqual([]);
        expect(await ids({ after: 2 })).toEqual(['4']);
      });

      test('tree nodes are kept and asked for by level and index', async () => {
        for (const id of ['1', '2', '3']) await issue('a', id);
        const nodes = await store.nodes([
          { level: 0, index: 2 },
          { level: 0, index: 0 },
          { level: 5, index: 5 },
        ]);
        expect(nodes).toEqual([
          { level: 0, index: 2, hash: 'leaf-3' },
          { level: 0, index: 0, hash: 'leaf-1' },
        ]);
      });
    });

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

      test('drops what is older, and reading behind the cut is told so', async () => {
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
              const over = events.map((event) => ({ ...event, payload: { ...event.payload, status: 'COMPLETED' } }));
              await append(...over.map((event) => ofRun(event, runs)));
            }
            const before = await everyRow(store, runs);
            const ago = Math.floor((units.length * 1_000 * share) / 100);
            await store.retain(new Date(Date.parse(clock.now()) - ago).toISOString());
            expect(await everyRow(store, runs)).toEqual(before);
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

      test('a reader that is overtaken is told, never shown a gap', async () => {
        await fill(400, (n) => taskEvent('task_a', { n, status: 'COMPLETED' }));
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

    describe('blobs', () => {
      const bytes = Uint8Array.from({ length: 700_001 }, (_, i) => (i * 31) % 251);

      test('come back by their hash, whole and in part', async () => {
        const sha256 = await store.putBlob(bytes);
        expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
        await reopen();
        expect(Buffer.compare((await store.blob(sha256))!, bytes)).toBe(0);
        expect(await store.blob(sha256, { start: 262_140, end: 262_150 })).toEqual(bytes.slice(262_140, 262_150));
        expect(await store.blob(sha256, { start: 700_000, end: 900_000 })).toEqual(bytes.slice(700_000));
        expect(await store.blob(sha256, { start: 800_000, end: 900_000 })).toEqual(new Uint8Array(0));
        await expect(store.blob(sha256, { start: -1, end: 3 })).rejects.toMatchObject({ kind: 'invalid_request' });
        await expect(store.blob(sha256, { start: 5, end: 3 })).rejects.toMatchObject({ kind: 'invalid_request' });
      });

      test('are there or not', async () => {
        const sha256 = await store.putBlob(new TextEncoder().encode('hello'));
        expect(sha256).toBe('2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824');
        expect(await store.putBlob(new TextEncoder().encode('hello'))).toBe(sha256);
        expect(await store.hasBlob(sha256)).toBe(true);
        expect(await store.hasBlob('00')).toBe(false);
        expect(await store.blob('00')).toBeUndefined();
        const empty = await store.putBlob(new Uint8Array(0));
        expect(await store.blob(empty)).toEqual(new Uint8Array(0));
      });

      test('are what they were when given, whatever the caller does with its buffer then', async () => {
        const buffer = new Uint8Array(6_000_000).fill(1);
        const putting = store.putBlob(buffer);
        buffer.fill(2);
        const sha256 = await putting;
        const back = await store.blob(sha256);
        expect(sha256).toBe(createHash('sha256').update(new Uint8Array(6_000_000).fill(1)).digest('hex'));
        expect(Buffer.compare(back!, new Uint8Array(6_000_000).fill(1))).toBe(0);
      });
    });

    describe('leases', () => {
      test('one holder at a time, by any name', async () => {
        const held = await store.lease('../a name/with: ev\u0000erything ü');
        expect(held).toBeDefined();
        expect(await store.lease('../a name/with: ev\u0000erything ü')).toBeUndefined();
        const other = await store.lease('another');
        expect(other).toBeDefined();
        await held?.close();
        await held?.close();
        const again = await store.lease('../a name/with: ev\u0000erything ü');
        expect(again).toBeDefined();
        await Promise.all([again?.close(), other?.close()]);
      });

      test('closing the store lets go', async () => {
        expect(await store.lease('x')).toBeDefined();
        await reopen();
        expect(await store.lease('x')).toBeDefined();
      });
    });

    describe('closing', () => {
      test('finishes what was begun, refuses what comes later, ends followers', async () => {
        const following = collect(store.follow({ stream: { of: 'all' } }, new AbortController().signal));
        const pending = append(taskEvent('task_a', { n: 1 }));
        const closing = store.close();
        await expect(append(taskEvent('task_a', { n: 2 }))).rejects.toMatchObject({ kind: 'unavailable' });
        expect((await pending).events).toHaveLength(1);
        await closing;
        await store.close();
        await following;
        await expect(store.get('task', 'task_a')).rejects.toMatchObject({ kind: 'unavailable' });
        await reopen();
        expect(await collect(store.read({ stream: { of: 'all' } }))).toHaveLength(1);
        expect(store.trouble()).toBeUndefined();
      });
    });

    describe('two on one log', () => {
      test('each sees what the other wrote, in caches and streams alike', async () => {
        const two = await opened.second();
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

      test('a follower that read what is still to be announced does not get it twice', async () => {
        const two = await opened.second();
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

      test('what the other prunes and rebuilds is seen here', async () => {
        const two = await opened.second();
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
        const two = await opened.second();
        const [, { dropped }] = await Promise.all([store.rebuild(), two.retain('2026-11-16T09:00:00.500Z')]);
        expect(dropped).toBe(6_000);
        const counts = (await store.list<Counted>({ object: 'task' })).map(({ count }) => count);
        expect(counts).toEqual([858, 857, 857, 857, 857, 857, 857]);
      });

      test('leases exclude each other', async () => {
        const two = await opened.second();
        const held = await store.lease('x');
        expect(await two.lease('x')).toBeUndefined();
        await held?.close();
        expect(await two.lease('x')).toBeDefined();
      });

      test('any interleaving gives one gapless order that both followers see', async () => {
        const two = await opened.second();
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
  });
}

// ---- What the tests are told in ----

const randomEvent = fc
  .record({
    task: fc.nat(5),
    session: fc.option(fc.nat(2)),
    kind: fc.constantFrom('note', 'note', 'note', 'withdrawn'),
    status: fc.option(fc.constantFrom('WORKING', 'COMPLETED')),
  })
  .map(({ task, session, kind, status }) =>
    taskEvent(`task_${task}`, status ? { status } : {}, {
      event: `task.${kind}`,
      session_id: session === null ? null : `session_${session}`,
    }),
  );
const randomUnits = fc.array(fc.array(randomEvent, { maxLength: 4 }), { minLength: 1, maxLength: 30 });

/** A stand-in for the real seal: what the store has to get right is the head it hands over and what it keeps. */
function sealFor(id: string, head: ChainHead): SealedReceipt {
  const receipt = { id, previous: head.previous, size: head.tree.size } as unknown as Receipt;
  return {
    id,
    hash: `hash-${id}`,
    task_id: `task_${id}`,
    receipt,
    tree: { size: head.tree.size + 1, frontier: [...head.tree.frontier, id] },
    nodes: [{ level: 0, index: head.tree.size, hash: `leaf-${id}` }],
  };
}

/** Each run of a property has tasks of its own, so that each begins with tasks nobody has heard of. */
function ofRun(event: EventDraft, run: number): EventDraft {
  const id = `${event.resource.id}_${run}`;
  return { ...event, resource: { object: 'task', id }, task_id: id };
}

/** All rows, and what follows each task of a run in the order: nothing but a refusal for one that never was. */
async function everyRow(store: Store, run: number): Promise<unknown[]> {
  const objects = ['task', 'session'];
  const found = await Promise.all(objects.map((object) => store.list({ object, limit: 10_000 })));
  const tails = await Promise.all(
    [0, 1, 2, 3, 4, 5].map((n) =>
      store
        .list({ object: 'task', after: `task_${n}_${run}`, limit: 10_000 })
        .then((rows) => rows.map(({ id }) => id))
        .catch((fault: Fault) => fault.kind),
    ),
  );
  return [...found, ...tails];
}

async function collect(events: AsyncIterable<CoreEvent>): Promise<CoreEvent[]> {
  const all: CoreEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

async function take(events: AsyncIterable<CoreEvent>, count: number): Promise<CoreEvent[]> {
  const some: CoreEvent[] = [];
  for await (const event of events) {
    some.push(event);
    if (some.length === count) break;
  }
  return some;
}

/** Collects in the background until the stream ends. */
function watch(events: AsyncIterable<CoreEvent>): { seen: CoreEvent[]; over: Promise<void> } {
  const seen: CoreEvent[] = [];
  const over = (async () => {
    for await (const event of events) seen.push(event);
  })();
  return { seen, over };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}
