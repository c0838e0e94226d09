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
