/** Checks signatures over a hash with public keys alone. A signature counts only under a genuine key. */
import type { ReceiptSignature } from '../../model/receipt.ts';
import type { PublicKey } from '../seal/public-keys.ts';

export type SignatureState =
  | 'ok'
  | 'invalid'
  | 'key_swapped'
  | 'key_unknown'
  | 'key_expired'
  | 'unsupported'
  | 'untrusted';

export type SignatureCheck = {
  readonly key_id: string;
  readonly status: SignatureState;
};

interface TrustOptions {
  readonly keys: ReadonlyMap<string, PublicKey>;
  /** Only this key counts. */
  readonly onlyKey?: string | undefined;
  /** Milliseconds at which the key must have been in use. */
  readonly at: number;
}

export function checkSignature(hash: string, signature: ReceiptSignature, trust: TrustOptions): SignatureCheck {
  return { key_id: signature.key_id, status: stateOf(hash, signature, trust) };
}

function stateOf(hash: string, signature: ReceiptSignature, { keys, onlyKey, at }: TrustOptions): SignatureState {
  if (signature.algorithm.toLowerCase() !== 'ed25519') return 'unsupported';
  if (onlyKey !== undefined && signature.key_id !== onlyKey) return 'untrusted';
  const key = keys.get(signature.key_id);
  if (!key) return 'key_unknown';
  if (!key.genuine) return 'key_swapped';
  const bytes = bytesOf(signature.signature);
  if (!bytes || !key.verifies(hash, bytes)) return 'invalid';
  if (!(at >= (key.notBefore ?? -Infinity) && at <= (key.notAfter ?? Infinity))) return 'key_expired';
  return 'ok';
}

/** We write `base64:`; bare base64 is accepted too. Anything else is not a signature. */
function bytesOf(text: string): Uint8Array | undefined {
  const base64 = text.startsWith('base64:') ? text.slice('base64:'.length) : text;
  return /^[A-Za-z0-9+/]{86}(?:==)?$/.test(base64) ? Buffer.from(base64, 'base64') : undefined;
}

/**
 * One good signature is enough, unless another is false: a further signature whose key is not available does no harm, but one
 * that does not fit is a sign of tampering. Undefined when all is well.
 */
export function signatureTrouble(
  checks: readonly SignatureCheck[],
): Exclude<SignatureState, 'ok'> | 'absent' | undefined {
  const states = checks.map((check) => check.status);
  if (states.includes('key_swapped')) return 'key_swapped';
  if (states.includes('invalid')) return 'invalid';
  if (states.includes('ok')) return undefined;
  return (states[0] as Exclude<SignatureState, 'ok'> | undefined) ?? 'absent';
}
