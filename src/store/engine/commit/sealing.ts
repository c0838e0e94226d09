/**
 * Seals the receipts of a batch: each continues from the previous receipt, be it on disk, in the batch that is still being
 * written, or in this one.
 */
import type { CoreEvent } from '../../../model/events.ts';
import type { Receipt } from '../../../model/receipt.ts';
import type { ChainHead, Draft, SealedReceipt } from '../../../ports/index.ts';
import type { Lookups } from '../database.ts';
import type { WriteSet } from './write-set.ts';

export interface Sealing {
  readonly chain: string;
  readonly index: number;
  readonly position: number;
  readonly sealed: SealedReceipt;
}
export interface Sealer {
  seal(wanted: NonNullable<Draft['receipt']>, written: readonly CoreEvent[]): Sealing;
  /** The next receipt follows this one. */
  keep(sealing: Sealing): void;
  fill(writeSet: WriteSet, pack: (receipt: Receipt) => string): void;
  /** The previous batch is on disk, so its receipts are read from there. */
  standAlone(): void;
  /** Drops all references. */
  release(): void;
  readonly sealed: boolean;
  /** The end of a chain after this batch's last receipt in it. */
  end(chain: string): End | undefined;
  /** The tree after this batch's last receipt. */
  readonly tree: ChainHead['tree'] | undefined;
}

type End = Pick<ChainHead, 'previous' | 'index'>;

/** `before` is the sealer of the batch that is still being written. */
export function createSealer(lookups: Lookups, before?: Sealer): Sealer {
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
    seal(wanted, written) {
      const { chain } = wanted;
      const end = chains.get(chain) ?? under?.end(chain);
      const grown = tree ?? under?.tree;
      const stored = end && grown ? undefined : lookups.chain(chain);
      const { previous, index } = end ?? stored!;
      const head = { previous, index, tree: grown ?? stored!.tree };
      return { chain, index, position: head.tree.size, sealed: wanted.seal(head, written) };
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
    fill(writeSet, pack) {
      for (const { position, chain, index, sealed } of kept) {
        const { id, hash, task_id, receipt } = sealed;
        writeSet.receipts.push(position, chain, index, id, hash, task_id, pack(receipt));
        for (const node of sealed.nodes) writeSet.nodes.push(node.level, node.index, node.hash);
      }
      if (tree && kept.length > 0) writeSet.tree.push(tree.size, JSON.stringify(tree.frontier));
    },
  };
}
