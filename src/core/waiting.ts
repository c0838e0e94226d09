/** Waiting, in the few ways core waits. Every wait can be stopped, or has an end. */
import { Fault } from '../model/faults.ts';

/** Rejects when told to stop, so that whoever waits to ask again does not. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new Fault('client_closed', 'stopped while waiting to ask again'));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

/** Goes on at once with what is at hand, and later only with what is not: most of what core waits for is at hand. */
export function goOnWith<T, U>(given: T | Promise<T>, next: (given: T) => U | Promise<U>): U | Promise<U> {
  return given instanceof Promise ? given.then(next) : next(given);
}

/** A store that is down for a while must not cost a task its end; a restart would find it otherwise. */
export async function untilWritten<T>(write: () => Promise<T>, closing: AbortSignal): Promise<T> {
  for (let wait = 100; ; wait = Math.min(wait * 2, 5000)) {
    try {
      return await write();
    } catch (cause) {
      if (!(cause instanceof Fault && cause.kind === 'unavailable') || closing.aborted) throw cause;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}
