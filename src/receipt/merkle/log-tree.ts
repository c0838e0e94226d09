/**
 * Grows the tree over the whole log behind the log: events are read in slices and hashed, and their leaves are stored. Growing
 * pauses after each slice, so that a long backlog does not delay requests.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type CoreEvent, eventId, position, TREE_HEAD } from '../../model/events.ts';
import type { GrownNode, LogTreeState, Store } from '../../ports/index.ts';
import { leafBytes } from './event-hash.ts';
import { nodeBytes, spelled } from './merkle.ts';

type Source = Pick<Store, 'read' | 'logTree'>;

/** Leaves per transaction. */
const STRETCH = 1_000;
/** Milliseconds of hashing before the next pause. */
const SLICE_MS = 4;

export interface Growth {
  readonly state: LogTreeState;
  /** Whether anything but tree heads was added: only then is a new head worth signing. */
  readonly news: boolean;
}

export interface GrowOptions {
  /** Maximum number of events to add. */
  readonly most?: number;
  /** Stops after the current transaction. */
  readonly signal?: AbortSignal;
}

/** Grows up to the end of the log, unless `most` or `signal` stops it earlier. */
export async function growLogTree(store: Source, { most, signal }: GrowOptions = {}): Promise<Growth> {
  let news = false;
  let state = await store.logTree.state();
  for (let left = most ?? Number.POSITIVE_INFINITY; left > 0 && !signal?.aborted; ) {
    const limit = Math.min(STRETCH, left);
    const grown = await stretch(store, state, limit);
    if (!grown) break;
    // Another process grew the tree first: continue from its state.
    const taken = await store.logTree.grow(grown.growth);
    state = await store.logTree.state();
    if (!taken) continue;
    news ||= grown.news;
    left -= grown.count;
    if (grown.count < limit) break;
  }
  return { state, news };
}

async function stretch(store: Source, state: LogTreeState, limit: number) {
  const { size: from, frontier } = state;
  const nodes: GrownNode[] = [];
  const tree = createGrowth(from, frontier, nodes);
  let { first } = state;
  let news = false;
  let since = performance.now();
  const range = first === undefined ? {} : { after: eventId(first + from - 1) };
  for await (const event of store.read({ stream: { of: 'all' }, limit, ...range })) {
    first ??= positionOf(event);
    tree.add(leafBytes(event));
    news ||= event.event !== TREE_HEAD;
    const spent = performance.now() - since;
    if (spent <= SLICE_MS) continue;
    await pause(spent);
    since = performance.now();
  }
  const count = tree.size() - from;
  if (first === undefined || count === 0) return undefined;
  const growth = { from, first, size: tree.size(), frontier: tree.frontier(), nodes };
  return { growth, count, news };
}

/**
 * Appends leaves to a compact tree; `nodes` receives the nodes they complete. Hashes are 32 bytes in a binary string, except for
 * the frontier, which is text.
 */
export function createGrowth(from: number, before: readonly string[], nodes?: GrownNode[]) {
  const peaks = before.map((hash) => Buffer.from(hash.slice('sha256:'.length), 'hex').toString('latin1'));
  let size = from;
  return {
    size: () => size,
    frontier: () => peaks.map(spelled),
    add(leaf: string): void {
      let index = size;
      let level = 0;
      let node = leaf;
      nodes?.push({ level, index, bytes: node });
      while (index % 2 === 1) {
        node = nodeBytes(peaks.pop()!, node);
        index = (index - 1) / 2;
        level += 1;
        nodes?.push({ level, index, bytes: node });
      }
      peaks.push(node);
      size += 1;
    },
  };
}

export function positionOf({ id }: CoreEvent): number {
  return position(id) ?? 0;
}
