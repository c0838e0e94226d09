/** Leases as callers hold them, and the check that a unit's lease is still its holder's at the moment of the commit. */
import { Fault } from '../../model/faults.ts';
import { anySignal } from '../../model/values/signals.ts';
import type { Closable, Lease } from '../../ports/index.ts';
import type { HeldLease, Lookups } from './database.ts';

interface Leases {
  hold(name: string, held: HeldLease): Lease;
  /** The database lets go of all of them. */
  close(): void;
}

export function createLeases(): Leases {
  const open = new Set<AbortController>();
  return {
    hold(name, { epoch, lost, close }) {
      const closed = new AbortController();
      open.add(closed);
      const forget = (): void => {
        open.delete(closed);
        closed.abort();
      };
      return {
        name,
        epoch,
        lost: lost ? anySignal([closed.signal, lost]) : closed.signal,
        async close() {
          forget();
          await close();
        },
      } satisfies Lease & Closable;
    },
    close() {
      for (const closed of open) closed.abort();
      open.clear();
    },
  };
}

export interface LeaseCheck {
  /** Throws when the lease was closed, lost, or taken by another. */
  require(lease: Lease): void;
  /** What was read may be out of date. */
  forget(): void;
}

/** An epoch that was read holds until another writer commits, because taking a lease is a commit like any other. */
export function createLeaseCheck({ epoch }: Pick<Lookups, 'epoch'>): LeaseCheck {
  const known = new Map<string, number>();

  function newest(name: string): number {
    const found = known.get(name) ?? epoch?.(name) ?? 0;
    if (epoch) known.set(name, found);
    return found;
  }

  return {
    require({ name, epoch, lost }) {
      if (!lost.aborted && newest(name) <= epoch) return;
      throw new Fault('conflict', `the lease ${name} was lost: another process may hold it now`, {
        details: { lease: name },
      });
    },
    forget: () => known.clear(),
  };
}
