/** This process among those that share a log: its name, held as a lease for as long as it lives. */
import type { Ids, Store } from '../ports/index.ts';

export interface Instance {
  readonly name: string;
  /** The name by which other processes can check that this one lives; undefined while it does not hold its lease. */
  servedBy(): string | undefined;
  /** A process holds the lease on its own name as long as it lives; a process that can take the lease knows that the other is dead. */
  isDead(other: string): Promise<boolean>;
  hold(): Promise<void>;
  close(): Promise<void>;
}

export function createInstance(store: Pick<Store, 'lease'>, ids: Ids): Instance {
  const name = ids.next('instance');
  let held: { close(): Promise<void> } | undefined;
  return {
    name,
    servedBy: () => (held ? name : undefined),
    async isDead(other) {
      if (other === name) return false;
      const lease = await store.lease(`instance:${other}`);
      await lease?.close();
      return lease !== undefined;
    },
    async hold() {
      held = await store.lease(`instance:${name}`);
    },
    async close() {
      await held?.close();
    },
  };
}
