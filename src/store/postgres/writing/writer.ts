/**
 * Writes: with the lock held from before the decision, or decided without it and written only if no other transaction came between.
 * Either way one function of the database writes the whole write set. A connection that breaks inside a commit leaves it open whether it was
 * written: the next connection finds out, under the same lock.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { WriteSet } from '../../engine/commit/write-set.ts';
import type { Ahead, Database } from '../../engine/database.ts';
import type { Connection, Connections, Transaction } from '../connection/connections.ts';
import { SERVER, type Versions } from '../connection/versions.ts';
import { isConnectionLoss, isRefusal, OutcomeUnknown } from '../errors.ts';
import { filledIn } from '../schema/migrations.ts';
import { type LockedState, type StateRow, stateOf } from './locked-state.ts';
import { PARAMETERS, parametersOf } from './parameters.ts';

export interface WriterDeps {
  readonly connections: Connections;
  readonly versions: Versions;
  readonly schema: string;
  readonly name: string;
  /** Unlike that of any other store. */
  readonly writer: string;
  readonly lockTimeoutMs: number;
  readonly standby: boolean;
  readonly turns: { readonly held: boolean };
  /** Called after each commit, so that other stores hear of it. */
  announce(generation: number): void;
}
interface Writer extends Pick<Database, 'commit' | 'transact'> {
  readonly ahead: Ahead;
}

export interface LockedTransaction extends Transaction {
  readonly state: LockedState;
}

/** How long a store tries to find out whether a write was written. A restart of the database is over by then. */
const RESOLVE_MS = 15_000;
const PAUSE_MS = 50;
/** After a batch came too late, others are writing too: then the lock is taken first, for this long, except in a turn of ours. */
const CONTENDED_MS = 100;
/** Writer, write, generation, lock timeout, standby. */
const OWN_PARAMETERS = 5;
const ALL_PARAMETERS = OWN_PARAMETERS + PARAMETERS;

