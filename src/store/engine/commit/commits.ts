/**
 * Group commit. Units that arrive in the same turn share one transaction and one fsync; no unit is answered before it is on disk.
 * A database that cannot be written refuses every unit with the reason, and is tried again with the next unit.
 *
 * When many units wait and the database can write ahead, units are decided here without the lock and written meanwhile. Units that
 * arrive in the meantime are decided against the results of the batch being written, and are handed over as soon as that batch is on
 * disk; if it fails to get there, both are decided again.
 */
import { Fault } from '../../../model/faults.ts';
import type { Clock, Committed, Unit } from '../../../ports/index.ts';
import type { Ahead, Database } from '../database.ts';
import type { StoredLog } from '../packing/stored-log.ts';
import { andThen, pauseMs, type Wait } from '../wait.ts';
import type { Writer } from '../writer.ts';
import type { Batch, Batches } from './batch.ts';
import { createMemory } from './cache-lifetime.ts';
import { NOT_LOADED } from './remote-lookups.ts';

export interface Commits {
  commit(unit: Unit): Promise<Committed>;
  /** Transactions that reached the disk; tells how many units share one. */
  count(): number;
  /** Those of them that were decided without the lock. */
  countElsewhere(): number;
  /** Call before using cached rows outside a commit: drops them when another process has written. */
  check(): void;
  /** The database changed in a way the caches cannot know of. */
  forget(): void;
  /** Writes the waiting units and refuses later ones. */
  close(): Promise<void>;
}
export interface CommitsDeps {
  readonly database: Database;
  readonly log: Pick<StoredLog, 'endTime'>;
  readonly batches: Batches;
  readonly clock: Clock;
  readonly writer: Writer;
  readonly lockTimeoutMs: number;
  /** Called with every batch that reached the disk, before its units are answered. */
  written(batch: Batch): void;
}

