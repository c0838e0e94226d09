/**
 * Work that one of several processes on a store does for all of them: sending webhooks, signing heads, deleting old events. It is done
 * under a lease, so another process takes it up once the one that did it is gone, or has lost its store.
 */
import type { Closable, Lease, Logger, Store } from '../ports/index.ts';

export interface DutyOptions {
  readonly name: string;
  readonly store: Pick<Store, 'lease'>;
  readonly log: Logger;
  readonly begin: () => Closable;
  /** How often a process that does not do the work looks whether it is to. */
  readonly everyMs?: number;
}

/** Resolves when the work has begun, or another process does it. */
export async function openDuty({ name, store, log, begin, everyMs = 1_000 }: DutyOptions): Promise<Closable> {
  let held: { readonly lease: Lease; readonly work: Closable } | undefined;
  let over = false;
  let turn: Promise<void> = Promise.resolve();
  /** One step at a time, each tried again with the next look. */
  function next(step: () => Promise<void>): Promise<void> {
    turn = turn.then(step).catch((cause) => log.warn({ err: cause, duty: name }, 'a duty could not be taken or left'));
    return turn;
  }

  async function take(): Promise<void> {
    if (held || over) return;
    const lease = await store.lease(`duty:${name}`);
    if (!lease) return;
    held = { lease, work: begin() };
    lease.lost.addEventListener('abort', () => void next(leave), { once: true });
  }

  async function leave(): Promise<void> {
    const had = held;
    held = undefined;
    try {
      await had?.work.close();
    } finally {
      await had?.lease.close();
    }
  }

  const looking = setInterval(() => void next(take), everyMs).unref();
  await next(take);
  return {
    async close() {
      over = true;
      clearInterval(looking);
      await next(leave);
    },
  };
}
