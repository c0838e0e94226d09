/**
 * One encrypted file of secrets: AES-256-GCM for each value, bound to its name, under a key from a private file or from a
 * passphrase (scrypt). Names can be read without the key, values cannot. Refuses a wrong key before it writes anything.
 */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto';
import { Fault } from '../model/faults.ts';
import { Timestamp } from '../model/schema.ts';
import { type Static, Type } from '../model/type.ts';
import { check } from '../model/validate.ts';
import { readPrivate, replacePrivate } from './private-file.ts';

/** Key of the file. A missing key file is created with the first secret. */
export type FileKey = { readonly file: string } | { readonly passphraseEnv: string };

export interface VaultFileOptions {
  readonly path: string;
  readonly key: FileKey;
  readonly env: NodeJS.ProcessEnv;
}

export interface VaultFile {
  get(name: string): Promise<string | undefined>;
  set(name: string, value: string, now: string): Promise<void>;
  /** False when there was no secret of that name. */
  remove(name: string): Promise<boolean>;
  list(): Promise<readonly { readonly name: string; readonly updated_at: string }[]>;
}

const Base64 = Type.Unsafe<string>({ type: 'string', pattern: '^[A-Za-z0-9+/]*={0,2}$' });
const Sealed = Type.Object({ nonce: Base64, tag: Base64, data: Base64 });
type Sealed = Static<typeof Sealed>;
const Shape = Type.Object({
  format: Type.Literal('tollbridge-vault-1'),
  cipher: Type.Literal('aes-256-gcm'),
  /** Null when the key comes from a key file. */
  scrypt: Type.Unsafe<ScryptCost | null>({
    anyOf: [
      { type: 'null' },
      {
        type: 'object',
        required: ['salt', 'N', 'r', 'p'],
        properties: {
          salt: Base64,
          // Bounds, so that a writer of this file cannot make opening it exhaust the machine.
          N: { enum: [2 ** 15, 2 ** 16, 2 ** 17] },
          r: { const: 8 },
          p: { const: 1 },
        },
      },
    ],
  }),
  /** A known value under the same key: tells a wrong key from a damaged value. */
  proof: Sealed,
  secrets: Type.Record(Type.String(), Type.Object({ ...Sealed.properties, updated_at: Timestamp })),
});
type Shape = Static<typeof Shape>;

