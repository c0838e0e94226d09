/** Who may write, and whether it works: one place knows the trouble, whichever kind of write ran into it. */
import { Fault } from '../../model/faults.ts';
import type { Logger } from '../../ports.ts';
import type { Connection } from './connection.ts';
import { patiently } from './patience.ts';
import { environmentFault } from './trouble.ts';

export interface Writer {
  readonly patienceMs: number;
  /** A transaction of its own, for what is not a unit. Waits for another process's lock without blocking. */
  transact(work: () => void): Promise<void>;
  undo(): void;
  succeeded(): void;
  failed(fault: Fault): void;
  trouble(): string | undefined;
}

export function createWriter(connection: Connection, patienceMs: number, logger: Logger | undefined): Writer {
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
      await patiently(() => attempt(work), patienceMs);
      succeeded();
    } catch (thrown) {
      const fault = environmentFault(thrown, connection.path);
      if (fault) failed(fault);
      throw fault ?? (thrown instanceof Fault ? thrown : new Fault('internal', 'writing failed', { cause: thrown }));
    }
  }

  return { patienceMs, transact, undo, succeeded, failed, trouble: () => trouble };
}
