/**
 * What the engine asks of a database: the narrow interface between `engine/`, which decides, numbers, seals, folds and follows, and
 * one folder per database, which holds rows and makes them durable. A database in this process answers at once; one over a network
 * answers with promises. Its writers are serialized: one transaction at a time, by any process.
 */
import type { EventDraft, Stream } from '../../model/events.ts';
import type { Fault } from '../../model/faults.ts';
import type { Pointer } from '../../model/resources.ts';
import type {
  ChainHead,
  Closable,
  FilterName,
  ListQuery,
  LogTree,
  LogTreeState,
  ReceiptQuery,
  Row,
  StoredReceipt,
  TreeNode,
} from '../../ports/index.ts';
import type { WriteSet } from './commit/write-set.ts';
import type { Wait } from './wait.ts';

export interface Database {
  /** How error messages and log lines call it: a path, or a URL without its secrets. */
  readonly name: string;
  readonly errors: Errors;
  readonly lookups: Lookups;
  /**
   * Changes when another writer has committed, and not for our own commits. The last known state where asking takes a while; exact
   * inside `commit` and `transact`, where it no longer changes.
   */
  version(): number;
  /** The end of the log, from which a commit numbers what it adds. */
  end(): Wait<LogEnd>;
  /**
   * One durable transaction: takes the write lock, calls `decide`, writes the write set it returns, and resolves once it is on disk.
   * Undefined: there is nothing to write. Fails with nothing written; `errors.isBusy` when another writer keeps the lock.
   */
  commit(decide: () => Wait<WriteSet | undefined>): Wait<void>;
  /** The same for upkeep, blobs and the tree over the log, which change rows through the methods below. */
  transact<T>(work: () => Wait<T>): Wait<T>;
  /** Writes batches that were decided without the lock. Absent: every batch is decided with the lock held. */
  readonly ahead?: Ahead;
  /** Absent: processes that commit at the same time do not take turns. */
  readonly turns?: WriterTurns;

  readonly events: Events;
  /** The words with these numbers, both included. */
  words(first: number, last: number): Wait<StoredWord[]>;
  /** The newest words that events from this position on may use, and the newest of receipts; at most so many of each. */
  recentWords(position: number, most: number): Wait<StoredWord[]>;
  /** The JSON text of a row; null or undefined when there is none. */
  row(object: string, id: string): Wait<string | null | undefined>;
  list(query: ListQuery): Wait<Row[]>;
  readonly receipts: Receipts;
  readonly logTree: LogTreeRows;
  readonly blobs: BlobRows;
  readonly upkeep: Upkeep;
  /** Held as long as this process lives, and released however it dies. Undefined: another holds it. */
  lease(name: string): Wait<HeldLease | undefined>;
  /** Bytes that can still be written. Asked before every act: a cached figure will do. */
  room(): number;
  close(): Wait<void>;
}

export interface HeldLease extends Closable {
  /**
   * Grows each time the lease is taken, by a transaction that changes the `version` of every other store. 0: only the end of its
   * holder's process can end it, so `lookups.epoch` is absent.
   */
  readonly epoch: number;
  /** Fires when it may be another's. Absent: that cannot happen. */
  readonly lost?: AbortSignal;
}

export interface Errors {
  /** Another writer holds the lock: trying again soon will help. */
  isBusy(thrown: unknown): boolean;
  /** The fault when the database or its disk is the problem; undefined when it is the data or the code. */
  environment(thrown: unknown): Fault | undefined;
  /** What a reader is told. */
  reading(thrown: unknown): unknown;
}

export interface LogEnd {
  /** Last position; 0 when there never was an event. */
  readonly position: number;
  /** Time of the last event that was pruned; empty when none was. */
  readonly floorAt: string;
  /** Last numbers given to a resource, to a location and to a word. */
  readonly resource: number;
  readonly location: number;
  readonly word: number;
}

/**
 * The state that decisions read, at the moment they are made. Decisions are synchronous: a database over a network uses
 * `createRemoteLookups`, which has the unit decided again once its rows are loaded.
 */
export interface Lookups {
  row(object: string, id: string): string | null | undefined;
  head(object: string, id: string): StoredHead | undefined;
  answer(scope: string): StoredAnswer | undefined;
  chain(chain: string): ChainHead;
  /** How often the lease of this name was taken. Absent where a lease cannot be lost. */
  epoch?(lease: string): number;
  /** Of a database over a network. */
  readonly remote?: RemoteLookups;
}
export interface RemoteLookups {
  /** True after a decision stopped because something was not loaded. */
  readonly wanting: boolean;
  load(): Promise<void>;
  /** Drops what was loaded: the rows may have changed. */
  forget(): void;
}

/** The number of a resource, its last sequence, and the locations of its events. */
export interface StoredHead {
  readonly number: number;
  readonly sequence: number;
  /** The last stretch of the log in which it has events; -1 for none. */
  readonly stretch: number;
  readonly locations: readonly (LocationIds & { readonly number: number })[];
}
export type LocationIds = Pick<EventDraft, 'workspace_id' | 'session_id' | 'task_id'>;

export interface StoredAnswer {
  readonly digest: string;
  /** JSON; null: there was no result. */
  readonly result: string | null;
}

/** Writes one write set at a time while the next is being decided. */
export interface Ahead {
  /** How many transactions the database has seen, as of the last `version()`. */
  generation(): number;
  /** Whether a batch of so many units is to be decided without the lock. */
  takes(units: number): boolean;
  /**
   * False, with nothing written, when another writer has committed since the generation `after` or anything failed: the units are then
   * decided again with the lock held. Undefined: it cannot take the write set now. Fails when nobody can say whether it was written: the
   * units are refused.
   */
  write(writeSet: WriteSet, after: number): Promise<boolean> | undefined;
  close(): Promise<void>;
}

