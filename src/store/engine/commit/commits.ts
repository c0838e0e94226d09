/**
 * Group commit. Units that arrive in the same turn share one transaction and one fsync; no unit is answered before it is on disk.
 * A database that cannot be written refuses every unit with the reason, and is tried again with the next unit. When many units wait
 * and the database can write ahead, they are decided without the lock: `write-ahead.ts`.
 */
import { Fault } from '../../../model/faults.ts';
import type { Clock, Committed, Unit } from '../../../ports/index.ts';
import type { Database } from '../database.ts';
import type { StoredLog } from '../packing/stored-log.ts';
import { andThen, pauseMs } from '../wait.ts';
import type { Writer } from '../writer.ts';
import type { Batch, Batches } from './batch.ts';
import { createCacheLifetime } from './cache-lifetime.ts';
import { createTurnTaker } from './turns.ts';
import { createDecider, createQueue, type Job, settle } from './units.ts';
import { createWriteAhead } from './write-ahead.ts';

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

/** A batch has at most so many units. */
const MOST_UNITS = 512;
/** Without the lock most batches would be decided in vain while others write; after so many with it, they are tried again. */
const CROWDED = 16;
/** With more waiting units than this the disk is not keeping up, and refusing is better than growing without bound. */
const MOST_WAITING = 100_000;

export function createCommits(deps: CommitsDeps): Commits {
  const { database, log, batches, clock, writer, lockTimeoutMs } = deps;
  const { ahead, lookups } = database;
  const queue = createQueue(flush);
  /** A batch is being decided or written with the lock, or decided to be written ahead. */
  let working = false;
  let closed = false;
  /** Batches that are still to be decided with the lock, because another writer was seen. */
  let crowded = 0;
  let busySince: number | undefined;
  let commits = 0;
  const idle: (() => void)[] = [];

  const memory = createCacheLifetime({
    database,
    restart: batches.restart,
    timeAt: ({ position, floorAt }) => log.endTime(position, floorAt),
    forget() {
      batches.forget();
      writeAhead.takeBackNext();
    },
  });
  const turns = createTurnTaker(
    database.turns,
    () => queue.schedule(),
    () => queue.length === 0 && !busy(),
  );
  const decider = createDecider({ lookups, begins: memory.holdsForThisTurn });
  const writeAhead = createWriteAhead({
    database,
    batches,
    clock,
    writer,
    memory,
    decider,
    queue,
    write,
    goOn,
    reachedDisk,
    sawAnotherWriter,
    mayGoOn: turns.lasts,
  });

  const busy = () => writeAhead.away || working || writeAhead.loading;

  function flush(): void {
    // Both go on by themselves.
    if (working || writeAhead.loading) return;
    if (writeAhead.away) writeAhead.goAhead();
    // Flushed again when it is our turn.
    else if (queue.length > 0 && !turns.ours()) return;
    else if (crowded === 0 && ahead?.takes(queue.length)) {
      working = true;
      void writeAhead.handOver(ahead, (left) => {
        working = false;
        goOn(left);
      });
    } else void write(queue.take(MOST_UNITS));
  }

  function goOn(left: Job[]): void {
    queue.putBack(left);
    if (queue.length > 0) queue.schedule();
    else if (!busy() && !queue.scheduled) {
      turns.rest();
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
          return andThen(decider.decide(begun, jobs), (count) => {
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
    turns.sawAnotherWriter();
    if (!lookups.remote && !turns.held) crowded = CROWDED;
  }

  /** Another process holds the lock: retry shortly, up to the timeout, without blocking this process. */
  function retryLater(): boolean {
    sawAnotherWriter();
    busySince ??= performance.now();
    if (performance.now() - busySince > lockTimeoutMs) {
      busySince = undefined;
      return false;
    }
    queue.schedule(pauseMs());
    return true;
  }

  return {
    commit(unit) {
      return new Promise((resolve, reject) => {
        if (closed) return reject(new Fault('unavailable', 'the store is closed'));
        if (queue.length >= MOST_WAITING) {
          return reject(new Fault('unavailable', `${queue.length} writes are waiting for the disk`));
        }
        queue.add({ unit, resolve, reject, answer: undefined, refusal: undefined });
        queue.schedule();
      });
    },
    count: () => commits,
    countElsewhere: () => writeAhead.count,
    check: memory.check,
    forget: memory.forget,
    async close() {
      closed = true;
      if (queue.length > 0 || queue.scheduled || busy()) await new Promise<void>((done) => idle.push(done));
      turns.close();
      await ahead?.close();
    },
  };
}
