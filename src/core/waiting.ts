/** The few ways in which core waits. Every wait can be aborted, or ends by itself. */
import { Fault } from '../model/faults.ts';

/** Rejects when the signal fires, so that a retry loop ends. */
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

/** Calls `next` synchronously with a value, and later only with a promise: most values core waits for are already there. */
export function goOnWith<T, U>(value: T | Promise<T>, next: (value: T) => U | Promise<U>): U | Promise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Retries, because a store that is down for a while must not cost a task its end; a restart would find it `interrupted`. */
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
