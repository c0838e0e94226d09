/** Units that wait for a batch, and how they are decided in one: as many as there is time for, each answered when the batch is on disk. */
import type { Committed, Unit } from '../../../ports/index.ts';
import type { Lookups } from '../database.ts';
import type { Wait } from '../wait.ts';
import type { Batch } from './batch.ts';
import { NOT_LOADED } from './remote-lookups.ts';

export interface Job {
  readonly unit: Unit;
  readonly resolve: (committed: Committed) => void;
  readonly reject: (reason: unknown) => void;
  answer: Committed | undefined;
  refusal: { readonly reason: unknown } | undefined;
}

/** A batch ends here at the latest, so that the event loop is not blocked. */
const MOST_MS = 8;

export interface Decider {
  /** Runs as many jobs as there is time for, and loads what they look up; returns how many. */
  decide(batch: Batch, jobs: readonly Job[], from?: number): Wait<number>;
  /** Stops at the first job whose lookups are not loaded, and finds out what the jobs behind it will look up. */
  decideLoaded(batch: Batch, jobs: readonly Job[], from: number): number;
}

interface DeciderDeps {
  readonly lookups: Lookups;
  /** The caches were checked just now. */
  begins(): void;
}

export function createDecider({ lookups, begins }: DeciderDeps): Decider {
  function decide(batch: Batch, jobs: readonly Job[], from = 0): Wait<number> {
    const reached = decideLoaded(batch, jobs, from);
    const { remote } = lookups;
    return remote?.wanting ? remote.load().then(() => decide(batch, jobs, reached)) : reached;
  }

  function decideLoaded(batch: Batch, jobs: readonly Job[], from: number): number {
    const started = performance.now();
    let reached = from;
    begins();
    for (; reached < jobs.length; reached++) {
      if (reached % 16 === 15 && performance.now() - started > MOST_MS) break;
      if (!attempt(batch, jobs[reached]!)) break;
    }
    if (lookups.remote?.wanting) for (let at = reached + 1; at < jobs.length; at++) batch.scout(jobs[at]!.unit);
    return reached;
  }

  return { decide, decideLoaded };
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

export function settle(jobs: readonly Job[]): void {
  for (const job of jobs) {
    if (job.refusal) job.reject(job.refusal.reason);
    else job.resolve(job.answer!);
  }
}

export interface Queue {
  readonly length: number;
  /** A flush is under way. */
  readonly scheduled: boolean;
  add(job: Job): void;
  take(most: number): Job[];
  /** Before all that wait. */
  putBack(jobs: Job[]): void;
  /** Flushes in a while, unless that is under way already. */
  schedule(delayMs?: number): void;
}

export function createQueue(flush: () => void): Queue {
  let waiting: Job[] = [];
  let scheduled = false;

  function begin(): void {
    scheduled = false;
    flush();
  }

  return {
    get length() {
      return waiting.length;
    },
    get scheduled() {
      return scheduled;
    },
    add(job) {
      waiting.push(job);
    },
    take(most) {
      const jobs = waiting.length <= most ? waiting : waiting.slice(0, most);
      waiting = jobs === waiting ? [] : waiting.slice(most);
      return jobs;
    },
    putBack(jobs) {
      if (jobs.length > 0) waiting = jobs.concat(waiting);
    },
    schedule(delayMs = 0) {
      if (scheduled) return;
      scheduled = true;
      if (delayMs > 0) setTimeout(begin, delayMs);
      else setImmediate(begin);
    },
  };
}
