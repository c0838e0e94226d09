/** Keys and sign-ins that gateways share through the database of their log: what one changes, all have; and none goes on without knowing. */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createApiKeys, openApiKeys } from '../../../../src/auth/api-keys.ts';
import { directoryFiles } from '../../../../src/auth/private-file.ts';
import { createSecrets, createSecretWriter, fileVault, listSecrets } from '../../../../src/auth/vaults.ts';
import { systemClock } from '../../../../src/core/clock.ts';
import { sharedKeyFile } from '../../../../src/receipt/seal/key-file.ts';
import { openKeyring } from '../../../../src/receipt/seal/keys.ts';
import { openInstallation } from '../../../../src/runtime/installation/installation.ts';
import { type DatabaseFiles, openDatabaseFiles } from '../../../../src/store/postgres/private/files.ts';
import { eventually } from '../../../support/eventually.ts';
import { startProxy } from '../../../support/postgres/proxy.ts';
import { createDatabase, type TestDatabase } from '../../../support/postgres/server.ts';
import { aDirectory } from '../../../support/process/cli.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

const SECRET = 'a-secret-that-all-gateways-of-this-log-have';
type Location = ReturnType<TestDatabase['location']>;

async function opened(location: Location, secret = SECRET): Promise<DatabaseFiles> {
  const files = await openDatabaseFiles(location, secret);
  onTestFinished(files.close);
  return files;
}

test('what one gateway writes, another one reads; changes at once are not lost', async () => {
  const location = database.location();
  const [a, b] = await Promise.all([opened(location), opened(location)]);
  expect(await a.read('x/y')).toBeUndefined();
  expect(a.version('x/y')).toBe('absent');
  await a.replace('x/y', (text) => `${text ?? ''}a`);
  expect(a.readNow('x/y')).toBe('a');
  await eventually(() => b.readNow('x/y') === 'a', 'the other to have it', { timeoutMs: 1_000 });
  const before = b.version('x/y');
  await Promise.all(Array.from({ length: 20 }, (_, n) => (n % 2 ? a : b).replace('x/y', (text) => `${text}${n % 10}`)));
  await eventually(async () => (await b.read('x/y'))!.length === 21, 'all changes', { timeoutMs: 1_000 });
  expect(await b.fresh('x/y')).not.toBe(before);
  await expect(
    a.replace('x/y', () => {
      throw new Error('no');
    }),
  ).rejects.toThrow('no');
  await eventually(async () => (await a.read('x/y'))!.length === 21, 'all changes', { timeoutMs: 1_000 });
});

test('the database has no text of it, and another secret does not open it', async () => {
  const location = database.location();
  const files = await opened(location);
  await files.replace('auth/api-keys.json', () => 'a text that nobody reads');
  await files.replace('other', () => 'more');
  const stored = await database.query(`SELECT name, sealed FROM ${location.schema}.private_files ORDER BY name`);
  expect(stored.map(([name]) => name)).toEqual(['auth/api-keys.json', 'other']);
  for (const [, sealed] of stored) expect((sealed as Buffer).toString('latin1')).not.toContain('nobody reads');
  await expect(openDatabaseFiles(location, `${SECRET}2`)).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('all gateways of a log need the same one'),
  });
  await expect(openDatabaseFiles(location, 'too short')).rejects.toThrow(/fewer than 32 characters/);
  // A file is sealed under its name.
  await database.query(`UPDATE ${location.schema}.private_files f SET revision = revision + 10000000, sealed =
    (SELECT sealed FROM ${location.schema}.private_files WHERE name = 'other') WHERE name = 'auth/api-keys.json'`);
  await expect(eventually(() => files.read('auth/api-keys.json').then((text) => text === 'more'))).rejects.toThrow(
    /does not open auth\/api-keys\.json/,
  );
});