interface ScryptCost {
  readonly salt: string;
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

const PROOF = { name: '', value: 'tollbridge-vault-1' };

export function openVaultFile({ path, key, env }: VaultFileOptions): VaultFile {
  const derived = new Map<string, Promise<Buffer>>();

  async function read(): Promise<Shape | undefined> {
    const text = await readPrivate(path);
    return text === undefined ? undefined : parse(text, path);
  }

  /** A passphrase is derived once per salt; a key file is read each time, so that it can be replaced. */
  async function keyFor(cost: ScryptCost | null): Promise<Buffer> {
    if ('file' in key) {
      if (cost) throw new Fault('unavailable', `the vault ${path} is opened with a passphrase, not with a key file`);
      return await readKey(key.file);
    }
    if (!cost) throw new Fault('unavailable', `the vault ${path} is opened with a key file, not with a passphrase`);
    const passphrase = env[key.passphraseEnv];
    if (!passphrase) throw new Fault('unavailable', `the vault ${path} needs a passphrase in ${key.passphraseEnv}`);
    const known = derived.get(cost.salt) ?? derive(passphrase, cost);
    derived.set(cost.salt, known);
    return await known;
  }

  async function keyOf(file: Shape): Promise<Buffer> {
    const opened = await keyFor(file.scrypt);
    if (unseal(opened, PROOF.name, file.proof) !== PROOF.value)
      throw new Fault('unavailable', `the vault ${path} does not open with this key`);
    return opened;
  }

  async function begin(): Promise<{ file: Shape; opened: Buffer }> {
    const cost = 'file' in key ? null : { salt: randomBytes(16).toString('base64'), N: 2 ** 15, r: 8, p: 1 };
    if ('file' in key) await makeKey(key.file);
    const opened = await keyFor(cost);
    const proof = seal(opened, PROOF.name, PROOF.value);
    return { opened, file: { format: PROOF.value, cipher: 'aes-256-gcm', scrypt: cost, proof, secrets: {} } as Shape };
  }

  return {
    async get(name) {
      const file = await read();
      const sealed = file && Object.hasOwn(file.secrets, name) ? file.secrets[name] : undefined;
      if (!file || !sealed) return undefined;
      const value = unseal(await keyOf(file), name, sealed);
      if (value === undefined) throw new Fault('unavailable', `the secret ${name} in ${path} is damaged`);
      return value;
    },

    async set(name, value, now) {
      const there = await read();
      const { file, opened } = there ? { file: there, opened: await keyOf(there) } : await begin();
      const sealed = { ...seal(opened, name, value), updated_at: now };
      await replacePrivate(path, (text) => {
        // Another process may have created or changed the file meanwhile; it is only added to when it has the same key.
        const latest = text === undefined ? file : parse(text, path);
        if (unseal(opened, PROOF.name, latest.proof) !== PROOF.value)
          throw new Fault('conflict', `the vault ${path} was changed at the same time; try again`);
        return written({ ...latest, secrets: { ...latest.secrets, [name]: sealed } });
      });
    },

    async remove(name) {
      const there = await read();
      if (!there || !Object.hasOwn(there.secrets, name)) return false;
      await replacePrivate(path, (text) => {
        const latest = text === undefined ? there : parse(text, path);
        const { [name]: _, ...secrets } = latest.secrets;
        return written({ ...latest, secrets });
      });
      return true;
    },

    async list() {
      const { secrets = {} } = (await read()) ?? {};
      return Object.entries(secrets)
        .map(([name, { updated_at }]) => ({ name, updated_at }))
        .toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
}

/** The name is authenticated with the value: a value cannot be moved to another name. */
function seal(key: Buffer, name: string, value: string): Sealed {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(`tollbridge-vault-1\n${name}`));
  const data = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()]);
  return {
    nonce: nonce.toString('base64'),
    tag: cipher.getAuthTag().toString('base64'),
    data: data.toString('base64'),
  };
}

/** Undefined when the value was not sealed under this key and this name. */
function unseal(key: Buffer, name: string, { nonce, tag, data }: Sealed): string | undefined {
  try {
    const opener = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64'), { authTagLength: 16 })
      .setAAD(Buffer.from(`tollbridge-vault-1\n${name}`))
      .setAuthTag(Buffer.from(tag, 'base64'));
    return Buffer.concat([opener.update(Buffer.from(data, 'base64')), opener.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

async function readKey(path: string): Promise<Buffer> {
  const text = await readPrivate(path);
  if (text === undefined) throw new Fault('unavailable', `the key file ${path} is not there`);
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== 32) throw new Fault('unavailable', `the key file ${path} does not hold 32 bytes in base64`);
  return key;
}

async function makeKey(path: string): Promise<void> {
  await replacePrivate(path, (text) => text ?? `${randomBytes(32).toString('base64')}\n`);
}

function derive(passphrase: string, { salt, N, r, p }: ScryptCost): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const options = { N, r, p, maxmem: 256 * N * r };
    scrypt(passphrase.normalize('NFKC'), Buffer.from(salt, 'base64'), 32, options, (thrown, key) =>
      thrown ? reject(thrown) : resolve(key),
    );
  });
}

function written(file: Shape): string {
  return `${JSON.stringify(file, null, 2)}\n`;
}

function parse(text: string, path: string): Shape {
  try {
    return check(Shape, JSON.parse(text), 'the file');
  } catch (cause) {
    throw new Fault('unavailable', `the vault ${path} does not add up`, { cause });
  }
}
