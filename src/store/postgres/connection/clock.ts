/**
 * The clock of the database, which all gateways of its log go by: clocks of machines differ, and what one of them writes is dated, expires
 * and is answered at another.
 */
import type { Clock, Logger } from '../../../ports/index.ts';

export interface DatabaseClock {
  /** What the database said its time was, in answer to a question that was asked and answered at these times of this machine. */
  seen(databaseMs: number, askedAt: number, answeredAt: number): void;
  /** The clock is this machine's own again. */
  close(): void;
}

/** The time of the database in milliseconds, as SQL. */
export const TIME = '(extract(epoch FROM clock_timestamp()) * 1000)::float8';
/** Beyond this an operator should know. */
const APART_MS = 2_000;

export function createDatabaseClock(clock: Clock, name: string, logger: Logger | undefined): DatabaseClock {
  let ahead = 0;
  return {
    seen(databaseMs, askedAt, answeredAt) {
      // Times of this machine are whole milliseconds, rounded down.
      const [least, most] = [databaseMs - answeredAt - 1, databaseMs - askedAt];
      // As far as this answer can tell, the two are as they were.
      if (least <= ahead && ahead <= most) return;
      const found = Math.round((least + most) / 2);
      if (Math.abs(found - ahead) > APART_MS)
        logger?.warn(
          { store: name, ahead_ms: found },
          'the clock of the database is not that of this machine; times are those of the database',
        );
      ahead = found;
      clock.correct?.(ahead);
    },
    close: () => clock.correct?.(0),
  };
}
