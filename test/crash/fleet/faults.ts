/** What befalls a fleet and its database. Each fault does its harm, and then things are as they were: three replicas, a database, a standby. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fleet, Replica } from '../../support/fleet/fleet.ts';
import type { Cluster } from '../../support/postgres/cluster.ts';
import type { Proxy as DatabaseProxy } from '../../support/postgres/proxy.ts';
import type { Chance } from '../random.ts';

/** How often each is picked. A database that fails over, or restarts, takes longest. */
const WEIGHTS = {
  /** A replica is killed, and replaced. */
  kill: 26,
  /** A replica stands still, most times for longer than its leases last, and wakes up. */
  pause: 16,
  /** A replica's connections to the database are reset. */
  reset: 12,
  /** Nothing passes between a replica and the database for a while. */
  hold: 12,
  /** The answer to a commit is lost. */
  'lost answer': 12,
  /** A commit reaches the database after its replica was cut off. */
  'late commit': 8,
  /** The database is restarted in order. */
  restart: 5,
  /** The database is restarted as if power had failed. */
  crash: 5,
  /** The database dies, and its standby takes its place. */
  'fail over': 4,
};
export type FaultKind = keyof typeof WEIGHTS;
export const FAULTS = Object.keys(WEIGHTS) as FaultKind[];
export const pickFault = (chance: Chance): FaultKind => chance.weighted(WEIGHTS);

export const LEASE_MS = 1_500;
/** For commits that do not come. */
const LONGEST_WAIT_MS = 3_000;

export interface Ground {
  readonly fleet: Fleet;
  readonly cluster: Cluster;
  /** Between the replica of a slot and the database. */
  readonly proxies: readonly DatabaseProxy[];
  readonly chance: Chance;
  /** Called before a replica is killed. */
  doomed(replica: Replica): void;
}

export async function befall(kind: FaultKind, { fleet, cluster, proxies, chance, doomed }: Ground): Promise<void> {
  const victim = chance.pick(fleet.replicas);
  const proxy = proxies[victim.slot]!;
  const written = (bytes: Buffer): boolean => bytes.includes('write_1') || bytes.includes('COMMIT\0');
  switch (kind) {
    case 'kill': {
      doomed(victim);
      victim.child.kill('SIGKILL');
      await victim.ended;
      // A balancer notices after a while.
      await sleep(chance.pick([0, 50, 300]));
      fleet.forget(victim);
      await fleet.start();
      return;
    }
    case 'pause': {
      victim.child.kill('SIGSTOP');
      await sleep(chance.happens(0.7) ? LEASE_MS + chance.between(300, 1_500) : chance.between(20, LEASE_MS / 2));
      victim.child.kill('SIGCONT');
      return;
    }
    case 'reset': {
      for (const each of chance.happens(0.3) ? proxies : [proxy]) each.reset();
      return;
    }
    case 'hold': {
      proxy.hold();
      await sleep(chance.happens(0.5) ? LEASE_MS + chance.between(300, 1_500) : chance.between(20, LEASE_MS / 2));
      proxy.resume();
      return;
    }
    case 'lost answer': {
      await Promise.race([proxy.cutBefore(written), sleep(LONGEST_WAIT_MS)]);
      return;
    }
    case 'late commit': {
      const late = proxy.delay((bytes) => bytes.includes('write_1'));
      await Promise.race([late.cut, sleep(LONGEST_WAIT_MS)]);
      await sleep(chance.between(0, 400));
      late.release();
      return;
    }
    case 'restart':
    case 'crash': {
      await cluster.stop(kind === 'restart' ? 'fast' : 'immediate');
      await sleep(chance.pick([0, 200, 1_000]));
      await cluster.start();
      return;
    }
    case 'fail over': {
      await cluster.failOver();
      // As an address that moves to the other machine.
      for (const each of proxies) each.reset();
      await cluster.addStandby();
      return;
    }
  }
}
