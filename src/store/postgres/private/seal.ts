/**
 * AES-256-GCM under a key that is derived from the shared secret, bound to the name of the file: who reads the database learns nothing,
 * and cannot swap two files. An older copy of a file, put back by a user who may write the database, is not noticed.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { Fault } from '../../../model/faults.ts';

const MAGIC = Buffer.from('tollbridge-file-1');
const NONCE = 12;
const TAG = 16;
/** There is no slow hash behind it: the secret must not be one that can be guessed. */
export const SHORTEST_SECRET = 32;

export interface Seal {
  seal(name: string, text: string): Buffer;
  /** Undefined: it was not sealed under this secret and this name. */
  open(name: string, sealed: Uint8Array): string | undefined;
}

export function createSeal(secret: string): Seal {
  if (secret.length < SHORTEST_SECRET)
    throw new Fault(
      'invalid_request',
      `the secret that store.keys names has fewer than ${SHORTEST_SECRET} characters; make one with: openssl rand -base64 32`,
    );
  const key = Buffer.from(hkdfSync('sha256', secret, 'tollbridge', 'private files 1', 32));
  return {
    seal(name, text) {
      const nonce = randomBytes(NONCE);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(name));
      const data = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([MAGIC, nonce, cipher.getAuthTag(), data]);
    },
    open(name, bytes) {
      const sealed = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const from = MAGIC.length;
      if (sealed.length < from + NONCE + TAG || !sealed.subarray(0, from).equals(MAGIC)) return undefined;
      const tag = sealed.subarray(from + NONCE, from + NONCE + TAG);
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(from, from + NONCE))
          .setAAD(Buffer.from(name))
          .setAuthTag(tag);
        return Buffer.concat([decipher.update(sealed.subarray(from + NONCE + TAG)), decipher.final()]).toString('utf8');
      } catch {
        return undefined;
      }
    },
  };
}
