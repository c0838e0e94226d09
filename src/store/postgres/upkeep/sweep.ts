/**
 * Removes what lies below the floor, after pruning and outside its transactions, because nobody can read it any more: partitions are
 * dropped whole, the rest of the events is deleted in small steps. What fails is left to the next time.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Connections } from '../connection/connections.ts';
import { filledIn, PARTITION, quoted } from '../schema/migrations.ts';
import { FRESH } from './fresh.ts';

interface Sweep {
  /** Starts, unless it is under way. */
  begin(): void;
  /** Resolves when it has ended. */
  close(): Promise<void>;
}

const STEP = 5_000;
/** Dropping a partition keeps readers out, so it waits for them no longer than this. */
const DROP_WAIT_MS = 200;

export function createSweep(connections: Connections, schema: string): Sweep {
  const sql = (text: string) => filledIn(text, schema);
  const FLOOR = sql('SELECT floor FROM $S.state');
  const TABLES = `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname LIKE $2`;
  const DELETE = sql(
    `WITH gone AS (DELETE FROM $S.events WHERE position IN
       (SELECT position FROM $S.events WHERE position <= $1 ORDER BY position LIMIT ${STEP}) RETURNING 1) SELECT count(*) FROM gone`,
  );
  const WRITERS = sql("DELETE FROM $S.writers WHERE at < now() - interval '1 day'");
  let closed = false;
  let running: Promise<void> | undefined;

  async function namesOf(prefix: string): Promise<{ name: string; number: number }[]> {
    const found = await connections.query(TABLES, [schema, `${prefix.replace('_', '\\_')}%`]);
    return found.map(([name]) => ({
      name: name as string,
      number: Number.parseInt((name as string).slice(prefix.length), 10),
    }));
  }

  async function drop(name: string): Promise<void> {
    const connection = await connections.take();
    try {
      await connection.batch(
        `BEGIN; SET LOCAL lock_timeout = ${DROP_WAIT_MS}; DROP TABLE IF EXISTS ${sql('$S')}.${quoted(name)}; COMMIT; SELECT 1`,
      );
      connection.release();
    } catch (thrown) {
      connection.release(true);
      throw thrown;
    }
  }

  async function run(): Promise<void> {
    const floor = (await connections.query(FLOOR))[0]![0] as number;
    for (const { name, number } of await namesOf('events_')) if (number + PARTITION <= floor + 1) await drop(name);
    while (!closed && ((await connections.query(DELETE, [floor]))[0]![0] as number) === STEP) await turn();
    const yesterday = Date.now() / 1000 - 24 * 3600;
    for (const { name, number } of await namesOf(FRESH)) if (number < yesterday) await drop(name);
    await connections.query(WRITERS);
  }

  return {
    begin() {
      running ??= run()
        .catch(() => undefined)
        .finally(() => {
          running = undefined;
        });
    },
    async close() {
      closed = true;
      await running;
    },
  };
}
