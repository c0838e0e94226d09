/**
 * Signals that the tool list may have changed: a server reports it, parts are remounted, rules change, or a definition is accepted,
 * here or in another process. It says only that a new look is worthwhile; visibility is evaluated anew by the same rules. Servers
 * and the log are followed only while there are listeners.
 */
import type { Cursor } from '../../model/events.ts';
import type { Logger, Store, ToolBackend, ToolChange } from '../../ports/index.ts';

export interface ToolChanges {
  /** `servers`: also report the servers' own changes, for which they are subscribed to. */
  watch(onChange: (change: ToolChange) => void, servers?: boolean): () => void;
  /** A cause other than one server has changed the list. */
  changed(): void;
  close(): void;
}

const AGAIN_MS = 250;

export function createToolChanges(
  backends: () => readonly ToolBackend[],
  store: Pick<Store, 'follow'>,
  logger: Logger,
  /** Called before the listeners of a server's change. */
  again: (server: string) => void = () => {},
): ToolChanges {
  const listeners = new Map<(change: ToolChange) => void, { readonly servers: boolean }>();
  const watched = new Map<ToolBackend, () => void>();

  function notify(change: ToolChange): void {
    if (change.server !== undefined) again(change.server);
    for (const [listener, { servers }] of [...listeners]) if (servers || change.server === undefined) listener(change);
  }

  /** Definitions are in the log, whichever process accepts them or finds them changed. */
  let following: AbortController | undefined;
  async function follow(over: AbortSignal): Promise<void> {
    for (let after: Cursor | 'now' = 'now'; !over.aborted; ) {
      try {
        for await (const { id, resource } of store.follow({ stream: { of: 'all' }, after }, over)) {
          after = id;
          if (resource.object === 'skill') notify({});
        }
      } catch (cause) {
        if (over.aborted) return;
        logger.warn({ err: cause }, 'definitions of tools could not be listened for');
        // The missed events may be any.
        after = 'now';
        notify({});
      }
      if (!over.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref());
    }
  }

  /** Subscribes to the servers mounted now, and to no others. */
  function settle(): void {
    if (listeners.size === 0) {
      following?.abort();
      following = undefined;
    } else if (!following) {
      following = new AbortController();
      void follow(following.signal);
    }
    const wanted = [...listeners.values()].some(({ servers }) => servers) ? backends() : [];
    for (const [backend, stop] of watched) {
      if (wanted.includes(backend)) continue;
      watched.delete(backend);
      stop();
    }
    for (const backend of wanted) {
      if (watched.has(backend)) continue;
      watched.set(backend, backend.watch?.((list) => notify({ server: backend.name, list })) ?? (() => {}));
    }
  }

  return {
    watch(onChange, servers = true) {
      // A new function for each, so that the same callback given twice is two listeners.
      const listener = (change: ToolChange) => onChange(change);
      listeners.set(listener, { servers });
      settle();
      return () => {
        listeners.delete(listener);
        settle();
      };
    },
    changed() {
      settle();
      notify({});
    },
    close() {
      listeners.clear();
      settle();
    },
  };
}
