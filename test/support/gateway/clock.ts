/** Time and names a test decides about: nothing moves unless it is asked to, and every name can be written down beforehand. */
import type { Clock, Ids } from '../../../src/ports/index.ts';

export interface FakeClock extends Clock {
  advance(ms: number): void;
}

export function fakeClock(start = '2026-01-01T00:00:00.000Z'): FakeClock {
  let at = Date.parse(start);
  return {
    now: () => new Date(at).toISOString(),
    advance: (ms) => {
      at += ms;
    },
  };
}

/** `task_a00001`, `task_a00002` …: the letter tells gateways on one directory apart, the number sorts. */
export function sequentialIds(letter = 'a'): Ids {
  const counts = new Map<string, number>();
  return {
    next(prefix) {
      const count = (counts.get(prefix) ?? 0) + 1;
      counts.set(prefix, count);
      return `${prefix}_${letter}${String(count).padStart(5, '0')}`;
    },
  };
}
