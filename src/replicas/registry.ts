/**
 * The replicas on one store: a row for each with the address of its internal link, and a lease on its id that ends with its process.
 * A replica whose lease can be taken is gone, and so is everything it held; the first to notice removes its row.
 */
import { rm } from 'node:fs/promises';
import { Fault } from '../model/faults.ts';
import type { Closable, Lease, Logger, Row, Store } from '../ports/index.ts';
import { type Commit, removed, written } from './rows.ts';

/** One process that serves the store. */
export interface ReplicaRow extends Row {
  readonly object: 'replica';
  /** `unix:<path>` or `tcp:<host>:<port>`. */
  readonly address: string;
}

export interface Registry extends Closable {
  readonly id: string;
  readonly lease: Lease;
  /** The row of another replica, alive or not; undefined when there is none of this id. */
  find(id: string): Promise<ReplicaRow | undefined>;
  /** True once its process is gone. Its row is removed by then. */
  isGone(id: string): Promise<boolean>;
}

export interface RegistryDeps {
  readonly store: Pick<Store, 'get' | 'list' | 'lease'>;
  readonly commit: Commit;
  readonly id: string;
  /** Of the link, which listens already. */
  readonly address: string;
  readonly log: Logger;
}

/** More than any installation has; the rest is removed by the next start. */
const MOST_SWEPT = 1_000;

export async function openRegistry({ store, commit, id, address, log }: RegistryDeps): Promise<Registry> {
  /** Rows of replicas do not change: one that was read is good for as long as the replica lives. */
  const known = new Map<string, ReplicaRow>();
  const lease = await store.lease(leaseOf(id));
  if (!lease) throw new Fault('conflict', `another process holds the lease of ${id}`);
  await commit({ decide: ({ now }) => ({ events: [written<ReplicaRow>({ id, object: 'replica', address }, now)] }) });

  async function remove(other: string): Promise<void> {
    const address = (await store.get<ReplicaRow>('replica', other))?.address;
    known.delete(other);
    // A process that was killed has left its socket.
    if (address?.startsWith('unix:') && other !== id) await rm(address.slice('unix:'.length), { force: true });
    const row = { object: 'replica', id: other };
    await commit({ reads: [row], decide: (at) => ({ events: at.get('replica', other) ? [removed(row)] : [] }) });
  }

  async function isGone(other: string): Promise<boolean> {
    if (other === id) return false;
    const free = await store.lease(leaseOf(other));
    if (!free) return false;
    try {
      await remove(other);
    } finally {
      await free.close();
    }
    return true;
  }

  /** Rows of processes that did not end in order. */
  async function sweep(): Promise<void> {
    for (const row of await store.list<ReplicaRow>({ object: 'replica', limit: MOST_SWEPT })) await isGone(row.id);
  }
  const swept = sweep().catch((cause) => log.warn({ err: cause }, 'rows of replicas that are gone were not removed'));

  return {
    id,
    lease,
    isGone,
    async find(other) {
      const row = known.get(other) ?? (await store.get<ReplicaRow>('replica', other));
      if (row) known.set(other, row);
      return row;
    },
    async close() {
      await swept;
      try {
        await remove(id);
      } finally {
        await lease.close();
      }
    },
  };
}

function leaseOf(id: string): string {
  return `replica:${id}`;
}
