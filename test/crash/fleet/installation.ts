/**
 * One installation: three gateways on a database of their own, behind a balancer that gives each request to another one, clients at work
 * without a pause, and one fault after the other. Now and then all gateways are killed and the log is looked at; in the end the work is
 * left to finish, and nothing may be left over.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { type Fleet, openFleet, type Replica } from '../../support/fleet/fleet.ts';
import type { Cluster } from '../../support/postgres/cluster.ts';
import { startProxy } from '../../support/postgres/proxy.ts';
import { Broken } from '../broken.ts';
import { openAsks } from '../clients/answers.ts';
import { createClient } from '../clients/client.ts';
import { type Frame, httpDoor } from '../clients/door.ts';
import { createLedger } from '../clients/ledger.ts';
import { CONFIG } from '../clients/words.ts';
import { makeDatabase } from '../database.ts';
import { readEvidence } from '../evidence.ts';
import { comes, type Moment, pickMoment } from '../moments.ts';
import { stillOpen } from '../promises/asks.ts';
import { type Counts, everythingEnded, keepsPromises } from '../promises.ts';
import type { Chance } from '../random.ts';
import { comeToRest } from '../rest.ts';
import { befall, type FaultKind, LEASE_MS } from './faults.ts';
import { patientDoor } from './patient-door.ts';

export interface InstallationDeps {
  readonly cluster: Cluster;
  /** The database, which is made and dropped here. */
  readonly name: string;
  readonly chance: Chance;
  readonly clients: number;
  /** In this order. After so many, and at the end, the log is looked at. */
  readonly faults: readonly FaultKind[];
  readonly faultsPerLook: number;
  say(text: string): void;
}
export interface InstallationReport extends Counts {
  readonly faults: readonly FaultKind[];
  readonly looks: number;
  /** Questions found open again after all gateways were killed. */
  readonly keptOpen: number;
  readonly again: { readonly requests: number; readonly streams: number };
}

const WORKSPACE = 'workspace_default';
const REPLICAS = 3;
/** How long a client may take to finish what it is doing. */
const LONGEST_REST_MS = 90_000;

