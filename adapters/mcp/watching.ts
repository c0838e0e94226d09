/**
 * Hearing of changes at one server for as long as somebody wants to: through a session that is open anyway, one of our own, or a
 * request that listens. A server that is away is looked for again, each time a little later.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { CHANGES } from '../../mappings/mcp.ts';
import type { Notice } from './frames.ts';

export interface Watching {
  /** Until it is told to stop. */
  watch(heard: (list: string) => void): () => void;
  /** Something that came from the server, whoever it came to. */
  noted(frame: Notice): void;
  /** The tools are not what they were, as somebody who asked for them found. */
  changed(list: string): void;
  close(): void;
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/** `listen` stays for as long as the server can be heard; what it hears comes back through `noted`. */
export function createWatching(listen: (signal: AbortSignal) => Promise<void>): Watching {
  const listeners = new Set<(list: string) => void>();
  let stop: AbortController | undefined;

  async function keepListening(signal: AbortSignal): Promise<void> {
    for (let wait = FIRST_WAIT_MS; !signal.aborted; ) {
      const begun = Date.now();
      await listen(signal).catch(() => {});
      // One that could be heard for a while is worth trying again at once.
      wait = Date.now() - begun > LONGEST_WAIT_MS ? FIRST_WAIT_MS : Math.min(wait * 2, LONGEST_WAIT_MS);
      await pause(wait, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  function changed(list: string): void {
    for (const heard of [...listeners]) heard(list);
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
    noted({ method }) {
      const row = CHANGES.find(({ wire }) => wire === method);
      if (row) changed(row.list);
    },
    watch(heard) {
      const listener = (list: string) => heard(list);
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
