/** The key file on disk. Written whole or not at all, readable by its owner only, checked every time it is read. */
import { createPrivateKey, createPublicKey, randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { link, mkdir, open, readFile, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from '../../model/faults.ts';
import type { PrivateFiles } from '../../ports/index.ts';
import { keyIdOf } from './public-keys.ts';

export interface KeyEntry {
  readonly key_id: string;
  /** Raw halves, base64url. Only the key in use has its private half. */
  readonly public_key: string;
  readonly private_key?: string;
  readonly created_at: string;
  readonly retired_at?: string;
}
export interface KeyFile {
  readonly format: 'tollbridge-keyring-1';
  readonly mac_key: string;
  /** Oldest first; the last one is in use. */
  readonly keys: readonly KeyEntry[];
}

const NAME = 'receipt-keys.json';
/** Among private files that several gateways share. */
export const RECEIPT_KEYS = `keys/${NAME}`;

/** The key file, where it is. */
export interface KeyFiles {
  /** Undefined when there is none yet. */
  read(): Promise<KeyFile | undefined>;
  /** Creates the file unless another process was first; returns the file that exists in either case. */
  create(file: KeyFile): Promise<KeyFile>;
  /** Changes when the file is replaced: cheap enough to be asked before every signature. Throws where nobody can say. */
  version(): string;
  /** For a signature that cannot wait. Undefined when the file is missing or not sound. */
  readNow(): KeyFile | undefined;
  /** Two changes at once cannot lose a key. */
  replace(change: (file: KeyFile) => KeyFile): Promise<KeyFile>;
  /** How long other processes may go on with what it was before. */
  readonly lagMs: number;
}

export function directoryKeyFile(dir: string): KeyFiles {
  return {
    read: () => readKeyFile(dir),
    create: (file) => createKeyFile(dir, file),
    version: () => keyFileVersion(dir),
    readNow: () => readKeyFileNow(dir),
    replace: (change) => replaceKeyFile(dir, change),
    lagMs: 0,
  };
}

export function sharedKeyFile(files: PrivateFiles): KeyFiles {
  const name = files.nameOf(RECEIPT_KEYS);
  const written = (file: KeyFile) => `${JSON.stringify(file, null, 2)}\n`;
  async function replace(change: (file: KeyFile | undefined) => KeyFile): Promise<KeyFile> {
    let after: KeyFile | undefined;
    await files.replace(RECEIPT_KEYS, (text) => {
      after = change(text === undefined ? undefined : checked(name, text));
      return written(after);
    });
    return after!;
  }
  return {
    async read() {
      const text = await files.read(RECEIPT_KEYS);
      return text === undefined ? undefined : checked(name, text);
    },
    create: (file) => replace((standing) => standing ?? file),
    version: () => files.version(RECEIPT_KEYS),
    readNow() {
      const text = files.readNow(RECEIPT_KEYS);
      const file = text === undefined ? 'missing' : fileTrouble(text);
      return typeof file === 'string' ? undefined : file;
    },
    replace: (change) =>
      replace((standing) => {
        if (!standing) throw new Fault('unavailable', `${name} is gone`);
        return change(standing);
      }),
    lagMs: files.lagMs,
  };
}

/** Undefined when there is none yet. */
async function readKeyFile(dir: string): Promise<KeyFile | undefined> {
  const path = join(dir, NAME);
  const found = await stat(path).catch(absent);
  if (!found) return undefined;
  await refuseOpenModes(dir, path, found.mode);
  return checked(path, await readFile(path, 'utf8').catch(unreadable));
}

/** Changes when the file is replaced: cheap enough to be checked before every signature. */
function keyFileVersion(dir: string): string {
  const found = statSync(join(dir, NAME), { throwIfNoEntry: false, bigint: true });
  return found ? `${found.ino} ${found.mtimeNs} ${found.size}` : 'absent';
}

/** Synchronous read, for a signature that cannot wait. Undefined when the file is missing or not sound. */
function readKeyFileNow(dir: string): KeyFile | undefined {
  const path = join(dir, NAME);
  try {
    if (process.platform !== 'win32' && statSync(path).mode & 0o077) return undefined;
    const file = fileTrouble(readFileSync(path, 'utf8'));
    return typeof file === 'string' ? undefined : file;
  } catch {
    return undefined;
  }
}

/** Creates the file unless another process was first; returns the file that exists in either case. */
export async function createKeyFile(dir: string, file: KeyFile): Promise<KeyFile> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const draft = await writeDraft(dir, file);
    try {
      // A link, unlike a rename, fails when the name is taken: the first process wins and the second reads its key.
      await link(draft, join(dir, NAME));
    } finally {
      await unlink(draft);
    }
    await syncDirectory(dir);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw new Fault('unavailable', `the receipt key file could not be made in ${dir}`, { cause });
    }
  }
  const standing = await readKeyFile(dir);
  if (!standing) throw new Fault('unavailable', `the receipt key file in ${dir} vanished while it was made`);
  return standing;
}

