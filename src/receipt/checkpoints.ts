/**
 * Signed tree heads, written into the log as the receipts grow: whoever kept one can later prove that nothing before it
 * was removed, and that the log they see now is the one it was.
 */
import type { JsonObject } from '../model/schema.ts';
import type { Clock, Signer, Store } from '../ports.ts';
import { signTreeHead, type TreeHead } from './tree-head.ts';

export interface Checkpoints {
  /** Signs and writes a head if receipts were added since the last one. */
  take(): Promise<TreeHead | undefined>;
}

export function createCheckpoints(deps: {
  readonly store: Pick<Store, 'tip' | 'event' | 'tree'>;
  /** The way into the log, which takes secrets out. */
  readonly log: Pick<Store, 'commit'>;
  readonly signer: Signer;
  readonly clock: Clock;
}): Checkpoints {
  const { store, log, signer, clock } = deps;
  let signed: number | undefined;

  async function lastSigned(): Promise<number> {
    const tip = await store.tip({ of: 'resource', object: 'receipt_tree', id: 'receipts' });
    const event = tip ? await store.event(tip) : undefined;
    return Number((event?.payload.head as JsonObject | undefined)?.size ?? 0);
  }

  return {
    async take() {
      const tree = await store.tree();
      signed ??= await lastSigned();
      if (tree.size <= signed) return undefined;
      const head = signTreeHead(tree, clock.now(), signer);
      const event = {
        event: 'vendor.tollbridge.tree_head',
        resource: { object: 'receipt_tree', id: 'receipts' },
        payload: { head: head as unknown as JsonObject },
      };
      await log.commit({ decide: () => ({ events: [event] }) });
      signed = tree.size;
      return head;
    },
  };
}
