/**
 * Projections from nothing but the log. The new rows grow in a table of this connection's own, a stretch at a time
 * while others go on writing; the last stretch and the exchange are one transaction, so nobody sees half of it.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { CoreEvent } from '../../model/events.ts';
import type { Projector } from '../../ports.ts';
import type { Connection } from './connection.ts';
import { createFold } from './fold.ts';
import type { Log } from './log.ts';
import { columnsOf, filterInBody, SHELVES } from './shelves.ts';
import type { Writer } from './writer.ts';

const STRETCH = 100;

const EXCHANGE = SHELVES.map((shelf) => {
  const values = [...shelf.key, 'created_at', ...shelf.filters.map(filterInBody), 'body'];
  return `
    DELETE FROM ${shelf.table};
    INSERT INTO ${shelf.table} (${columnsOf(shelf).join(', ')})
    SELECT ${values.join(', ')} FROM temp.fresh WHERE ${shelf.holds} ORDER BY rowid;
  `;
}).join('');

export function createRebuild(connection: Connection, log: Log, projector: Projector, writer: Writer) {
  return async function rebuild(): Promise<void> {
    connection.exec(
      `DROP TABLE IF EXISTS temp.fresh; CREATE TEMP TABLE fresh
       (object TEXT NOT NULL, id TEXT NOT NULL, created_at TEXT NOT NULL, body TEXT, PRIMARY KEY (object, id))`,
    );
    try {
      const range = connection.prepare(
        'SELECT position, body FROM events WHERE position > ? ORDER BY position LIMIT ?',
      );
      const fold = createFold(connection, 'temp.fresh', projector);
      let at = -1;

      /** From the baseline at first, and again when the events to go on from were pruned meanwhile. */
      const begin = (): void => {
        const floor = log.floor();
        if (at >= floor) return;
        connection.exec(
          'DELETE FROM temp.fresh; INSERT INTO temp.fresh SELECT object, id, created_at, body FROM baseline',
        );
        at = floor;
      };
      const advance = (): number => {
        begin();
        const found = range.all([at, STRETCH]) as [number, string][];
        for (const [position, body] of found) {
          fold.apply(JSON.parse(body) as CoreEvent);
          at = position;
        }
        return found.length;
      };

      while (step(connection, advance) === STRETCH) await turn();
      await writer.transact(() => {
        while (advance() > 0);
        connection.exec(EXCHANGE);
      });
    } finally {
      connection.exec('DROP TABLE IF EXISTS temp.fresh');
    }
  };
}

/** In one transaction, for the speed of it and so that floor, baseline and events are of one moment. */
function step<T>(connection: Connection, work: () => T): T {
  connection.exec('BEGIN');
  try {
    const result = work();
    connection.commit();
    return result;
  } catch (thrown) {
    connection.rollback();
    throw thrown;
  }
}
