/** Receipts sealed in a batch: each is handed the head the one before it left, on disk or in this batch. */
import type { ChainHead, Draft, SealedReceipt } from '../../ports.ts';
import type { Receipts } from './receipts.ts';
import type { Sheet } from './sheet.ts';

export interface Sealing {
  readonly chain: string;
  readonly index: number;
  readonly position: number;
  readonly sealed: SealedReceipt;
}
export interface Sealer {
  seal(wanted: NonNullable<Draft['receipt']>): Sealing;
  /** The next receipt follows this one. */
  keep(sealing: Sealing): void;
  fill(sheet: Sheet): void;
  readonly sealed: boolean;
}

export function createSealer(receipts: Receipts): Sealer {
  const kept: Sealing[] = [];
  const chains = new Map<string, { readonly previous: string; readonly index: number }>();
  let tree: ChainHead['tree'] | undefined;

  return {
    get sealed() {
      return kept.length > 0;
    },
    seal(wanted) {
      const { chain } = wanted;
      const stored = tree && chains.has(chain) ? undefined : receipts.head(chain);
      const before = tree ?? stored!.tree;
      const { previous, index } = chains.get(chain) ?? stored!;
      return { chain, index, position: before.size, sealed: wanted.seal({ previous, index, tree: before }) };
    },
    keep(sealing) {
      kept.push(sealing);
      chains.set(sealing.chain, { previous: sealing.sealed.hash, index: sealing.index + 1 });
      tree = sealing.sealed.tree;
    },
    fill(sheet) {
      for (const { position, chain, index, sealed } of kept) {
        const { id, hash, task_id, receipt } = sealed;
        sheet.receipts.push(position, chain, index, id, hash, task_id, JSON.stringify(receipt));
        for (const node of sealed.nodes) sheet.nodes.push(node.level, node.index, node.hash);
      }
      if (tree && kept.length > 0) sheet.tree.push(tree.size, JSON.stringify(tree.frontier));
    },
  };
}
