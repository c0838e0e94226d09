/**
 * Checks one receipt with documents and public keys alone. No store, no network, no clock. A receipt that fails gives a report
 * that says where, never an exception.
 */
import { Fault } from '../../model/faults.ts';
import type { Receipt } from '../../model/receipt.ts';
import { batchRoot } from '../export/batch-root.ts';
import type { ReadableReceipt, ReceiptFormat } from '../schemas/format.ts';
import { formatOf, RECEIPT_FORMATS } from '../schemas/index.ts';
import { type Jwks, readKeys } from '../seal/public-keys.ts';
import { batchLeaf } from '../seal/receipt-hash.ts';
import { parseStrict } from '../seal/strict-json.ts';
import { checkSignature, type SignatureCheck, signatureTrouble } from './signatures.ts';

/** The steps, in the order they are checked. */
type VerifyReason =
  | 'schema_invalid'
  | 'schema_unknown'
  | 'hash_mismatch'
  | 'chain_mismatch'
  | 'merkle_mismatch'
  | SignatureReason
  | 'events_mismatch';

interface VerifyOptions {
  readonly keys: Jwks;
  /** The receipt before it in its chain, or that receipt's hash; null when there should be none; absent when unknown. */
  readonly previous?: unknown;
  /** A key id: only that key is trusted. A receipt hash: the chain must reach it through `earlier`. */
  readonly trustAnchor?: string;
  /** Receipts before this one, for an anchor further back. */
  readonly earlier?: Iterable<unknown>;
  /** The time at which the signing key must have been in use; by default the time the receipt says it was signed. */
  readonly atTime?: string;
  /** The published batch that a root inside the receipt refers to. */
  readonly batch?: { readonly leaves: readonly string[]; readonly root: string };
  /** A receipt without signatures proves its own consistency and nothing about its issuer. Refused unless this is set. */
  readonly allowUnsigned?: boolean;
  /** The known versions of the format; by default all of ours. */
  readonly formats?: readonly ReceiptFormat[];
}

export interface VerifyReport {
  readonly valid: boolean;
  /** The first step that failed. */
  readonly reason?: VerifyReason;
  readonly details: {
    /** `ok`, or what is wrong with the shape. */
    readonly schema: string;
    /** As stated in the receipt, and as computed from its content. */
    readonly hash?: { readonly expected: string; readonly actual: string };
    readonly chain?: 'ok' | 'first' | 'not_available' | 'mismatch';
    readonly merkle?: 'absent' | 'ok' | 'not_available' | 'mismatch' | 'degenerate';
    readonly signatures?: readonly SignatureCheck[] | 'absent';
    readonly trust_anchor?: 'reached' | 'not_reached';
  };
}

/** Takes a document, or its JSON text; a repeated key in the text is refused. */
export function verifyReceipt(document: unknown, options: VerifyOptions): VerifyReport {
  const read = tryRead(document, options.formats);
  if ('why' in read) return { valid: false, reason: read.reason, details: { schema: read.why } };
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

/** Returns the receipt and the hash of its content, or a sentence saying why it is not a receipt. */
export function readReceipt(
  document: unknown,
  formats?: readonly ReceiptFormat[],
): { receipt: ReadableReceipt; actual: string } | string {
  const read = tryRead(document, formats);
  return 'why' in read ? read.why : read;
}

/** Uses the version that the document itself names: an unknown version is reported differently from an invalid document. */
function tryRead(
  document: unknown,
  formats: readonly ReceiptFormat[] = RECEIPT_FORMATS,
):
  | { readonly receipt: ReadableReceipt; readonly actual: string }
  | { readonly why: string; readonly reason: 'schema_invalid' | 'schema_unknown' } {
  try {
    const value = typeof document === 'string' ? parseStrict(document) : document;
    return formatOf(value, formats).read(value);
  } catch (thrown) {
    const unknown = thrown instanceof Fault && thrown.kind === 'unsupported_version';
    return { why: (thrown as Error).message, reason: unknown ? 'schema_unknown' : 'schema_invalid' };
  }
}

export function signatureChecks(
  receipt: ReadableReceipt,
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

function chainState(
  { chain }: ReadableReceipt,
  { previous, formats }: VerifyOptions,
): NonNullable<VerifyReport['details']['chain']> {
  const stated = chain.previous_receipt_hash;
  if (stated === null) return previous === undefined || previous === null ? 'first' : 'mismatch';
  if (previous === undefined) return 'not_available';
  if (isHash(previous)) return previous === stated ? 'ok' : 'mismatch';
  // Compares with the hash of the predecessor's content, not with the hash it states.
  const read = readReceipt(previous, formats);
  return typeof read !== 'string' && read.actual === stated ? 'ok' : 'mismatch';
}

function merkleState(
  receipt: ReadableReceipt,
  { batch }: VerifyOptions,
): NonNullable<VerifyReport['details']['merkle']> {
  const root = receipt.chain.merkle_root;
  if (root === undefined) return 'absent';
  if (root === receipt.chain.receipt_hash) return 'degenerate';
  if (!batch) return 'not_available';
  const found = batch.leaves.includes(batchLeaf(receipt as Receipt));
  return found && batch.root === root && batchRoot(batch.leaves) === root ? 'ok' : 'mismatch';
}

function anchorState(
  receipt: ReadableReceipt,
  actual: string,
  options: VerifyOptions,
): 'reached' | 'not_reached' | undefined {
  const { trustAnchor, earlier = [], previous, formats } = options;
  if (!isHash(trustAnchor)) return undefined;
  const before = new Map<string, string | null>();
  for (const document of [...earlier, previous]) {
    const read = document && !isHash(document) ? readReceipt(document, formats) : undefined;
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
