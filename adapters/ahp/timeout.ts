/**
 * A wait for an answer: until a time is up, or the caller has disconnected. It leaves no timer running.
 */
import { setMaxListeners } from 'node:events';

/** Allows any number of listeners. */
export function manyMayListen(controller: AbortController): AbortController {
  setMaxListeners(0, controller.signal);
  return controller;
}

export class TimedWait {
  readonly #controller = manyMayListen(new AbortController());
  readonly #timer: NodeJS.Timeout;
  readonly #others: readonly AbortSignal[];
  readonly #endsAt: number;

  constructor(ms: number, others: readonly AbortSignal[]) {
    this.#others = others;
    this.#endsAt = performance.now() + ms;
    this.#timer = setTimeout(this.stop, ms);
    for (const other of others) {
      // Many questions may wait on one connection.
      setMaxListeners(0, other);
      if (other.aborted) this.stop();
      else other.addEventListener('abort', this.stop);
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whole milliseconds until the time is up. */
  left(): number {
    return this.signal.aborted ? 0 : Math.max(0, Math.floor(this.#endsAt - performance.now()));
  }

  /** Calls back once, at the end; at once when that has passed. Returns a function that cancels it. */
  whenOver(what: () => void): () => void {
    if (this.signal.aborted) what();
    this.signal.addEventListener('abort', what);
    return () => this.signal.removeEventListener('abort', what);
  }

  /** Frees the timer and the listeners of a wait that is no longer needed. */
  release(): void {
    clearTimeout(this.#timer);
    for (const other of this.#others) other.removeEventListener('abort', this.stop);
  }

  readonly stop = (): void => {
    this.release();
    this.#controller.abort();
  };
}

export function wait(ms: number, ...others: readonly AbortSignal[]): TimedWait {
  return new TimedWait(ms, others);
}

/** The result of the work, or `late` a moment after the wait is over: some work still produces a result at the last moment. */
export function inTime<T>(work: Promise<T>, until: TimedWait, graceMs: number): Promise<T | 'late'> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const forget = until.whenOver(() => {
      timer = setTimeout(resolve, graceMs, 'late');
    });
    const done = () => {
      forget();
      clearTimeout(timer);
    };
    work.then(
      (value) => {
        done();
        resolve(value);
      },
      (cause) => {
        done();
        reject(cause);
      },
    );
  });
}

/** Until the time is up or the signal fires, whichever comes first. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal.aborted) done();
    else signal.addEventListener('abort', done, { once: true });
  });
}
