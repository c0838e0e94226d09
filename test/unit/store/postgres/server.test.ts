/** What only a server of its own can show: certificates, standbys, a restart, and a statement that takes too long. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { lookAtDatabase } from '../../../../src/cli/doctor/database.ts';
import { eventId } from '../../../../src/model/events.ts';
import { createPostgresStore, type PostgresOptions } from '../../../../src/store/postgres/index.ts';
import { openDatabaseFiles } from '../../../../src/store/postgres/private/files.ts';
import { contractProjector } from '../../../contract/store/projector.ts';
import { eventually } from '../../../support/eventually.ts';
import { type Cluster, type ClusterOptions, openCluster } from '../../../support/postgres/cluster.ts';
import { startProxy } from '../../../support/postgres/proxy.ts';
import { createDatabase, PASSWORD, USER } from '../../../support/postgres/server.ts';
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
  const used = await cluster.query(
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
  expect(await refused('127.0.0.2', `?sslmode=require&sslrootcert=${foreign.cert}`)).toMatch(/was not accepted/);
  // On the loopback interface, where nothing else is said.
  expect(await refused('localhost', '?sslmode=disable')).toBe('opened');
  expect(await refused('localhost', '')).toBe('opened');

  // From here on the server wants encryption, and a certificate of its clients.
  const [[hba, data]] = (await cluster.query(
    "SELECT current_setting('hba_file'), current_setting('data_directory')",
  )) as [[string, string]];
  const lines = (text: string, file: string) =>
    cluster.query(`COPY (SELECT unnest(string_to_array('${text.trim()}', E'\\n'))) TO '${file}'`);
  const mine = writeCertificate(other, makeCertificate());
  await lines(readFileSync(mine.cert, 'utf8'), join(data, 'clients.pem'));
  await cluster.query("ALTER SYSTEM SET ssl_ca_file = 'clients.pem'");
  await lines(
    'hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\nhost all all 127.0.0.2/32 scram-sha-256',
    hba,
  );
  await cluster.query('SELECT pg_reload_conf()');
  const file = `sslmode=verify-full&sslrootcert=${cert}`;
  const theirs = `sslcert=${mine.cert}&sslkey=${mine.key}`;
  await eventually(async () => /refuses/.test(await refused('127.0.0.1', '?sslmode=disable')), 'the new rules');
  expect(await refused('127.0.0.1', `?${file}`)).toMatch(/refuses the user or the password|certificate/);
  expect(await refused('127.0.0.1', `?${file}&${theirs}`)).toBe('opened');
});

test('a server that speaks no TLS is refused where encryption is asked for', { timeout: 60_000 }, async () => {
  const { port } = await createDatabase();
  for (const mode of ['require', 'verify-ca', 'verify-full'])
    await expect(openAt(`postgres://${USER}@localhost:${port}/postgres?sslmode=${mode}`)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/speaks no TLS/),
    });
});

test('what a standby lacked that took over is not counted on, and none of its numbers is given twice unseen', {
  timeout: 90_000,
}, async () => {
  const cluster = await clusterWith();
  const proxy = await startProxy(cluster.port);
  onTestFinished(() => proxy.close());
  const url = `postgres://${USER}@127.0.0.1:${proxy.port}/postgres`;
  const [one, two] = [await openAt(url), await openAt(url)];
  const [here, there] = await Promise.all(
    [1, 2].map(() => openDatabaseFiles({ url, password: PASSWORD }, 'a secret that all the gateways have')),
  );
  onTestFinished(async () => void (await Promise.all([here!.close(), there!.close()])));
  await append(one, note('task_a', { n: 1 }));
  await here!.replace('keys', () => 'old');
  const first = await two.lease('work');
  await first!.close();
  await cluster.addStandby();
  await cluster.cutStandby();

  // Confirmed, and lost with the server. The store that wrote it knows it; so does the holder of the lease.
  await append(two, note('task_a', { n: 2 }));
  await here!.replace('keys', () => 'lost');
  await eventually(() => there!.readNow('keys') === 'lost', 'the file');
  const held = await two.lease('work');
  const unaware = { ...held!, lost: new AbortController().signal };
  await cluster.failOver();
  proxy.reset();

  // As many writes of another store as were lost, so that the numbers are the same again.
  const taken = await eventually(() => one.lease('work').catch(() => undefined), 'the lease');
  await eventually(() => append(one, note('task_b', { n: 3 })).then(Boolean, () => false), 'the other store to write');
  await here!.replace('keys', () => 'new');
  await eventually(() => there!.readNow('keys') === 'new', 'the file that was changed after that');
  await append(two, note('task_a', { n: 5 }));
  await expect(two.commit({ lease: unaware, decide: () => ({ events: [note('task_a', { n: 4 })] }) })).rejects.toEqual(
    expect.objectContaining({ kind: 'conflict', details: { lease: 'work' } }),
  );
  await one.commit({ lease: taken, decide: () => ({ events: [note('task_a', { n: 6 })] }) });
  const found = await all(await openAt(urlOf(cluster)));
  expect(found.map(({ id, resource, sequence, payload }) => [id, resource.id, sequence, payload.n])).toEqual([
    [eventId(1), 'task_a', 1, 1],
    [eventId(2), 'task_b', 1, 3],
    [eventId(3), 'task_a', 2, 5],
    [eventId(4), 'task_a', 3, 6],
  ]);
  expect(await two.columnFault()).toBeUndefined();
});

test('a standby is read and never written, and a store that is pointed at it says so', {
  timeout: 60_000,
}, async () => {
  const cluster = await clusterWith();
  const first = await openAt(urlOf(cluster));
  await append(first, note('task_a', { n: 1 }));
  await cluster.addStandby();
  await append(first, note('task_a', { n: 2 }));
  const url = `postgres://${USER}@127.0.0.1:${cluster.standbyPort()}/postgres`;
  const store = await openAt(url);
  const readOnly = {
    kind: 'unavailable',
    message: `${url} is read-only: it is a standby, or was demoted. Point the store at the primary`,
  };
  await expect(append(store, note('task_a', { n: 3 }))).rejects.toMatchObject(readOnly);
  await expect(store.lease('work')).rejects.toMatchObject(readOnly);
  expect(store.trouble()).toBe(readOnly.message);
  await eventually(async () => (await all(store)).length === 2, 'both events at the standby');
  // A log that is not there yet cannot be made there either.
  await expect(openAt(url, { schema: 'other' })).rejects.toMatchObject({ kind: 'unavailable' });
  expect(await lookAtDatabase({ url, password: PASSWORD })).toMatchObject([
    { state: 'bad', says: expect.stringContaining('is read-only'), fix: 'point store.url at the primary' },
  ]);
});

test('a server that takes no more connections delays or refuses, says so, and is used again when it does', {
  timeout: 60_000,
}, async () => {
  const cluster = await clusterWith({ settings: ['max_connections=14', 'superuser_reserved_connections=0'] });
  const store = await openAt(urlOf(cluster), { lockTimeoutMs: 500 });
  await append(store, note('task_a', { n: 1 }));
  const clients: pg.Client[] = [];
  const full = async () => {
    for (;;) {
      const client = new pg.Client({ host: '127.0.0.1', port: cluster.port(), user: USER, password: PASSWORD });
      client.on('error', () => undefined);
      try {
        await client.connect();
        clients.push(client);
      } catch {
        return;
      }
    }
  };
  await full();
  await expect(openAt(urlOf(cluster))).rejects.toMatchObject({
    kind: 'unavailable',
    message: `${urlOf(cluster)} takes no more connections: raise max_connections, or lower store.connections`,
  });
  // What is open goes on being used: a store waits for its own connections rather than fail for want of more.
  await append(store, note('task_a', { n: 2 }));
  const outcomes = await Promise.allSettled(Array.from({ length: 12 }, () => all(store)));
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ kind: 'unavailable' });
  for (const client of clients) await client.end();
  await eventually(() => append(store, note('task_a', { n: 3 })).then(Boolean, () => false), 'the next write');
  expect((await all(store)).map(({ payload }) => payload.n)).toEqual([1, 2, 3]);
  expect(store.trouble()).toBeUndefined();
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
