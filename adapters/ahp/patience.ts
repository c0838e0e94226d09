/**
 * How long someone waits for an answer: until a time is up, or nobody is there to hear it. Leaves nothing ticking. Every
 * question has such an end and nearly none meets it, so what only a met one needs is made when it is met.
 */
import { setMaxListeners } from 'node:events';

/** Fires for as many as like to hear it. */
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
  #heard: Set<() => void> | undefined;

  constructor(ms: number, others: readonly AbortSignal[]) {
    this.#others = others;
    this.#endsAt = performance.now() + ms;
    this.#timer = setTimeout(stop, ms, this);
    for (const other of others) {
      if (other.aborted) this.stop();
      else crowdOf(other).add(this);
    }
  }

  /** The same, for whoever takes signals. */
  get signal(): AbortSignal {
    this.#controller ??= manyMayListen(new AbortController());
    if (this.#over) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Whole milliseconds until the time is up. */
  left(): number {
    return this.#over ? 0 : Math.max(0, Math.floor(this.#endsAt - performance.now()));
  }

  /** Calls back once, at the end; at once when that has been. Returns what calls it off. */
  whenOver(what: () => void): () => void {
    if (this.#over) what();
    this.#heard ??= new Set();
    this.#heard.add(what);
    return () => void this.#heard?.delete(what);
  }

  /** It was not needed to the end. */
  release(): void {
    clearTimeout(this.#timer);
    for (const other of this.#others) crowds.get(other)?.delete(this);
  }

  stop(): void {
    if (this.#over) return;
    this.#over = true;
    this.release();
    this.#controller?.abort();
    for (const what of this.#heard ?? []) what();
  }
}

export function wait(ms: number, ...others: readonly AbortSignal[]): Wait {
  return new Wait(ms, others);
}

function stop(what: Wait): void {
  what.stop();
}

/** Everyone who waits on the same signal behind one listener: questions come and go, the connection stays. */
const crowds = new WeakMap<AbortSignal, Set<Wait>>();

function crowdOf(signal: AbortSignal): Set<Wait> {
  const known = crowds.get(signal);
  if (known) return known;
  const crowd = new Set<Wait>();
  crowds.set(signal, crowd);
  signal.addEventListener('abort', () => [...crowd].forEach(stop), { once: true });
  return crowd;
}

/** What comes of the work, or `late` a moment after the wait is over: some have something to say at the last moment. */
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

/** Until the time is up or it is called off, whichever comes first. */
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