export function createWriter(deps: WriterDeps): Writer {
  const { connections, versions, schema, name, writer, lockTimeoutMs, standby, turns } = deps;
  const placeholders = Array.from({ length: ALL_PARAMETERS }, (_, at) => `$${at + 1}`).join(', ');
  // NULL, with nothing written, also from a server that counts its generations apart from the one that we know.
  const WRITE = `SELECT CASE WHEN ${SERVER} = $${ALL_PARAMETERS + 1} THEN ${filledIn('$S', schema)}.write_1(${placeholders}) END AS write_1`;
  const COUNT = filledIn('SELECT $S.count_1($1, $2)', schema);
  const RESOLVE = filledIn('SELECT $S.resolve_1($1, $2, $3, $4)', schema);
  // The server ends a transaction whose holder is silent, so that a gateway that hangs does not keep the lock. The state is read as of when
  // the lock was got, whatever isolation the database defaults to.
  const BEGIN = filledIn(
    `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = ${2 * lockTimeoutMs + 1_000};
     SELECT $S.durable_1(${standby}); SELECT *, ${SERVER} FROM $S.lock_1(${lockTimeoutMs})`,
    schema,
  );
  let writes = 0;
  let contendedUntil = 0;

  const valuesOf = (writeSet: WriteSet, write: number, after: number) => [
    ...[writer, write, after, lockTimeoutMs, standby],
    ...parametersOf(writeSet),
    versions.server(),
  ];

  /** Takes the lock. */
  async function begin(connection: Connection): Promise<LockedTransaction> {
    const [found] = await connection.batch(BEGIN);
    // The columns of the statement.
    const row = found as unknown as StateRow;
    versions.exact(row[0], row[9]);
    return {
      query: connection.query,
      over: false,
      noticed: false,
      state: stateOf(row),
    };
  }

  async function attempt(decide: () => unknown): Promise<void> {
    const connection = await connections.take();
    let broken = true;
    /** The write that is under way: whether it was written is open until it is answered. */
    let write: number | undefined;
    const settled = versions.writing();
    try {
      const transaction = await begin(connection);
      const writeSet = await inside(transaction, decide as () => WriteSet | undefined);
      if (!writeSet) {
        await connection.end('ROLLBACK');
        broken = false;
        return;
      }
      const values = valuesOf(writeSet, ++writes, versions.generation());
      write = writes;
      const [written, ended] = await Promise.allSettled([connection.query(WRITE, values), connection.end('COMMIT')]);
      if (written.status === 'rejected') throw written.reason;
      if (ended.status === 'rejected') throw ended.reason;
      broken = false;
      const generation = written.value[0]![0] as number | null;
      if (generation === null || ended.value !== 'COMMIT') throw new Error('the lock did not keep other writers out');
      done(generation);
    } catch (thrown) {
      if (isRefusal(thrown)) broken = !(await ended(connection));
      if (write === undefined || isRefusal(thrown)) throw thrown;
      versions.doubt();
      if (!(await wasWritten(write, thrown))) throw thrown;
    } finally {
      settled();
      connection.release(broken);
    }
  }

  /** After an error the server answered: the transaction is over, and the connection can be used again. */
  async function ended(connection: Connection): Promise<boolean> {
    return connection.end('ROLLBACK').then(
      () => true,
      () => false,
    );
  }

  async function inside<T>(transaction: LockedTransaction, work: () => T): Promise<Awaited<T>> {
    try {
      return await connections.within(transaction, work);
    } finally {
      transaction.over = true;
    }
  }

  function done(generation: number): void {
    versions.own(generation);
    deps.announce(generation);
  }

  async function wasWritten(write: number, cause: unknown): Promise<boolean> {
    const deadline = performance.now() + RESOLVE_MS;
    for (;;) {
      try {
        const [found] = await connections.query(RESOLVE, [writer, write, lockTimeoutMs, standby]);
        versions.doubt();
        return found![0] as boolean;
      } catch {
        if (performance.now() > deadline) break;
        await sleep(PAUSE_MS);
      }
    }
    throw new OutcomeUnknown(
      'unavailable',
      `the connection to ${name} was lost while it wrote, and whether it did is not known: look, or repeat the request with the same idempotency key`,
      { cause },
    );
  }

  /** Until the database can be reached again, or for as long as a lock is waited for. */
  async function again<T>(work: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + lockTimeoutMs;
    for (;;) {
      try {
        return await work();
      } catch (thrown) {
        // What was decided rests on a state that may be gone.
        versions.doubt();
        if (!isConnectionLoss(thrown) || performance.now() > deadline) throw thrown;
        await sleep(PAUSE_MS);
      }
    }
  }

  async function transactOnce<T>(work: () => T): Promise<Awaited<T>> {
    const connection = await connections.take();
    let broken = true;
    const settled = versions.writing();
    try {
      const transaction = await begin(connection);
      const result = await inside(transaction, work);
      const counted = transaction.noticed ? await connection.query(COUNT, [writer, ++writes]) : undefined;
      if ((await connection.end('COMMIT')) !== 'COMMIT') throw new Error('the transaction had failed');
      broken = false;
      if (counted) done(counted[0]![0] as number);
      return result;
    } catch (thrown) {
      if (!isConnectionLoss(thrown)) broken = !(await ended(connection));
      throw thrown;
    } finally {
      settled();
      connection.release(broken);
    }
  }

  async function writeAhead(writeSet: WriteSet, after: number): Promise<boolean> {
    const write = ++writes;
    const values = valuesOf(writeSet, write, after);
    const settled = versions.writing();
    let connection: Connection | undefined;
    let broken = true;
    try {
      connection = await connections.take();
      const [found] = await connection.query(WRITE, values);
      broken = false;
      const generation = found![0] as number | null;
      if (generation === null) {
        contendedUntil = performance.now() + CONTENDED_MS;
        return false;
      }
      done(generation);
      return true;
    } catch (thrown) {
      broken = !isRefusal(thrown);
      // Writing with the lock held meets the error again and reports it.
      if (!connection || !broken) return false;
      versions.doubt();
      return await wasWritten(write, thrown);
    } finally {
      settled();
      connection?.release(broken);
    }
  }

  return {
    commit: (decide) => again(() => attempt(decide)),
    transact: (work) => transactOnce(work) as never,
    ahead: {
      generation: versions.generation,
      takes: () => turns.held || performance.now() > contendedUntil,
      write: writeAhead,
      close: async () => {},
    },
  };
}
