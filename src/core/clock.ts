/** The real clock and real names. Replay and tests hand in others. */
import { monotonicFactory } from 'ulid';
import type { Clock, Ids } from '../ports.ts';

export const systemClock: Clock = { now: () => new Date().toISOString() };

/** Ids sort by the moment they were made, also within one millisecond. */
export function createIds(): Ids {
  const next = monotonicFactory();
  return { next: (prefix) => `${prefix}_${next()}` };
}

/** `after` milliseconds from a time of the clock, as the clock writes times. */
export function later(now: string, after: number): string {
  return new Date(Date.parse(now) + after).toISOString();
}
