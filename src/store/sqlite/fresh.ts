/**
 * Projections computed from the log alone, in a temporary table of this connection: for a rebuild, and for a comparison with the
 * stored rows. The table grows in steps while others go on writing, and lies in a file, so that a long log takes no more memory
 * than a short one.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { CoreEvent } from '../../model/events.ts';
import type { Projector } from '../../ports/index.ts';
import type { Connection } from './connection.ts';
import { createFold } from './fold.ts';
import type { Log } from './log.ts';

const STRETCH = 100;

export interface Fresh {
  /** Folds the next events, inside the caller's transaction; returns how many there were. */
  advance(): number;
  /** The last position that was folded. */
  at(): number;
}

/**
 * Calls `work` when the end of the log has been reached; `work` itself advances over events written since. The table is
 * `temp.fresh`: object, id, created_at, body as in `baseline`, and `unproven` where a row rests on pruned events.
 */
export async function withFresh<T>(
  { connection, log, projector }: { connection: Connection; log: Log; projector: Projector },
  work: (fresh: Fresh) => Promise<T>,
  progress?: (position: number) => void,
): Promise<T> {
  // The driver keeps temporary tables in memory by default.
  connection.exec(`DROP TABLE IF EXISTS temp.fresh; PRAGMA temp_store = FILE; CREATE TEMP TABLE fresh
    (object TEXT NOT NULL, id TEXT NOT NULL, created_at TEXT NOT NULL, body TEXT, unproven INTEGER NOT NULL DEFAULT 0,
     PRIMARY KEY (object, id))`);
  try {
    const range = connection.prepare('SELECT position, body FROM events WHERE position > ? ORDER BY position LIMIT ?');
    const fold = createFold(connection, 'temp.fresh', projector, 'unproven');
    let at = -1;

    /** Starts from the baseline, and starts over when the events to go on from were pruned meanwhile. */
    const begin = (): void => {
      const floor = log.floor();
      if (at >= floor) return;
      connection.exec(
        'DELETE FROM temp.fresh; INSERT INTO temp.fresh SELECT object, id, created_at, body, 1 FROM baseline',
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

    while (inTransaction(connection, advance) === STRETCH) {
      progress?.(at);
      await turn();
    }
    return await work({ advance, at: () => at });
  } finally {
    connection.exec('DROP TABLE IF EXISTS temp.fresh; PRAGMA temp_store = DEFAULT');
  }
}

/** Runs `work` in one transaction, for speed and so that floor, baseline, events and rows are consistent. */
export function inTransaction<T>(connection: Connection, work: () => T): T {
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
