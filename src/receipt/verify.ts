/**
 * Checking one receipt with nothing but documents and public keys. No store, no network, no clock.
 * A receipt that fails is an answer that says where, never an exception.
 */
import { Receipt } from '../model/receipt.ts';
import { check } from '../model/validate.ts';
import { batchRoot } from './batch-root.ts';
import { type Jwks, readKeys } from './public-keys.ts';
import { batchLeaf, receiptHash } from './receipt-hash.ts';
import { checkSignature, type SignatureCheck, signatureTrouble } from './signatures.ts';
import { parseStrict } from './strict-json.ts';

/** The steps, in the order they are taken. */
type VerifyReason = 'schema_invalid' | 'hash_mismatch' | 'chain_mismatch' | 'merkle_mismatch' | SignatureReason;

export interface VerifyOptions {
  readonly keys: Jwks;
  /** The receipt before it in its chain, or that receipt's hash; null when there should be none; absent when unknown. */
  readonly previous?: unknown;
  /** A key id: only that key is trusted. A receipt hash: the chain must reach it through `earlier`. */
  readonly trustAnchor?: string;
  /** Receipts before this one, for an anchor further back. */
  readonly earlier?: Iterable<unknown>;
  /** When the signing key must have been in use; without it, when the receipt says it was signed. */
  readonly atTime?: string;
  /** The published batch a root inside the receipt stands for. */
  readonly batch?: { readonly leaves: readonly string[]; readonly root: string };
  /** A receipt without signatures proves its own consistency and nothing about its issuer. Refused unless asked for. */
  readonly allowUnsigned?: boolean;
}

export interface VerifyReport {
  readonly valid: boolean;
  /** The first step that failed. */
  readonly reason?: VerifyReason;
  readonly details: {
    /** `ok`, or what is wrong with the shape. */
    readonly schema: string;
    /** As the receipt states it, and as its content gives it. */
    readonly hash?: { readonly expected: string; readonly actual: string };
    readonly chain?: 'ok' | 'first' | 'not_available' | 'mismatch';
    readonly merkle?: 'absent' | 'ok' | 'not_available' | 'mismatch' | 'degenerate';
    readonly signatures?: readonly SignatureCheck[] | 'absent';
    readonly trust_anchor?: 'reached' | 'not_reached';
  };
}

/** Takes a document, or its JSON text, in which a repeated key is refused. */
export function verifyReceipt(document: unknown, options: VerifyOptions): VerifyReport {
  const read = readReceipt(document);
  if (typeof read === 'string') return { valid: false, reason: 'schema_invalid', details: { schema: read } };
  const { receipt, actual } = read;
  const expected = receipt.chain.receipt_hash;
  const chain = chainState(receipt, options);
  const merkle = merkleState(receipt, options);
  const signatures = signatureChecks(receipt, options);
  const anchor = anchorState(receipt, actual, options);
  const reason =
    (actual !== expected && 'hash_mismatch') ||
    ((chain === 'mismatch' || anchor === 'not_reached') && 'chain_mismatch') ||
    (merkle === 'mismatch' && 'merkle_mismatch') ||
    signatureReason(signatures, options);
  return {
    valid: !reason,
    ...(reason && { reason }),
    details: {
      schema: 'ok',
      hash: { expected, actual },
      chain,
      merkle,
      signatures: signatures.length > 0 ? signatures : 'absent',
      ...(anchor && { trust_anchor: anchor }),
    },
  };
}

/** The receipt and the hash of its content, or a sentence saying why it is no receipt. */
export function readReceipt(document: unknown): { receipt: Receipt; actual: string } | string {
  try {
    const value = typeof document === 'string' ? parseStrict(document) : document;
    const receipt = check(Receipt, value, 'receipt');
    return { receipt, actual: receiptHash(receipt) };
  } catch (thrown) {
    return (thrown as Error).message;
  }
}

export function signatureChecks(
  receipt: Receipt,
  { keys, trustAnchor, atTime }: Pick<VerifyOptions, 'keys' | 'trustAnchor' | 'atTime'>,
  known = readKeys(keys),
): readonly SignatureCheck[] {
  const onlyKey = isHash(trustAnchor) ? undefined : trustAnchor;
  return (receipt.signatures ?? []).map((signature) =>
    checkSignature(receipt.chain.receipt_hash, signature, {
      keys: known,
      onlyKey,
      at: Date.parse(atTime ?? signature.signed_at ?? receipt.issued_at),
    }),
  );
}

export function signatureReason(
  checks: readonly SignatureCheck[],
  { allowUnsigned }: Pick<VerifyOptions, 'allowUnsigned'>,
): SignatureReason | undefined {
  const trouble = signatureTrouble(checks);
  if (trouble === undefined || (trouble === 'absent' && allowUnsigned)) return undefined;
  return TROUBLE[trouble];
}

const TROUBLE = {
  absent: 'signature_absent',
  invalid: 'signature_invalid',
  unsupported: 'signature_unsupported',
  untrusted: 'key_untrusted',
  key_swapped: 'key_swapped',
  key_unknown: 'key_unknown',
  key_expired: 'key_expired',
} as const;
export type SignatureReason = (typeof TROUBLE)[keyof typeof TROUBLE];

function chainState({ chain }: Receipt, { previous }: VerifyOptions): NonNullable<VerifyReport['details']['chain']> {
  const stated = chain.previous_receipt_hash;
  if (stated === null) return previous === undefined || previous === null ? 'first' : 'mismatch';
  if (previous === undefined) return 'not_available';
  if (isHash(previous)) return previous === stated ? 'ok' : 'mismatch';
  // What the receipt before really hashes to, whatever it says of itself.
  const read = readReceipt(previous);
  return typeof read !== 'string' && read.actual === stated ? 'ok' : 'mismatch';
}

function merkleState(receipt: Receipt, { batch }: VerifyOptions): NonNullable<VerifyReport['details']['merkle']> {
  const root = receipt.chain.merkle_root;
  if (root === undefined) return 'absent';
  if (root === receipt.chain.receipt_hash) return 'degenerate';
  if (!batch) return 'not_available';
  const found = batch.leaves.includes(batchLeaf(receipt));
  return found && batch.root === root && batchRoot(batch.leaves) === root ? 'ok' : 'mismatch';
}

function anchorState(receipt: Receipt, actual: string, options: VerifyOptions): 'reached' | 'not_reached' | undefined {
  const { trustAnchor, earlier = [], previous } = options;
  if (!isHash(trustAnchor)) return undefined;
  const before = new Map<string, string | null>();
  for (const document of [...earlier, previous]) {
    const read = document && !isHash(document) ? readReceipt(document) : undefined;
    if (read && typeof read !== 'string') before.set(read.actual, read.receipt.chain.previous_receipt_hash);
  }
  let at: string | null | undefined = actual;
  for (let steps = 0; at && steps <= before.size + 1; steps += 1) {
    if (at === trustAnchor) return 'reached';
    at = at === actual ? receipt.chain.previous_receipt_hash : before.get(at);
  }
  return 'not_reached';
}

function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value);
}