export async function liveThroughFaults(deps: InstallationDeps): Promise<InstallationReport> {
  const { cluster, name, chance, clients: many, faults, faultsPerLook, say } = deps;
  const database = await makeDatabase(cluster, name);
  const proxies = await Promise.all(Array.from({ length: REPLICAS }, () => startProxy(cluster.port)));
  const fleet: Fleet = await openFleet({
    count: REPLICAS,
    env: database.env,
    config: (_, slot) => ({
      ...parse(CONFIG),
      store: { ...database.section(proxies[slot]!.port), lease_timeout: `${LEASE_MS}ms`, wait: '2s' },
    }),
  });
  const doomed = new Set<Replica>();
  /** What replicas that are gone had to say. */
  const said: string[] = [];
  try {
    return await live();
  } catch (broken) {
    say([...said, ...fleet.replicas.map((each) => each.errors())].join('\n').slice(-8_000));
    throw broken;
  } finally {
    for (const { child } of fleet.replicas) child.kill('SIGCONT');
    await killAll();
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await fleet.close();
    await database.drop().catch(() => undefined);
  }

  async function killAll(): Promise<void> {
    for (const replica of [...fleet.replicas]) {
      doomed.add(replica);
      replica.child.kill('SIGKILL');
      await replica.ended;
      said.push(wholeLines(replica.errors()));
      fleet.forget(replica);
    }
  }

  async function live(): Promise<InstallationReport> {
    const worker = await fleet.key('worker', 'person', ['*']);
    const approver = await fleet.key('approver', 'person', ['*']);
    const door = patientDoor(httpDoor(fleet.balancer.url, worker, approver));
    const ledger = createLedger();
    let replied = () => {};
    const clients = Array.from({ length: many }, (_, at) =>
      createClient({
        name: `c${at}`,
        ledger,
        chance: chance.fork(`client ${at}`),
        workspace: WORKSPACE,
        replied: () => replied(),
      }),
    );
    const watched = ledger.listen({
      path: `/v1/events/stream?workspace_id=${WORKSPACE}`,
      of: { member: 'workspace_id', id: WORKSPACE },
      fromNow: true,
    });
    let open: ReturnType<typeof stillOpen> = [];
    let counts: Counts | undefined;
    let keptOpen = 0;
    let looks = 0;

    for (let done = 0; done < faults.length; ) {
      while (fleet.replicas.length < REPLICAS) await fleet.start();
      await areOpen();
      const some = faults.slice(done, done + faultsPerLook);
      await oneStretch(some, done);
      done += some.length;
      await killAll();
      await look();
    }
    while (fleet.replicas.length < REPLICAS) await fleet.start();
    await comeToRest(door, { ledger, clients, chance: chance.fork('last answers') });
    await killAll();
    await look(true);
    if (!counts) throw new Broken('the log is there', 'nothing was ever written');
    return { ...counts, faults, looks, keptOpen, again: door.again };

    async function oneStretch(some: readonly FaultKind[], before: number): Promise<void> {
      const stop = new AbortController();
      const over = new AbortController();
      const received = new Map<string, () => void>();
      const signs = { received, journal: fleet.journal, onReply: (tell: () => void) => (replied = tell) };
      const hear = (frame: Frame) => {
        if (frame.event === 'error') throw new Broken('a stream goes on', 'the watcher was broken off', frame);
        watched.frames.push(frame);
        received.get(frame.event)?.();
      };
      const watching = door.follow(watched.path, watched.frames.at(-1)?.id, hear, over.signal);
      const working = Promise.all(clients.map((client) => client.live(door, stop.signal)));
      /** Fails as soon as one of them does. */
      const living = Promise.all([watching, working]);
      try {
        for (const [at, kind] of some.entries()) {
          await Promise.race([comes(momentOf(chance), signs, over.signal), living]);
          const began = performance.now();
          const victims = [...fleet.replicas];
          await Promise.race([
            befall(kind, { fleet, cluster, proxies, chance, doomed: (one) => doomed.add(one) }),
            living,
          ]);
          for (const { child, errors, slot } of victims.filter((each) => !doomed.has(each)))
            if (child.exitCode !== null || child.signalCode !== null)
              throw new Broken(
                'it stays up',
                `replica ${slot} ended with ${child.exitCode ?? child.signalCode}: ${errors().slice(-2_000)}`,
              );
          for (const victim of victims.filter((each) => doomed.has(each))) said.push(wholeLines(victim.errors()));
          say(`fault ${before + at + 1} of ${faults.length}, ${kind}, ${Math.round(performance.now() - began)} ms`);
        }
        stop.abort();
        const late = sleep(LONGEST_REST_MS, 'late', { ref: false });
        if ((await Promise.race([working, watching.then(() => working), late])) === 'late')
          throw new Broken('the fleet answers', 'clients were not done in time');
      } finally {
        stop.abort();
        over.abort();
      }
      await living;
    }

    /** What nobody answered is there to be answered. */
    async function areOpen(): Promise<void> {
      const now = new Set((await openAsks(door, ledger)).map(({ id }) => id));
      const soon = new Date(Date.now() + 1_000).toISOString();
      for (const { id, expires_at } of open) {
        if (now.has(id)) keptOpen += 1;
        else if (expires_at > soon) throw new Broken('open questions stay open', `${id} is not open after the restart`);
      }
    }

    async function look(final = false): Promise<void> {
      looks += 1;
      noSurprises(said.splice(0).join('\n'));
      const copy = join(fleet.dir, 'copy');
      const evidence = await readEvidence({
        dataDir: fleet.data,
        journal: fleet.journal,
        copy,
        copyLog: database.copyLog,
      });
      try {
        counts = await keepsPromises(evidence, ledger);
        open = stillOpen(evidence);
        if (final) everythingEnded(evidence, ledger);
      } finally {
        await evidence.close();
      }
      const { events, tasks, receipts, effects, cut, acknowledged } = counts;
      say(
        `looked at: ${events} events, ${tasks} tasks, ${receipts} receipts, ${effects} effects (${cut} cut), ` +
          `${acknowledged} writes acknowledged; asked again ${door.again.requests} times, ${door.again.streams} streams went on`,
      );
    }
  }
}

/** While gateways run: starting ones are hit by chance. */
function momentOf(chance: Chance): Moment {
  for (;;) {
    const moment = pickMoment(chance, undefined);
    if (moment.kind !== 'start' && moment.kind !== 'recovery') return moment;
  }
}

const ERROR = 50;
/** A gateway says that it cannot do without its database, or that others have its work; every other error is a promise it could not keep. */
const EXPECTED =
  /cannot be (written|reached)|is (shutting down or starting up|read-only)|was lost|run by another process|keeps \S+ locked|took longer than/;

function noSurprises(text: string): void {
  for (const line of text.split('\n')) {
    const [, level] = /^\{"level":(\d+)/.exec(line) ?? [];
    if (line === '' || Number(level) < ERROR) continue;
    if (level === undefined || !EXPECTED.test(line)) throw new Broken('the gateway has no trouble of its own', line);
  }
}

/** A process that is killed may be in the middle of a line. */
const wholeLines = (text: string): string => text.slice(0, text.lastIndexOf('\n') + 1);
