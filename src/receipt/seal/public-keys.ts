/** Public halves of receipt keys as a verifier holds them: a JWKS whose key ids are hashes of the keys they name. */
import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';

export interface ReceiptJwk {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  /** Raw public key, base64url. */
  readonly x: string;
  readonly kid: string;
  readonly use?: 'sig';
  readonly alg?: 'EdDSA';
  /** Seconds since 1970 between which the key was in use; no `exp` while it still is. */
  readonly nbf?: number;
  readonly exp?: number;
}
export interface Jwks {
  readonly keys: readonly ReceiptJwk[];
}

/** `ed25519:` and the first 16 bytes of the SHA-256 of the raw key: the id cannot be claimed by another key. */
export function keyIdOf(rawPublicKey: Uint8Array): string {
  return `ed25519:${hash('sha256', rawPublicKey, 'hex').slice(0, 32)}`;
}

export interface PublicKey {
  readonly id: string;
  /** False when the id is not the hash of the key: another key was put under a known name. */
  readonly genuine: boolean;
  readonly notBefore: number | undefined;
  readonly notAfter: number | undefined;
  verifies(text: string, signature: Uint8Array): boolean;
}

/** Skips entries that are not Ed25519 keys: a key set may hold others. */
export function readKeys(jwks: Jwks): ReadonlyMap<string, PublicKey> {
  const keys = new Map<string, PublicKey>();
  for (const jwk of jwks.keys) {
    const key = publicKey(jwk);
    // One forged entry invalidates its id, wherever it stands in the list.
    if (key && keys.get(key.id)?.genuine !== false) keys.set(key.id, key);
  }
  return keys;
}

function publicKey(jwk: ReceiptJwk): PublicKey | undefined {
  if (jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519' || typeof jwk.x !== 'string' || typeof jwk.kid !== 'string') {
    return undefined;
  }
  const raw = Buffer.from(jwk.x, 'base64url');
  let key: KeyObject;
  try {
    key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: jwk.x }, format: 'jwk' });
  } catch {
    return undefined;
  }
  return {
    id: jwk.kid,
    genuine: keyIdOf(raw) === jwk.kid,
    notBefore: typeof jwk.nbf === 'number' ? jwk.nbf * 1000 : undefined,
    notAfter: typeof jwk.exp === 'number' ? jwk.exp * 1000 : undefined,
    verifies: (text, signature) => signature.length === 64 && verify(null, Buffer.from(text), key, signature),
  };
}
