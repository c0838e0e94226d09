/**
 * The connections of one store. No state lives on a pooled connection between transactions, so they may go through a pooler in
 * transaction mode: statements have no name, settings are local to a transaction, names are written out with their schema.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Fault } from '../../../model/faults.ts';
import { isConnectionLoss } from '../errors.ts';
import type { PostgresLocation, Target } from '../location.ts';

export type Value = string | number | null | boolean | Buffer | readonly (string | number | null | Buffer)[];
export type ResultRows = readonly (readonly unknown[])[];

/** A transaction that work of this store is part of. */
export interface Transaction {
  query(text: string, values?: readonly Value[]): Promise<ResultRows>;
  /** Set once it has ended: whatever still runs in its context reads outside of it. */
  over: boolean;
  /** It changed what other stores keep in memory. */
  noticed: boolean;
}

export interface Connections {
  /** Inside the transaction that the caller runs in, if there is one; else on a connection of its own. */
  query(text: string, values?: readonly Value[]): Promise<ResultRows>;
  /** A connection for a transaction, or for a write whose outcome has to be known. */
  take(): Promise<Connection>;
  /** Runs work whose queries are part of the transaction. */
  within<T>(transaction: Transaction, work: () => T): T;
  current(): Transaction | undefined;
  close(): Promise<void>;
}
export interface Connection {
  query(text: string, values?: readonly Value[]): Promise<ResultRows>;
  /** Several statements without parameters; the rows of the last one. */
  batch(text: string): Promise<ResultRows>;
  /** The tag of the last command that had one: `ROLLBACK` where a COMMIT found a failed transaction. */
  end(command: 'COMMIT' | 'ROLLBACK'): Promise<string>;
  /** `broken`: it must not be used again. */
  release(broken?: boolean): void;
}

const INT8 = 20;
/** Positions and numbers stay far below 2^53. */
export const TYPES = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : (pg.types.getTypeParser as (oid: number, format?: string) => unknown)(oid, format),
} as pg.CustomTypesConfig;

/** So that a caller that tries again at once does not ask an absent server a thousand times a second. */
const PAUSE_MS = 50;
const CONNECT_MS = 5_000;
const DEFAULT_CONNECTIONS = 10;
export const STATEMENT_MS = 30_000;

export function clientConfig(target: Target): pg.ClientConfig {
  const { host, port, user, database, password, ssl } = target;
  // An empty password, so that the driver does not look for one in the environment or in a file.
  return {
    ...{ host, port, user, database, password: password ?? '', ssl, types: TYPES },
    ...{ keepAlive: true, keepAliveInitialDelayMillis: 10_000, connectionTimeoutMillis: CONNECT_MS },
    // All that is sent together is answered together: a statement and the end of its transaction take one round trip.
    ...{ pipeline: true, application_name: 'tollbridge' },
  };
}

/** Says goodbye, and does not wait long for an answer that may never come. */
export async function endClient(client: pg.Client): Promise<void> {
  await within(client.end());
  (client as pg.Client & { connection?: { stream?: { destroy(): void } } }).connection?.stream?.destroy();
}
const GOODBYE_MS = 1_000;
async function within(ending: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, GOODBYE_MS);
  });
  await Promise.race([ending.catch(() => undefined), late]);
  clearTimeout(timer);
}

/** The process may end although the connection is open. The typings of the driver lack this method. */
export function letExit(client: pg.Client): void {
  (client as pg.Client & { unref(): void }).unref();
}

export function createConnections(target: Target, location: PostgresLocation): Connections {
  const { statementTimeoutMs = STATEMENT_MS, connections: max = DEFAULT_CONNECTIONS, directUrl } = location;
  const pool = new pg.Pool({
    ...clientConfig(target),
    ...{ max, idleTimeoutMillis: 30_000 },
    // Later than the server, so that it is the server that says what took too long.
    query_timeout: statementTimeoutMs + 2_000,
    // A pooler knows no such parameter: there the role's own setting holds.
    ...(directUrl === undefined && { statement_timeout: statementTimeoutMs }),
  });
  // An idle connection that breaks is replaced; who uses one meets the error.
  pool.on('error', () => undefined);
  const transactions = new AsyncLocalStorage<Transaction>();
  let closing: Promise<void> | undefined;

  async function take(): Promise<Connection> {
    if (closing) throw new Fault('unavailable', 'the store is closed');
    let client: pg.PoolClient;
    try {
      client = await pool.connect();
    } catch (thrown) {
      if (isConnectionLoss(thrown)) await sleep(PAUSE_MS);
      throw thrown;
    }
    let broken = false;
    const failed = (): void => {
      broken = true;
    };
    client.on('error', failed);
    return {
      query: (text, values = []) => run(client, text, values),
      async batch(text) {
        // Several statements in one text give a list, which the types of the driver leave out.
        const results = (await client.query({ text, rowMode: 'array' })) as unknown as pg.QueryArrayResult[];
        return results.at(-1)!.rows as ResultRows;
      },
      end: async (command) => (await client.query(command)).command,
      release(unusable = false) {
        client.off('error', failed);
        client.release(unusable || broken);
      },
    };
  }

  async function alone(text: string, values: readonly Value[]): Promise<ResultRows> {
    const connection = await take();
    let broken = false;
    try {
      return await connection.query(text, values);
    } catch (thrown) {
      broken = isConnectionLoss(thrown);
      throw thrown;
    } finally {
      connection.release(broken);
    }
  }

  async function read(text: string, values: readonly Value[] = []): Promise<ResultRows> {
    try {
      return await alone(text, values);
    } catch (thrown) {
      // An idle connection may have broken unnoticed. A second loss is the caller's to wait for.
      if (!isConnectionLoss(thrown)) throw thrown;
      return alone(text, values);
    }
  }

  const current = (): Transaction | undefined => {
    const transaction = transactions.getStore();
    return transaction?.over ? undefined : transaction;
  };
  return {
    query: (text, values) => current()?.query(text, values) ?? read(text, values),
    take,
    within: (transaction, work) => transactions.run(transaction, work),
    current,
    close() {
      closing ??= within(pool.end());
      return closing;
    },
  };
}

async function run(client: pg.ClientBase, text: string, values: readonly Value[]): Promise<ResultRows> {
  // No name: a named statement would live on the connection.
  const result = await client.query({ text, values: values as unknown[], rowMode: 'array' });
  return result.rows as ResultRows;
}
