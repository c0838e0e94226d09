/**
 * Group commit. Units that arrive together share one transaction and one fsync; nobody is answered before it is on
 * disk. A file that cannot be written refuses everyone with the reason and is tried again with the next unit.
 *
 * A crowd is decided here and written elsewhere. Meanwhile the next batch is filled with who comes, decided on top of the one
 * that is on its way, and handed over as soon as that one is on disk; should it not get there, both are decided again.
 */
import { Fault } from '../../model/faults.ts';
import type { Clock, Committed, Unit } from '../../ports.ts';
import type { Batch, Batches } from './batch.ts';
import type { Connection } from './connection.ts';
import type { Log } from './log.ts';
import { createMemory } from './memory.ts';
import { pauseMs } from './patience.ts';
import type { Scribe } from './scribe.ts';
import { createSheetWriter } from './sheet.ts';
import { environmentFault, isBusy } from './trouble.ts';
import type { Writer } from './writer.ts';

export interface Commits {
  commit(unit: Unit): Promise<Committed>;
  /** Transactions that reached the disk, for whoever wants to know how many units share one. */
  count(): number;
  /** Those of them that the scribe wrote. */
  countElsewhere(): number;
  /** Call before using what is remembered outside a commit: forgets it when another process has written. */
  check(): void;
  /** The file changed in a way the caches cannot know of. */
  forget(): void;
  /** Write what is waiting, refuse what comes after. */
  close(): Promise<void>;
}
export interface CommitsDeps {
  readonly connection: Connection;
  readonly log: Log;
  readonly batches: Batches;
  readonly clock: Clock;
  readonly writer: Writer;
  /** Where many units may be written. */
  readonly scribe?: Scribe;
  /** Called with every batch that reached the disk, before anyone is answered. */
  written(batch: Batch): void;
}

interface Job {
  readonly unit: Unit;
  readonly resolve: (committed: Committed) => void;
  readonly reject: (reason: unknown) => void;
  answer: Committed | undefined;
  refusal: { readonly reason: unknown } | undefined;
}

/** Units that were decided without the lock. */
interface Decided {
  readonly batch: Batch;
  readonly jobs: Job[];
  /** They count only if nobody has written to the file since this generation of it, ... */
  readonly after: number;
  /** ... which is this version to us. */
  readonly version: number | undefined;
}

/** A batch is closed at whichever comes first, so that the event loop breathes. */
const MOST_UNITS = 512;
const MOST_MS = 8;
/** One that is written elsewhere is shorter: with everybody in it there would be nobody to decide for meanwhile. */
const MOST_ELSEWHERE = 64;
/** Beyond this many waiting units the disk is not keeping up and saying so is kinder than growing. */
const MOST_WAITING = 100_000;

