/** The stored log as a verifier reads it: the pruned part as stored tree nodes, the rest as events. */
import { type CoreEvent, eventId, position } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { LogTreeState, Store } from '../../ports/index.ts';
import { foldPeaks } from '../merkle/merkle.ts';
import { frontierAt } from '../merkle/proofs.ts';
import { EVENT_TREE } from '../seal/checkpoints.ts';
import { isLogHead, type LogHead } from '../seal/log-head.ts';
import type { EventsSource } from './events.ts';

type Source = Pick<Store, 'read' | 'logTree'>;

/** Leaves read at once. */
const PAGE = 500;

/** Where in the tree the remaining events begin. */
export async function prunedPart(store: Source): Promise<NonNullable<EventsSource['pruned']> & { grown: number }> {
  const state = await store.logTree.state();
  const floor = await floorOf(store);
  const first = state.first ?? floor + 1;
  const size = Math.max(0, Math.min(floor + 1 - first, state.size));
  return { first, size, frontier: await frontierAt(size, store.logTree.nodes), grown: state.size };
}

/**
 * The last pruned position. The store reports it when asked for pruned events; a row that is merely missing does not count as
 * pruned.
 */
async function floorOf(store: Pick<Store, 'read'>): Promise<number> {
  try {
    for await (const _ of store.read({ stream: { of: 'all' }, after: eventId(0), limit: 1 })) break;
    return 0;
  } catch (thrown) {
    const oldest = thrown instanceof Fault && thrown.kind === 'cursor_expired' ? thrown.details?.oldest : undefined;
    if (typeof oldest !== 'string') throw thrown;
    return position(oldest) ?? 0;
  }
}

/** Heads in the log, oldest first. Pruned heads are gone with their events. */
export async function* headsInLog(store: Pick<Store, 'read'>): AsyncGenerator<LogHead> {
  const after = eventId(await floorOf(store));
  try {
    for await (const { payload } of store.read({ stream: { of: 'resource', ...EVENT_TREE }, after })) {
      const head = (payload as { head?: unknown } | undefined)?.head;
      if (isLogHead(head)) yield head;
    }
  } catch (thrown) {
    // A head whose body is not JSON is found when the events are read, and ends the check there.
    if (!(thrown instanceof SyntaxError)) throw thrown;
  }
}

/** Reads leaves in pages: reading each one by itself would cost more than hashing its event. */
export function leavesOf({ nodes }: Store['logTree'], { size }: LogTreeState): NonNullable<EventsSource['leaf']> {
  let page = new Map<number, string>();
  return async (index) => {
    if (index >= size) return undefined;
    if (!page.has(index)) {
      const wanted = Array.from({ length: Math.min(PAGE, size - index) }, (_, at) => ({ level: 0, index: index + at }));
      page = new Map((await nodes(wanted)).map((node) => [node.index, node.hash]));
    }
    return page.get(index);
  };
}

export async function storedSource(
  store: Pick<Store, 'read' | 'logTree' | 'receipt' | 'receipts'>,
): Promise<Omit<EventsSource, 'keys' | 'heads'>> {
  const { grown, ...pruned } = await prunedPart(store);
  return {
    pruned,
    grown,
    events: store.read({ stream: { of: 'all' } }) as AsyncIterable<CoreEvent>,
    leaf: leavesOf(store.logTree, await store.logTree.state()),
    rootAt: async (size) => foldPeaks(await frontierAt(size, store.logTree.nodes)),
    receipt: async (id) => (await store.receipt(id))?.receipt,
    receiptOf: async (task) => (await store.receipts({ task, limit: 1 }))[0]?.receipt,
  };
}
