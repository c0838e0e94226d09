/**
 * Group commit. Units that arrive in the same turn share one transaction and one fsync; no unit is answered before it is on disk.
 * A file that cannot be written refuses every unit with the reason, and is tried again with the next unit.
 *
 * When many units wait, this thread decides them and the writer thread writes them. Units that arrive meanwhile are decided
 * against the results of the batch being written, and are handed over as soon as that batch is on disk; if it fails to get there,
 * both are decided again.
 */
import { Fault } from '../../../model/faults.ts';
import type { Clock, Committed, Unit } from '../../../ports/index.ts';
import { createMemory } from '../cache-lifetime.ts';
import type { Connection } from '../connection.ts';
import { environmentFault, isBusy } from '../errors.ts';
import { pauseMs } from '../lock-timeout.ts';
import type { Log } from '../log.ts';
import type { Batch, Batches } from './batch.ts';
import { createWriteSetWriter } from './write-set.ts';
import type { Writer } from './writer.ts';
import type { WriterThread } from './writer-thread.ts';

export interface Commits {
  commit(unit: Unit): Promise<Committed>;
  /** Transactions that reached the disk; tells how many units share one. */
  count(): number;
  /** Those of them that the writer thread wrote. */
  countElsewhere(): number;
  /** Call before using cached rows outside a commit: drops them when another process has written. */
  check(): void;
  /** The file changed in a way the caches cannot know of. */
  forget(): void;
  /** Writes the waiting units and refuses later ones. */
  close(): Promise<void>;
}
export interface CommitsDeps {
  readonly connection: Connection;
  readonly log: Log;
  readonly batches: Batches;
  readonly clock: Clock;
  readonly writer: Writer;
  /** Writes batches of many units, where there is one. */
  readonly writerThread?: WriterThread;
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
  /** Valid only if no other writer has committed since this generation of the file, ... */
  readonly after: number;
  /** ... which corresponds to this version of the connection. */
  readonly version: number | undefined;
}

/** A batch ends at whichever limit comes first, so that the event loop is not blocked. */
const MOST_UNITS = 512;
const MOST_MS = 8;
/** A batch for the writer thread is smaller: with every waiting unit in it, this thread would have none to decide meanwhile. */
const MOST_ELSEWHERE = 64;
/** With more waiting units than this the disk is not keeping up, and refusing is better than growing without bound. */
const MOST_WAITING = 100_000;

export function createCommits(deps: CommitsDeps): Commits {
  const { connection, log, batches, clock, writer, writerThread } = deps;
  const writeWriteSet = createWriteSetWriter(connection);
  let waiting: Job[] = [];
  let scheduled = false;
  /** The batch that the writer thread is writing. */
  let away: Decided | undefined;
  /** The batch decided on top of `away`, waiting for it to reach the disk. */
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
    const taker = writerThread?.takes(waiting.length) ? writerThread : undefined;
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

  /** Writes and answers; returns the jobs there was no time for. */
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
      if (isBusy(thrown) && reached === 0 && retryLater()) return jobs;
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
      // One of the units cannot be written. Each is written alone, so that only that one fails.
      return jobs.flatMap((job) => write([job]));
    }
    settle(jobs.slice(0, reached));
    return jobs.slice(reached);
  }

  /**
   * Decides here and hands the batch to the writer thread; returns the jobs there was no time for. Without the lock the caches
   * may be out of date: then nothing is written, and all units are decided again with the lock held.
   */
  function handOver(jobs: Job[], to: WriterThread): Job[] {
    try {
      const batch = batches.begin(memory.refresh(), clock.now());
      const at = { after: connection.generation(), version: memory.version() };
      const reached = decide(batch, jobs);
      if (send({ batch, jobs: jobs.slice(0, reached), ...at }, to)) return jobs.slice(reached);
    } catch {
      // Whatever failed, writing with the lock held meets it again and reports it.
    }
    memory.forget();
    return write(jobs);
  }

  /** Units that arrive while a batch is being written are decided against that batch's results. */
  function goAhead(on: Decided): void {
    // Another writer has committed. The batch being written will be refused or is already superseded: wait for its reply.
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

  /** Returns true when the batch was handed over, or answered because there is nothing to write. */
  function send(decided: Decided, to: WriterThread): boolean {
    const { batch, jobs, after, version } = decided;
    if (batch.empty) {
      batch.release();
      // The units were decided without the lock, so the answer must still be true now.
      if (connection.version() !== version) return false;
      settle(jobs);
      return true;
    }
    const writeSet = batch.writeSet();
    if (!to.write(writeSet, after, (written) => cameBack(decided, written, to))) return false;
    away = decided;
    return true;
  }

  function cameBack({ batch, jobs, version }: Decided, written: boolean, to: WriterThread): void {
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
    // If another writer has committed since, the caches are out of date.
    const holds = memory.version() === version && connection.version() === version;
    const sending = following === undefined || (holds && sent(following, to));
    if (!holds || !sending) memory.forget();
    goOn(sending ? [] : write(following.jobs));
  }

  function sent(decided: Decided, to: WriterThread): boolean {
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

  /** Runs as many jobs as there is time for; returns how many. */
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
      writeWriteSet(batch.writeSet());
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

  /** Another process holds the lock: retry shortly, up to the timeout, without blocking this process. */
  function retryLater(): boolean {
    busySince ??= performance.now();
    if (performance.now() - busySince > writer.lockTimeoutMs) {
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
      await writerThread?.close();
    },
  };
}
