/**
 * What a durable append costs beside the least it could cost: the same bytes, in batches of the same size, through one
 * prepared INSERT into a bare table with the same durability. Ours gives ids and sequences, runs the decision, keeps
 * the streams readable and answers every caller.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { type EventDraft, eventId } from '../../src/model/events.ts';
import type { Projector, Unit } from '../../src/ports/index.ts';
import { createSqliteStore, type SqliteStore } from '../../src/store/sqlite/index.ts';

export const name = 'append';

/** Many short rounds in turns, so that whatever else the machine does meets both sides alike. */
const ROUNDS = 25;
const EVENTS = 6_144;
const TASK_LENGTH = 100;
const NOW = '2026-11-16T12:00:00.000Z';
const nothing: Projector = { touches: () => [], apply: () => [] };

/** A task of a hundred events, then the next one, as a caller would. */
export function draft(caller: number, count: number): EventDraft {
  const task = `task_${caller}_${Math.floor(count / TASK_LENGTH)}`;
  return {
    event: 'tool.completed',
    resource: { object: 'task', id: task },
    payload: { tool_call_id: `call_${count}`, name: 'read_file', status: 'ok', duration_ms: 12 },
    workspace_id: `workspace_${caller % 4}`,
    session_id: `session_${caller}`,
    task_id: task,
    actor: 'agent',
  };
}

function unitOf(event: EventDraft): Unit {
  return { decide: () => ({ events: [event] }) };
}

async function ours(store: SqliteStore, callers: number, events: number, offset: number): Promise<number> {
  const each = events / callers;
  // What callers bring is made beforehand, as the other side's text is.
  const units = Array.from({ length: callers }, (_, caller) =>
    Array.from({ length: each }, (_, i) => unitOf(draft(caller, offset + i))),
  );
  const started = performance.now();
  await Promise.all(
    units.map(async (own) => {
      for (const unit of own) await store.commit(unit);
    }),
  );
  return performance.now() - started;
}

function raw(db: Database.Database, texts: readonly string[], batch: number): number {
  const insert = db.prepare('INSERT INTO t (body) VALUES (?)');
  const started = performance.now();
  for (let from = 0; from < texts.length; from += batch) {
    db.exec('BEGIN IMMEDIATE');
    const to = Math.min(texts.length, from + batch);
    for (let i = from; i < to; i++) insert.run(texts[i]);
    db.exec('COMMIT');
  }
  return performance.now() - started;
}

function openRaw(path: string): Database.Database {
  const db = new Database(path);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (n INTEGER PRIMARY KEY, body TEXT)');
  return db;
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

export async function run(): Promise<
  Array<{ bench: string; ratio: number; against: string; [figure: string]: number | string }>
> {
  const lines = [];
  for (const callers of [64, 512]) {
    const dir = await mkdtemp(join(tmpdir(), 'append-'));
    const store = await createSqliteStore({ path: join(dir, 'log.db'), clock: { now: () => NOW }, projector: nothing });
    const db = openRaw(join(dir, 'raw.db'));
    try {
      const each = EVENTS / callers;
      const texts = Array.from({ length: EVENTS }, (_, n) =>
        JSON.stringify({
          id: eventId(n + 1),
          object: 'event',
          created_at: NOW,
          updated_at: NOW,
          metadata: {},
          sequence: n,
          ...draft(n % callers, Math.floor(n / callers)),
        }),
      );
      const times = { ours: [] as number[], raw: [] as number[] };
      for (let round = 0; round <= ROUNDS; round++) {
        const mine = await ours(store, callers, EVENTS, round * each);
        const theirs = raw(db, texts, callers);
        // The first round warms both up.
        if (round === 0) continue;
        times.ours.push(mine);
        times.raw.push(theirs);
      }
      const perSecond = (ms: number): number => Math.round((EVENTS / ms) * 1000);
      lines.push({
        bench: callers === 64 ? 'append' : `append-${callers}`,
        ratio: median(times.ours.map((mine, i) => times.raw[i]! / mine)),
        against: 'the same bytes through one prepared INSERT, same batches, same durability',
        'events per second': perSecond(median(times.ours)),
        'raw inserts per second': perSecond(median(times.raw)),
        'bytes per event': texts[0]!.length,
        'units per commit': Math.round(((ROUNDS + 1) * EVENTS) / store.commits()),
      });
    } finally {
      await store.close();
      db.close();
      await rm(dir, { recursive: true, force: true });
    }
  }
  return lines;
}
