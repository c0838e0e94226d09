/**
 * A wait for an answer: until a time is up, or the caller has disconnected. It leaves no timer running. Every question has such
 * a wait and nearly none reaches its end, so whatever only the end needs is created then.
 */
import { setMaxListeners } from 'node:events';

/** Allows any number of listeners. */
export function manyMayListen(controller: AbortController): AbortController {
  setMaxListeners(0, controller.signal);
  return controller;
}

export class Wait {
  readonly #timer: NodeJS.Timeout;
  readonly #others: readonly AbortSignal[];
  readonly #endsAt: number;
  #over = false;
  #controller: AbortController | undefined;
  #listeners: Set<() => void> | undefined;

  constructor(ms: number, others: readonly AbortSignal[]) {
    this.#others = others;
    this.#endsAt = performance.now() + ms;
    this.#timer = setTimeout(stop, ms, this);
    for (const other of others) {
      if (other.aborted) this.stop();
      else waitsOn(other).add(this);
    }
  }

  /** The same as an `AbortSignal`. */
  get signal(): AbortSignal {
    this.#controller ??= manyMayListen(new AbortController());
    if (this.#over) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Whole milliseconds until the time is up. */
  left(): number {
    return this.#over ? 0 : Math.max(0, Math.floor(this.#endsAt - performance.now()));
  }

  /** Calls back once, at the end; at once when that has passed. Returns a function that cancels it. */
  whenOver(what: () => void): () => void {
    if (this.#over) what();
    this.#listeners ??= new Set();
    this.#listeners.add(what);
    return () => void this.#listeners?.delete(what);
  }

  /** Frees the timer and the listeners of a wait that is no longer needed. */
  release(): void {
    clearTimeout(this.#timer);
    for (const other of this.#others) waitsBySignal.get(other)?.delete(this);
  }

  stop(): void {
    if (this.#over) return;
    this.#over = true;
    this.release();
    this.#controller?.abort();
    for (const what of this.#listeners ?? []) what();
  }
}

export function wait(ms: number, ...others: readonly AbortSignal[]): Wait {
  return new Wait(ms, others);
}

function stop(what: Wait): void {
  what.stop();
}

/** One listener per signal for all its waits, collected with the signal: questions come and go, the connection stays. */
const waitsBySignal = new WeakMap<AbortSignal, Set<Wait>>();

function waitsOn(signal: AbortSignal): Set<Wait> {
  const known = waitsBySignal.get(signal);
  if (known) return known;
  const waits = new Set<Wait>();
  waitsBySignal.set(signal, waits);
  signal.addEventListener('abort', () => [...waits].forEach(stop), { once: true });
  return waits;
}

/** The result of the work, or `late` a moment after the wait is over: some work still produces a result at the last moment. */
export function inTime<T>(work: Promise<T>, until: Wait, graceMs: number): Promise<T | 'late'> {
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
