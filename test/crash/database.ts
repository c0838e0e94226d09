/** A database for gateways that are killed: how they find it, and how its log is looked at. */
import pg from 'pg';
import type { Cluster } from '../support/postgres/cluster.ts';
import { PASSWORD, USER } from '../support/postgres/server.ts';
import { type CopyLog, databaseLog } from './log-copy.ts';

export interface CampaignDatabase {
  /** The section `store` of a configuration; `port` is that of a proxy before the server. */
  section(port?: number): object;
  /** Gateways find the password in it. */
  readonly env: Readonly<Record<string, string>>;
  readonly copyLog: CopyLog;
  drop(): Promise<void>;
}

export async function makeDatabase(cluster: Cluster, name: string): Promise<CampaignDatabase> {
  const url = (database: string, port = cluster.port()) => `postgres://${USER}@127.0.0.1:${port}/${database}`;
  async function query(text: string, database = 'postgres'): Promise<unknown[][]> {
    const client = new pg.Client({ host: '127.0.0.1', port: cluster.port(), user: USER, password: PASSWORD, database });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query({ text, rowMode: 'array' })).rows as unknown[][];
    } finally {
      await client.end();
    }
  }
  await query(`CREATE DATABASE ${name}`);
  return {
    section: (port) => ({ url: url(name, port), secret: 'store' }),
    env: { TOLLBRIDGE_SECRET_store: PASSWORD },
    copyLog: databaseLog(name, { query, locate: (database) => ({ url: url(database), password: PASSWORD }) }),
    drop: async () => void (await query(`DROP DATABASE ${name} WITH (FORCE)`)),
  };
}
