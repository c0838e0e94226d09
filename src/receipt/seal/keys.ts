/**
 * The gateway's own signing key: created at first start, kept in one private file, rotated without breaking old receipts. Refuses
 * a file that other users can read and a file that is inconsistent; never overwrites either.
 */
import { createHmac, createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { Fault } from '../../model/faults.ts';
import type { Signer } from '../../ports/index.ts';
import { directoryKeyFile, type KeyEntry, type KeyFile, type KeyFiles } from './key-file.ts';
import { type Jwks, keyIdOf, type ReceiptJwk } from './public-keys.ts';

export interface Keyring {
  /** One signer for good: after a rotation, in this or another process, it signs with the new key. */
  signer(): Signer;
  /** Retires the key in use and creates a new one. The retired public key stays in `jwks()`, its private half is dropped. */
  rotate(): Promise<void>;
  /** Public keys only, oldest first. */
  jwks(): Jwks;
}

export interface KeyringOptions {
  /** A directory for this file alone, made with mode 0700 if absent; or where else it is. */
  readonly dir: string | KeyFiles;
  readonly now: () => string;
}

export async function openKeyring({ dir, now }: KeyringOptions): Promise<Keyring> {
  const files = typeof dir === 'string' ? directoryKeyFile(dir) : dir;
  let held = unlock((await files.read()) ?? (await files.create(freshFile(earlier(now(), files.lagMs)))));
  let version = files.version();
  let looked = false;

  /** A key that another process has retired must not sign: no verifier would accept its receipts. */
  const catchUp = () => {
    if (looked) return;
    const current = files.version();
    looked = true;
    // Once per turn of the event loop: a batch of receipts is sealed in one turn.
    setImmediate(() => {
      looked = false;
    });
    if (current === version) return;
    version = current;
    const file = files.readNow();
    if (file) held = unlock(file);
  };

  const signer: Signer = {
    get keyId() {
      catchUp();
      return held.current.key_id;
    },
    keyIdAt(at) {
      catchUp();
      const when = Date.parse(at);
      const then = held.file.keys.find(({ retired_at }) => retired_at !== undefined && when < Date.parse(retired_at));
      return (then ?? held.current).key_id;
    },
    sign(hash) {
      catchUp();
      const signature = sign(null, Buffer.from(hash), held.privateKey);
      return {
        algorithm: 'ed25519',
        key_id: held.current.key_id,
        signature: `base64:${signature.toString('base64')}`,
        signed_at: now(),
      };
    },
    mac(text) {
      return `hmac-sha256:${createHmac('sha256', held.macKey).update(text).digest('hex')}`;
    },
  };

  return {
    signer: () => signer,
    async rotate() {
      held = unlock(await files.replace((file) => rotated(file, now(), files.lagMs)));
      version = files.version();
    },
    jwks() {
      try {
        catchUp();
      } catch {
        // Public keys stay what they were: only a signature needs the newest.
      }
      return { keys: held.file.keys.map(toJwk) };
    },
  };
}

interface Held {
  readonly file: KeyFile;
  readonly current: KeyEntry;
  readonly privateKey: KeyObject;
  readonly macKey: Buffer;
}

/** Creates the key object once, because creating it costs as much as signing. */
function unlock(file: KeyFile): Held {
  const current = file.keys.at(-1);
  if (!current?.private_key || current.retired_at) {
    throw new Fault('unavailable', 'the receipt key file holds no key in use');
  }
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: current.public_key, d: current.private_key };
  return {
    file,
    current,
    privateKey: createPrivateKey({ key: jwk, format: 'jwk' }),
    macKey: Buffer.from(file.mac_key, 'base64url'),
  };
}

function freshFile(created_at: string): KeyFile {
  return {
    format: 'tollbridge-keyring-1',
    mac_key: randomBytes(32).toString('base64url'),
    keys: [freshKey(created_at)],
  };
}

function freshKey(created_at: string): KeyEntry {
  const { x, d } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  return { key_id: keyIdOf(Buffer.from(x!, 'base64url')), public_key: x!, private_key: d!, created_at };
}

/** Other processes may sign with the old key, and their clocks differ, for `lagMs`: so long both keys count. */
function rotated(file: KeyFile, at: string, lagMs: number): KeyFile {
  const end = earlier(at, -lagMs);
  const retired = file.keys.map(({ private_key: _, ...entry }) => ({ ...entry, retired_at: entry.retired_at ?? end }));
  return { ...file, keys: [...retired, freshKey(earlier(at, lagMs))] };
}

/** The public halves of keys that signed before, which are no longer in use, so that their receipts can be verified. */
export function withRetired(file: KeyFile, others: readonly KeyEntry[], at: string): KeyFile {
  const known = new Set(file.keys.map(({ key_id }) => key_id));
  const more = others
    .filter(({ key_id }) => !known.has(key_id))
    .map(({ private_key: _, ...entry }) => ({ ...entry, retired_at: entry.retired_at ?? at }));
  return { ...file, keys: [...more, ...file.keys] };
}

function earlier(at: string, ms: number): string {
  return new Date(Date.parse(at) - ms).toISOString();
}

/** Whole seconds, rounded outwards so that a signature made at the very edge still counts. */
function toJwk(entry: KeyEntry): ReceiptJwk {
  return {
    kty: 'OKP',
    crv: 'Ed25519',
    x: entry.public_key,
    kid: entry.key_id,
    use: 'sig',
    alg: 'EdDSA',
    nbf: Math.floor(Date.parse(entry.created_at) / 1000),
    ...(entry.retired_at && { exp: Math.ceil(Date.parse(entry.retired_at) / 1000) }),
  };
}
