/** A follower gets what was just written exactly as a reader of the file does. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { CoreEvent, EventDraft, Stream } from '../../../src/model/events.ts';
import { createSqliteStore, type SqliteStore } from '../../../src/store/sqlite/index.ts';
import { eventually } from '../../support/eventually.ts';

const projector = { touches: () => [], apply: () => [] };
let dir = '';
const open: SqliteStore[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tb-following-'));
});
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  await rm(dir, { recursive: true, force: true });
});

async function opened(): Promise<SqliteStore> {
  const store = await createSqliteStore({ path: join(dir, 'log.db'), clock: systemClock, projector, pollMs: 5 });
  open.push(store);
  return store;
}

function said(task: string, n: number, more: Partial<EventDraft> = {}): EventDraft {
  const location = { workspace_id: 'w', session_id: `session_of_${task}`, task_id: task };
  return {
    event: 'vendor.tollbridge.note',
    resource: { object: 'task', id: task },
    payload: { n },
    ...location,
    ...more,
  } as EventDraft;
}

async function write(store: SqliteStore, ...events: EventDraft[]): Promise<void> {
  await store.commit({ decide: () => ({ events }) });
}

/** The first so many events of a stream, as they come. */
async function received(store: SqliteStore, stream: Stream, count: number, after?: string): Promise<CoreEvent[]> {
  const stop = new AbortController();
  const events: CoreEvent[] = [];
  for await (const event of store.follow({ stream, ...(after && { after }) }, stop.signal)) {
    events.push(event);
    if (events.length === count) break;
  }
  stop.abort();
  return events;
}

async function written(store: SqliteStore, stream: Stream): Promise<CoreEvent[]> {
  const events: CoreEvent[] = [];
  for await (const event of store.read({ stream })) events.push(event);
  return events;
}

const STREAMS: readonly Stream[] = [
  { of: 'all' },
  { of: 'workspace', id: 'w' },
  { of: 'session', id: 'session_of_b' },
  { of: 'task', id: 'b' },
  { of: 'resource', object: 'task', id: 'b' },
];

test.each(STREAMS)('a stream of $of is followed as it is read', async (stream) => {
  const store = await opened();
  for (let n = 0; n < 8; n += 1) await write(store, said('a', n), said('b', n));
  const expected = await written(store, stream);
  expect(await received(store, stream, expected.length)).toEqual(expected);
  const middle = expected[3]!.id;
  expect(await received(store, stream, expected.length - 4, middle)).toEqual(expected.slice(4));
});

test('a task that began long ago is followed from its beginning', async () => {
  const store = await opened();
  await write(store, said('old', 0));
  for (let n = 0; n < 300; n += 1)
    await write(store, said('noise', n), said('noise', n), said('noise', n), said('noise', n));
  await write(store, said('old', 1));
  const events = await received(store, { of: 'task', id: 'old' }, 2);
  expect(events.map(({ payload }) => payload.n)).toEqual([0, 1]);
});

test('what was said in a task before it was said about the task is not missed', async () => {
  const store = await opened();
  await write(store, said('t', 0, { resource: { object: 'message', id: 'm' } }));
  for (let n = 0; n < 1_100; n += 1) await write(store, said('noise', n));
  await write(store, said('t', 1));
  const events = await received(store, { of: 'task', id: 't' }, 2);
  expect(events.map(({ payload }) => payload.n)).toEqual([0, 1]);
});

test('of many long events none is missed', async () => {
  const store = await opened();
  const text = 'x'.repeat(60_000);
  for (let n = 0; n < 60; n += 1) await write(store, said('long', n, { payload: { n, text } }));
  const events = await received(store, { of: 'task', id: 'long' }, 60);
  expect(events.map(({ payload }) => payload.n)).toEqual(Array.from({ length: 60 }, (_, n) => n));
});

test('what another process wrote in between comes at its place', async () => {
  const [ours, theirs] = [await opened(), await opened()];
  await write(ours, said('t', 0));
  await write(theirs, said('t', 1));
  await write(ours, said('t', 2));
  await write(theirs, said('t', 3));
  const events = await received(ours, { of: 'task', id: 't' }, 4);
  expect(events.map(({ payload }) => payload.n)).toEqual([0, 1, 2, 3]);
});

test('a second follower misses nothing of what others wrote meanwhile', async () => {
  const [ours, theirs] = [await opened(), await opened()];
  const stop = new AbortController();
  const seen: unknown[] = [];
  const first = (async () => {
    for await (const { payload } of ours.follow({ stream: { of: 'all' } }, stop.signal)) seen.push(payload.n);
  })();
  await write(ours, said('t', 0));
  await write(theirs, said('t', 1));
  await eventually(() => seen.length >= 2, 'both events');
  const events = await received(ours, { of: 'task', id: 't' }, 2);
  expect(events.map(({ payload }) => payload.n)).toEqual([0, 1]);
  stop.abort();
  await first;
});

test('a follower of what was pruned is refused', async () => {
  const store = await opened();
  await write(store, said('t', 0));
  await store.retain(new Date(Date.now() + 1_000).toISOString());
  await write(store, said('u', 0));
  await expect(received(store, { of: 'task', id: 't' }, 1)).rejects.toMatchObject({ kind: 'cursor_expired' });
});
