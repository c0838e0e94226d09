/** Transactions outside the group commit, and the one record of whether writing works, whichever kind of write failed. */
import { Fault } from '../../../model/faults.ts';
import type { Logger } from '../../../ports/index.ts';
import type { Connection } from '../connection.ts';
import { environmentFault } from '../errors.ts';
import { withLockTimeout } from '../lock-timeout.ts';

export interface Writer {
  readonly lockTimeoutMs: number;
  /** Runs work that is not a unit in a transaction of its own. Waits for another process's lock without blocking. */
  transact(work: () => void): Promise<void>;
  undo(): void;
  succeeded(): void;
  failed(fault: Fault): void;
  trouble(): string | undefined;
}

export function createWriter(connection: Connection, lockTimeoutMs: number, logger: Logger | undefined): Writer {
  let trouble: string | undefined;

  function undo(): void {
    try {
      connection.rollback();
    } catch (thrown) {
      logger?.warn({ err: thrown }, 'rolling back failed; the next transaction will tell');
    }
  }
  function succeeded(): void {
    if (trouble !== undefined) logger?.info({ path: connection.path }, 'the log can be written again');
    trouble = undefined;
  }
  function failed(fault: Fault): void {
    if (trouble === undefined) logger?.error({ err: fault }, 'the log cannot be written');
    trouble = fault.message;
  }

  function attempt(work: () => void): void {
    try {
      connection.begin();
      work();
      connection.commit();
    } catch (thrown) {
      undo();
      throw thrown;
    }
  }

  async function transact(work: () => void): Promise<void> {
    try {
      await withLockTimeout(() => attempt(work), lockTimeoutMs);
      succeeded();
    } catch (thrown) {
      const fault = environmentFault(thrown, connection.path);
      if (fault) failed(fault);
      throw fault ?? (thrown instanceof Fault ? thrown : new Fault('internal', 'writing failed', { cause: thrown }));
    }
  }

  return { lockTimeoutMs: lockTimeoutMs, transact, undo, succeeded, failed, trouble: () => trouble };
}
