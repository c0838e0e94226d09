/** Values that a database in this process gives at once and one over a network gives later, and waiting for another writer's lock. */
import { setTimeout as sleep } from 'node:timers/promises';

export type Wait<T> = T | Promise<T>;

/**
 * Goes on at once where there is nothing to wait for: a transaction of a database in this process must not span a turn. (Not `then`: a
 * module that exports that name cannot be imported dynamically.)
 */
export function andThen<T, U>(value: Wait<T>, next: (value: T) => Wait<U>): Wait<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** A short random pause, so that two waiting processes do not retry in step. */
export const pauseMs = (): number => 1 + Math.random() * 4;

export interface LockTimeout {
  readonly timeoutMs: number;
  isBusy(thrown: unknown): boolean;
}

/** Retries while another writer holds the lock, up to the timeout. It is nearly always free, and then no timer is set up. */
export async function withLockTimeout<T>(work: () => Wait<T>, { timeoutMs, isBusy }: LockTimeout): Promise<T> {
  let deadline: number | undefined;
  while (true) {
    try {
      return await work();
    } catch (thrown) {
      deadline ??= performance.now() + timeoutMs;
      if (!isBusy(thrown) || performance.now() > deadline) throw thrown;
      await sleep(pauseMs());
    }
  }
}
