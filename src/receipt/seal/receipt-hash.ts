/** A receipt's own hash covers everything but the hash itself and the signatures made over it. */
import type { Receipt } from '../../model/receipt.ts';
import { hashOf } from './canonical-json.ts';

export function receiptHash(receipt: Pick<Receipt, 'chain' | 'signatures'>): string {
  const { signatures: _, chain, ...rest } = receipt;
  const { receipt_hash: __, ...position } = chain;
  return hashOf({ ...rest, chain: position });
}

/** The leaf for a batch root inside the receipt: also omits that root, which would otherwise contain itself. */
export function batchLeaf(receipt: Pick<Receipt, 'chain' | 'signatures'>): string {
  const { merkle_root: _, ...position } = receipt.chain;
  return receiptHash({ ...receipt, chain: position });
}
