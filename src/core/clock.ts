/** The real clock and real names. Replay and tests hand in others. */
import { randomFillSync } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import type { Clock, Ids } from '../ports.ts';

export const systemClock: Clock = createClock();

/** Spelling a time costs more than reading it, and many are asked for within one millisecond. */
function createClock(): Clock {
  let at = Number.NaN;
  let spelled = '';
  return {
    now() {
      const now = Date.now();
      if (now !== at) {
        at = now;
        spelled = new Date(now).toISOString();
      }
      return spelled;
    },
  };
}

/** Ids sort by the moment they were made, also within one millisecond. */
export function createIds(): Ids {
  const next = monotonicFactory(pooledRandom());
  return { next: (prefix) => `${prefix}_${next()}` };
}

/** An id takes sixteen random digits; asking the system for each of them showed in the profile of every request. */
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

/** `after` milliseconds from a time of the clock, as the clock writes times. */
export function later(now: string, after: number): string {
  return new Date(Date.parse(now) + after).toISOString();
}
