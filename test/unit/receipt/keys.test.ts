import { spawn } from 'node:child_process';
import { createHash, createPublicKey, verify } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openKeyring } from '../../../src/receipt/seal/keys.ts';

const HASH = `sha256:${'0'.repeat(64)}`;
let base: string;
let dir: string;
let file: string;
let time = '2026-11-16T09:00:00.400Z';
const open = () => openKeyring({ dir, now: () => time });

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'keys-'));
  dir = join(base, 'keys');
  file = join(dir, 'receipt-keys.json');
  time = '2026-11-16T09:00:00.400Z';
});
afterEach(() => rm(base, { recursive: true, force: true }));

describe('the first start', () => {
  test('makes a key only its owner can read, and nothing else', async () => {
    await open();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    expect(await readdir(dir)).toEqual(['receipt-keys.json']);
  });

  test('the next start finds the same key', async () => {
    const [first, second] = [await open(), await open()];
    expect(second.signer().keyId).toBe(first.signer().keyId);
    expect(second.signer().sign(HASH)).toEqual(first.signer().sign(HASH));
    expect(second.signer().mac('secret')).toBe(first.signer().mac('secret'));
  });

  test('two processes starting at once get the same key', async () => {
    const ids = await Promise.all(Array.from({ length: 4 }, () => keyIdInAnotherProcess(dir)));
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).toBe((await open()).signer().keyId);
    expect(await readdir(dir)).toEqual(['receipt-keys.json']);
  });

  test('a directory that cannot be made is a fault that names it', async () => {
    await writeFile(join(base, 'keys'), 'a file in the way');
    await expect(open()).rejects.toMatchObject({ kind: 'unavailable' });
  });
});

describe('signing', () => {
  test('knows which key was in use at a moment that is over', async () => {
    const keyring = await open();
    const first = keyring.signer().keyId;
    time = '2026-11-16T10:00:00.000Z';
    await keyring.rotate();
    const again = (await open()).signer();
    const { keyId: second } = again;
    expect(second).not.toBe(first);
    const moments = ['2026-11-16T08:00:00Z', '2026-11-16T09:59:59.999Z', time, '2026-11-16T11:00:00Z'];
    expect(moments.map((at) => again.keyIdAt?.(at))).toEqual([first, first, second, second]);
  });

  test('signs the text of the hash under an id made from the key', async () => {
    const keyring = await open();
    const signature = keyring.signer().sign(HASH);
    const [jwk] = keyring.jwks().keys;
    const raw = Buffer.from(jwk!.x, 'base64url');
    expect(raw).toHaveLength(32);
    expect(jwk!.kid).toBe(`ed25519:${createHash('sha256').update(raw).digest('hex').slice(0, 32)}`);
    expect(signature).toMatchObject({ algorithm: 'ed25519', key_id: jwk!.kid, signed_at: '2026-11-16T09:00:00.400Z' });
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: jwk!.x }, format: 'jwk' });
    const bytes = Buffer.from(signature.signature.replace(/^base64:/, ''), 'base64');
    expect(verify(null, Buffer.from(HASH), key, bytes)).toBe(true);
  });

  test('the keyed digest differs from gateway to gateway', async () => {
    const one = (await open()).signer().mac('secret');
    const other = (await openKeyring({ dir: join(base, 'other'), now: () => time })).signer().mac('secret');
    expect(one).toMatch(/^hmac-sha256:[0-9a-f]{64}$/);
    expect(one).not.toBe(other);
  });

  test('the public key set holds nothing private', async () => {
    const keyring = await open();
    const text = JSON.stringify(keyring.jwks());
    const { keys, mac_key } = JSON.parse(await readFile(file, 'utf8'));
    expect(text).not.toContain(keys[0].private_key);
    expect(text).not.toContain(mac_key);
    expect(keyring.jwks().keys[0]).not.toHaveProperty('d');
  });
});

