/**
 * How long someone waits for an answer: until a time is up, or nobody is there to hear it. Leaves nothing ticking. Every
 * question has such an end and nearly none meets it, so what only a met one needs is made when it is met.
 */
import { setMaxListeners } from 'node:events';

export interface Wait {
  readonly over: boolean;
  /** The same, for whoever takes signals. */
  readonly signal: AbortSignal;
  /** Calls back once, at the end; at once when that has been. Returns what calls it off. */
  whenOver(what: () => void): () => void;
  /** It was not needed to the end. */
  release(): void;
}

/** Fires for as many as like to hear it. */
export function manyMayListen(controller: AbortController): AbortController {
  setMaxListeners(0, controller.signal);
  return controller;
}

export function wait(ms: number, ...others: readonly AbortSignal[]): Wait {
  const heard = new Set<() => void>();
  let over = false;
  let controller: AbortController | undefined;
  const stop = () => {
    if (over) return;
    over = true;
    release();
    controller?.abort();
    for (const what of heard) what();
  };
  const timer = setTimeout(stop, ms);
  const release = () => {
    clearTimeout(timer);
    for (const other of others) crowdOf(other).delete(stop);
  };
  for (const other of others) {
    if (other.aborted) stop();
    else crowdOf(other).add(stop);
  }
  return {
    get over() {
      return over;
    },
    get signal() {
      controller ??= manyMayListen(new AbortController());
      if (over) controller.abort();
      return controller.signal;
    },
    whenOver(what) {
      if (over) what();
      else heard.add(what);
      return () => void heard.delete(what);
    },
    release,
  };
}

/** Everyone who waits on the same signal behind one listener: questions come and go, the connection stays. */
const crowds = new WeakMap<AbortSignal, Set<() => void>>();

function crowdOf(signal: AbortSignal): Set<() => void> {
  const known = crowds.get(signal);
  if (known) return known;
  const crowd = new Set<() => void>();
  crowds.set(signal, crowd);
  signal.addEventListener('abort', () => [...crowd].forEach((stop) => void stop()), { once: true });
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
