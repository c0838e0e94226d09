/**
 * Watches one server for changes while there are watchers: through an open session, one of our own, or a request that listens. A
 * server that cannot be reached is tried again with a growing delay.
 */
import { setTimeout as pause } from 'node:timers/promises';

export interface Watching {
  /** Watches until the returned function is called. */
  watch(listener: (list: string) => void): () => void;
  /** The server has announced that a list changed, or a caller that listed the tools found them changed. */
  changed(list: string): void;
  close(): void;
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/** `listen` returns when the server can no longer be listened to; it reports what the server announces to `changed`. */
export function createWatching(listen: (signal: AbortSignal) => Promise<void>): Watching {
  const listeners = new Set<(list: string) => void>();
  let stop: AbortController | undefined;

  async function keepListening(signal: AbortSignal): Promise<void> {
    for (let wait = FIRST_WAIT_MS; !signal.aborted; ) {
      const begun = Date.now();
      await listen(signal).catch(() => {});
      // After a connection that lasted, the delay starts small again.
      wait = Date.now() - begun > LONGEST_WAIT_MS ? FIRST_WAIT_MS : Math.min(wait * 2, LONGEST_WAIT_MS);
      await pause(wait, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  function changed(list: string): void {
    for (const listener of [...listeners]) listener(list);
  }

  function settle(): void {
    if (listeners.size === 0) {
      stop?.abort();
      stop = undefined;
    } else if (!stop) {
      stop = new AbortController();
      void keepListening(stop.signal);
    }
  }

  return {
    changed,
    watch(onChange) {
      const listener = (list: string) => onChange(list);
      listeners.add(listener);
      settle();
      return () => {
        listeners.delete(listener);
        settle();
      };
    },
    close() {
      listeners.clear();
      settle();
    },
  };
}
