/**
 * Group commit. Units that arrive together share one transaction and one fsync; nobody is answered before it is on
 * disk. A file that cannot be written refuses everyone with the reason and is tried again with the next unit.
 */
import { Fault } from '../../model/faults.ts';
import type { Clock, Committed, Unit } from '../../ports.ts';
import type { Batch, Batches } from './batch.ts';
import type { Connection } from './connection.ts';
import type { Log, Tip } from './log.ts';
import { pauseMs } from './patience.ts';
import type { Scribe } from './scribe.ts';
import { createSheetWriter, type Sheet } from './sheet.ts';
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

/** A batch is closed at whichever comes first, so that the event loop breathes. */
const MOST_UNITS = 512;
const MOST_MS = 8;
/** Beyond this many waiting units the disk is not keeping up and saying so is kinder than growing. */
const MOST_WAITING = 100_000;

export function createCommits(deps: CommitsDeps): Commits {
  const { connection, log, batches, clock, writer, scribe } = deps;
  const writeSheet = createSheetWriter(connection);
  let waiting: Job[] = [];
  let scheduled = false;
  /** A batch is being written on another thread. */
  let away = false;
  let closed = false;
  let busySince: number | undefined;
  let commits = 0;
  let elsewhere = 0;
  let tip: Tip | undefined;
  let version: number | undefined;
  let checked = false;
  const idle: (() => void)[] = [];

  function schedule(delayMs = 0): void {
    scheduled = true;
    if (delayMs > 0) setTimeout(flush, delayMs);
    else setImmediate(flush);
  }

  function flush(): void {
    scheduled = false;
    if (waiting.length === 0 || away) return;
    const taker = scribe?.takes(waiting.length) ? scribe : undefined;
    const jobs = waiting.length <= MOST_UNITS ? waiting : waiting.slice(0, MOST_UNITS);
    waiting = jobs === waiting ? [] : waiting.slice(MOST_UNITS);
    goOn(taker ? handOver(jobs, taker) : write(jobs));
  }

  function goOn(left: Job[]): void {
    if (left.length > 0) waiting = left.concat(waiting);
    // Whoever is away comes back here.
    if (away) return;
    if (waiting.length > 0) {
      if (!scheduled) schedule();
    } else {
      for (const done of idle.splice(0)) done();
    }
  }

  /** Writes and settles; returns what was not reached. */
  function write(jobs: Job[]): Job[] {
    let reached = 0;
    try {
      connection.begin();
      busySince = undefined;
      refresh();
      const batch = batches.begin(tip!, clock.now());
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
    return settleReached(jobs, reached);
  }

  /**
   * Decides here and has it written elsewhere; returns what was not reached. Without the lock what is remembered may be
   * behind: then nothing is written, and all is decided again with the lock held.
   */
  function handOver(jobs: Job[], to: Scribe): Job[] {
    let reached = 0;
    let batch: Batch;
    let sheet: Sheet | undefined;
    try {
      refresh();
      batch = batches.begin(tip!, clock.now());
      reached = decide(batch, jobs);
      sheet = batch.empty ? undefined : batch.sheet();
    } catch {
      // Whatever it is, whoever holds the lock finds out.
      forget();
      return write(jobs);
    }
    if (!sheet) {
      batch.release();
      // Said without the lock, so it must still be true now.
      return connection.version() === version ? settleReached(jobs, reached) : write(jobs);
    }
    const decided = version;
    away = true;
    to.write(sheet, (written) => {
      away = false;
      if (!written) {
        forget();
        goOn(write(jobs.slice(0, reached)));
        return;
      }
      elsewhere++;
      reachedDisk(batch);
      // Others have written since: what we remember was true for a moment.
      if (version !== decided || connection.version() !== decided) forget();
      settleReached(jobs, reached);
      goOn([]);
    });
    return jobs.slice(reached);
  }

  /** Runs as many as there is time for; returns how many. */
  function decide(batch: Batch, jobs: readonly Job[]): number {
    const started = performance.now();
    let reached = 0;
    holdsForThisTurn();
    for (const job of jobs) {
      attempt(batch, job);
      if (++reached % 16 === 0 && performance.now() - started > MOST_MS) break;
    }
    return reached;
  }

  function settleReached(jobs: Job[], reached: number): Job[] {
    for (const job of reached === jobs.length ? jobs : jobs.slice(0, reached)) settle(job);
    return reached === jobs.length ? [] : jobs.slice(reached);
  }

  function attempt(batch: Batch, job: Job): void {
    try {
      job.answer = batch.run(job.unit);
      job.refusal = undefined;
    } catch (reason) {
      job.refusal = { reason };
    }
  }

  function settle(job: Job): void {
    if (job.refusal) job.reject(job.refusal.reason);
    else job.resolve(job.answer!);
  }

  /** What we remember of the file holds only as long as nobody else has written to it. */
  function refresh(): void {
    const current = connection.version();
    if (tip && version === current) return;
    batches.forget();
    tip = log.tip();
    version = current;
  }

  /**
   * Once per turn is enough: whatever we were told to look at was told before the turn began. Ends with the turn's
   * last microtask, so nothing that arrives later is answered from before it.
   */
  function check(): void {
    if (checked) return;
    const current = connection.version();
    if (version !== current) {
      forget();
      version = current;
    }
    holdsForThisTurn();
  }

  function holdsForThisTurn(): void {
    if (checked) return;
    checked = true;
    process.nextTick(() => {
      checked = false;
    });
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
    tip = batch.tip;
    batch.learn();
    writer.succeeded();
    if (batch.events.length > 0) deps.written(batch);
    batch.release();
  }

  function undo(): void {
    writer.undo();
    forget();
  }

  function forget(): void {
    batches.forget();
    tip = undefined;
  }

  /** Another process holds the lock: come back shortly, for a while, without blocking this one. */
  function patient(): boolean {
    busySince ??= performance.now();
    if (performance.now() - busySince > writer.patienceMs) {
      busySince = undefined;
      return false;
    }
    schedule(pauseMs());
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
        if (!scheduled && !away) schedule();
      });
    },
    count: () => commits,
    countElsewhere: () => elsewhere,
    check,
    forget,
    async close() {
      closed = true;
      if (scheduled || away) await new Promise<void>((done) => idle.push(done));
      await scribe?.close();
    },
  };
}
