/**
 * The replicas on one store: a row for each with the address of its internal link, and a lease on its id that ends with its process.
 * A replica whose lease can be taken is gone, and so is everything it held; the first to notice removes its row.
 */
import { rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { Fault } from '../model/faults.ts';
import { holdName } from '../model/values/held-name.ts';
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
  /** Undefined while it is lost: the store ended it, and this replica has not got it again yet. */
  lease(): Lease | undefined;
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
  /** Others may have removed the row while the lease was lost. */
  async function enter(): Promise<Lease | undefined> {
    const taken = await store.lease(leaseOf(id));
    if (!taken) return undefined;
    const decide: Parameters<Commit>[0]['decide'] = (at) => ({
      events: at.get('replica', id) ? [] : [written<ReplicaRow>({ id, object: 'replica', address }, at.now)],
    });
    try {
      await commit({ reads: [{ object: 'replica', id }], decide });
    } catch (cause) {
      await taken.close();
      throw cause;
    }
    return taken;
  }

  const held = await holdName(enter);
  if (!held.current()) throw new Fault('conflict', `another process holds the lease of ${id}`);

  async function remove(other: string): Promise<void> {
    const address = (await store.get<ReplicaRow>('replica', other))?.address;
    known.delete(other);
    // A process that was killed has left its socket; one that only lost its lease still listens there.
    const socket = other !== id && address?.startsWith('unix:') ? address.slice('unix:'.length) : undefined;
    if (socket && !(await listens(socket))) await rm(socket, { force: true });
    const row = { object: 'replica', id: other };
    await commit({ reads: [row], decide: (at) => ({ events: at.get('replica', other) ? [removed(row)] : [] }) });
  }

  async function isGone(other: string): Promise<boolean> {
    if (other === id || !held.judgesOthers()) return false;
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
    lease: held.current,
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
        await held.close();
      }
    },
  };
}

function listens(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

function leaseOf(id: string): string {
  return `replica:${id}`;
}
