/** Two receipts of the same happening are the same text, apart from names nobody can give twice. */
import type { Receipt } from '../../../src/model/receipt.ts';
import { canonicalJson } from '../../../src/receipt/seal/canonical-json.ts';

/**
 * The canonical text without what is declared to differ: the names of receipt and task, the place in the chain, and
 * the signatures. Everything else has to come from the record.
 */
export function sameText(receipt: Receipt): string {
  const { receipt_id: _receipt, chain: _chain, signatures: _signatures, identifiers, subject, ...rest } = receipt;
  const { task_id: _task, ...locations } = identifiers;
  return canonicalJson({ ...rest, identifiers: locations, subject: subject.object });
}

export function sameReceipt(one: Receipt, other: Receipt): boolean {
  return sameText(one) === sameText(other);
}