/** The turns of several writers. They only save work: the lock and the check of the generation keep the log right. */
export interface WriterTurns {
  /** Resolves when it is our turn. Undefined: that took too long. Afterwards `version` is exact. */
  take(longestMs: number): Promise<Turn | undefined>;
}
interface Turn {
  /** Others have written since our last turn. */
  readonly othersWrote: boolean;
  release(): void;
}

/** A string or a list of names that events or receipts refer to by its number, as JSON. */
export interface StoredWord {
  readonly number: number;
  /** Of the event that brought it; 0: a receipt did. */
  readonly position: number;
  readonly text: string;
}

/** An event as it is stored: packed, or JSON. */
export interface StoredBody {
  readonly position: number;
  readonly body: string;
}
export interface Page {
  readonly items: StoredBody[];
  /** None is left up to the position asked for. */
  readonly done: boolean;
}
export interface Reader {
  /** The next items up to and including `upTo`, at most `most`. */
  page(upTo: number, most: number): Wait<Page>;
}
export interface Events {
  /** Last position. */
  last(): Wait<number>;
  /** Last position that was pruned; 0 when none was. */
  floor(): Wait<number>;
  body(position: number): Wait<string | undefined>;
  /** Reads a stream behind `after`, which must not be below the floor. */
  open(stream: Stream, after: number): Reader;
  /**
   * The position of the first event of a task, session or resource that was pruned; undefined when all are kept. 1 is a flag of older
   * versions: something was pruned, and its position was not recorded. `all` and workspace streams have no beginning to lose.
   */
  prunedFrom(stream: Stream): Wait<number | undefined>;
  tip(stream: Stream): Wait<number | undefined>;
}

/** A receipt as it is stored: packed, or JSON. */
export interface ReceiptBody extends Omit<StoredReceipt, 'receipt'> {
  readonly body: string;
}
export interface Receipts {
  get(id: string): Wait<ReceiptBody | undefined>;
  list(query: ReceiptQuery): Wait<ReceiptBody[]>;
  tree(): Wait<ChainHead['tree']>;
  nodes(wanted: readonly { level: number; index: number }[]): Wait<TreeNode[]>;
}

export interface LogTreeRows {
  state(): Wait<LogTreeState>;
  nodes(wanted: readonly { level: number; index: number }[]): Wait<TreeNode[]>;
  /** The text of the last pruned head about this object. */
  prunedHead(object: string): Wait<string | undefined>;
  /** Inside `transact`. False, with nothing written, when the tree was grown beyond `from` meanwhile. */
  grow(growth: Parameters<LogTree['grow']>[0]): Wait<boolean>;
}

/** Writing happens inside `transact`. */
export interface BlobRows {
  size(sha256: string): Wait<number | undefined>;
  part(sha256: string, part: number): Wait<BlobPart | undefined>;
  putPart(sha256: string, part: number, content: BlobPart): Wait<void>;
  parts(sha256: string): Wait<number>;
  /** From now on the blob exists. */
  finish(sha256: string, size: number): Wait<void>;
}
export interface BlobPart {
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** Pruning, rebuilding and comparing. Writing happens inside `transact`. */
export interface Upkeep {
  /** Ids of the tasks whose state is not one of those. */
  openTasks(isOver: (state: string) => boolean): Wait<string[]>;
  /** Projections of the pruned part of the log: where a rebuild starts. */
  readonly baseline: FoldTable;
  /** Removes the events up to a position, whose event has the time `at`; keeps the pruned heads of trees. */
  prune(cut: { readonly upTo: number; readonly at: string; readonly heads: ReadonlyMap<string, string> }): Wait<void>;
  /** Forgets at most so many idempotency keys; returns how many. */
  dropKeys(before: string, most: number): Wait<number>;
  /** After pruning, inside `transact`: removes what pruned events and interrupted writes left behind. */
  tidy(): Wait<void>;
  /** The first event whose columns or indexes disagree with its body. */
  columnFault(progress?: (position: number) => void): Promise<{ event_id: string; column: string } | undefined>;
  /** A place for projections computed anew, beside the stored ones. */
  fresh(): Wait<FreshRows>;
}

/** A row while events are folded into it. A null body marks a dropped row. */
export interface FoldedRow {
  readonly object: string;
  readonly id: string;
  readonly created_at: string;
  readonly body: string | null;
  /** It rests on pruned events. */
  readonly unproven: boolean;
}
export interface FoldTable {
  /** The rows that exist, dropped or not. */
  load(pointers: readonly Pointer[]): Wait<FoldedRow[]>;
  save(rows: readonly FoldedRow[]): Wait<void>;
}

export interface FreshRows {
  readonly table: FoldTable;
  /** Empties the table and fills it with the baseline. */
  restart(): Wait<void>;
  /** Runs work for which events, baseline and rows must not change, without keeping writers out. */
  consistently<T>(work: () => Wait<T>): Wait<T>;
  /** Replaces the stored rows by these. Inside `transact`. */
  exchange(): Wait<void>;
  /** Stored rows in the order of their keys, page by page; empty when none is left. */
  stored(after: StoredRow | undefined, most: number): Wait<StoredRow[]>;
  /** The first row of these that is neither stored, dropped nor unproven. */
  missing(): Wait<(Pointer & { readonly table: string }) | undefined>;
  close(): Wait<void>;
}
export interface StoredRow {
  readonly table: string;
  readonly object: string;
  readonly id: string;
  readonly created_at: string;
  readonly body: string | null;
  /** The filters that are kept beside the body. */
  readonly columns: Readonly<Partial<Record<FilterName, string | null>>>;
}
