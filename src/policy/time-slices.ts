/** Splits long work into short steps, so that other work of the process runs in between. */
import { setImmediate } from 'node:timers/promises';

const SLICE_MS = 10;

/** Called between steps; yields when the slice is used up. */
export type YieldTurn = () => Promise<void> | undefined;

export function createTimeSlices(sliceMs = SLICE_MS): YieldTurn {
  let until = performance.now() + sliceMs;
  return () => {
    if (performance.now() < until) return undefined;
    return setImmediate().then(() => {
      until = performance.now() + sliceMs;
    });
  };
}
