/** Waiting for another process's lock without blocking this one. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy } from './trouble.ts';

/** A short pause of no fixed length, so that two who wait do not wait in step. */
export const pauseMs = (): number => 1 + Math.random() * 4;

/** Try again while the file is locked, for a while. */
export async function patiently<T>(work: () => T, patienceMs: number): Promise<T> {
  const deadline = performance.now() + patienceMs;
  while (true) {
    try {
      return work();
    } catch (thrown) {
      if (!isBusy(thrown) || performance.now() > deadline) throw thrown;
      await sleep(pauseMs());
    }
  }
}
