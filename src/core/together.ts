/**
 * Facts of one task that are told in the same turn, such as the pieces of a text, leave as one unit in the order they came.
 * Each is still durable before whoever told it hears so; only the work around a commit is done once for all of them.
 */
import type { EventDraft } from '../model/events.ts';

export interface Together {
  /** Resolves once they are written. */
  write(events: readonly EventDraft[]): Promise<void>;
  /** Whatever waits for company goes now, ahead of what its caller is about to write. */
  leave(): void;
}

/** A unit is decided and written in one piece, and others wait for it. */
const MOST = 64;

export function createTogether(commit: (events: readonly EventDraft[]) => Promise<unknown>): Together {
  let open: { readonly events: EventDraft[]; readonly written: Promise<void>; readonly go: () => void } | undefined;

  function begin(): NonNullable<typeof open> {
    const events: EventDraft[] = [];
    let go = () => {};
    const written = new Promise<void>((resolve, reject) => {
      go = () => void commit(events).then(() => resolve(), reject);
    });
    const company = { events, written, go };
    // Whoever speaks in this turn has spoken by then.
    queueMicrotask(() => {
      if (open === company) leave();
    });
    open = company;
    return company;
  }

  function leave(): void {
    const company = open;
    open = undefined;
    company?.go();
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
