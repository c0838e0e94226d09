/** Waiting for another process's lock without blocking this one. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy } from './trouble.ts';

/** A short pause of no fixed length, so that two who wait do not wait in step. */
export const pauseMs = (): number => 1 + Math.random() * 4;

/** Try again while the file is locked, for a while. Nearly always it is not, and then nothing is set up for waiting. */
export function patiently<T>(work: () => T, patienceMs: number): Promise<Awaited<T>> {
  try {
    return Promise.resolve(work());
  } catch (thrown) {
    return isBusy(thrown) ? again(work, patienceMs) : Promise.reject(thrown);
  }
}

async function again<T>(work: () => T, patienceMs: number): Promise<Awaited<T>> {
  const deadline = performance.now() + patienceMs;
  while (true) {
    await sleep(pauseMs());
    try {
      return await work();
    } catch (thrown) {
      if (!isBusy(thrown) || performance.now() > deadline) throw thrown;
    }
  }
}
