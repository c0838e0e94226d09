/**
 * Does it stay quick and small as the log grows? Appending to a log of a million events beside appending to one of ten
 * thousand, in turns; and the heap of a follower that has read two hundred thousand events beside its heap early on. In a file, and in
 * PostgreSQL (`growth-postgres`); in both, reading one task of the long log, too. `TOLLBRIDGE_BENCH_EVENTS` is the length of the long log.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventId, position } from '../../src/model/events.ts';
import type { Projector, Store } from '../../src/ports/index.ts';
import { createPostgresStore } from '../../src/store/postgres/index.ts';
import { createSqliteStore } from '../../src/store/sqlite/index.ts';
import { createDatabase } from '../../test/support/postgres/server.ts';
import { draft } from './append.ts';

export const name = 'growth';
export const names = ['growth', 'growth-postgres'];

const SMALL = 10_000;
const LARGE = Number(process.env.TOLLBRIDGE_BENCH_EVENTS ?? 1_000_000);
const CALLERS = 64;
const ROUNDS = 9;
const EACH = 1_024;
const READS = 20;
const FOLLOWED = 200_000;
const nothing: Projector = { touches: () => [], apply: () => [] };

const options = { clock: { now: () => '2026-11-16T12:00:00.000Z' }, projector: nothing };

/** Many events to a unit: the quick way to a long log that looks like one grown event by event. */
async function grow(store: Store, events: number, from = 0): Promise<void> {
  for (let at = from; at < from + events; at += 500) {
    const some = Array.from({ length: 500 }, (_, i) => draft((at + i) % CALLERS, Math.floor((at + i) / CALLERS)));
    await store.commit({ decide: () => ({ events: some }) });
  }
}

/** Milliseconds for one round of appends by concurrent callers. */
async function round(store: Store, offset: number): Promise<number> {
  const each = EACH / CALLERS;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      for (let i = 0; i < each; i++) {
        const event = draft(CALLERS + caller, offset * each + i);
        await store.commit({ decide: () => ({ events: [event] }) });
      }
    }),
  );
  return performance.now() - started;
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

/** The heap after a full collection. */
function settledHeap(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}

/** Half from the past, half as it happens. */
async function followed(store: Store): Promise<{ early: number; late: number }> {
  const half = FOLLOWED / 2;
  const after = eventId((position((await store.tip({ of: 'all' }))!) ?? 0) - half);
  let seen = 0;
  let early = 0;
  let late = 0;
  const writing = (async () => {
    while (seen < half) await new Promise((resolve) => setTimeout(resolve, 20));
    await grow(store, half);
  })();
  for await (const _ of store.follow({ stream: { of: 'all' }, after }, new AbortController().signal)) {
    seen++;
    if (seen === FOLLOWED / 10) early = settledHeap();
    if (seen === FOLLOWED) {
      late = settledHeap();
      break;
    }
  }
  await writing;
  return { early, late };
}

/** Milliseconds to read the task that was written last. */
async function readTask(store: Store, offset: number): Promise<number> {
  const { task_id: id } = draft(CALLERS, offset * (EACH / CALLERS));
  const started = performance.now();
  for (let time = 0; time < READS; time++) for await (const _ of store.read({ stream: { of: 'task', id: id! } }));
  return (performance.now() - started) / READS;
}

type Figure = { bench: string; ratio: number; against: string; [figure: string]: number | string };

export async function run(wanted: string = name): Promise<Figure[]> {
  if (wanted === 'growth-postgres') return await onPostgres();
  const dir = await mkdtemp(join(tmpdir(), 'growth-'));
  const open = (file: string) => createSqliteStore({ path: join(dir, file), ...options });
  const [small, large] = await Promise.all([open('small.db'), open('large.db')]);
  try {
    const compared = await compare(wanted, small, large);
    const { early, late } = await followed(large);
    return [
      ...compared,
      {
        bench: 'growth-follow',
        ratio: early / late,
        against: 'the heap of the same follower when it had read a tenth as much',
        'MB early': Math.round(early / 1e5) / 10,
        'MB late': Math.round(late / 1e5) / 10,
      },
    ];
  } finally {
    await Promise.all([small.close(), large.close()]);
    await rm(dir, { recursive: true, force: true });
  }
}

async function onPostgres(): Promise<Figure[]> {
  const database = await createDatabase();
  const open = () => createPostgresStore({ ...database.location(), ...options });
  const [small, large] = await Promise.all([open(), open()]);
  try {
    return await compare('growth-postgres', small, large);
  } finally {
    await Promise.all([small.close(), large.close()]);
    await database.drop();
  }
}

async function compare(bench: string, small: Store, large: Store): Promise<Figure[]> {
  await grow(small, SMALL);
  await grow(large, LARGE);
  const times = { small: [] as number[], large: [] as number[], readSmall: [] as number[], readLarge: [] as number[] };
  for (let n = 0; n <= ROUNDS; n++) {
    const few = await round(small, n);
    const many = await round(large, n);
    const [readFew, readMany] = [await readTask(small, n), await readTask(large, n)];
    if (n === 0) continue;
    times.small.push(few);
    times.large.push(many);
    times.readSmall.push(readFew);
    times.readLarge.push(readMany);
  }
  const micros = (ms: number): number => Math.round((ms / EACH) * 10_000) / 10;
  const rounded = (ms: number): number => Math.round(ms * 1_000) / 1_000;
  return [
    {
      bench,
      ratio: median(times.small.map((few, i) => few / times.large[i]!)),
      against: `appending to a log of ${SMALL} events`,
      'events of the long log': LARGE,
      'µs per append at 10k': micros(median(times.small)),
      'µs per append in the long log': micros(median(times.large)),
    },
    {
      bench: `${bench}-read`,
      ratio: median(times.readSmall.map((few, i) => few / times.readLarge[i]!)),
      against: `reading a task of a log of ${SMALL} events`,
      'ms per task at 10k': rounded(median(times.readSmall)),
      'ms per task in the long log': rounded(median(times.readLarge)),
    },
  ];
}
