/** A signed statement of how many receipts there are and of their common root; it makes a missing tail visible. */
import type { ReceiptSignature } from '../../model/receipt.ts';
import type { Signer } from '../../ports/index.ts';
import { rootOf, type Tree } from '../merkle/merkle.ts';
import { checkSignature, type SignatureState } from '../verify/signatures.ts';
import { hashOf } from './canonical-json.ts';
import { type Jwks, readKeys } from './public-keys.ts';

export type TreeHead = {
  readonly size: number;
  readonly root: string;
  readonly at: string;
  readonly signature: ReceiptSignature;
};

export function signTreeHead(tree: Tree, at: string, signer: Signer): TreeHead {
  const statement = { size: tree.size, root: rootOf(tree), at };
  return { ...statement, signature: signer.sign(statementHash(statement)) };
}

export function verifyTreeHead(head: TreeHead, keys: Jwks, trustAnchor?: string): SignatureState {
  return headSignature(head, statementHash, keys, trustAnchor);
}

/** The state of the signature of a head of either tree. The key must have been in use at the time the head names. */
export function headSignature<H extends Pick<TreeHead, 'at' | 'signature'>>(
  head: H,
  hash: (head: H) => string,
  keys: Jwks,
  onlyKey: string | undefined,
): SignatureState {
  try {
    return checkSignature(hash(head), head.signature, { keys: readKeys(keys), onlyKey, at: Date.parse(head.at) })
      .status;
  } catch {
    return 'invalid';
  }
}

/** `object` keeps a signature over a tree head from ever passing as one over a receipt. */
function statementHash({ size, root, at }: Omit<TreeHead, 'signature'>): string {
  return hashOf({ at, object: 'receipt_tree_head', root, size });
}
