/**
 * Batches facts of one task that arrive in the same turn of the event loop, such as the pieces of a text, into one unit in their
 * order. Each is still durable before its sender gets the result; only the overhead of a commit is shared.
 */
import type { EventDraft } from '../../model/events.ts';

export interface Batcher {
  /** Resolves once the events are written. */
  write(events: readonly EventDraft[]): Promise<void>;
  /** Commits the open batch now, ahead of the events its caller is about to write. */
  leave(): void;
}

/** A unit is decided and written as a whole, and other units wait for it. */
const MOST = 64;

export function createBatcher(commit: (events: readonly EventDraft[]) => Promise<unknown>): Batcher {
  let open: { readonly events: EventDraft[]; readonly written: Promise<void>; readonly go: () => void } | undefined;

  function begin(): NonNullable<typeof open> {
    const events: EventDraft[] = [];
    let go = () => {};
    const written = new Promise<void>((resolve, reject) => {
      go = () => void commit(events).then(() => resolve(), reject);
    });
    const batch = { events, written, go };
    // All facts of this turn have arrived by then.
    queueMicrotask(() => {
      if (open === batch) leave();
    });
    open = batch;
    return batch;
  }

  function leave(): void {
    const batch = open;
    open = undefined;
    batch?.go();
  }

  return {
    leave,
    write(more) {
      const { events, written } = open ?? begin();
      events.push(...more);
      if (events.length >= MOST) leave();
      return written;
    },
  };
}
