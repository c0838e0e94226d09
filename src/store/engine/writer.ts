/** Transactions outside the group commit, and the one record of whether writing works, whichever kind of write failed. */
import { Fault } from '../../model/faults.ts';
import type { Logger } from '../../ports/index.ts';
import type { Database } from './database.ts';
import { type LockTimeout, type Wait, withLockTimeout } from './wait.ts';

export interface Writer {
  /** Runs work that is not a unit in a transaction of its own. Waits for another process's lock without blocking. */
  transact<T>(work: () => Wait<T>): Promise<T>;
  succeeded(): void;
  failed(fault: Fault): void;
  trouble(): string | undefined;
}

export function createWriter(database: Database, lockTimeout: LockTimeout, logger: Logger | undefined): Writer {
  let trouble: string | undefined;

  function succeeded(): void {
    if (trouble !== undefined) logger?.info({ store: database.name }, 'the log can be written again');
    trouble = undefined;
  }
  function failed(fault: Fault): void {
    if (trouble === undefined) logger?.error({ err: fault }, 'the log cannot be written');
    trouble = fault.message;
  }

  return {
    succeeded,
    failed,
    trouble: () => trouble,
    async transact(work) {
      try {
        const result = await withLockTimeout(() => database.transact(work), lockTimeout);
        succeeded();
        return result;
      } catch (thrown) {
        const fault = database.errors.environment(thrown);
        if (fault) failed(fault);
        throw fault ?? (thrown instanceof Fault ? thrown : new Fault('internal', 'writing failed', { cause: thrown }));
      }
    },
  };
}
