/** What only a server of its own can show: certificates, standbys, a restart, and a statement that takes too long. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { createPostgresStore, type PostgresOptions } from '../../../../src/store/postgres/index.ts';
import { contractProjector } from '../../../contract/store/projector.ts';
import { type Cluster, type ClusterOptions, openCluster } from '../../../support/postgres/cluster.ts';
import { PASSWORD, USER } from '../../../support/postgres/server.ts';
import { makeCertificate, writeCertificate } from '../../../support/process/certificate.ts';
import { all, append, note } from './home.ts';

const clock = { now: () => new Date().toISOString() };

async function clusterWith(options: ClusterOptions = {}): Promise<Cluster> {
  const cluster = await openCluster(options);
  onTestFinished(() => cluster.close(), 60_000);
  return cluster;
}

async function openAt(url: string, options: Partial<PostgresOptions> = {}) {
  const store = await createPostgresStore({ url, password: PASSWORD, clock, projector: contractProjector, ...options });
  onTestFinished(() => store.close(), 60_000);
  return store;
}

const urlOf = (cluster: Cluster, host = '127.0.0.1', parameters = '') =>
  `postgres://${USER}@${host}:${cluster.port()}/postgres${parameters}`;

async function asked(cluster: Cluster, text: string): Promise<unknown[][]> {
  const client = new pg.Client({ host: '127.0.0.1', port: cluster.port(), user: USER, password: PASSWORD });
  await client.connect();
  try {
    return (await client.query({ text, rowMode: 'array' })).rows as unknown[][];
  } finally {
    await client.end();
  }
}

test('a server is verified by its certificate and its name', { timeout: 60_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'tb-tls-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const { cert } = writeCertificate(dir, makeCertificate());
  const other = mkdtempSync(join(tmpdir(), 'tb-tls-'));
  onTestFinished(() => rmSync(other, { recursive: true, force: true }));
  const foreign = writeCertificate(other, makeCertificate());
  const cluster = await clusterWith({ certificate: dir, settings: ['listen_addresses=127.0.0.1,127.0.0.2'] });

  const verified = await openAt(urlOf(cluster, 'localhost', `?sslmode=verify-full&sslrootcert=${cert}`));
  await append(verified, note('task_a', { n: 1 }));
  const used = await asked(
    cluster,
    "SELECT DISTINCT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.application_name LIKE 'tollbridge%'",
  );
  expect(used).toEqual([[true]]);

  const refused = async (host: string, parameters: string) =>
    await openAt(urlOf(cluster, host, parameters)).then(
      () => 'opened',
      ({ message }) => message,
    );
  // Signed by nobody we know; by another one; for another name.
  expect(await refused('localhost', '?sslmode=verify-full')).toMatch(/the certificate of .* was not accepted/);
  expect(await refused('localhost', `?sslmode=verify-full&sslrootcert=${foreign.cert}`)).toMatch(/was not accepted/);
  expect(await refused('127.0.0.2', `?sslmode=verify-full&sslrootcert=${cert}`)).toMatch(/was not accepted/);
  expect(await refused('127.0.0.2', `?sslmode=verify-ca&sslrootcert=${cert}`)).toBe('opened');
  expect(await refused('localhost', '?sslmode=require')).toBe('opened');
});

test('with `standby`, what was answered can be read at the standby at once and is there when it takes over', {
  timeout: 60_000,
}, async () => {
  const cluster = await clusterWith();
  const url = urlOf(cluster);
  const plain = await openAt(url);
  await append(plain, note('task_a', { n: 0 }));
  const store = await openAt(url, { standby: true });
  await expect(append(store, note('task_a', { n: 1 }))).rejects.toMatchObject({ kind: 'unavailable' });
  await cluster.addStandby();
  for (let n = 1; n <= 20; n++) await append(store, note('task_a', { n }));
  await cluster.failOver();
  // No standby has it now, so nothing is promised.
  const after = await openAt(urlOf(cluster), { standby: true });
  await expect(append(after, note('task_a', { n: 21 }))).rejects.toMatchObject({ kind: 'unavailable' });
  expect((await all(after)).map(({ payload }) => payload.n)).toEqual(Array.from({ length: 21 }, (_, n) => n));
  await cluster.addStandby();
  await append(after, note('task_a', { n: 21 }));
  expect(await all(after)).toHaveLength(22);
});

test('a statement that takes longer than it may is ended by the server, and the next one is served', {
  timeout: 60_000,
}, async () => {
  const cluster = await clusterWith();
  const store = await openAt(urlOf(cluster), { statementTimeoutMs: 300 });
  await append(store, note('task_a', { n: 1 }));
  const client = new pg.Client({ host: '127.0.0.1', port: cluster.port(), user: USER, password: PASSWORD });
  await client.connect();
  try {
    await client.query('BEGIN');
    await client.query('LOCK TABLE tollbridge.rows IN ACCESS EXCLUSIVE MODE');
    await expect(store.get('task', 'task_a')).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/took longer than store.statement_timeout/),
    });
    await expect(append(store, note('task_a', { n: 2 }))).rejects.toMatchObject({ kind: 'unavailable' });
    await client.query('ROLLBACK');
  } finally {
    await client.end();
  }
  await append(store, note('task_a', { n: 2 }));
  expect((await all(store)).map(({ payload }) => payload.n)).toEqual([1, 2]);
});
