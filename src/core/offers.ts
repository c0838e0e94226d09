/**
 * When what is on offer may have changed: a server says so, other parts are mounted, other rules hold, a definition was accepted.
 * Says only that it is worth looking again; what anyone may see is asked anew, by the same rules as ever. Nobody is watched
 * for nobody's sake.
 */
import type { OfferChange, ToolBackend } from '../ports.ts';

export interface Offers {
  watch(heard: (change: OfferChange) => void): () => void;
  /** Something other than one server has changed it. */
  changed(): void;
}

export function createOffers(backends: readonly ToolBackend[]): Offers {
  const listeners = new Set<(change: OfferChange) => void>();
  const watched = new Map<ToolBackend, () => void>();

  function tell(change: OfferChange): void {
    for (const heard of [...listeners]) heard(change);
  }

  /** Those that are mounted now, and no others. */
  function settle(): void {
    const wanted = listeners.size > 0 ? backends : [];
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
    watch(heard) {
      // One of its own for each, so that the same function given twice is two listeners.
      const listener = (change: OfferChange) => heard(change);
      listeners.add(listener);
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
  };
}