/** Reads, changes and swaps the file while holding a lock, so that two changes at once cannot lose a key. */
async function replaceKeyFile(dir: string, change: (file: KeyFile) => KeyFile): Promise<KeyFile> {
  const lock = join(dir, `${NAME}.lock`);
  const held = await open(lock, 'wx', 0o600).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === 'EEXIST'
      ? new Fault('locked', `another process is changing the receipt key; if none is, remove ${lock}`, { cause })
      : new Fault('unavailable', `the receipt key file in ${dir} cannot be changed`, { cause });
  });
  try {
    const before = await readKeyFile(dir);
    if (!before) throw new Fault('unavailable', `the receipt key file in ${dir} is gone`);
    const after = change(before);
    const draft = await writeDraft(dir, after);
    await rename(draft, join(dir, NAME));
    await syncDirectory(dir);
    return after;
  } finally {
    await held.close();
    await unlink(lock);
  }
}

async function writeDraft(dir: string, file: KeyFile): Promise<string> {
  const path = join(dir, `.${NAME}.${randomBytes(8).toString('hex')}`);
  const handle = await open(path, 'wx', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(file, null, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return path;
}

/** A name is durable once its directory is synced. Some systems cannot open directories and persist names on their own. */
async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir, 'r').catch(() => undefined);
  if (!handle) return;
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function refuseOpenModes(dir: string, path: string, mode: number): Promise<void> {
  if (process.platform === 'win32') return;
  if (mode & 0o077) {
    throw new Fault('unavailable', `${path} holds a private key and has mode ${octal(mode)}; run: chmod 600 ${path}`);
  }
  const around = (await stat(dir)).mode;
  // A user who can write the directory can replace our key with another.
  if (around & 0o022) {
    throw new Fault('unavailable', `${dir} holds a private key and has mode ${octal(around)}; run: chmod 700 ${dir}`);
  }
}

const octal = (mode: number) => (mode & 0o777).toString(8).padStart(3, '0');

/** Describes the fault in our own words: a parser's error quotes its input, and this input is a private key. */
function checked(path: string, content: string): KeyFile {
  const wrong = fileTrouble(content);
  if (typeof wrong !== 'string') return wrong;
  const advice = 'put back a copy of it, or move it away to start with a new key';
  throw new Fault('unavailable', `${path} is damaged (${wrong}); ${advice}`);
}

function fileTrouble(content: string): KeyFile | string {
  try {
    const file = JSON.parse(content) as KeyFile;
    if (file.format !== 'tollbridge-keyring-1') return 'unknown format';
    if (Buffer.from(file.mac_key, 'base64url').length < 32) return 'the MAC key is too short';
    if (file.keys.length === 0) return 'no keys';
    return file.keys.map(entryTrouble).find((trouble) => trouble !== undefined) ?? file;
  } catch {
    return 'it is not a key file';
  }
}

function entryTrouble(entry: KeyEntry): string | undefined {
  if (keyIdOf(Buffer.from(entry.public_key, 'base64url')) !== entry.key_id) return 'a key does not match its id';
  if ([entry.created_at, entry.retired_at ?? entry.created_at].some((at) => Number.isNaN(Date.parse(at)))) {
    return 'a time is wrong';
  }
  if (!entry.private_key) return undefined;
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: entry.public_key, d: entry.private_key };
  const derived = createPublicKey(createPrivateKey({ key: jwk, format: 'jwk' })).export({ format: 'jwk' });
  return derived.x === entry.public_key ? undefined : 'the two halves of a key do not match';
}

function absent(cause: NodeJS.ErrnoException): undefined {
  if (cause.code !== 'ENOENT') unreadable(cause);
}

function unreadable(cause: NodeJS.ErrnoException): never {
  throw new Fault('unavailable', 'the receipt key file cannot be read', { cause });
}
