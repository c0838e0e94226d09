/**
 * Checks a receipt in its store: the document by itself, the record before it, its position in the tree, and the events of its
 * task. Recomputes everything from the stored documents each time and trusts no column.
 */
import type { ChainHead, Store, StoredReceipt } from '../../ports/index.ts';
import { rootOf } from '../merkle/merkle.ts';
import { type InclusionProof, inclusionProof, verifyInclusion } from '../merkle/proofs.ts';
import type { Jwks } from '../seal/public-keys.ts';
import { checkTaskEvents, type TaskEventsState } from './task-events.ts';
import { readReceipt, type VerifyReport, verifyReceipt } from './verify.ts';

export interface StoredVerifierDeps {
  readonly store: Pick<Store, 'receipts' | 'tree' | 'nodes' | 'read' | 'firstMissing'>;
  readonly keys: () => Jwks;
}
interface StoredReport extends VerifyReport {
  readonly details: VerifyReport['details'] & {
    /** Returned so that a client can check it against a tree head it has saved. */
    readonly tree: InclusionProof & { readonly root: string; readonly status: 'ok' | 'mismatch' };
    /** Whether the events of its task are still those it was sealed over. */
    readonly events: TaskEventsState;
  };
}
export type StoredVerifier = (
  stored: StoredReceipt,
  options: { readonly trustAnchor?: string; readonly atTime?: string },
) => Promise<StoredReport>;

export function createStoredVerifier({ store, keys }: StoredVerifierDeps): StoredVerifier {
  async function before({ chain, index }: StoredReceipt): Promise<unknown> {
    if (index === 0) return null;
    const [found] = await store.receipts({ chain, index: index - 1, limit: 1 });
    // A missing predecessor counts as a wrong one.
    return found?.receipt ?? null;
  }

  /** Needed only for an anchor far back; read in pages, oldest first. */
  async function earlier(stored: StoredReceipt): Promise<unknown[]> {
    const found: unknown[] = [];
    for (let after = -1; ; ) {
      const page = await store.receipts({ chain: stored.chain, after, limit: 500 });
      for (const each of page) if (each.position < stored.position) found.push(each.receipt);
      const last = page.at(-1);
      if (!last || last.position >= stored.position) return found;
      after = last.position;
    }
  }

  async function treePositionOf(
    stored: StoredReceipt,
    tree: ChainHead['tree'],
  ): Promise<StoredReport['details']['tree']> {
    const root = rootOf(tree);
    const proof = await inclusionProof(stored.position, tree.size, store.nodes).catch(() => undefined);
    const holds = proof && verifyInclusion(stored.receipt.chain.receipt_hash, proof, root);
    return {
      ...(proof ?? { index: stored.position, size: tree.size, path: [] }),
      root,
      status: holds ? 'ok' : 'mismatch',
    };
  }

  /** The stored document may not be a receipt at all: then it commits to nothing, and the report names the other fault. */
  async function eventsOf({ receipt }: StoredReceipt): Promise<TaskEventsState> {
    const read = readReceipt(receipt);
    return typeof read === 'string' ? 'absent' : await checkTaskEvents(store, read.receipt);
  }

  return async (stored, { trustAnchor, atTime }) => {
    const report = verifyReceipt(stored.receipt, {
      keys: keys(),
      previous: await before(stored),
      ...(trustAnchor?.startsWith('sha256:') && { earlier: await earlier(stored) }),
      ...(trustAnchor && { trustAnchor }),
      ...(atTime && { atTime }),
    });
    const tree = await treePositionOf(stored, await store.tree());
    const events = await eventsOf(stored);
    const reason =
      report.reason ??
      (tree.status === 'mismatch' ? 'merkle_mismatch' : undefined) ??
      (events === 'mismatch' ? 'events_mismatch' : undefined);
    return { valid: !reason, ...(reason && { reason }), details: { ...report.details, tree, events } };
  };
}