export function createCommits(deps: CommitsDeps): Commits {
  const { connection, log, batches, clock, writer, scribe } = deps;
  const writeSheet = createSheetWriter(connection);
  let waiting: Job[] = [];
  let scheduled = false;
  /** Being written on another thread. */
  let away: Decided | undefined;
  /** Decided on top of it, and waiting for it. */
  let next: Decided | undefined;
  let closed = false;
  let busySince: number | undefined;
  let commits = 0;
  let elsewhere = 0;
  const idle: (() => void)[] = [];

  const memory = createMemory({
    connection,
    log,
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
    if (away) {
      goAhead(away);
      return;
    }
    const taker = scribe?.takes(waiting.length) ? scribe : undefined;
    goOn(taker ? handOver(take(MOST_ELSEWHERE), taker) : write(take(MOST_UNITS)));
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
    } else if (!away) {
      for (const done of idle.splice(0)) done();
    }
  }

  /** Writes and settles; returns what was not reached. */
  function write(jobs: Job[]): Job[] {
    if (jobs.length === 0) return [];
    let reached = 0;
    try {
      connection.begin();
      busySince = undefined;
      const batch = batches.begin(memory.refresh(), clock.now());
      reached = decide(batch, jobs);
      finish(batch);
    } catch (thrown) {
      undo();
      if (isBusy(thrown) && reached === 0 && patient()) return jobs;
      const fault = environmentFault(thrown, connection.path);
      if (fault) {
        writer.failed(fault);
        for (const job of jobs) job.reject(fault);
        return [];
      }
      if (jobs.length === 1) {
        jobs[0]!.reject(new Fault('internal', 'writing to the log failed', { cause: thrown }));
        return [];
      }
      // One of them cannot be written. Alone, each answers for itself.
      return jobs.flatMap((job) => write([job]));
    }
    settle(jobs.slice(0, reached));
    return jobs.slice(reached);
  }

  /**
   * Decides here and has it written elsewhere; returns what was not reached. Without the lock what is remembered may be
   * behind: then nothing is written, and all is decided again with the lock held.
   */
  function handOver(jobs: Job[], to: Scribe): Job[] {
    try {
      const batch = batches.begin(memory.refresh(), clock.now());
      const at = { after: connection.generation(), version: memory.version() };
      const reached = decide(batch, jobs);
      if (send({ batch, jobs: jobs.slice(0, reached), ...at }, to)) return jobs.slice(reached);
    } catch {
      // Whatever it is, whoever holds the lock finds out.
    }
    memory.forget();
    return write(jobs);
  }

  /** While a batch is away, whoever comes is decided on top of it: what they find there is what will be on disk. */
  function goAhead(on: Decided): void {
    // Somebody else has written. What is away comes back unwritten or no longer the last word: that is waited for.
    if (waiting.length === 0 || connection.version() !== on.version) return;
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
    const reached = decide(next.batch, jobs);
    for (const job of jobs.slice(0, reached)) next.jobs.push(job);
    waiting = jobs.slice(reached).concat(waiting);
    if (reached > 0 && waiting.length > 0 && !scheduled) schedule();
  }

  /** Says whether what was decided is on its way, or answered where there is nothing to write. */
  function send(decided: Decided, to: Scribe): boolean {
    const { batch, jobs, after, version } = decided;
    if (batch.empty) {
      batch.release();
      // Said without the lock, so it must still be true now.
      if (connection.version() !== version) return false;
      settle(jobs);
      return true;
    }
    const sheet = batch.sheet();
    if (!to.write(sheet, after, (written) => cameBack(decided, written, to))) return false;
    away = decided;
    return true;
  }

  function cameBack({ batch, jobs, version }: Decided, written: boolean, to: Scribe): void {
    const following = next;
    away = undefined;
    next = undefined;
    if (!written) {
      memory.forget();
      goOn(write(jobs).concat(following?.jobs ?? []));
      return;
    }
    elsewhere++;
    reachedDisk(batch);
    following?.batch.standAlone();
    settle(jobs);
    // Others have written since: what we remember was true for a moment.
    const holds = memory.version() === version && connection.version() === version;
    const onItsWay = following === undefined || (holds && sent(following, to));
    if (!holds || !onItsWay) memory.forget();
    goOn(onItsWay ? [] : write(following.jobs));
  }

  function sent(decided: Decided, to: Scribe): boolean {
    try {
      return send(decided, to);
    } catch {
      // As above: found out by whoever holds the lock.
      return false;
    }
  }

  /** What it was decided by is forgotten: they are decided again, before those who came later. */
  function takeBackNext(): void {
    if (!next) return;
    waiting = next.jobs.concat(waiting);
    next = undefined;
  }

  /** Runs as many as there is time for; returns how many. */
  function decide(batch: Batch, jobs: readonly Job[]): number {
    const started = performance.now();
    let reached = 0;
    memory.holdsForThisTurn();
    for (const job of jobs) {
      attempt(batch, job);
      if (++reached % 16 === 0 && performance.now() - started > MOST_MS) break;
    }
    return reached;
  }

  function attempt(batch: Batch, job: Job): void {
    try {
      job.answer = batch.run(job.unit);
      job.refusal = undefined;
    } catch (reason) {
      job.refusal = { reason };
    }
  }

  function settle(jobs: readonly Job[]): void {
    for (const job of jobs) {
      if (job.refusal) job.reject(job.refusal.reason);
      else job.resolve(job.answer!);
    }
  }

  function finish(batch: Batch): void {
    if (batch.empty) {
      connection.rollback();
      writer.succeeded();
      batch.release();
    } else {
      writeSheet(batch.sheet());
      connection.commit();
      reachedDisk(batch);
    }
  }

  function reachedDisk(batch: Batch): void {
    commits++;
    memory.grew(batch.tip);
    batch.learn();
    writer.succeeded();
    if (batch.events.length > 0) deps.written(batch);
    batch.release();
  }

  function undo(): void {
    writer.undo();
    memory.forget();
  }

  /** Another process holds the lock: come back shortly, for a while, without blocking this one. */
  function patient(): boolean {
    busySince ??= performance.now();
    if (performance.now() - busySince > writer.patienceMs) {
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
      if (scheduled || away) await new Promise<void>((done) => idle.push(done));
      await scribe?.close();
    },
  };
}
