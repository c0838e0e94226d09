/**
 * Batches that are decided without the write lock and written meanwhile. Units that arrive while one is written are decided against its
 * results, and are handed over as soon as it is on disk; if it fails to get there, both are decided again.
 */
import type { Fault } from '../../../model/faults.ts';
import type { Clock } from '../../../ports/index.ts';
import type { Ahead, Database } from '../database.ts';
import { andThen } from '../wait.ts';
import type { Writer } from '../writer.ts';
import type { Batch, Batches } from './batch.ts';
import type { CacheLifetime } from './cache-lifetime.ts';
import { type Decider, type Job, type Queue, settle } from './units.ts';

export interface WriteAhead {
  /** A batch is being written. */
  readonly away: boolean;
  /** Rows for units that were put back are being loaded. */
  readonly loading: boolean;
  /** Transactions that reached the disk this way. */
  readonly count: number;
  /**
   * Decides without the lock and hands the batch over. Without the lock the caches may be out of date: then nothing is written, and
   * all units are decided again with the lock held. `over` is called when it is handed over, with the units there was no time for.
   */
  handOver(to: Ahead, over: (left: Job[]) => void): Promise<void>;
  /** Decides units that arrived while a batch is being written against that batch's results. */
  goAhead(): void;
  /** The state these units were decided against is gone: they are decided again, before units that arrived later. */
  takeBackNext(): void;
}

export interface WriteAheadDeps {
  readonly database: Database;
  readonly batches: Batches;
  readonly clock: Clock;
  readonly writer: Writer;
  readonly memory: CacheLifetime;
  readonly decider: Decider;
  readonly queue: Queue;
  /** Writes with the lock held and answers; the jobs in `behind` wait for the next batch. */
  write(jobs: Job[], behind?: Job[]): Promise<void>;
  /** What waits goes on, with these before it. */
  goOn(left: Job[]): void;
  reachedDisk(batch: Batch): void;
  sawAnotherWriter(): void;
  /** False: it is another's turn to write, once what is under way is written. */
  mayGoOn(): boolean;
}

/** Units that were decided without the write lock. */
interface Decided {
  readonly batch: Batch;
  readonly jobs: Job[];
  /** Valid only if no other writer has committed since this generation of the database, ... */
  readonly after: number;
  /** ... which corresponds to this version. */
  readonly version: number | undefined;
}

/** A batch that is written ahead is smaller: with every waiting unit in it, there would be none to decide meanwhile. */
const MOST_UNITS = 64;

export function createWriteAhead(deps: WriteAheadDeps): WriteAhead {
  const { database, batches, clock, writer, memory, decider, queue, write, goOn } = deps;
  const { lookups } = database;
  let loading = false;
  /** The batch that is being written. */
  let away: Decided | undefined;
  /** The batch decided on top of `away`, waiting for it to reach the disk. */
  let next: Decided | undefined;
  let count = 0;

  async function handOver(to: Ahead, over: (left: Job[]) => void): Promise<void> {
    const jobs = queue.take(MOST_UNITS);
    try {
      // Before anything is read: what another writer commits from here on makes the batch void.
      const version = database.version();
      const after = to.generation();
      const sent = andThen(memory.refresh(), (tip) => {
        const batch = batches.begin(tip, clock.now());
        return andThen(decider.decide(batch, jobs), (reached) => {
          if (memory.version() !== version) return false;
          if (!send({ batch, jobs: jobs.slice(0, reached), after, version }, to)) return false;
          over(jobs.slice(reached));
          return true;
        });
      });
      if (sent instanceof Promise ? await sent : sent) return;
    } catch {
      // Whatever failed, writing with the lock held meets it again and reports it.
    }
    memory.forget();
    await write(jobs);
  }

  function goAhead(on: Decided): void {
    // Another writer has committed. The batch being written will be refused or is already superseded: wait for its reply.
    if (queue.length === 0 || database.version() !== on.version || !deps.mayGoOn()) return;
    try {
      const now = clock.now();
      next ??= {
        batch: batches.begin(on.batch.tip, now, on.batch),
        jobs: [],
        after: on.after + 1,
        version: on.version,
      };
      next.batch.later(now);
    } catch {
      return;
    }
    const jobs = queue.take(MOST_UNITS - next.jobs.length);
    const reached = decider.decideLoaded(next.batch, jobs, 0);
    for (const job of jobs.slice(0, reached)) next.jobs.push(job);
    queue.putBack(jobs.slice(reached));
    if (lookups.remote?.wanting) void load();
    else if (reached > 0 && queue.length > 0) queue.schedule();
  }

  async function load(): Promise<void> {
    loading = true;
    // A failure shows again when the units are decided with the lock held.
    await lookups.remote?.load().catch(() => undefined);
    loading = false;
    goOn([]);
  }

  /** Returns true when the batch was handed over, or answered because there is nothing to write. */
  function send(decided: Decided, to: Ahead): boolean {
    const { batch, jobs, after, version } = decided;
    if (batch.empty) {
      batch.release();
      // The units were decided without the lock, so the answer must still be true now. Over a network only the lock can tell.
      if (lookups.remote || database.version() !== version) return false;
      settle(jobs);
      return true;
    }
    const written = to.write(batch.writeSet(), after);
    if (!written) return false;
    away = decided;
    written.then(
      (done) => cameBack(decided, done, to),
      (thrown) => cameBack(decided, database.errors.environment(thrown) ?? false, to),
    );
    return true;
  }

  function cameBack({ batch, jobs, version }: Decided, written: boolean | Fault, to: Ahead): void {
    const following = next;
    away = undefined;
    next = undefined;
    if (written !== true) {
      memory.forget();
      if (written === false) {
        deps.sawAnotherWriter();
        void write(jobs, following?.jobs);
        return;
      }
      // Deciding them again could do twice what is done already.
      writer.failed(written);
      for (const job of jobs) job.reject(written);
      goOn(following?.jobs ?? []);
      return;
    }
    count++;
    deps.reachedDisk(batch);
    following?.batch.standAlone();
    settle(jobs);
    // If another writer has committed since, the caches are out of date.
    const holds = memory.version() === version && database.version() === version;
    const onItsWay = following === undefined || (holds && sent(following, to));
    if (!holds || !onItsWay) memory.forget();
    if (onItsWay) goOn([]);
    else void write(following.jobs);
  }

  function sent(decided: Decided, to: Ahead): boolean {
    try {
      return send(decided, to);
    } catch {
      // As above: writing with the lock held meets the failure again.
      return false;
    }
  }

  return {
    get away() {
      return away !== undefined;
    },
    get loading() {
      return loading;
    },
    get count() {
      return count;
    },
    handOver,
    goAhead() {
      if (away) goAhead(away);
    },
    takeBackNext() {
      if (!next) return;
      queue.putBack(next.jobs);
      next = undefined;
    },
  };
}
