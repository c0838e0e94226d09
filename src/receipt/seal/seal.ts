/**
 * Seals a receipt: gives it its position in a chain, hashes it, signs it and adds it to the tree. Synchronous, because it runs
 * inside the write transaction that decides the position. Refuses a receipt that has no canonical form.
 */

import type { Receipt } from '../../model/receipt.ts';
import { isObject } from '../../model/values/is-object.ts';
import type { ChainHead, SealedReceipt, Signer } from '../../ports/index.ts';
import type { UnsealedReceipt } from '../build/build.ts';
import { appendLeaf } from '../merkle/merkle.ts';
import { hashOf } from './canonical-json.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export function sealReceipt(unsealed: UnsealedReceipt, head: ChainHead, signer: Signer): SealedReceipt {
  // Members are set in canonical order, so that hashing has nothing to sort.
  const receipt: Writable<Partial<Receipt>> = {};
  if (unsealed.approvals) receipt.approvals = unsealed.approvals;
  receipt.autonomy_budget = unsealed.autonomy_budget;
  receipt.chain = { previous_receipt_hash: head.previous } as Receipt['chain'];
  receipt.cost = unsealed.cost;
  if (unsealed.deltas) receipt.deltas = unsealed.deltas;
  receipt.final_artifacts = unsealed.final_artifacts;
  receipt.identifiers = unsealed.identifiers;
  receipt.issued_at = unsealed.issued_at;
  receipt.issuer = issuerOf(unsealed, signer);
  receipt.lifecycle = unsealed.lifecycle;
  const metadata = withChainIndex(unsealed.metadata, head.index);
  if (metadata) receipt.metadata = metadata;
  receipt.model_route = unsealed.model_route;
  receipt.receipt_id = unsealed.receipt_id;
  if (unsealed.redactions) receipt.redactions = unsealed.redactions;
  receipt.replay_input = unsealed.replay_input;
  receipt.schema = unsealed.schema;
  receipt.side_effects = unsealed.side_effects;
  receipt.subject = unsealed.subject;
  receipt.trust = unsealed.trust;

  // Hashed before the hash and the signatures exist, so nothing has to be removed first.
  const hash = hashOf(receipt);
  receipt.chain = { previous_receipt_hash: head.previous, receipt_hash: hash };
  receipt.signatures = [signer.sign(hash)];
  const { tree, nodes } = appendLeaf(head.tree, hash);
  return {
    id: unsealed.receipt_id,
    hash,
    task_id: unsealed.identifiers.task_id,
    receipt: receipt as Receipt,
    tree,
    nodes,
  };
}

/** Names the key in use now, in case it was rotated since the receipt was built. A receipt that names no key stays so. */
function issuerOf({ issuer }: UnsealedReceipt, signer: Signer): Receipt['issuer'] {
  if (issuer.public_key_id === undefined || issuer.public_key_id === signer.keyId) return issuer;
  return { ...issuer, public_key_id: signer.keyId };
}

/** The position in the chain is only known here. A receipt without chain metadata (a replay's) is left as it is. */
function withChainIndex(metadata: Receipt['metadata'], index: number): Receipt['metadata'] {
  const chain = metadata?.chain;
  if (!isObject(chain)) return metadata;
  const { id, scope } = chain as { id?: string; scope?: string };
  return { ...metadata, chain: { id, index, scope } };
}
