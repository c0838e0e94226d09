/**
 * Watches one server for changes while there are watchers: through an open session, one of our own, or a request that listens. A
 * server that cannot be reached is tried again with a growing delay.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { CHANGES } from '../../../mappings/mcp.ts';
import { isObject } from '../../../src/index.ts';
import { backgroundContext } from '../background-context.ts';
import type { Notice } from '../frames.ts';
import type { Eras } from './eras.ts';
import type { KnownLists } from './known-lists.ts';
import type { LegacyPeers } from './legacy-peers.ts';
import type { ModernPeer } from './modern-peer.ts';
import { createResponseTimeout, FOREVER_MS } from './timeout.ts';
import type { ToolCatalog } from './tool-catalog.ts';

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

interface ListeningDeps {
  readonly eras: Eras;
  readonly catalog: ToolCatalog;
  readonly lists: KnownLists;
  readonly modern: ModernPeer;
  readonly legacy: LegacyPeers;
  /** Reads the tools of the server again. */
  refresh(): Promise<void>;
  /** Receives what the server announces. */
  noted(frame: Notice): void;
  /** A session that nobody uses is closed after this time. */
  readonly restMs: number;
}

/** The returned function returns when the server can no longer be listened to. An open session already receives its notifications. */
export function createListening(deps: ListeningDeps): (signal: AbortSignal) => Promise<void> {
  const { eras, catalog, lists, modern, legacy, refresh, noted, restMs } = deps;
  return async (signal) => {
    const timeout = createResponseTimeout(signal, FOREVER_MS, FOREVER_MS);
    const notify = (frame: Notice) => {
      noted(frame);
      const { notifications } = frame.params ?? {};
      if (frame.method === ACKNOWLEDGED && isObject(notifications)) lists.announced(notifications);
    };
    const context = { ...backgroundContext(), notify };
    try {
      const era = await eras.own();
      if (!catalog.fresh) await refresh();
      if (era === 'modern') {
        const notifications = Object.fromEntries(CHANGES.map(({ wish }) => [wish, true]));
        await modern.call('subscriptions/listen', { notifications }, context, timeout).finally(() => {
          catalog.changed();
          lists.announced({});
        });
        return;
      }
      while (!signal.aborted) {
        const session = await (legacy.any()?.session ?? legacy.of(context, timeout));
        if (!catalog.fresh) await refresh();
        // Used again before it has rested for too long.
        const rested = pause(restMs / 2, true, { signal, ref: false });
        // What the server announced from now on was not heard.
        if (!(await Promise.race([session.gone.then(() => false), rested]))) catalog.changed();
      }
    } finally {
      timeout.end();
    }
  };
}

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