interface Job {
  readonly unit: Unit;
  readonly resolve: (committed: Committed) => void;
  readonly reject: (reason: unknown) => void;
  answer: Committed | undefined;
  refusal: { readonly reason: unknown } | undefined;
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

/** A batch ends at whichever limit comes first, so that the event loop is not blocked. */
const MOST_UNITS = 512;
const MOST_MS = 8;
/** A batch that is written ahead is smaller: with every waiting unit in it, there would be none to decide meanwhile. */
const MOST_ELSEWHERE = 64;
/** Without the lock most batches would be decided in vain while others write; after so many with it, they are tried again. */
const CROWDED = 16;
/** With more waiting units than this the disk is not keeping up, and refusing is better than growing without bound. */
const MOST_WAITING = 100_000;

export function createCommits(deps: CommitsDeps): Commits {
  const { database, log, batches, clock, writer, lockTimeoutMs } = deps;
  const { ahead, lookups } = database;
  let waiting: Job[] = [];
  let scheduled = false;
  /** A batch is being decided or written with the lock, or decided to be written ahead. */
  let working = false;
  /** Rows for units that were put back are being loaded. */
  let loading = false;
  /** The batch that is being written ahead. */
  let away: Decided | undefined;
  /** The batch decided on top of `away`, waiting for it to reach the disk. */
  let next: Decided | undefined;
  let closed = false;
  /** Batches that are still to be decided with the lock, because another writer was seen. */
  let crowded = 0;
  let busySince: number | undefined;
  let commits = 0;
  let elsewhere = 0;
  const idle: (() => void)[] = [];

  const memory = createMemory({
    database,
    restart: batches.restart,
    timeAt: ({ position, floorAt }) => log.endTime(position, floorAt),
    forget() {
      batches.forget();
      takeBackNext();
    },
  });

  function schedule(delayMs = 0): void {
    scheduled = true;
    if (delayMs > 0) setTimeout(flush, delayMs);
    else setImmediate(flush);
  }

  function flush(): void {
    scheduled = false;
    // Both go on by themselves.
    if (working || loading) return;
    if (away) goAhead(away);
    else if (crowded === 0 && ahead?.takes(waiting.length)) void handOver(take(MOST_ELSEWHERE), ahead);
    else void write(take(MOST_UNITS));
  }

  function take(most: number): Job[] {
    const jobs = waiting.length <= most ? waiting : waiting.slice(0, most);
    waiting = jobs === waiting ? [] : waiting.slice(most);
    return jobs;
  }

  function goOn(left: Job[]): void {
    if (left.length > 0) waiting = left.concat(waiting);
    if (waiting.length > 0) {
      if (!scheduled) schedule();
    } else if (!away && !working && !loading && !scheduled) {
      for (const done of idle.splice(0)) done();
    }
  }

  /** Writes and answers; the jobs there was no time for, and those in `behind`, wait for the next batch. */
  async function write(jobs: Job[], behind: readonly Job[] = []): Promise<void> {
    working = true;
    const left = jobs.length > 0 ? await attemptWrite(jobs) : [];
    working = false;
    goOn(left.concat(behind));
  }

  /** Returns the jobs there was no time for. */
  async function attemptWrite(jobs: Job[]): Promise<Job[]> {
    let reached = 0;
    let batch: Batch | undefined;
    try {
      const committed = database.commit(() => {
        busySince = undefined;
        return andThen(memory.refresh(), (tip) => {
          const begun = batches.begin(tip, clock.now());
          batch = begun;
          return andThen(decide(begun, jobs), (count) => {
            reached = count;
            return begun.empty ? undefined : begun.writeSet();
          });
        });
      });
      // Without a microtask in between, in which a reader would find the database ahead of the caches.
      if (committed instanceof Promise) await committed;
    } catch (thrown) {
      // Without the lock nothing was read, so the caches are what they were.
      const locked = database.errors.isBusy(thrown);
      if (!locked || batch) memory.forget();
      if (locked && reached === 0 && retryLater()) return jobs;
      const fault = database.errors.environment(thrown);
      if (fault) {
        writer.failed(fault);
        for (const job of jobs) job.reject(fault);
        return [];
      }
      if (jobs.length === 1) {
        jobs[0]!.reject(new Fault('internal', 'writing to the log failed', { cause: thrown }));
        return [];
      }
      // One of the units cannot be written. Each is written alone, so that only that one fails.
      const left: Job[] = [];
      for (const job of jobs) left.push(...(await attemptWrite([job])));
      return left;
    }
    if (crowded > 0) crowded -= 1;
    finish(batch!);
    settle(jobs.slice(0, reached));
    return jobs.slice(reached);
  }

  /**
   * Decides without the lock and hands the batch over. Without the lock the caches may be out of date: then nothing is written, and
   * all units are decided again with the lock held.
   */
  async function handOver(jobs: Job[], to: Ahead): Promise<void> {
    working = true;
    try {
      // Before anything is read: what another writer commits from here on makes the batch void.
      const version = database.version();
      const after = to.generation();
      const sent = andThen(memory.refresh(), (tip) => {
        const batch = batches.begin(tip, clock.now());
        return andThen(decide(batch, jobs), (reached) => {
          if (memory.version() !== version) return false;
          if (!send({ batch, jobs: jobs.slice(0, reached), after, version }, to)) return false;
          working = false;
          goOn(jobs.slice(reached));
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

  /** Units that arrive while a batch is being written are decided against that batch's results. */
  function goAhead(on: Decided): void {
    // Another writer has committed. The batch being written will be refused or is already superseded: wait for its reply.
    if (waiting.length === 0 || database.version() !== on.version) return;
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
    const jobs = take(MOST_ELSEWHERE - next.jobs.length);
    const reached = decideLoaded(next.batch, jobs, 0);
    for (const job of jobs.slice(0, reached)) next.jobs.push(job);
    waiting = jobs.slice(reached).concat(waiting);
    if (lookups.remote?.wanting) void load();
    else if (reached > 0 && waiting.length > 0 && !scheduled) schedule();
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
        sawAnotherWriter();
        void write(jobs, following?.jobs);
        return;
      }
      // Deciding them again could do twice what is done already.
      writer.failed(written);
      for (const job of jobs) job.reject(written);
      goOn(following?.jobs ?? []);
      return;
    }
    elsewhere++;
    reachedDisk(batch);
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

  /** The state these units were decided against is gone: they are decided again, before units that arrived later. */
  function takeBackNext(): void {
    if (!next) return;
    waiting = next.jobs.concat(waiting);
    next = undefined;
  }

  /** Runs as many jobs as there is time for, and loads what they look up; returns how many. */
  function decide(batch: Batch, jobs: readonly Job[], from = 0): Wait<number> {
    const reached = decideLoaded(batch, jobs, from);
    const { remote } = lookups;
    return remote?.wanting ? remote.load().then(() => decide(batch, jobs, reached)) : reached;
  }

  /** Stops at the first job whose lookups are not loaded, and finds out what the jobs behind it will look up. */
  function decideLoaded(batch: Batch, jobs: readonly Job[], from: number): number {
    const started = performance.now();
    let reached = from;
    memory.holdsForThisTurn();
    for (; reached < jobs.length; reached++) {
      if (reached % 16 === 15 && performance.now() - started > MOST_MS) break;
      if (!attempt(batch, jobs[reached]!)) break;
    }
    if (lookups.remote?.wanting) for (let at = reached + 1; at < jobs.length; at++) batch.scout(jobs[at]!.unit);
    return reached;
  }

  function attempt(batch: Batch, job: Job): boolean {
    try {
      job.answer = batch.run(job.unit);
      job.refusal = undefined;
    } catch (reason) {
      if (reason === NOT_LOADED) return false;
      job.refusal = { reason };
    }
    return true;
  }

  function settle(jobs: readonly Job[]): void {
    for (const job of jobs) {
      if (job.refusal) job.reject(job.refusal.reason);
      else job.resolve(job.answer!);
    }
  }

  function finish(batch: Batch): void {
    if (!batch.empty) {
      reachedDisk(batch);
      return;
    }
    writer.succeeded();
    batch.release();
  }

  function reachedDisk(batch: Batch): void {
    commits++;
    memory.grew(batch.tip);
    batch.learn();
    writer.succeeded();
    if (batch.events.length > 0) deps.written(batch);
    batch.release();
  }

  /** Over a network, decisions with the lock would keep it for as long as their rows travel. */
  function sawAnotherWriter(): void {
    if (!lookups.remote) crowded = CROWDED;
  }

  /** Another process holds the lock: retry shortly, up to the timeout, without blocking this process. */
  function retryLater(): boolean {
    sawAnotherWriter();
    busySince ??= performance.now();
    if (performance.now() - busySince > lockTimeoutMs) {
      busySince = undefined;
      return false;
    }
    if (!scheduled) schedule(pauseMs());
    return true;
  }

  return {
    commit(unit) {
      return new Promise((resolve, reject) => {
        if (closed) return reject(new Fault('unavailable', 'the store is closed'));
        if (waiting.length >= MOST_WAITING) {
          return reject(new Fault('unavailable', `${waiting.length} writes are waiting for the disk`));
        }
        waiting.push({ unit, resolve, reject, answer: undefined, refusal: undefined });
        if (!scheduled) schedule();
      });
    },
    count: () => commits,
    countElsewhere: () => elsewhere,
    check: memory.check,
    forget: memory.forget,
    async close() {
      closed = true;
      if (scheduled || away || working || loading) await new Promise<void>((done) => idle.push(done));
      await ahead?.close();
    },
  };
}