test('a key that is revoked at one gateway is refused at the other within a second', async () => {
  const location = database.location();
  const [a, b] = [openApiKeys(await opened(location), systemClock), openApiKeys(await opened(location), systemClock)];
  const { key, record } = await a.create({ name: 'ci', actor: { id: 'ci', kind: 'service', scopes: ['*'] } });
  await eventually(() => b.actor(key), 'the other to know it', { timeoutMs: 1_000 });
  const revoked = performance.now();
  await a.revoke(record.id);
  await expect(a.actor(key)).rejects.toMatchObject({ kind: 'unauthenticated' });
  await expect(
    eventually(async () => (await b.actor(key)) === undefined, 'never: it is refused', { timeoutMs: 1_000 }),
  ).rejects.toMatchObject({ kind: 'unauthenticated' });
  expect(performance.now() - revoked).toBeLessThan(1_000);
});

test('a gateway that cannot ask does not go on with what it knew', { timeout: 30_000 }, async () => {
  const location = database.location();
  const proxy = await startProxy(database.port);
  onTestFinished(proxy.close);
  const here = await opened(location);
  const there = await opened({ ...location, ...database.location({ port: proxy.port }), schema: location.schema });
  const keyring = await openKeyring({ dir: sharedKeyFile(there), now: () => systemClock.now() });
  const { key } = await openApiKeys(here, systemClock).create({
    name: 'ci',
    actor: { id: 'ci', kind: 'service', scopes: ['*'] },
  });
  const keys = openApiKeys(there, systemClock);
  await eventually(() => keys.actor(key));
  keyring.signer().sign('sha256:0');
  await proxy.close();
  await eventually(
    () =>
      keys.actor(key).then(
        () => false,
        ({ kind }) => kind === 'unavailable',
      ),
    'a refusal',
  );
  await eventually(() => {
    try {
      keyring.signer().sign('sha256:0');
      return false;
    } catch (thrown) {
      return (thrown as { kind?: string }).kind === 'unavailable';
    }
  }, 'no signature');
  // Old receipts can still be verified.
  expect(keyring.jwks().keys).toHaveLength(1);
});

test('a key that one gateway rotates, the other signs with; both keys count while clocks may differ', async () => {
  const location = database.location();
  const now = () => systemClock.now();
  const [here, there] = [await opened(location), await opened(location)];
  const [a, b] = await Promise.all([
    openKeyring({ dir: sharedKeyFile(here), now }),
    openKeyring({ dir: sharedKeyFile(there), now }),
  ]);
  const first = a.signer().keyId;
  expect(b.signer().keyId).toBe(first);
  expect(b.signer().mac('x')).toBe(a.signer().mac('x'));
  const at = Date.now();
  await a.rotate();
  const second = a.signer().keyId;
  expect(second).not.toBe(first);
  await eventually(() => b.signer().keyId === second, 'the other to use it', { timeoutMs: 1_000 });
  const [old, fresh] = b.jwks().keys;
  expect(old!.kid).toBe(first);
  expect(old!.exp! * 1000).toBeGreaterThanOrEqual(at + here.lagMs);
  expect(fresh!.nbf! * 1000).toBeLessThanOrEqual(at - here.lagMs + 1_000);
});

