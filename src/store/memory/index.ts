/** The store in memory: the same engine as every store, on maps instead of a file. */
import type { Stream } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Database, Events, Page, ReceiptBody, StoredBody } from '../engine/database.ts';
import { createStore, type EngineOptions, type EngineStore } from '../engine/store.ts';
import { listRows } from './list.ts';
import { applyWriteSet, createMemoryLog, keyOf, type MemoryLog, nodeKey } from './log.ts';
import { createUpkeep } from './upkeep.ts';

export interface MemoryOptions extends EngineOptions {
  /** A log that other stores of this process use too. Absent: one of its own. */
  readonly memory?: MemoryLog;
}

export async function createMemoryStore(options: MemoryOptions): Promise<EngineStore> {
  return createStore(openMemory(options.memory ?? createMemoryLog()), options);
}

export function openMemory(memory: MemoryLog): Database {
  let closed = false;
  /** Our own transactions: the others are the version. */
  let own = 0;
  const held = new Set<string>();
  const use = (): MemoryLog => {
    if (closed) throw new Fault('unavailable', 'the store is closed');
    return memory;
  };
  const count = (): void => {
    memory.generation += 1;
    own += 1;
  };
  const chainHead: Database['lookups']['chain'] = (chain) => {
    const last = memory.receipts.findLast((receipt) => receipt.chain === chain);
    return { previous: last?.hash ?? null, index: last ? last.index + 1 : 0, tree: memory.tree };
  };
  const bodyOf = (object: string, id: string) => use().rows.get(object)?.get(id)?.body;

  return {
    name: 'memory',
    errors: { isBusy: () => false, environment: faultOf, reading: (thrown) => thrown },
    lookups: {
      row: bodyOf,
      head: (object, id) => memory.heads.get(keyOf({ of: 'resource', object, id })),
      answer: (scope) => memory.answers.get(scope),
      chain: chainHead,
    },
    version: () => use().generation - own,
    end: () => ({
      position: lastOf(memory),
      floorAt: memory.floorAt,
      resource: memory.resources.size,
      location: memory.locations.size,
      word: memory.lastWord,
    }),
    commit(decide) {
      use();
      const writeSet = decide();
      if (writeSet instanceof Promise) throw new Error('a decision on memory waits for nothing');
      if (!writeSet) return;
      applyWriteSet(memory, writeSet);
      count();
    },
    transact(work) {
      use();
      const result = work();
      count();
      return result;
    },
    events: createEvents(use),
    words: (first, last) => [...use().words.values()].filter(({ number }) => number >= first && number <= last),
    recentWords(from, most) {
      const words = [...use().words.values()];
      const ofReceipts = words.filter(({ position }) => position === 0);
      return [
        ...ofReceipts.slice(-most),
        ...words.filter(({ position }) => position > 0 && position >= from).slice(-most),
      ];
    },
    row: bodyOf,
    list: (query) => listRows(use(), query),
    receipts: {
      get: (id) => shown(use().receipts.find((receipt) => receipt.id === id)),
      list({ chain, index, task, after = -1, limit = 50 }) {
        const fits = (receipt: MemoryLog['receipts'][number]) =>
          (chain === undefined || receipt.chain === chain) &&
          (index === undefined || receipt.index === index) &&
          (task === undefined || receipt.task === task);
        return use()
          .receipts.slice(after + 1)
          .filter(fits)
          .slice(0, limit)
          .map((receipt) => shown(receipt)!);
      },
      tree: () => use().tree,
      nodes: (wanted) => nodesIn(use().nodes, wanted),
    },
    logTree: {
      state: () => use().logTree,
      nodes: (wanted) => nodesIn(use().logNodes, wanted),
      prunedHead: (object) => use().prunedHeads.get(object),
      grow({ from, first, size, frontier, nodes }) {
        if (memory.logTree.size !== from) return false;
        for (const { level, index, bytes } of nodes) {
          memory.logNodes.set(nodeKey(level, index), `sha256:${Buffer.from(bytes, 'latin1').toString('hex')}`);
        }
        memory.logTree = { first, size, frontier };
        return true;
      },
    },
    blobs: {
      size: (sha256) => use().blobs.get(sha256),
      part: (sha256, part) => use().parts.get(sha256)?.get(part),
      putPart(sha256, part, { digest, bytes }) {
        const parts = memory.parts.get(sha256) ?? new Map();
        memory.parts.set(sha256, parts.set(part, { digest, bytes: bytes.slice() }));
      },
      parts: (sha256) => memory.parts.get(sha256)?.size ?? 0,
      finish: (sha256, size) => void memory.blobs.set(sha256, size),
    },
    upkeep: createUpkeep(use),
    lease(name) {
      const { leases } = use();
      if (leases.has(name)) return undefined;
      leases.add(name);
      held.add(name);
      let open = true;
      return {
        epoch: 0,
        async close() {
          if (!open) return;
          open = false;
          leases.delete(name);
          held.delete(name);
        },
      };
    },
    room: () => Number.POSITIVE_INFINITY,
    close() {
      closed = true;
      for (const name of held) memory.leases.delete(name);
      held.clear();
    },
  };
}

function faultOf(thrown: unknown): Fault | undefined {
  return thrown instanceof Fault && thrown.kind === 'unavailable' ? thrown : undefined;
}

function createEvents(use: () => MemoryLog): Events {
  const itemAt = ({ items, floor }: MemoryLog, position: number): StoredBody | undefined => items[position - floor - 1];

  function page(stream: Stream, after: number, upTo: number, most: number): StoredBody[] {
    const log = use();
    if (stream.of === 'all') {
      const from = Math.max(0, after - log.floor);
      return log.items.slice(from, Math.min(from + most, upTo - log.floor));
    }
    const positions = log.streams.get(keyOf(stream)) ?? [];
    const from = indexBehind(positions, after);
    return positions
      .slice(from, from + most)
      .filter((position) => position <= upTo)
      .map((position) => itemAt(log, position)!);
  }

  return {
    last: () => lastOf(use()),
    floor: () => use().floor,
    body: (position) => itemAt(use(), position)?.body,
    open(stream, after) {
      let at = after;
      return {
        page(upTo, most): Page {
          const items = page(stream, at, upTo, most);
          at = items.at(-1)?.position ?? at;
          return { items, done: items.length < most };
        },
      };
    },
    prunedFrom: (stream) =>
      stream.of === 'all' || stream.of === 'workspace' ? undefined : use().pruned.get(keyOf(stream)),
    tip: (stream) => (stream.of === 'all' ? lastOf(use()) || undefined : use().streams.get(keyOf(stream))?.at(-1)),
  };
}

/** The index of the first position behind `after`. */
function indexBehind(positions: readonly number[], after: number): number {
  let low = 0;
  let high = positions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (positions[middle]! > after) high = middle;
    else low = middle + 1;
  }
  return low;
}

const lastOf = ({ floor, items }: MemoryLog): number => floor + items.length;

function shown(receipt: MemoryLog['receipts'][number] | undefined): ReceiptBody | undefined {
  if (!receipt) return undefined;
  const { id: _, task: __, ...stored } = receipt;
  return stored;
}

function nodesIn(nodes: ReadonlyMap<string, string>, wanted: readonly { level: number; index: number }[]) {
  return wanted.flatMap(({ level, index }) => {
    const hash = nodes.get(nodeKey(level, index));
    return hash === undefined ? [] : [{ level, index, hash }];
  });
}
