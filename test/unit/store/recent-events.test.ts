/** Followers of what was just written are served from memory, and never otherwise than the log would serve them. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { CoreEvent, EventDraft, Stream } from '../../../src/model/events.ts';
import { createRecentEvents } from '../../../src/store/engine/follow/recent-events.ts';
import { createStore, type EngineStore } from '../../../src/store/engine/store.ts';
import { openMemory } from '../../../src/store/memory/index.ts';
import { createMemoryLog } from '../../../src/store/memory/log.ts';

const said = (task: string, n: number): EventDraft => ({
  event: 'vendor.tollbridge.note',
  resource: { object: 'task', id: task },
  payload: { n },
  session_id: `session_of_${task}`,
  task_id: task,
});

/** A store, and how often it reads streams of events from its database. */
function opened(memory = createMemoryLog()): { store: EngineStore; reads: () => number } {
  const database = openMemory(memory);
  let reads = 0;
  const counted = {
    ...database,
    events: {
      ...database.events,
      open(stream: Stream, after: number) {
        reads += 1;
        return database.events.open(stream, after);
      },
    },
  };
  const projector = { touches: () => [], apply: () => [] };
  return { store: createStore(counted, { clock: systemClock, projector, pollMs: 5 }), reads: () => reads };
}

async function write(store: EngineStore, ...events: EventDraft[]): Promise<string> {
  const { events: written } = await store.commit({ decide: () => ({ events }) });
  return written.at(-1)!.id;
}

async function received(store: EngineStore, stream: Stream, after: string, count: number): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const { payload } of store.follow({ stream, after }, new AbortController().signal)) {
    found.push(payload.n);
    if (found.length === count) break;
  }
  return found;
}

test('a follower of what was just written reads nothing from the database', async () => {
  const { store, reads } = opened();
  const first = await write(store, said('a', 1));
  await write(store, said('a', 2), said('b', 20));
  // The first follower finds nothing kept, because nobody followed.
  expect(await received(store, { of: 'task', id: 'a' }, first, 1)).toEqual([2]);
  const before = await write(store, said('b', 21));
  await write(store, said('a', 3), said('b', 22));
  await write(store, said('b', 23), said('a', 4));
  const until = reads();
  expect(await received(store, { of: 'task', id: 'a' }, before, 2)).toEqual([3, 4]);
  expect(await received(store, { of: 'session', id: 'session_of_b' }, before, 2)).toEqual([22, 23]);
  expect(await received(store, { of: 'resource', object: 'task', id: 'b' }, before, 2)).toEqual([22, 23]);
  expect(await received(store, { of: 'all' }, before, 4)).toEqual([3, 22, 23, 4]);
  expect(reads()).toBe(until);
  await store.close();
});

test('with a commit of another process in between, the log is read', async () => {
  const memory = createMemoryLog();
  const [ours, theirs] = [opened(memory), opened(memory)];
  await received(
    ours.store,
    { of: 'all' },
    await write(ours.store, said('a', 0), said('a', 1)).then(() => 'evt_0000000000000001'),
    1,
  );
  const before = await write(ours.store, said('a', 2));
  await write(theirs.store, said('a', 3));
  await write(ours.store, said('a', 4));
  expect(await received(ours.store, { of: 'task', id: 'a' }, before, 2)).toEqual([3, 4]);
  await ours.store.close();
  await theirs.store.close();
});

test('what another process wrote behind it comes after it', async () => {
  const memory = createMemoryLog();
  const [ours, theirs] = [opened(memory), opened(memory)];
  const start = await write(ours.store, said('a', 0));
  await write(ours.store, said('a', 1));
  await received(ours.store, { of: 'task', id: 'a' }, start, 1);
  const before = await write(ours.store, said('a', 2));
  await write(ours.store, said('a', 3));
  await write(theirs.store, said('a', 4));
  expect(await received(ours.store, { of: 'task', id: 'a' }, before, 2)).toEqual([3, 4]);
  await ours.store.close();
  await theirs.store.close();
});

const events = (...ids: string[]): CoreEvent[] =>
  ids.map((task_id) => ({ task_id, resource: { object: 'task', id: task_id } }) as CoreEvent);

test('it keeps one contiguous piece, bounded in number and size', () => {
  const recent = createRecentEvents();
  expect(recent.holds(0)).toBe(false);
  recent.add(1, events('a', 'b'), 100);
  recent.add(3, events('a'), 100);
  expect(recent.after({ of: 'task', id: 'a' }, 0)?.events).toHaveLength(2);
  expect(recent.after({ of: 'task', id: 'a' }, 1)?.events).toHaveLength(1);
  expect(recent.after({ of: 'all' }, 3)).toEqual({ events: [], upTo: 3 });
  expect(recent.after({ of: 'all' }, 4)).toBeUndefined();
  // Another process wrote the fourth.
  recent.add(5, events('a'), 100);
  expect(recent.holds(3)).toBe(false);
  expect(recent.holds(4)).toBe(true);
  for (let at = 6; at < 2_000; at += 1) {
    recent.add(at, events('a'), 100);
    recent.holds(at);
  }
  expect(recent.holds(2_000 - 1_025)).toBe(true);
  expect(recent.holds(2_000 - 1_026)).toBe(false);
  recent.add(2_000, events('a'), 2_097_000);
  expect(recent.holds(1_998)).toBe(true);
  expect(recent.holds(1_900)).toBe(false);
  recent.add(2_001, events('a'), 3_000_000);
  expect(recent.holds(2_001)).toBe(false);
});

test('it is empty again when nobody has looked for a while', () => {
  const recent = createRecentEvents();
  recent.holds(0);
  for (let at = 1; at <= 1_024; at += 1) recent.add(at, events('a'), 1);
  recent.add(1_025, events('a'), 1);
  expect(recent.holds(1_025)).toBe(false);
});
