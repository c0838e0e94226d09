/**
 * Signed tree heads, written into the log as it grows: one over the receipts, one over the events. With a saved head a verifier
 * can later prove that nothing before it was removed, and that the present log is a continuation of the same log.
 */
import { type EventDraft, eventId, TREE_HEAD } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Pointer } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { Clock, Signer, Store } from '../../ports/index.ts';
import { type GrowOptions, growLogTree } from '../merkle/log-tree.ts';
import { rootOf } from '../merkle/merkle.ts';
import { type LogHead, logHeadHash, signLogHead } from './log-head.ts';
import { signTreeHead, type TreeHead } from './tree-head.ts';

export interface Heads {
  readonly receipts?: TreeHead;
  readonly events?: LogHead;
}

export interface Checkpoints {
  /** Signs and writes a head for each tree that grew since its last head. */
  take(options?: GrowOptions): Promise<Heads>;
}

export const RECEIPT_TREE: Pointer = { object: 'receipt_tree', id: 'receipts' };
export const EVENT_TREE: Pointer = { object: 'event_tree', id: 'events' };

type HeadStore = Pick<Store, 'tip' | 'event'> & { readonly logTree: Pick<Store['logTree'], 'prunedHead'> };

export async function lastReceiptHead(store: HeadStore): Promise<TreeHead | undefined> {
  return (await lastHead(store, RECEIPT_TREE)) as TreeHead | undefined;
}
export async function lastLogHead(store: HeadStore): Promise<LogHead | undefined> {
  return (await lastHead(store, EVENT_TREE)) as LogHead | undefined;
}

async function lastHead(store: HeadStore, { object, id }: Pointer): Promise<unknown> {
  const tip = await store.tip({ of: 'resource', object, id });
  // Retention keeps the last head it prunes, so that each head can name its predecessor.
  const event = (tip ? await store.event(tip) : undefined) ?? (await store.logTree.prunedHead(object));
  return (event?.payload as JsonObject | undefined)?.head;
}

export function createCheckpoints(deps: {
  readonly store: Pick<Store, 'tip' | 'event' | 'tree' | 'read' | 'logTree'>;
  /** The log with the process's own redaction of secrets in front. */
  readonly log: Pick<Store, 'commit'>;
  readonly signer: Signer;
  readonly clock: Clock;
}): Checkpoints {
  const { store, log, signer, clock } = deps;
  let signed: number | undefined;
  /** Whether the log's tree holds anything but heads since it was last signed. Undefined: not yet derived from the last head. */
  let news: boolean | undefined;

  async function receiptHead(): Promise<TreeHead | undefined> {
    const tree = await store.tree();
    signed ??= (await lastReceiptHead(store))?.size ?? 0;
    if (tree.size <= signed) return undefined;
    const head = signTreeHead(tree, clock.now(), signer);
    await log.commit({ decide: () => ({ events: [headEvent(RECEIPT_TREE, head)] }) });
    signed = tree.size;
    return head;
  }

  async function logHead(options: GrowOptions | undefined): Promise<LogHead | undefined> {
    const grown = await growLogTree(store, options);
    const { first, size, frontier } = grown.state;
    const follows = await headsSoFar();
    const previous = await lastLogHead(store);
    // A head covers all but the event that holds it. A larger difference was added by a process that did not get to sign it.
    news ??= size > (previous?.size ?? 0) + 1;
    news ||= grown.news;
    if (!news || first === undefined || size <= (previous?.size ?? 0)) return undefined;
    const statement = {
      tree: 'events',
      size,
      root: rootOf({ size, frontier }),
      at: clock.now(),
      first_event_id: eventId(first),
      last_event_id: eventId(first + size - 1),
      previous: previous ? logHeadHash(previous) : null,
    } as const;
    const head = signLogHead(statement, signer);
    const written = await commitAfter(follows, head);
    if (written) news = false;
    return written ? head : undefined;
  }

  /** The number of the last head, even when its event was pruned. */
  async function headsSoFar(): Promise<number> {
    let count = 0;
    await log.commit({
      reads: [EVENT_TREE],
      decide(at) {
        count = at.sequence(EVENT_TREE.object, EVENT_TREE.id);
        return { events: [] };
      },
    });
    return count;
  }

  /** Two processes may sign at the same moment: the second finds another head than the one it follows, and drops its own. */
  async function commitAfter(follows: number, head: LogHead): Promise<boolean> {
    const overtaken = new Fault('conflict', 'another process signed the log meanwhile');
    try {
      await log.commit({
        reads: [EVENT_TREE],
        decide(at) {
          if (at.sequence(EVENT_TREE.object, EVENT_TREE.id) !== follows) throw overtaken;
          return { events: [headEvent(EVENT_TREE, head)] };
        },
      });
      return true;
    } catch (cause) {
      if (cause === overtaken) return false;
      throw cause;
    }
  }

  return {
    async take(options) {
      const receipts = await receiptHead();
      const events = await logHead(options);
      return { ...(receipts && { receipts }), ...(events && { events }) };
    },
  };
}

function headEvent(resource: Pointer, head: TreeHead | LogHead): EventDraft {
  return { event: TREE_HEAD, resource, payload: { head: head } };
}
