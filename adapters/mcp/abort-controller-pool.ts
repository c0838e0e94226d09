/**
 * A pool of abort controllers for calls. Nearly none is ever aborted, and creating one with its first listener costs more than
 * sending a small request. A controller that was aborted, or whose signal still has listeners, is not reused.
 */
import { getEventListeners } from 'node:events';

export interface SpareSignals {
  take(): AbortController;
  /** The call has ended and no work continues under its signal. */
  giveBack(used: AbortController): void;
}

/** `most` is how many idle controllers the pool holds. */
export function createSpareSignals(most: number): SpareSignals {
  const spare: AbortController[] = [];
  return {
    take: () => spare.pop() ?? new AbortController(),
    giveBack(used) {
      const { signal } = used;
      if (spare.length >= most || signal.aborted || getEventListeners(signal, 'abort').length > 0) return;
      spare.push(used);
    },
  };
}
