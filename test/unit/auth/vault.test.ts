import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openVaultFile } from '../../../src/auth/vault-file.ts';
import { createSecrets, fileVault, listSecrets, type VaultSource } from '../../../src/auth/vaults.ts';
import { asFault } from '../../../src/model/faults.ts';

const NOW = '2026-11-16T00:00:00.000Z';

async function location() {
  const dir = await mkdtemp(join(tmpdir(), 'tb-vault-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  return { dir, path: join(dir, 'v', 'secrets.json'), key: { file: join(dir, 'v', 'secrets.key') }, env: {} };
}

async function said(attempt: Promise<unknown>): Promise<string> {
  try {
    return `fine: ${JSON.stringify(await attempt)}`;
  } catch (thrown) {
    const fault = asFault(thrown);
    return `${fault.kind}: ${fault.message}`;
  }
}

test('what goes in comes out under its name, and only there', async () => {
  const at = await location();
  const vault = openVaultFile(at);
  expect(await vault.get('github')).toBeUndefined();
  await vault.set('github', 'ghp_correct-horse', NOW);
  await vault.set('slack', 'xoxb-battery', NOW);
  expect(await openVaultFile(at).get('github')).toBe('ghp_correct-horse');
  expect(await vault.get('constructor')).toBeUndefined();
  expect(await vault.list()).toEqual([
    { name: 'github', updated_at: NOW },
    { name: 'slack', updated_at: NOW },
  ]);
  expect(await vault.remove('github')).toBe(true);
  expect(await vault.remove('github')).toBe(false);
  expect(await vault.get('github')).toBeUndefined();
  expect(await vault.get('slack')).toBe('xoxb-battery');
});

test('the file and its key are private, and the file holds no value', async () => {
  const at = await location();
  await openVaultFile(at).set('github', 'ghp_correct-horse', NOW);
  const text = await readFile(at.path, 'utf8');
  expect(text).not.toContain('correct-horse');
  expect(text).not.toContain(Buffer.from('ghp_correct-horse').toString('base64').slice(0, 12));
  for (const file of [at.path, at.key.file]) expect((await stat(file)).mode & 0o777).toBe(0o600);
  await chmod(at.key.file, 0o644);
  expect(await said(openVaultFile(at).get('github'))).toBe(
    `unavailable: ${at.key.file} can be read by others; make it private (0600)`,
  );
});

test('the same value twice is not the same bytes', async () => {
  const at = await location();
  const vault = openVaultFile(at);
  await vault.set('a', 'the same value', NOW);
  await vault.set('b', 'the same value', NOW);
  const { secrets } = JSON.parse(await readFile(at.path, 'utf8'));
  expect(secrets.a.data).not.toBe(secrets.b.data);
  expect(secrets.a.nonce).not.toBe(secrets.b.nonce);
});

test('a value that was moved, changed or cut is damaged, never another value', async () => {
  const at = await location();
  const vault = openVaultFile(at);
  await vault.set('a', 'value of a', NOW);
  await vault.set('b', 'value of b', NOW);
  const file = JSON.parse(await readFile(at.path, 'utf8'));
  const put = (secrets: object) =>
    writeFile(at.path, JSON.stringify({ ...file, secrets: { ...file.secrets, ...secrets } }));
  const damaged = `unavailable: the secret a in ${at.path} is damaged`;
  await put({ a: file.secrets.b });
  expect(await said(vault.get('a'))).toBe(damaged);
  await put({ a: { ...file.secrets.a, data: Buffer.from('value of x').toString('base64') } });
  expect(await said(vault.get('a'))).toBe(damaged);
  await put({ a: { ...file.secrets.a, tag: file.secrets.a.tag.slice(0, 8) } });
  expect(await said(vault.get('a'))).toBe(damaged);
  await writeFile(at.path, '{"format":"tollbridge-vault-1"}');
  expect(await said(vault.get('a'))).toBe(`unavailable: the vault ${at.path} does not add up`);
  expect(await said(vault.set('a', 'anything', NOW))).toBe(`unavailable: the vault ${at.path} does not add up`);
});

test('another key opens nothing and writes nothing', async () => {
  const at = await location();
  await openVaultFile(at).set('a', 'value of a', NOW);
  const before = await readFile(at.path, 'utf8');
  await writeFile(at.key.file, `${Buffer.alloc(32, 7).toString('base64')}\n`);
  const wrong = `unavailable: the vault ${at.path} does not open with this key`;
  expect(await said(openVaultFile(at).get('a'))).toBe(wrong);
  expect(await said(openVaultFile(at).set('b', 'value of b', NOW))).toBe(wrong);
  expect(await readFile(at.path, 'utf8')).toBe(before);
});

test('a passphrase opens it too, and only the right one', async () => {
  const { path } = await location();
  const with_ = (env: Record<string, string>) => openVaultFile({ path, key: { passphraseEnv: 'SESAME' }, env });
  await with_({ SESAME: 'open' }).set('a', 'value of a', NOW);
  expect(await with_({ SESAME: 'open' }).get('a')).toBe('value of a');
  expect(await said(with_({ SESAME: 'shut' }).get('a'))).toBe(
    `unavailable: the vault ${path} does not open with this key`,
  );
  expect(await said(with_({}).get('a'))).toBe(`unavailable: the vault ${path} needs a passphrase in SESAME`);
  const { scrypt } = JSON.parse(await readFile(path, 'utf8'));
  expect(scrypt).toMatchObject({ N: 32_768, r: 8, p: 1 });
  expect(Buffer.from(scrypt.salt, 'base64')).toHaveLength(16);
});

test('two who write at once both keep what they wrote', async () => {
  const at = await location();
  await Promise.all(['a', 'b', 'c', 'd'].map((name) => openVaultFile(at).set(name, `value of ${name}`, NOW)));
  for (const name of ['a', 'b', 'c', 'd']) expect(await openVaultFile(at).get(name)).toBe(`value of ${name}`);
});

async function two() {
  const { path, key } = await location();
  const vaults: VaultSource[] = [
    { name: 'main', provider: 'file', path, key },
    { name: 'env', provider: 'env', prefix: 'TB_' },
  ];
  const env = { TB_token: 'from the environment', TB_both: 'from the environment', HOME: '/home/ana', TB_tiny: 'abc' };
  await fileVault(vaults, env, undefined).vault.set('both', 'from the file', NOW);
  const learned: string[] = [];
  return { vaults, env, learned, secret: createSecrets({ vaults, env, learn: (value) => learned.push(value) }) };
}

test('a secret is known to the redactor before anyone has it', async () => {
  const { secret, learned } = await two();
  expect(await secret('token')).toBe('from the environment');
  expect(await secret('both')).toBe('from the file');
  expect(await secret('env:both')).toBe('from the environment');
  expect(learned).toEqual(['from the environment', 'from the file', 'from the environment']);
});

test('what is not there, or not named like a secret, cannot be had', async () => {
  const { secret, learned } = await two();
  expect(await said(secret('HOME'))).toBe('not_found: no secret HOME; put it in with: tollbridge vault set HOME');
  expect(await said(secret('main:token'))).toMatch(/^not_found: /);
  expect(await said(secret('other:token'))).toBe('not_found: there is no vault other');
  expect(await said(secret('../x'))).toMatch(/^invalid_request: the name of a secret /);
  expect(await said(secret('tiny'))).toBe(
    'invalid_request: the secret tiny has fewer than 6 characters, too few to be redacted',
  );
  expect(learned).toEqual([]);
});

test('a list has names and nothing else', async () => {
  const { vaults, env } = await two();
  expect(await listSecrets(vaults, env)).toEqual([
    { vault: 'main', provider: 'file', name: 'both', updated_at: NOW },
    { vault: 'env', provider: 'env', name: 'both', updated_at: null },
    { vault: 'env', provider: 'env', name: 'tiny', updated_at: null },
    { vault: 'env', provider: 'env', name: 'token', updated_at: null },
  ]);
});
