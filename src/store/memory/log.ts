/**
 * A log in memory: what a database file holds, as maps. Several stores may share one, as several gateways share a file. It is gone with
 * its process, and lists read every row of their kind: for tests, and for processes that need no past.
 */
import type { Stream } from '../../model/events.ts';
import type { ChainHead, LogTreeState, Row } from '../../ports/index.ts';
import type { RowChange, WriteSet } from '../engine/commit/write-set.ts';
import type {
  BlobPart,
  FoldedRow,
  ReceiptBody,
  StoredAnswer,
  StoredBody,
  StoredHead,
  StoredWord,
} from '../engine/database.ts';

export interface MemoryLog {
  /** How many transactions there were. */
  generation: number;
  /** Last position that was pruned, and its time. */
  floor: number;
  floorAt: string;
  /** The events behind the floor, in order. */
  items: StoredBody[];
  /** Positions of the events of each stream but `all`, by its key. */
  readonly streams: Map<string, number[]>;
  /** First pruned position of each task and session; 1 for a resource that lost events. */
  readonly pruned: Map<string, number>;
  /** By key of the resource. */
  readonly heads: Map<string, MutableHead>;
  readonly resources: Map<number, { readonly key: string; readonly head: MutableHead }>;
  readonly locations: Map<number, readonly string[]>;
  /** By number; those of pruned events are gone. */
  readonly words: Map<number, StoredWord>;
  lastWord: number;
  /** By object and id. */
  rows: Map<string, Map<string, MemoryRow>>;
  readonly baseline: Map<string, FoldedRow>;
  readonly answers: Map<string, StoredAnswer & { readonly at: string }>;
  /** By position. */
  readonly receipts: (ReceiptBody & { readonly id: string; readonly task: string })[];
  tree: ChainHead['tree'];
  readonly nodes: Map<string, string>;
  logTree: LogTreeState;
  readonly logNodes: Map<string, string>;
  readonly prunedHeads: Map<string, string>;
  readonly blobs: Map<string, number>;
  readonly parts: Map<string, Map<number, BlobPart>>;
  readonly leases: Set<string>;
}
/** A null body marks a dropped row. */
export interface MemoryRow {
  readonly created_at: string;
  readonly body: string | null;
  readonly row: Row | undefined;
}
interface MutableHead extends StoredHead {
  sequence: number;
  readonly locations: StoredHead['locations'][number][];
}

export const createMemoryLog = (): MemoryLog => ({
  generation: 0,
  floor: 0,
  floorAt: '',
  items: [],
  streams: new Map(),
  pruned: new Map(),
  heads: new Map(),
  resources: new Map(),
  locations: new Map(),
  words: new Map(),
  lastWord: 0,
  rows: new Map(),
  baseline: new Map(),
  answers: new Map(),
  receipts: [],
  tree: { size: 0, frontier: [] },
  nodes: new Map(),
  logTree: { first: undefined, size: 0, frontier: [] },
  logNodes: new Map(),
  prunedHeads: new Map(),
  blobs: new Map(),
  parts: new Map(),
  leases: new Set(),
});

export const keyOf = (stream: Exclude<Stream, { of: 'all' }>): string =>
  stream.of === 'resource' ? `resource\n${stream.object}\n${stream.id}` : `${stream.of}\n${stream.id}`;

export const nodeKey = (level: number, index: number): string => `${level} ${index}`;

/** Adds what one transaction writes. */
export function applyWriteSet(log: MemoryLog, writeSet: WriteSet): void {
  for (const [number, object, id] of entries<[number, string, string]>(writeSet.resources, 3)) {
    const key = keyOf({ of: 'resource', object, id });
    const head = { number, sequence: 0, stretch: -1, locations: [] };
    log.heads.set(key, head);
    log.resources.set(number, { key, head });
  }
  type Location = [number, number, string | null, string | null, string | null];
  for (const [number, resource, task, session, workspace] of entries<Location>(writeSet.locations, 5)) {
    const ids = { task_id: task, session_id: session, workspace_id: workspace };
    log.resources.get(resource)!.head.locations.push({ number, ...ids });
    const keys = Object.entries({ task, session, workspace }).flatMap(([of, id]) =>
      id === null ? [] : [`${of}\n${id}`],
    );
    log.locations.set(number, keys);
  }
  for (const [number, position, text] of entries<[number, number, string]>(writeSet.words, 3)) {
    log.words.set(number, { number, position, text });
    log.lastWord = number;
  }
  for (const [position, resource, sequence, location, body] of entries<[number, number, number, number, string]>(
    writeSet.events,
    5,
  )) {
    const { key, head } = log.resources.get(resource)!;
    head.sequence = sequence;
    log.items.push({ position, body });
    for (const stream of [key, ...log.locations.get(location)!]) {
      const positions = log.streams.get(stream);
      if (positions) positions.push(position);
      else log.streams.set(stream, [position]);
    }
  }
  for (const change of writeSet.rows) putRow(log, change);
  type Sealed = [number, string, number, string, string, string, string];
  for (const [position, chain, index, id, hash, task, body] of entries<Sealed>(writeSet.receipts, 7)) {
    log.receipts[position] = { position, chain, index, hash, body, id, task };
  }
  for (const [level, index, hash] of entries<[number, number, string]>(writeSet.nodes, 3)) {
    log.nodes.set(nodeKey(level, index), hash);
  }
  const [size, frontier] = writeSet.tree as [number, string];
  if (frontier !== undefined) log.tree = { size, frontier: JSON.parse(frontier) as string[] };
  type Answer = [string, string, string | null, string];
  for (const [scope, digest, result, at] of entries<Answer>(writeSet.answers, 4)) {
    log.answers.set(scope, { digest, result, at });
  }
}

function putRow(log: MemoryLog, { object, id, born, row, body }: Omit<RowChange, 'before'>): void {
  const ofKind = log.rows.get(object) ?? new Map<string, MemoryRow>();
  log.rows.set(object, ofKind);
  ofKind.set(id, { created_at: ofKind.get(id)?.created_at ?? born, body, row });
}

/** Removes the events up to a position, and remembers which streams lost some. */
export function pruneEvents(log: MemoryLog, upTo: number): void {
  log.items = log.items.filter(({ position }) => position > upTo);
  for (const [key, positions] of log.streams) {
    const first = positions[0];
    if (first === undefined || first > upTo) continue;
    if (!log.pruned.has(key)) log.pruned.set(key, key.startsWith('resource') ? 1 : first);
    log.streams.set(
      key,
      positions.filter((position) => position > upTo),
    );
  }
  log.floor = upTo;
}

function* entries<T extends readonly unknown[]>(values: readonly unknown[], width: number): Generator<T> {
  // A write set holds the members of its rows one after the other.
  for (let at = 0; at < values.length; at += width) yield values.slice(at, at + width) as unknown as T;
}
