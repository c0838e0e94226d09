/**
 * What a durable append costs in PostgreSQL beside the least it could cost there: the same bytes, in batches of the same size, each batch
 * in a bare transaction with one multi-row insert. Needs no server: one comes from npm, as in the tests.
 */

import pg from 'pg';
import { eventId } from '../../src/model/events.ts';
import type { Projector } from '../../src/ports/index.ts';
import { createPostgresStore, type PostgresStore } from '../../src/store/postgres/index.ts';
import { createDatabase, PASSWORD, type TestDatabase, USER } from '../../test/support/postgres/server.ts';
import { draft } from './append.ts';

export const name = 'append-postgres';

/** In turns, so that whatever else the machine does meets both sides alike. */
const ROUNDS = 9;
const EVENTS = 4_096;
const CALLERS = [64, 512];
const REPLICAS = 3;
const NOW = '2026-11-16T12:00:00.000Z';
const nothing: Projector = { touches: () => [], apply: () => [] };

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

async function ours(stores: readonly PostgresStore[], callers: number, offset: number): Promise<number> {
  const each = EVENTS / callers;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      const store = stores[caller % stores.length]!;
      for (let i = 0; i < each; i++) {
        const event = draft(caller, offset + i);
        await store.commit({ decide: () => ({ events: [event] }) });
      }
    }),
  );
  return performance.now() - started;
}

async function raw(client: pg.Client, texts: readonly string[], batch: number): Promise<number> {
  const started = performance.now();
  for (let from = 0; from < texts.length; from += batch) {
    await client.query('BEGIN');
    await client.query('INSERT INTO bare (body) SELECT * FROM unnest($1::text[])', [texts.slice(from, from + batch)]);
    await client.query('COMMIT');
  }
  return performance.now() - started;
}

export async function run() {
  const database: TestDatabase = await createDatabase();
  const { port, name: databaseName } = database;
  const client = new pg.Client({ host: '127.0.0.1', port, user: USER, password: PASSWORD, database: databaseName });
  await client.connect();
  await client.query('CREATE TABLE bare (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT NOT NULL)');
  const lines = [];
  try {
    for (const callers of CALLERS) {
      // A log each: a gateway that has just been one of three reads what the others wrote first.
      const [own, shared] = [database.location(), database.location()];
      const open = (location: typeof own) =>
        createPostgresStore({ ...location, clock: { now: () => NOW }, projector: nothing });
      const alone = await open(own);
      const stores = await Promise.all(Array.from({ length: REPLICAS }, () => open(shared)));
      try {
        const each = EVENTS / callers;
        const texts = Array.from({ length: EVENTS }, (_, n) =>
          JSON.stringify({
            ...{ id: eventId(n + 1), object: 'event', created_at: NOW, updated_at: NOW, metadata: {}, sequence: n },
            ...draft(n % callers, Math.floor(n / callers)),
          }),
        );
        const times = { one: [] as number[], three: [] as number[], raw: [] as number[] };
        let offset = 0;
        for (let round = 0; round <= ROUNDS; round++) {
          const one = await ours([alone], callers, offset);
          const bare = await raw(client, texts, Math.min(callers, 64));
          const three = await ours(stores, callers, offset);
          offset += each;
          // The first round warms all up.
          if (round === 0) continue;
          times.one.push(one);
          times.three.push(three);
          times.raw.push(bare);
        }
        const perSecond = (ms: number): number => Math.round((EVENTS / ms) * 1000);
        lines.push({
          bench: callers === 64 ? name : `${name}-${callers}`,
          ratio: median(times.one.map((mine, i) => times.raw[i]! / mine)),
          against: 'the same bytes through bare transactions of one multi-row INSERT, batches of 64, same durability',
          'events per second': perSecond(median(times.one)),
          'with three replicas': perSecond(median(times.three)),
          'raw inserts per second': perSecond(median(times.raw)),
          'units per commit': Math.round(((ROUNDS + 1) * EVENTS) / (alone.commits() || 1)),
        });
      } finally {
        await Promise.all([alone, ...stores].map((store) => store.close()));
      }
    }
  } finally {
    await client.end();
    await database.drop();
  }
  return lines;
}
