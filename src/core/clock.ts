/** The system clock and random ids. Replay and tests pass in others. */
import { randomFillSync } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import type { Clock, Ids } from '../ports/index.ts';

/** The clock of this process, which serves one log: corrected by that log's database, if it has one. */
export const systemClock = createClock();

/** Formatting a time costs more than reading it, and many are requested within one millisecond. */
export function createClock(): Required<Clock> {
  let ahead = 0;
  let at = Number.NaN;
  let spelled = '';
  return {
    correct(aheadMs) {
      ahead = aheadMs;
    },
    now() {
      const now = Date.now() + ahead;
      if (now !== at) {
        at = now;
        spelled = new Date(now).toISOString();
      }
      return spelled;
    },
  };
}

/** Ids sort by creation time, also within one millisecond. */
export function createIds(): Ids {
  const next = monotonicFactory(pooledRandom());
  return { next: (prefix) => `${prefix}_${next()}` };
}

/** An id takes sixteen random digits; a system call for each of them showed in the profile of every request. */
function pooledRandom(): () => number {
  const pool = new Uint32Array(1024);
  let used = pool.length;
  return () => {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    return (pool[used++] as number) / 2 ** 32;
  };
}

/** The time `after` milliseconds later, in the clock's format. */
export function later(now: string, after: number): string {
  return new Date(Date.parse(now) + after).toISOString();
}
