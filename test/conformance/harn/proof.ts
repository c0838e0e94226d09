/**
 * A verifier of receipts that shares nothing with the one in the product: canonical form, hash and signatures written
 * again from the published rules, with nothing but Node's own cryptography.
 */
import { createHash, createPublicKey, verify } from 'node:crypto';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export interface Jwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly kid: string;
}

/** RFC 8785, by its own words: members sorted by UTF-16 code units, numbers and strings as ECMAScript writes them. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort((a, b) => (a < b ? -1 : 1))
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key] as Json)}`);
  return `{${members.join(',')}}`;
}

export function sha256(text: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

export interface Receipt {
  readonly [member: string]: Json;
}

export function receiptHash(receipt: Receipt): string {
  const { signatures: _, chain, ...rest } = structuredClone(receipt) as Record<string, Json>;
  const { receipt_hash: _hash, ...links } = chain as Record<string, Json>;
  return sha256(canonical({ ...rest, chain: links }));
}

/** What is wrong with it, or undefined. */
export function trouble(receipt: Receipt, keys: readonly Jwk[]): string | undefined {
  const { chain, signatures } = receipt as unknown as {
    chain?: { receipt_hash?: string };
    signatures?: readonly { key_id: string; algorithm: string; signature: string }[];
  };
  const hash = receiptHash(receipt);
  if (chain?.receipt_hash !== hash) return `the hash is ${hash}, the receipt says ${chain?.receipt_hash}`;
  if (!signatures || signatures.length === 0) return 'it is not signed';
  for (const { key_id, algorithm, signature } of signatures) {
    const problem = signatureTrouble({ keyId: key_id, algorithm, signature, text: hash }, keys);
    if (problem) return problem;
  }
  return undefined;
}

export interface Signed {
  readonly keyId: string;
  readonly algorithm: string;
  readonly signature: string;
  readonly text: string;
}

export function signatureTrouble(
  { keyId, algorithm, signature, text }: Signed,
  keys: readonly Jwk[],
): string | undefined {
  if (algorithm !== 'ed25519') return `the algorithm is ${algorithm}`;
  const jwk = keys.find(({ kid }) => kid === keyId);
  if (!jwk) return `the key ${keyId} is not published`;
  const raw = Buffer.from(jwk.x, 'base64url');
  const named = `ed25519:${createHash('sha256').update(raw).digest('hex').slice(0, 32)}`;
  if (named !== keyId) return `the key under ${keyId} is ${named}`;
  const key = createPublicKey({ key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, format: 'jwk' });
  const bytes = Buffer.from(signature.replace(/^base64:/, ''), 'base64');
  return verify(null, Buffer.from(text), key, bytes) ? undefined : 'the signature does not match';
}

/** The root over a batch: pairs of texts hashed together, an odd one with itself. */
export function batchRoot(leaves: readonly string[]): string {
  let level = [...leaves];
  while (level.length > 1) {
    level = level.flatMap((left, index) => (index % 2 === 0 ? [sha256(left + (level[index + 1] ?? left))] : []));
  }
  return level[0] ?? sha256('');
}
