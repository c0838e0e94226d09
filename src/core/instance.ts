/** This process among those that share a log: its name, held as a lease for as long as it lives. */
import { type HeldName, holdName } from '../model/values/held-name.ts';
import type { Ids, Lease, Store } from '../ports/index.ts';

export interface Instance {
  readonly name: string;
  /** The name by which other processes can check that this one lives; undefined while it does not hold its lease. */
  servedBy(): string | undefined;
  /** A process holds the lease on its own name as long as it lives; a process that can take the lease knows that the other is dead. */
  isDead(other: string): Promise<boolean>;
  hold(): Promise<void>;
  close(): Promise<void>;
}

/**
 * While the lease is lost, others take this process for dead and its work over; the log says of each task which process runs it, and this one
 * writes nothing more for a task that it no longer runs.
 */
export function createInstance(store: Pick<Store, 'lease'>, ids: Ids): Instance {
  const name = ids.next('instance');
  let held: HeldName<Lease> | undefined;
  return {
    name,
    servedBy: () => (held?.current() ? name : undefined),
    async isDead(other) {
      if (other === name || held?.judgesOthers() === false) return false;
      const lease = await store.lease(`instance:${other}`);
      await lease?.close();
      return lease !== undefined;
    },
    async hold() {
      held = await holdName(() => store.lease(`instance:${name}`));
    },
    async close() {
      await held?.close();
    },
  };
}
