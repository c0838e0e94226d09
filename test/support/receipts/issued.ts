/** Receipts as a gateway issues them, with its own keys and an outsider's, and as a forger would leave them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { storyInput } from '../../../fixtures/receipts/story.ts';
import type { Receipt } from '../../../src/model/receipt.ts';
import type { SealedReceipt } from '../../../src/ports/index.ts';
import { buildReceipt, type ReceiptInput } from '../../../src/receipt/build/build.ts';
import { createEvidence } from '../../../src/receipt/build/evidence.ts';
import { EMPTY_TREE, type Tree } from '../../../src/receipt/merkle/merkle.ts';
import { type Keyring, openKeyring } from '../../../src/receipt/seal/keys.ts';
import { receiptHash } from '../../../src/receipt/seal/receipt-hash.ts';
import { sealReceipt } from '../../../src/receipt/seal/seal.ts';
import { signTreeHead, type TreeHead } from '../../../src/receipt/seal/tree-head.ts';

/** Its directory is gone when the tests of the file that opened it are over. */
export async function receiptIssuer() {
  const base = await mkdtemp(join(tmpdir(), 'verify-'));
  afterAll(() => rm(base, { recursive: true, force: true }));
  const clock = { now: '2026-11-16T09:30:00.000Z' };
  const keyring = await openKeyring({ dir: join(base, 'ours'), now: () => clock.now });
  const outsider = await openKeyring({ dir: join(base, 'theirs'), now: () => clock.now });

  /** A gateway as far as receipts go: chains, one tree, one key. */
  function gateway(by: Keyring = keyring) {
    const chains = new Map<string, { previous: string | null; index: number }>();
    let tree: Tree = EMPTY_TREE;
    return {
      issue(workspace: string, more: Partial<ReceiptInput> = {}): SealedReceipt {
        const head = chains.get(workspace) ?? { previous: null, index: 0 };
        const id = `${workspace}_${head.index}`;
        const task = {
          id: `task_${id}`,
          session_id: 's',
          workspace_id: workspace,
          created_at: '2026-11-16T09:00:00.000Z',
        };
        const input = storyInput(createEvidence(), { receipt_id: `receipt_${id}`, task, ...more });
        const sealed = sealReceipt(buildReceipt(input), { ...head, tree }, by.signer());
        chains.set(workspace, { previous: sealed.hash, index: head.index + 1 });
        tree = sealed.tree;
        return sealed;
      },
      treeHead: (): TreeHead => signTreeHead(tree, clock.now, by.signer()),
    };
  }
  const issued = (more: Partial<ReceiptInput> = {}): Receipt => gateway().issue('ws', more).receipt;
  return { base, clock, keyring, outsider, gateway, issued };
}

export const edited = (receipt: Receipt, change: (receipt: Receipt) => void): Receipt => {
  const copy = structuredClone(receipt);
  change(copy);
  return copy;
};
/** As a forger would: the hash fits again, the signature cannot. */
export const rehashed = (receipt: Receipt): Receipt =>
  edited(receipt, (r) => (r.chain.receipt_hash = receiptHash(receipt)));
