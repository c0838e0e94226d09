/**
 * When what is on offer may have changed: a server says so, other parts are mounted, other rules hold, a definition was accepted, here
 * or in another process. Says only that it is worth looking again; what anyone may see is asked anew, by the same rules as ever.
 * Nobody is watched for nobody's sake.
 */
import type { Cursor } from '../model/events.ts';
import type { Logger, OfferChange, Store, ToolBackend } from '../ports.ts';

export interface Offers {
  /** `servers`: also of what servers say of themselves, for which they have to be listened to. */
  watch(heard: (change: OfferChange) => void, servers?: boolean): () => void;
  /** Something other than one server has changed it. */
  changed(): void;
  close(): void;
}

const AGAIN_MS = 250;

export function createOffers(
  backends: () => readonly ToolBackend[],
  store: Pick<Store, 'follow'>,
  logger: Logger,
): Offers {
  const listeners = new Map<(change: OfferChange) => void, { readonly servers: boolean }>();
  const watched = new Map<ToolBackend, () => void>();

  function tell(change: OfferChange): void {
    for (const [heard, { servers }] of [...listeners]) if (servers || change.server === undefined) heard(change);
  }

  /** Definitions are in the log, whoever accepts them or finds that they are no longer what they were. */
  let following: AbortController | undefined;
  async function follow(over: AbortSignal): Promise<void> {
    for (let after: Cursor | 'now' = 'now'; !over.aborted; ) {
      try {
        for await (const { id, resource } of store.follow({ stream: { of: 'all' }, after }, over)) {
          after = id;
          if (resource.object === 'skill') tell({});
        }
      } catch (cause) {
        if (over.aborted) return;
        logger.warn({ err: cause }, 'definitions of tools could not be listened for');
        // What was missed may be anything.
        after = 'now';
        tell({});
      }
      if (!over.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref());
    }
  }

  /** Those that are mounted now, and no others. */
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
      watched.set(backend, backend.watch?.((list) => tell({ server: backend.name, list })) ?? (() => {}));
    }
  }

  return {
    watch(heard, servers = true) {
      // One of its own for each, so that the same function given twice is two listeners.
      const listener = (change: OfferChange) => heard(change);
      listeners.set(listener, { servers });
      settle();
      return () => {
        listeners.delete(listener);
        settle();
      };
    },
    changed() {
      settle();
      tell({});
    },
    close() {
      listeners.clear();
      settle();
    },
  };
}
