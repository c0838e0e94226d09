/** Receipts sealed in a batch: each is handed the head the one before it left, on disk or in this batch. */
import type { ChainHead, Draft, SealedReceipt } from '../../ports.ts';
import type { Receipts } from './receipts.ts';

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
  write(): void;
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
    write() {
      for (const { position, chain, index, sealed } of kept) receipts.put(position, chain, index, sealed);
    },
  };
}
