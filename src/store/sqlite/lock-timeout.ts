/** Waits for another process's lock without blocking this one. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy } from './errors.ts';

/** A short random pause, so that two waiting processes do not retry in step. */
export const pauseMs = (): number => 1 + Math.random() * 4;

/** Retries while the file is locked, up to the timeout. The file is nearly always free, and then no timer is set up. */
export function withLockTimeout<T>(work: () => T, timeoutMs: number): Promise<Awaited<T>> {
  try {
    return Promise.resolve(work());
  } catch (thrown) {
    return isBusy(thrown) ? again(work, timeoutMs) : Promise.reject(thrown);
  }
}

async function again<T>(work: () => T, timeoutMs: number): Promise<Awaited<T>> {
  const deadline = performance.now() + timeoutMs;
  while (true) {
    await sleep(pauseMs());
    try {
      return await work();
    } catch (thrown) {
      if (!isBusy(thrown) || performance.now() > deadline) throw thrown;
    }
  }
}
