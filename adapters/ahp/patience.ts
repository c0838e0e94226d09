/** How long someone waits for an answer: until a time is up, or nobody is there to hear it. Leaves nothing ticking. */
import { setMaxListeners } from 'node:events';

export interface Wait {
  readonly signal: AbortSignal;
  release(): void;
}

/** Fires for as many as like to hear it. */
export function manyMayListen(controller: AbortController): AbortController {
  setMaxListeners(0, controller.signal);
  return controller;
}

export function wait(ms: number, ...others: readonly AbortSignal[]): Wait {
  const over = new AbortController();
  const stop = () => {
    release();
    over.abort();
  };
  const timer = setTimeout(stop, ms);
  const release = () => {
    clearTimeout(timer);
    for (const other of others) other.removeEventListener('abort', stop);
  };
  for (const other of others) {
    if (other.aborted) stop();
    else other.addEventListener('abort', stop, { once: true });
  }
  return { signal: over.signal, release };
}

/** Resolves a moment after the signal fires, for whoever still has something to say at the last moment. */
export function afterwards(signal: AbortSignal, ms: number): { readonly passed: Promise<'late'>; cancel(): void } {
  let timer: NodeJS.Timeout | undefined;
  let arm = () => {};
  const passed = new Promise<'late'>((resolve) => {
    arm = () => {
      timer = setTimeout(resolve, ms, 'late');
    };
    if (signal.aborted) arm();
    else signal.addEventListener('abort', arm, { once: true });
  });
  return {
    passed,
    cancel() {
      clearTimeout(timer);
      signal.removeEventListener('abort', arm);
    },
  };
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
