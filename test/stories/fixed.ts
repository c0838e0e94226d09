/** Time, names and keys that come out the same every time, so that a log and its receipts can be compared byte for byte. */
import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';
import type { Clock, Ids } from '../../src/ports/index.ts';
import { createKeyFile } from '../../src/receipt/seal/key-file.ts';
import { keyIdOf } from '../../src/receipt/seal/public-keys.ts';

export const BEGIN = '2026-05-04T09:00:00.000Z';

export interface StoryClock extends Clock {
  /** Time passes only while something waits; nothing else moves this clock. */
  pass(ms: number): void;
}

export function createStoryClock(): StoryClock {
  let at = Date.parse(BEGIN);
  return {
    now: () => new Date(at).toISOString(),
    pass(ms) {
      at += ms;
    },
  };
}

/** `task_1`, `task_2`, …: each kind is counted by itself, so that one more of one kind renames nothing of another. */
export function createStoryIds(): Ids {
  const counts = new Map<string, number>();
  return {
    next(prefix) {
      const count = (counts.get(prefix) ?? 0) + 1;
      counts.set(prefix, count);
      return `${prefix}_${count}`;
    },
  };
}

/** A signing key anyone can make again from these words. It proves nothing, and is used nowhere else. */
export async function writeStoryKeys(dir: string): Promise<void> {
  const der = Buffer.concat([ED25519_DER, digest('the signing key of the stories, which is no secret')]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const { d } = privateKey.export({ format: 'jwk' });
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  await createKeyFile(dir, {
    format: 'tollbridge-keyring-1',
    mac_key: digest('the keyed digests of the stories, which hide nothing').toString('base64url'),
    keys: [{ key_id: keyIdOf(Buffer.from(x!, 'base64url')), public_key: x!, private_key: d!, created_at: BEGIN }],
  });
}

/** What stands before the 32 bytes of a private key in its standard encoding (RFC 8410). */
const ED25519_DER = Buffer.from('302e020100300506032b657004220420', 'hex');

function digest(words: string): Buffer {
  return createHash('sha256').update(words).digest();
}
