/**
 * Grows the tree over the whole log behind the log: events are read in slices and hashed, unless their leaves are in
 * `recent-leaves.ts`, and the leaves are stored. Growing pauses after each slice, so that a long backlog does not delay requests.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type CoreEvent, eventId, position, TREE_HEAD } from '../../model/events.ts';
import type { GrownNode, LogTreeState, Store } from '../../ports/index.ts';
import { leafBytes } from './event-hash.ts';
import { nodeBytes, spelled } from './merkle.ts';
import type { RecentLeaves } from './recent-leaves.ts';

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
  /** Events whose leaf is in here are not read. */
  readonly leaves?: RecentLeaves;
}

/** Grows up to the end of the log, unless `most` or `signal` stops it earlier. */
export async function growLogTree(store: Source, { most, signal, leaves }: GrowOptions = {}): Promise<Growth> {
  let news = false;
  let state = await store.logTree.state();
  for (let left = most ?? Number.POSITIVE_INFINITY; left > 0 && !signal?.aborted; ) {
    const limit = Math.min(STRETCH, left);
    const grown = await stretch(store, state, limit, leaves);
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

async function stretch(store: Source, state: LogTreeState, limit: number, leaves: RecentLeaves | undefined) {
  const { first: known, size: from, frontier } = state;
  const nodes: GrownNode[] = [];
  const tree = createGrowth(from, frontier, nodes);
  let first = known;
  let news = false;
  let since = performance.now();
  const added = () => tree.size() - from;
  const tired = () => performance.now() - since > SLICE_MS;
  const rest = async () => {
    await pause(performance.now() - since);
    since = performance.now();
  };

  /** Adds the known leaves from here on. */
  async function take(next: number): Promise<void> {
    for (let at = next; added() < limit; at += 1) {
      const leaf = leaves?.at(at);
      if (leaf === undefined) return;
      tree.add(leaf);
      // Known leaves are events of tasks, never tree heads.
      news = true;
      if (tired()) await rest();
    }
  }

  /** Reads events up to the next known leaf or the end of the log, and returns which of the two it reached. */
  async function read(next: number | undefined): Promise<'leaf' | 'end'> {
    const before = tree.size();
    const until = next === undefined ? undefined : leaves?.nextFrom(next);
    const range = { ...(next && { after: eventId(next - 1) }), ...(until && { upTo: eventId(until - 1) }) };
    for await (const event of store.read({ stream: { of: 'all' }, limit: limit - added(), ...range })) {
      first ??= positionOf(event);
      tree.add(leafBytes(event));
      news ||= event.event !== TREE_HEAD;
      if (tired()) await rest();
    }
    return until === undefined || tree.size() === before ? 'end' : 'leaf';
  }

  while (added() < limit) {
    if (first !== undefined) await take(first + tree.size());
    if (added() < limit && (await read(first === undefined ? undefined : first + tree.size())) === 'end') break;
  }
  const count = added();
  if (first === undefined || count === 0) return undefined;
  leaves?.forgetBefore(first + tree.size());
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
