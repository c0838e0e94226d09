/** The schema: made once however many start at the same time, and refused where it is another version's. */
import { expect, test } from 'vitest';
import { createConnections } from '../../../../src/store/postgres/connection/connections.ts';
import { targetOf } from '../../../../src/store/postgres/location.ts';
import { migrate, STEPS, versionOf } from '../../../../src/store/postgres/schema/migrations.ts';
import { append, note, postgresHome } from './home.ts';

const home = postgresHome();

async function migrated<T>(
  location: ReturnType<typeof home.database.location>,
  steps: { steps?: readonly string[]; major?: number } | undefined,
  look: (version: Awaited<ReturnType<typeof versionOf>>) => T,
): Promise<T> {
  const connections = createConnections(targetOf(location), location);
  const connection = await connections.take();
  try {
    if (steps) await migrate(connection, location.schema, 'the log', steps);
    return look(await versionOf(connection, location.schema));
  } finally {
    connection.release();
    await connections.close();
  }
}

test('gateways that start together make one schema, and all of them work on it', async () => {
  const location = home.database.location();
  const stores = await Promise.all(Array.from({ length: 6 }, () => home.open(location)));
  const written = await Promise.all(stores.map((store, n) => append(store, note(`task_${n}`))));
  expect(written.map(({ events }) => events[0]!.id).toSorted()).toEqual(
    [1, 2, 3, 4, 5, 6].map((n) => `evt_${String(n).padStart(16, '0')}`),
  );
});

test('a gateway that knows fewer steps goes on beside one that made more', async () => {
  const location = home.database.location();
  const old = await home.open(location);
  await append(old, note('task_a'));
  const next = [...STEPS.map(() => ''), 'ALTER TABLE $S.meta ADD COLUMN later TEXT; CREATE TABLE $S.later (id INT)'];
  expect(await migrated(location, { steps: next }, (version) => version)).toEqual({
    major: 1,
    minor: STEPS.length + 1,
  });
  expect((await append(old, note('task_a'))).events[0]).toMatchObject({ sequence: 2 });
  const started = await home.open(location);
  expect((await append(started, note('task_a'))).events[0]).toMatchObject({ sequence: 3 });
  expect(await migrated(location, undefined, (version) => version)).toEqual({ major: 1, minor: STEPS.length + 1 });
});

test('another major version is refused, and says which', async () => {
  const location = home.database.location();
  await home.open(location);
  await home.database.query(`UPDATE ${location.schema}.schema_version SET major = 2`);
  await expect(home.open(location)).rejects.toMatchObject({
    kind: 'unsupported_version',
    message: expect.stringMatching(
      /was written by a newer version \(schema 2, this one knows 1\): upgrade, or use another schema$/,
    ),
  });
});

test('a step that fails leaves the schema as it was', async () => {
  const location = home.database.location();
  await home.open(location);
  const broken = [...STEPS.map(() => ''), 'CREATE TABLE $S.half (id INT); SELECT nonsense'];
  await expect(migrated(location, { steps: broken }, () => 0)).rejects.toThrow('nonsense');
  expect(await migrated(location, undefined, (version) => version)).toEqual({ major: 1, minor: STEPS.length });
  expect(await home.database.query(`SELECT to_regclass('${location.schema}.half')`)).toEqual([[null]]);
});

test('a gateway without the right to make the schema says so', async () => {
  const location = home.database.location();
  await home.database.query("CREATE ROLE guest LOGIN PASSWORD 'guest'").catch(() => undefined);
  const url = location.url.replace('postgres@', 'guest@');
  const refusal = home.open({ ...location, url, password: 'guest' });
  await expect(refusal).rejects.toMatchObject({
    kind: 'unavailable',
    message: `the user of the store lacks a privilege on ${url} (schema ${location.schema}): it has to own the schema`,
  });
  const wrong = home.open({ ...location, password: 'not-the-password' });
  await expect(wrong).rejects.toMatchObject({
    kind: 'unavailable',
    message: `${location.url} (schema ${location.schema}) refuses the user or the password of the store`,
  });
});

test('commits wait for the disk, and are refused where a standby is asked for and there is none', async () => {
  const location = home.database.location();
  const store = await home.open({ ...location, standby: true });
  await expect(append(store, note('task_a'))).rejects.toMatchObject({
    kind: 'unavailable',
    message: `${location.url} (schema ${location.schema}) does not make commits durable as store.standby and its own fsync must have it`,
  });
  // Whatever the database itself would have.
  await home.database.query(`ALTER DATABASE ${home.database.name} SET synchronous_commit = off`);
  const plain = await home.open(location);
  await append(plain, note('task_a'));
  const [[setting]] = (await home.database.query(
    `SELECT current_setting('synchronous_commit') FROM ${location.schema}.durable_1(false)`,
  )) as [[string]];
  expect(setting).toBe('on');
});

test('nothing is left on a pooled connection after a transaction: no setting, no statement, no lock, no channel', async () => {
  const location = home.database.location();
  const store = await home.open({ ...location, directUrl: location.url, connections: 2 });
  for (let n = 0; n < 5; n++) await append(store, note('task_a', { n }));
  await store.retain('2020-01-01T00:00:00.000Z');
  await store.putBlob(new Uint8Array(600_000));
  await store.rebuild();
  const connections = createConnections(targetOf(location), { ...location, connections: 1, directUrl: location.url });
  try {
    const session = async () => {
      const [found] = await connections.query(
        `SELECT (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels()),
           (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'),
           current_setting('search_path'), current_setting('lock_timeout'), current_setting('synchronous_commit')`,
      );
      return found;
    };
    const before = await session();
    await connections.query(`SELECT * FROM ${location.schema}.load_1('{}','{}','{}','{}','{a}','{}','{}')`);
    await connections.query(`SELECT ${location.schema}.durable_1(false)`);
    await connections.query(`SELECT * FROM ${location.schema}.lock_1(1000)`);
    expect(await session()).toEqual(before);
    const stateful = await home.database.query(
      `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
       WHERE a.application_name = 'tollbridge' AND l.locktype = 'advisory' AND a.state = 'idle'`,
    );
    expect(stateful).toEqual([['0']]);
  } finally {
    await connections.close();
  }
});
