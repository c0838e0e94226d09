/** Receipts sealed in a batch: each is handed the head the one before it left, on disk, in a batch that is still being written, or in this one. */
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
  /** The batch before it is on disk: what that one left is found there. */
  standAlone(): void;
  /** Let go of everything. */
  release(): void;
  readonly sealed: boolean;
  /** Where its last receipt of a chain left it. */
  end(chain: string): End | undefined;
  /** Where its last receipt left the tree. */
  readonly tree: ChainHead['tree'] | undefined;
}

type End = Pick<ChainHead, 'previous' | 'index'>;

/** `before`: of the batch that is still being written. */
export function createSealer(receipts: Receipts, before?: Sealer): Sealer {
  let under = before;
  const kept: Sealing[] = [];
  const chains = new Map<string, End>();
  let tree: ChainHead['tree'] | undefined;

  return {
    get sealed() {
      return kept.length > 0;
    },
    end: (chain) => chains.get(chain),
    get tree() {
      return tree;
    },
    seal(wanted) {
      const { chain } = wanted;
      const end = chains.get(chain) ?? under?.end(chain);
      const grown = tree ?? under?.tree;
      const stored = end && grown ? undefined : receipts.head(chain);
      const { previous, index } = end ?? stored!;
      const head = { previous, index, tree: grown ?? stored!.tree };
      return { chain, index, position: head.tree.size, sealed: wanted.seal(head) };
    },
    keep(sealing) {
      kept.push(sealing);
      chains.set(sealing.chain, { previous: sealing.sealed.hash, index: sealing.index + 1 });
      tree = sealing.sealed.tree;
    },
    standAlone() {
      under = undefined;
    },
    release() {
      kept.length = 0;
      chains.clear();
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
