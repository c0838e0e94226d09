/**
 * The root over a published batch of receipts, by the rule the receipt format's own tooling uses: nodes are the texts
 * `sha256:<hex>`, and a last node without a partner is paired with itself. That pairing makes different batches look
 * alike, so a batch is only ever compared together with its list of leaves; our own tree (merkle.ts) has no such flaw.
 */
import { hashBytes } from '../seal/canonical-json.ts';

export function batchRoot(leaves: readonly string[]): string {
  if (leaves.length === 0) return hashBytes('');
  let row = leaves;
  while (row.length > 1) {
    const above: string[] = [];
    for (let at = 0; at < row.length; at += 2) above.push(hashBytes(`${row[at]}${row[at + 1] ?? row[at]}`));
    row = above;
  }
  return row[0]!;
}
