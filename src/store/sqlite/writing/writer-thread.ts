/**
 * Writes write sets on a thread of its own, so that the main thread goes on while the disk is busy. Only worth it when many units
 * wait: handing a write set over and back costs more than writing a small one here. The thread never reports why a write failed:
 * the caller then writes the set itself and meets the error.
 */
import { Worker } from 'node:worker_threads';
import type { Logger } from '../../../ports/index.ts';
import type { Ahead } from '../../engine/database.ts';
import type { Connection } from '../file/connection.ts';
import type { LogRows } from '../log.ts';
import { type TableRows, tableRowsOf } from './table-rows.ts';

/** What the thread is started with. */
export interface WriterThreadData {
  readonly path: string;
  readonly maxBytes?: number;
  readonly counterFd: number;
  /**
   * One number: the generation that only the thread can make, or has made. Set only while it holds the lock, and after it has
   * committed.
   */
  readonly claimed: Int32Array;
}
/** Message to the thread. */
export interface WriteOrder {
  /** The generation the write set was computed from. If the file has been written to since, the set is void. */
  readonly after: number;
  readonly rows: TableRows;
}
/** Message from the thread: first that it is ready, then whether each write set was written. */
export type WriterThreadReply = 'ready' | 'written' | 'not written';

export interface WriterThread extends Ahead {
  /** Starts the thread without waiting for load. Resolves when it is ready, or cannot start. */
  begin(): Promise<void>;
}

/** The load from which a thread pays. */
export interface WriterThreadThreshold {
  /** Minimum number of units waiting at once. */
  readonly units: number;
  /**
   * The thread starts after this many such batches, or immediately for 0: a single burst is over before a thread would be ready.
   */
  readonly times: number;
}

export interface WriterThreadDeps {
  readonly connection: Connection;
  readonly log: LogRows;
  readonly threshold: WriterThreadThreshold;
  readonly maxBytes?: number;
  readonly logger?: Logger;
}

export function createWriterThread({ connection, log, threshold, maxBytes, logger }: WriterThreadDeps): WriterThread {
  const claimed = new Int32Array(new SharedArrayBuffer(4));
  let crossings = 0;
  let worker: Worker | undefined;
  let ready = false;
  let failed = false;
  let begun = () => {};
  /** The write set handed over, and its generation. */
  let order: { readonly after: number; readonly rows: TableRows } | undefined;
  let answer: ((written: boolean) => void) | undefined;

  function start(): void {
    const { path, counterFd } = connection;
    const data: WriterThreadData = { path, counterFd, claimed, ...(maxBytes !== undefined && { maxBytes }) };
    // This file is missing while the source runs uncompiled; then the main thread writes.
    worker = new Worker(new URL('./writer-thread-main.js', import.meta.url), { workerData: data });
    worker.unref();
    worker.on('message', (reply: WriterThreadReply) => {
      if (reply !== 'ready') return finish(reply === 'written');
      ready = true;
      begun();
    });
    worker.on('error', (err) => {
      failed = true;
      logger?.warn({ err }, 'the thread that writes the log failed: it is written by the main thread again');
    });
    worker.on('exit', gone);
  }

  /** The thread has ended: whether its last write set reached the disk is read from the file. */
  function gone(): void {
    ready = false;
    worker = undefined;
    begun();
    if (order) finish(isThere(order.rows));
  }
  function isThere({ events }: TableRows): boolean {
    return events.length > 0 ? log.body(events.at(-5) as number) === events.at(-1) : isOurs();
  }
  /** Whether the thread made the generation after the one handed over. */
  function isOurs(): boolean {
    return order !== undefined && Atomics.load(claimed, 0) === ((order.after + 1) | 0);
  }

  function finish(written: boolean): void {
    const done = answer;
    order = undefined;
    answer = undefined;
    worker?.unref();
    connection.settled(written);
    done?.(written);
  }

  return {
    begin() {
      start();
      return new Promise((resolve) => {
        begun = resolve;
      });
    },
    generation: connection.generation,
    /** Starts the thread once this has been asked often enough. */
    takes(units) {
      if (units < threshold.units) return false;
      if (!worker && !failed && ++crossings === threshold.times) start();
      return ready;
    },
    write(writeSet, after) {
      if (!worker || !ready) return undefined;
      const rows = tableRowsOf(writeSet);
      order = { after, rows };
      connection.expect(after, isOurs);
      // A caller waits for this write: the process must not exit meanwhile.
      worker.ref();
      worker.postMessage({ after, rows } satisfies WriteOrder);
      return new Promise((resolve) => {
        answer = resolve;
      });
    },
    async close() {
      if (!worker) return;
      const ended = new Promise<void>((resolve) => worker!.once('exit', () => resolve()));
      worker.ref();
      worker.postMessage('end');
      await ended;
    },
  };
}
