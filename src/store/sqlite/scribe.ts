/**
 * Somebody who writes sheets on a thread of their own, so that this one goes on while the disk is busy. Only worth it when
 * many wait: a sheet handed over and back costs more than a small one written here. Never answers why something was not
 * written: whoever handed it over writes it themselves then, and finds out.
 */
import { Worker } from 'node:worker_threads';
import type { Logger } from '../../ports.ts';
import type { Connection } from './connection.ts';
import type { Log } from './log.ts';
import { type Packed, pack } from './packed.ts';
import type { Sheet } from './sheet.ts';

/** What the thread is started with. */
export interface ScribeData {
  readonly path: string;
  readonly maxBytes?: number;
  readonly counterFd: number;
  /** One number: the generation that nobody but the thread can make, or has made. Stands only while it has the lock, and once it has committed. */
  readonly claimed: Int32Array;
}
/** What it is told. */
export interface Order {
  /** The file must not have been written to since; otherwise the sheet was worked out from what no longer holds. */
  readonly after: number;
  readonly sheet: Packed;
}
/** What it says: first that it is there, then whether each sheet was written. */
export type Said = 'ready' | 'written' | 'not written';

export interface Scribe {
  /** Without waiting for a crowd. Resolves when they are there, or cannot come. */
  begin(): Promise<void>;
  /** Whether somebody is there for a sheet of so many units. Sends for them when that has been asked often enough. */
  takes(units: number): boolean;
  /**
   * One at a time. Written only if the file has not been written to since the generation `after`. Says whether somebody is there
   * to do it; if not, nothing comes of it.
   */
  write(sheet: Sheet, after: number, done: (written: boolean) => void): boolean;
  close(): Promise<void>;
}

/** When a thread pays. */
export interface Crowd {
  /** From so many units that wait at once. */
  readonly units: number;
  /** Started when so many have waited so often, or at once for 0: a burst is over before it would be ready. */
  readonly times: number;
}

export interface ScribeDeps {
  readonly connection: Connection;
  readonly log: Log;
  readonly crowd: Crowd;
  readonly maxBytes?: number;
  readonly logger?: Logger;
}

export function createScribe({ connection, log, crowd, maxBytes, logger }: ScribeDeps): Scribe {
  const claimed = new Int32Array(new SharedArrayBuffer(4));
  let crowds = 0;
  let worker: Worker | undefined;
  let ready = false;
  let failed = false;
  let begun = () => {};
  /** What was handed over, and after which generation. */
  let order: { readonly after: number; readonly sheet: Sheet } | undefined;
  let answer: ((written: boolean) => void) | undefined;

  function start(): void {
    const { path, counterFd } = connection;
    const data: ScribeData = { path, counterFd, claimed, ...(maxBytes !== undefined && { maxBytes }) };
    // Not there while the source runs uncompiled; then it is written here.
    worker = new Worker(new URL('./scribe-thread.js', import.meta.url), { workerData: data });
    worker.unref();
    worker.on('message', (said: Said) => {
      if (said !== 'ready') return finish(said === 'written');
      ready = true;
      begun();
    });
    worker.on('error', (err) => {
      failed = true;
      logger?.warn({ err }, 'the thread that writes the log failed: it is written by the main thread again');
    });
    worker.on('exit', gone);
  }

  /** What was handed over either reached the disk or it did not. */
  function gone(): void {
    ready = false;
    worker = undefined;
    begun();
    if (order) finish(isThere(order.sheet));
  }
  function isThere({ events }: Sheet): boolean {
    return events.length > 0 ? log.text(events.at(-5) as number) === events.at(-1) : isOurs();
  }
  /** Whether the generation after the one that was handed over is the thread's. */
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
    takes(units) {
      if (units < crowd.units) return false;
      if (!worker && !failed && ++crowds === crowd.times) start();
      return ready;
    },
    write(sheet, after, done) {
      if (!worker || !ready) return false;
      const packed = pack(sheet);
      order = { after, sheet };
      answer = done;
      connection.expect(after, isOurs);
      // Somebody waits for this: the process must not end meanwhile.
      worker.ref();
      worker.postMessage({ after, sheet: packed } satisfies Order);
      return true;
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
