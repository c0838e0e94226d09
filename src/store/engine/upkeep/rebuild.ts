/**
 * Projections computed from the log alone, beside the stored ones: to replace them, and to compare them. They grow in steps while
 * others go on writing, and are kept by the database, so that a long log takes no more memory than a short one.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Projector } from '../../../ports/index.ts';
import type { Database, FreshRows } from '../database.ts';
import type { StoredLog } from '../packing/stored-log.ts';
import { andThen, type Wait } from '../wait.ts';
import type { Writer } from '../writer.ts';
import { foldInto } from './fold.ts';

const STRETCH = 100;

export interface Fresh extends FreshRows {
  /** Folds all events up to the end of the log, inside the caller's transaction. */
  advance(): Wait<void>;
}

/** Calls `work` when the end of the log has been reached; `work` itself advances over events written since. */
export async function withFresh<T>(
  database: Database,
  log: StoredLog,
  projector: Projector,
  work: (fresh: Fresh) => Promise<T>,
  progress?: (position: number) => void,
): Promise<T> {
  const rows = await database.upkeep.fresh();
  try {
    let at = -1;

    /** Starts from the baseline, and starts over when the events to go on from were pruned meanwhile. */
    const begin = (floor: number): Wait<void> => {
      if (at >= floor) return;
      return andThen(rows.restart(), () => {
        at = floor;
      });
    };
    const step = (): Wait<number> =>
      andThen(log.floor(), (floor) =>
        andThen(begin(floor), () =>
          andThen(log.open({ of: 'all' }, at).page(Number.MAX_SAFE_INTEGER, STRETCH), ({ items }) =>
            andThen(foldInto(rows.table, projector, items), () => {
              at = items.at(-1)?.position ?? at;
              return items.length;
            }),
          ),
        ),
      );
    const advance = (): Wait<void> => andThen(step(), (count) => (count > 0 ? advance() : undefined));

    while ((await rows.consistently(step)) === STRETCH) {
      progress?.(at);
      await turn();
    }
    return await work({ ...rows, advance });
  } finally {
    await rows.close();
  }
}

/** The last events and the exchange of rows are one transaction, so no reader sees half of it. */
export function rebuildRows(database: Database, log: StoredLog, projector: Projector, writer: Writer): Promise<void> {
  return withFresh(database, log, projector, (fresh) =>
    writer.transact(() => andThen(fresh.advance(), fresh.exchange)),
  );
}
