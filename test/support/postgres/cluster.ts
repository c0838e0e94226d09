/** A PostgreSQL server of a test's own, to be stopped, crashed and failed over to a standby while gateways work on it. */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { eventually } from '../eventually.ts';
import type { Done, Order } from './cluster-process.ts';
import { dataLocation } from './data-location.ts';
import { PASSWORD, USER } from './server.ts';

export interface Cluster {
  /** Of the primary. It changes when a standby takes its place. */
  port(): number;
  standbyPort(): number;
  /** From now on the standby hears of nothing that is committed, and no commit waits for it. */
  cutStandby(): Promise<void>;
  /** Asks the primary, or the server at this port. */
  query(text: string, port?: number): Promise<unknown[][]>;
  stop(how: 'fast' | 'immediate'): Promise<void>;
  start(): Promise<void>;
  /** Resolves once commits wait for it. */
  addStandby(): Promise<void>;
  failOver(): Promise<void>;
  close(): Promise<void>;
}

export interface ClusterOptions {
  /** Of the servers, as `name=value`. */
  readonly settings?: readonly string[];
  /** A directory with cert.pem and key.pem, for TLS. */
  readonly certificate?: string;
}

export async function openCluster({ settings = [], certificate = '' }: ClusterOptions = {}): Promise<Cluster> {
  const dir = mkdtempSync(join(dataLocation(), 'tollbridge-cluster-'));
  const main = fileURLToPath(new URL('./cluster-process.ts', import.meta.url));
  const child: ChildProcess = fork(main, [dir, certificate, ...settings], {
    execArgv: ['--import', 'tsx'],
    silent: true,
  });
  let port = 0;
  let standby = 0;
  let last: Promise<unknown> = answer();

  function answer(): Promise<void> {
    return new Promise((resolve, reject) => {
      const gone = () => reject(new Error('the process of the servers has ended'));
      child.once('exit', gone);
      child.once('message', (done: Done) => {
        child.off('exit', gone);
        if ('failed' in done) return reject(new Error(done.failed));
        port = done.port;
        standby = done.standby ?? 0;
        resolve();
      });
    });
  }
  /** One at a time. */
  function order(wanted: Order): Promise<void> {
    const done = last.then(() => {
      child.send(wanted);
      return answer();
    });
    last = done.catch(() => undefined);
    return done;
  }

  async function query(text: string, at = port): Promise<unknown[][]> {
    const client = new pg.Client({ host: '127.0.0.1', port: at, user: USER, password: PASSWORD, database: 'postgres' });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query({ text, rowMode: 'array' })).rows as unknown[][];
    } finally {
      await client.end();
    }
  }

  await order({ do: 'start' });
  return {
    port: () => port,
    standbyPort: () => standby,
    query,
    async cutStandby() {
      await query("ALTER SYSTEM SET synchronous_standby_names = ''");
      await query('SELECT pg_reload_conf()');
      await query("ALTER SYSTEM SET primary_conninfo = ''", standby);
      await query('SELECT pg_reload_conf()', standby);
      const streams = async () => (await query('SELECT 1 FROM pg_stat_replication')).length > 0;
      await eventually(async () => !(await streams()), 'the standby to be cut off');
    },
    stop: (how) => order({ do: 'stop', how }),
    start: () => order({ do: 'start' }),
    addStandby: () => order({ do: 'add standby' }),
    failOver: () => order({ do: 'fail over' }),
    async close() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.disconnect();
      await ended;
    },
  };
}
