/**
 * Which replica holds a thing whose name its client chose, so that the name cannot say it: a row for each, with the replica and an epoch.
 * The first replica that asks gets it and keeps it while it lives; once it is gone, the next one that asks takes it over and counts the
 * epoch up. A row is written under the lease of the replica, so a process that was paused until others took its place writes none.
 */
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Fault } from '../model/faults.ts';
import type { Lease, Row, Store } from '../ports/index.ts';
import { type Commit, removed, written } from './rows.ts';

export interface Holds {
  /** The id of the replica that holds this; ours, when it was free. */
  hold(key: string): Promise<string>;
  /** The thing is over. Nothing happens where another replica holds it. */
  letGo(key: string): Promise<void>;
}

interface HoldRow extends Row {
  readonly object: 'hold';
  readonly replica: string;
  readonly epoch: number;
}

export interface HoldsDeps {
  readonly store: Pick<Store, 'get'>;
  readonly commit: Commit;
  readonly id: string;
  /** Of this replica, as it is now. */
  readonly lease: () => Lease | undefined;
}

/** Names that are known to be ours; a forgotten one costs a read. */
const MOST_KNOWN = 50_000;
const LONGEST_WAIT_MS = 1_000;
const PAUSE_MS = 50;

export function createHolds({ store, commit, id, lease }: HoldsDeps): Holds {
  /** The lease under which each was taken. */
  const ours = new Map<string, Lease>();

  /** A lease that was lost is taken again as soon as the store can be reached. */
  async function mine(): Promise<Lease> {
    for (const until = performance.now() + LONGEST_WAIT_MS; ; ) {
      const own = lease();
      if (own) return own;
      if (performance.now() > until)
        throw new Fault('conflict', `the lease of ${id} was lost, and it did not get it again`);
      await pause(PAUSE_MS);
    }
  }

  async function take(key: string): Promise<string> {
    const row = { object: 'hold' as const, id: rowIdOf(key) };
    for (;;) {
      const before = await store.get<HoldRow>('hold', row.id);
      const own = await mine();
      const holder = { object: 'replica', id: before?.replica ?? id };
      let found: string | undefined = id;
      await commit({
        reads: [row, holder],
        lease: own,
        decide(at) {
          const now = at.get<HoldRow>('hold', row.id);
          // Another process was between the look and the commit.
          if (now?.replica !== before?.replica) {
            found = undefined;
            return { events: [] };
          }
          found = now && at.get('replica', now.replica) ? now.replica : id;
          if (now && found === now.replica) return { events: [] };
          const held = { ...row, replica: id, epoch: (now?.epoch ?? 0) + 1 };
          return { events: [written<HoldRow>(held, at.now, now)] };
        },
      });
      if (found !== undefined) return found;
    }
  }

  return {
    async hold(key) {
      // What was ours under a lost lease may have been taken by another.
      const under = lease();
      if (under && ours.get(key) === under) return id;
      const found = await take(key);
      if (found === id) {
        if (ours.size >= MOST_KNOWN) ours.delete(ours.keys().next().value as string);
        if (under) ours.set(key, under);
      }
      return found;
    },
    async letGo(key) {
      ours.delete(key);
      const row = { object: 'hold', id: rowIdOf(key) };
      await commit({
        reads: [row],
        lease: await mine(),
        decide: (at) => ({ events: at.get<HoldRow>('hold', row.id)?.replica === id ? [removed(row)] : [] }),
      });
    },
  };
}

/** Names may be long, and may be secrets. */
function rowIdOf(key: string): string {
  return `hold_${createHash('sha256').update(key).digest('hex').slice(0, 40)}`;
}