test('work under one name is done by one gateway at a time', async () => {
  const location = database.location();
  const both = [await opened(location), await opened(location)];
  let inside = 0;
  let most = 0;
  const work = async () => {
    most = Math.max(most, ++inside);
    await both[0]!.replace('count', (text) => String(Number(text ?? 0) + 1));
    inside--;
  };
  await Promise.all(Array.from({ length: 12 }, (_, n) => both[n % 2]!.alone('refresh', work)));
  expect(most).toBe(1);
  expect(await both[1]!.alone('refresh', () => both[1]!.read('count'))).toBe('12');
  await expect(both[0]!.alone('refresh', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await both[1]!.alone('refresh', async () => 'goes on')).toBe('goes on');
});

test('a vault in the store: a secret that one gateway keeps, the other has', async () => {
  const location = database.location();
  const learned: string[] = [];
  const deps = () => ({
    vaults: [{ name: 'shared', provider: 'store' as const, files: () => openDatabaseFiles(location, SECRET) }],
    env: {},
    learn: (value: string) => void learned.push(value),
  });
  const writer = createSecretWriter({ ...deps(), clock: systemClock })!;
  await writer.alone('mcp-search', () => writer.keep('mcp-search', '{"access_token":"a-token-of-length"}'));
  expect(await createSecrets(deps())('mcp-search')).toBe('{"access_token":"a-token-of-length"}');
  expect(learned).toContain('a-token-of-length');
  await expect(createSecrets(deps())('other')).rejects.toMatchObject({ kind: 'not_found' });
  expect((await listSecrets(deps().vaults, {})).map(({ vault, name }) => `${vault}:${name}`)).toEqual([
    'shared:mcp-search',
  ]);
  const { vault } = fileVault(deps().vaults, {}, undefined);
  expect([await vault.remove('constructor'), await vault.remove('mcp-search')]).toEqual([false, true]);
  await expect(createSecrets(deps())('mcp-search')).rejects.toMatchObject({ kind: 'not_found' });
  const stored = await database.query(`SELECT sealed FROM ${location.schema}.private_files`);
  expect((stored[0]![0] as Buffer).toString('latin1')).not.toContain('a-token');
});

test('gateways that had files of their own bring them along, once', async () => {
  const location = database.location();
  const sharedFiles = () => openDatabaseFiles(location, SECRET);
  const person = { id: 'ana', kind: 'person' as const, scopes: ['*'] };
  const before: { dir: string; key: string; signing: string }[] = [];
  for (const name of ['a', 'b']) {
    const dir = await aDirectory();
    const own = await openInstallation({ dataDir: dir });
    const keyring = await own.keyring();
    const { key } = await createApiKeys({ files: directoryFiles(dir), clock: systemClock, random: randomBytes }).create(
      {
        name,
        actor: { ...person, id: name },
      },
    );
    const act = { arguments: { to: name } } as never;
    await own.pendingActs(keyring.signer()).keep(`ask_${name}`, act);
    before.push({ dir, key, signing: keyring.signer().keyId });
  }
  await mkdir(join(before[1]!.dir, 'agents'));
  await writeFile(
    join(before[1]!.dir, 'agents/switches.json'),
    JSON.stringify({ format: 'tollbridge-agents-1', off: {} }),
    { mode: 0o600 },
  );
  for (const { dir } of before) {
    // As workers of one machine do.
    const workers = await Promise.all([1, 2, 3].map(() => openInstallation({ dataDir: dir, sharedFiles })));
    for (const worker of workers) await worker.close();
    expect(await readdir(join(dir, 'auth'))).toEqual(['api-keys.json.moved']);
    expect(await readdir(join(dir, 'keys'))).toEqual(['receipt-keys.json.moved']);
  }
  const third = await openInstallation({ dataDir: await aDirectory(), sharedFiles });
  onTestFinished(third.close);
  const keys = openApiKeys(third.files, systemClock);
  for (const { key } of before) expect(await keys.actor(key)).toBeDefined();
  const keyring = await third.keyring();
  // The first one's signing key goes on; what the other one signed can be verified.
  expect(keyring.signer().keyId).toBe(before[0]!.signing);
  expect(
    keyring
      .jwks()
      .keys.map(({ kid }) => kid)
      .toSorted(),
  ).toEqual(before.map(({ signing }) => signing).toSorted());
  const acts = third.pendingActs(keyring.signer());
  expect(await acts.read('ask_a')).toEqual({ arguments: { to: 'a' } });
  expect((await acts.list()).map(({ askId }) => askId)).toEqual(['ask_a']);
  acts.drop('ask_a');
  await eventually(async () => (await acts.list()).length === 0, 'the act to be dropped');
});