describe('rotation', () => {
  test('retires the old key, drops its private half, and signs with the new one at once', async () => {
    const keyring = await open();
    const signer = keyring.signer();
    const before = signer.keyId;
    const mac = signer.mac('secret');
    time = '2026-11-16T10:00:00.400Z';
    await keyring.rotate();
    expect(signer.keyId).not.toBe(before);
    expect(signer.sign(HASH).key_id).toBe(signer.keyId);
    expect(signer.mac('secret')).toBe(mac);
    expect(keyring.jwks().keys).toMatchObject([
      { kid: before, nbf: 1794819600, exp: 1794823201 },
      { kid: signer.keyId, nbf: 1794823200 },
    ]);
    expect(keyring.jwks().keys[1]).not.toHaveProperty('exp');
    const stored = JSON.parse(await readFile(file, 'utf8'));
    expect(stored.keys[0]).not.toHaveProperty('private_key');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(dir)).toEqual(['receipt-keys.json']);
  });

  test('another process takes it up before it signs again, and after a restart', async () => {
    const [one, other] = [await open(), await open()];
    const before = other.signer().sign(HASH).key_id;
    await one.rotate();
    expect(other.signer().sign(HASH).key_id).toBe(one.signer().keyId);
    expect(one.signer().keyId).not.toBe(before);
    expect(other.jwks()).toEqual(one.jwks());
    expect((await open()).jwks()).toEqual(one.jwks());
  });

  test('a file that went bad while it was in use is no rotation: the key that is held goes on', async () => {
    const keyring = await open();
    const before = keyring.signer().keyId;
    await writeFile(file, 'nonsense');
    expect(keyring.signer().sign(HASH).key_id).toBe(before);
    await rm(file);
    expect(keyring.signer().sign(HASH).key_id).toBe(before);
  });

  test('two at once cannot lose a key', async () => {
    const [one, other] = [await open(), await open()];
    const done = await Promise.allSettled([one.rotate(), other.rotate()]);
    const won = done.filter((each) => each.status === 'fulfilled').length;
    expect(won).toBeGreaterThanOrEqual(1);
    expect((await open()).jwks().keys).toHaveLength(1 + won);
  });

  test('a lock left behind is named', async () => {
    const keyring = await open();
    await writeFile(`${file}.lock`, '');
    await expect(keyring.rotate()).rejects.toMatchObject({
      kind: 'locked',
      message: expect.stringContaining('remove'),
    });
  });
});

describe('refusals', () => {
  test.each([0o640, 0o604, 0o644, 0o660])('a file of mode %o is refused with the cure', async (mode) => {
    await open();
    await chmod(file, mode);
    await expect(open()).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringContaining('chmod 600') });
  });

  test('a directory others can write is refused', async () => {
    await open();
    await chmod(dir, 0o777);
    await expect(open()).rejects.toThrow(/chmod 700/);
  });

  test.each([
    ['empty', () => ''],
    ['cut off', (text: string) => text.slice(0, -20)],
    ['another format', (text: string) => text.replace('keyring-1', 'keyring-9')],
    ['no keys', (text: string) => JSON.stringify({ ...JSON.parse(text), keys: [] })],
    ['another key under the same id', (text: string) => text.replace(/"public_key": "..../, '"public_key": "AAAA')],
    ['halves that do not match', (text: string) => text.replace(/"private_key": "..../, '"private_key": "AAAA')],
    ['no key in use', (text: string) => text.replace(/"private_key": "[^"]*",/, '')],
    ['a short MAC key', (text: string) => text.replace(/"mac_key": "[^"]*"/, '"mac_key": "AAAA"')],
    ['a wrong time', (text: string) => text.replace(/"created_at": "[^"]*"/, '"created_at": "soon"')],
  ])('a damaged file (%s) is refused, left alone and not quoted', async (_, damage) => {
    await open();
    const text = await readFile(file, 'utf8');
    const damaged = damage(text);
    expect(damaged).not.toBe(text);
    await writeFile(file, damaged);
    const fault = await open().catch((thrown: Error) => thrown);
    expect(fault).toMatchObject({ kind: 'unavailable' });
    const secret = JSON.parse(text).keys[0].private_key.slice(8, 30);
    expect(`${(fault as Error).message} ${(fault as Error).cause}`).not.toContain(secret);
    expect(await readFile(file, 'utf8')).toBe(damaged);
  });

  test('a key file that is a directory is a fault', async () => {
    await mkdir(file, { recursive: true, mode: 0o700 });
    await expect(open()).rejects.toMatchObject({ name: 'Fault' });
  });
});

function keyIdInAnotherProcess(where: string): Promise<string> {
  const keys = new URL('../../../src/receipt/seal/keys.ts', import.meta.url).href;
  const program = `import(${JSON.stringify(keys)}).then(({ openKeyring }) => openKeyring({ dir: ${JSON.stringify(where)}, now: () => '2026-11-16T09:00:00.000Z' })).then((keyring) => process.stdout.write(keyring.signer().keyId))`;
  const cwd = fileURLToPath(new URL('../../..', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], { cwd });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk) => (out += chunk));
  child.stderr.on('data', (chunk) => (err += chunk));
  return new Promise((resolve, reject) => {
    child.on('close', (code) => (code === 0 ? resolve(out) : reject(new Error(err))));
  });
}
