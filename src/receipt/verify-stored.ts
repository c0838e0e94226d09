/**
 * Checking a receipt where it is kept: the document by itself, the record before it, and its place in the tree.
 * Recomputes everything from what is stored, each time; believes no column.
 */
import type { ChainHead, Store, StoredReceipt } from '../ports.ts';
import { rootOf } from './merkle.ts';
import { type InclusionProof, inclusionProof, verifyInclusion } from './merkle-proofs.ts';
import type { Jwks } from './public-keys.ts';
import { type VerifyReport, verifyReceipt } from './verify.ts';

export interface StoredVerifierDeps {
  readonly store: Pick<Store, 'receipts' | 'tree' | 'nodes'>;
  readonly keys: () => Jwks;
}
interface StoredReport extends VerifyReport {
  readonly details: VerifyReport['details'] & {
    /** Handed out so that anyone can check it against a tree head they hold. */
    readonly tree: InclusionProof & { readonly root: string; readonly status: 'ok' | 'mismatch' };
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
    // A predecessor that is gone is as good as a wrong one.
    return found?.receipt ?? null;
  }

  /** Only an anchor far back needs them; read in pages, oldest first. */
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

  async function placeOf(stored: StoredReceipt, tree: ChainHead['tree']): Promise<StoredReport['details']['tree']> {
    const root = rootOf(tree);
    const proof = await inclusionProof(stored.position, tree.size, store.nodes).catch(() => undefined);
    const holds = proof && verifyInclusion(stored.receipt.chain.receipt_hash, proof, root);
    return {
      ...(proof ?? { index: stored.position, size: tree.size, path: [] }),
      root,
      status: holds ? 'ok' : 'mismatch',
    };
  }

  return async (stored, { trustAnchor, atTime }) => {
    const report = verifyReceipt(stored.receipt, {
      keys: keys(),
      previous: await before(stored),
      ...(trustAnchor?.startsWith('sha256:') && { earlier: await earlier(stored) }),
      ...(trustAnchor && { trustAnchor }),
      ...(atTime && { atTime }),
    });
    const tree = await placeOf(stored, await store.tree());
    const reason = report.reason ?? (tree.status === 'mismatch' ? 'merkle_mismatch' : undefined);
    return { valid: !reason, ...(reason && { reason }), details: { ...report.details, tree } };
  };
}
