/**
 * A receipt by its id, hash, issuer and key: a door sends this to the client that submitted the work, so that the
 * client's receipt can name ours. The receipt itself needs the scope to read receipts.
 */
import type { Actor } from '../../model/actions.ts';
import type { Receipt } from '../../model/receipt.ts';
import type { ReceiptResource } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { Bridge, Row } from '../../ports/index.ts';
import { contentsOf } from './carried.ts';

/** For a task the actor is known to own. Undefined when the receipt is not visible to it. */
export async function receiptReference(
  bridge: Pick<Bridge, 'view'>,
  actor: Actor,
  receiptId: string,
): Promise<JsonObject | undefined> {
  // The owner of the work may know which receipt accounts for it, without the scope to read it.
  const owner = { ...actor, scopes: ['receipts:read'] };
  const found = await bridge.view<ReceiptResource & Row>(owner, 'receipt', receiptId).catch(() => undefined);
  const receipt = ((found?.wire as JsonObject | undefined)?.payload ?? {}) as Partial<Receipt>;
  const { chain, issuer } = receipt;
  if (!chain || !issuer) return undefined;
  return {
    receipt_id: receiptId,
    receipt_hash: chain.receipt_hash,
    issuer: issuer.id,
    ...(issuer.public_key_id && { key_id: issuer.public_key_id }),
    // Only counts: the client learns whether the protocol between us carried all of it.
    holds: { ...contentsOf(receipt as Receipt) },
  };
}
