/** Long work in short steps: other work of the process runs in between. */
import { setImmediate } from 'node:timers/promises';

const SLICE_MS = 10;

/** Called between steps; gives way when the slice is used up. */
export type GiveWay = () => Promise<void> | undefined;

export function createTimeSlices(sliceMs = SLICE_MS): GiveWay {
  let until = performance.now() + sliceMs;
  return () => {
    if (performance.now() < until) return undefined;
    return setImmediate().then(() => {
      until = performance.now() + sliceMs;
    });
  };
}
