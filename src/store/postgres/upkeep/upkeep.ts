/** The SQL of pruning, rebuilding and comparing. */
import { eraOf, firstOfEra, SPAN, stretchOf } from '../../engine/commit/write-set.ts';
import type { Database, Upkeep } from '../../engine/database.ts';
import type { Connections } from '../connection/connections.ts';
import type { LogRows } from '../reading/log.ts';
import { prunedHeadName } from '../reading/receipts.ts';
import { filledIn } from '../schema/migrations.ts';
import { createColumns } from './columns.ts';
import { createFoldTable, createFresh } from './fresh.ts';

export interface UpkeepDeps {
  readonly connections: Connections;
  readonly log: LogRows;
  readonly words: Database['words'];
  readonly schema: string;
  /** Called after pruning: what lies below the floor can go. */
  sweep(): void;
}

export function createUpkeep({ connections, log, words, schema, sweep }: UpkeepDeps): Upkeep {
  const sql = (text: string) => filledIn(text, schema);
  const NEXT_STATE = sql("SELECT min(state) FROM $S.rows WHERE object = 'task' AND state > $1");
  const TASKS_IN = sql("SELECT id FROM $S.rows WHERE object = 'task' AND state = $1");
  const TASKS_WITHOUT = sql("SELECT id FROM $S.rows WHERE object = 'task' AND state IS NULL AND body IS NOT NULL");
  const HEAD = sql(
    'INSERT INTO $S.meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  );
  const BASES = sql(
    `UPDATE $S.resources r SET base = last.sequence FROM (
       SELECT resource, max(sequence) AS sequence FROM $S.events WHERE position > $1 AND position <= $2 GROUP BY resource) last
     WHERE r.id = last.resource`,
  );
  // Remembers the first pruned event of each location, to be named to a reader that misses it.
  const LOCATIONS = sql(
    `UPDATE $S.places p SET pruned = first.position FROM (
       SELECT place, min(position) AS position FROM $S.events WHERE position > $1 AND position <= $2 GROUP BY place) first
     WHERE p.id = first.place AND p.pruned = 0`,
  );
  const FLOOR = sql('UPDATE $S.state SET floor = $1, floor_at = $2');
  const KEYS = sql(
    `WITH gone AS (DELETE FROM $S.idempotency WHERE scope IN (SELECT scope FROM $S.idempotency WHERE at < $1 LIMIT $2) RETURNING 1)
     SELECT count(*) FROM gone`,
  );
  const TIDY = [
    sql('DELETE FROM $S.spans WHERE span < $1'),
    sql('DELETE FROM $S.stretches WHERE stretch < $1'),
    // Up to the first word that is still in use. The last one stays: numbers go on behind it, and none may be given twice.
    sql(
      `DELETE FROM $S.words WHERE position > 0 AND id < coalesce(
         (SELECT min(id) FROM $S.words WHERE position >= $1), (SELECT max(id) FROM $S.words))`,
    ),
  ] as const;
  const ORPHANS = sql(
    'DELETE FROM $S.blob_parts p WHERE NOT EXISTS (SELECT 1 FROM $S.blobs b WHERE b.sha256 = p.sha256)',
  );

  /** Other stores must not go on with what they remember. */
  const noticed = (): void => {
    const transaction = connections.current();
    if (transaction) transaction.noticed = true;
  };

  return {
    async openTasks(isOver) {
      const ids = async (text: string, state?: string) =>
        (await connections.query(text, state === undefined ? [] : [state])).map(([id]) => id as string);
      const open = await ids(TASKS_WITHOUT);
      for (let state = ''; ; ) {
        const next = (await connections.query(NEXT_STATE, [state]))[0]![0] as string | null;
        if (next === null) return open;
        state = next;
        if (!isOver(state)) open.push(...(await ids(TASKS_IN, state)));
      }
    },
    baseline: createFoldTable(connections, sql('$S.baseline'), false),
    async prune({ upTo, at, heads }) {
      const floor = await log.floor();
      noticed();
      for (const [object, text] of heads) await connections.query(HEAD, [prunedHeadName(object), text]);
      await connections.query(BASES, [floor, upTo]);
      await connections.query(LOCATIONS, [floor, upTo]);
      await connections.query(FLOOR, [upTo, at]);
    },
    async dropKeys(before, most) {
      noticed();
      return (await connections.query(KEYS, [before, most]))[0]![0] as number;
    },
    async tidy() {
      const first = (await log.floor()) + 1;
      await connections.query(TIDY[0], [Math.floor(first / SPAN)]);
      await connections.query(TIDY[1], [stretchOf(first)]);
      await connections.query(TIDY[2], [firstOfEra(eraOf(first))]);
      await connections.query(ORPHANS);
      sweep();
    },
    columnFault: createColumns(connections, log, words, schema),
    fresh: () => createFresh(connections, schema, noticed),
  };
}
