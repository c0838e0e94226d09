/** The PostgreSQL server of this run of tests, started by the first file that asks for it, and databases on it. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { eventually } from '../eventually.ts';
import { dataLocation } from './data-location.ts';

export const USER = 'postgres';
export const PASSWORD = 'postgres';

/** Benches run this file compiled; the server's process is always run from its source. */
const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = HERE.slice(0, HERE.lastIndexOf('/test/')).replace(/\/dist-bench$/, '');

/** The workers of a run of tests share their parent's server; another program has one of its own. */
const owner = process.env.VITEST ? process.ppid : process.pid;

async function portOf(): Promise<number> {
  const dir = join(dataLocation(), `tollbridge-postgres-${owner}`);
  const port = join(dir, 'port');
  try {
    mkdirSync(dir);
    const main = join(ROOT, 'test/support/postgres/server-process.ts');
    spawn(process.execPath, ['--import', 'tsx', main, dir, String(owner)], { stdio: 'ignore', detached: true }).unref();
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown;
  }
  await eventually(() => existsSync(port) || existsSync(join(dir, 'failed')), 'the PostgreSQL server', {
    timeoutMs: 50_000,
  });
  if (!existsSync(port)) throw new Error(`PostgreSQL did not start: ${readFileSync(join(dir, 'failed'), 'utf8')}`);
  return Number(readFileSync(port, 'utf8'));
}

let starting: Promise<number> | undefined;
export function postgresPort(): Promise<number> {
  starting ??= portOf();
  return starting;
}

export interface TestDatabase {
  readonly name: string;
  readonly port: number;
  /** Without the password, as it is configured. */
  readonly url: string;
  /** What a store is opened with, on a schema that is not there yet. */
  location(more?: { readonly port?: number }): { url: string; password: string; schema: string };
  /** A connection of our own, as another program would have. */
  query(text: string, values?: unknown[]): Promise<unknown[][]>;
  drop(): Promise<void>;
}

/** A database of one test file; its tests have a schema each. */
export async function createDatabase(): Promise<TestDatabase> {
  const port = await postgresPort();
  const name = `test_${randomBytes(6).toString('hex')}`;
  await onServer(port, 'postgres', (client) => client.query(`CREATE DATABASE ${name}`));
  const url = `postgres://${USER}@127.0.0.1:${port}/${name}`;
  return {
    ...{ name, port, url },
    location: ({ port: through = port } = {}) => ({
      url: `postgres://${USER}@127.0.0.1:${through}/${name}`,
      password: PASSWORD,
      schema: `log_${randomBytes(6).toString('hex')}`,
    }),
    query: (text, values = []) =>
      onServer(port, name, async (client) => {
        await client.query('SET default_transaction_read_only = off');
        const { rows } = await client.query({ text, values, rowMode: 'array' });
        return rows as unknown[][];
      }),
    drop: () =>
      onServer(port, 'postgres', async (client) => {
        await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
      }),
  };
}

async function onServer<T>(port: number, database: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: USER, password: PASSWORD, database });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
