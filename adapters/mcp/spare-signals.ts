/**
 * Signals for calls, used again: nearly none is ever fired, and to make one, with its first listener, costs more than to send
 * a small request. One that was fired, or that anybody still listens to, is not for another call.
 */
import { getEventListeners } from 'node:events';

export interface SpareSignals {
  take(): AbortController;
  /** Its call is over, and nothing goes on for its sake. */
  giveBack(used: AbortController): void;
}

/** `most` is how many are kept for calls to come. */
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
