/**
 * The port of the store. A commit resolves once it is durable; its events, projections, idempotency record and receipt are written
 * together or not at all.
 */
import type { CoreEvent, Cursor, EventDraft, Stream } from '../model/events.ts';
import type { Receipt } from '../model/receipt.ts';
import type { Pointer } from '../model/resources.ts';
import type { Json } from '../model/schema.ts';
import type { ChainHead, SealedReceipt, TreeNode } from './proof.ts';

/** A resource as last written. Every projection has these members, and its own besides. */
export type Row = {
  readonly id: string;
  readonly object: string;
  readonly created_at: string;
  readonly updated_at: string;
};

/** The state a decision may read, true at the moment of the commit. */
export interface At {
  /** Only resources that the unit named in `reads`. */
  get<T extends Row>(object: string, id: string): T | undefined;
  /** Sequence of the last event of a resource named in `reads`; 0 when it has none. */
  sequence(object: string, id: string): number;
  readonly now: string;
}

/**
 * One step: look, decide, append. `decide` runs inside the write transaction, so nothing can change between
 * looking and writing, in this process or another. It must be pure and quick, and may be asked several times; throwing a Fault refuses the unit and
 * writes nothing.
 */
export interface Unit {
  readonly reads?: readonly Pointer[];
  /** A repeat of the same scope and body is answered with the first one's result; another body under the same scope is a fault. */
  readonly idempotency?: { readonly scope: string; readonly body: string };
  /**
   * The unit is the work of this lease's holder: refused as a conflict, inside the transaction, once the lease was closed or another
   * process has taken it. So a process that was paused and wakes up writes nothing under a lease it has lost.
   */
  readonly lease?: Lease;
  decide(at: At): Draft;
}

export interface Draft {
  readonly events: readonly EventDraft[];
  /**
   * Ids generated for this unit a moment ago: no resource of any kind in the log has them yet. A hint that saves the store a
   * lookup.
   */
  readonly born?: readonly string[];
  /**
   * Chained and sealed inside the transaction, so that every receipt has exactly one predecessor. `written` are the events of this
   * unit, with their ids and numbers.
   */
  readonly receipt?: { readonly chain: string; seal(head: ChainHead, written: readonly CoreEvent[]): SealedReceipt };
  /** Kept with the idempotency record and handed to repeats. */
  readonly result?: Json;
}

export interface Committed {
  readonly events: readonly CoreEvent[];
  readonly result: Json | undefined;
  readonly receipt: Receipt | undefined;
  /** True when this was a repeat and nothing was written. */
  readonly repeated: boolean;
}

export interface StoredReceipt {
  readonly position: number;
  readonly chain: string;
  readonly index: number;
  readonly hash: string;
  readonly receipt: Receipt;
}

export interface ReceiptQuery {
  readonly chain?: string;
  /** The receipt at this position of its chain. */
  readonly index?: number;
  readonly task?: string;
  /** Exclusive position; positions count from 0. */
  readonly after?: number;
  readonly limit?: number;
}

/** Turns events into resources. Pure; all projections come from here, live and on rebuild. */
export interface Projector {
  /** Resources that `apply` will read for this event. */
  touches(event: EventDraft): readonly Pointer[];
  apply(event: CoreEvent, get: <T extends Row>(object: string, id: string) => T | undefined): readonly Change[];
}

export type Change = { readonly put: Row } | { readonly drop: Pointer };

export interface ListQuery {
  readonly object: string;
  readonly where?: Readonly<Partial<Record<FilterName, string | readonly string[]>>>;
  /** Oldest first by creation and id; `after` is the id of the last row seen. */
  readonly after?: string;
  readonly limit?: number;
  readonly newestFirst?: boolean;
}

/** Members a list can be filtered by; the store keeps them as columns. `state` is a row's `status` or `state`. */
export type FilterName = 'workspace_id' | 'session_id' | 'task_id' | 'parent_task_id' | 'state' | 'owner_id';

export interface EventRange {
  readonly stream: Stream;
  /** Exclusive; absent means from the beginning. Older than what is kept: `cursor_expired`. */
  readonly after?: Cursor;
  /** Inclusive. */
  readonly upTo?: Cursor;
  readonly kinds?: readonly string[];
  readonly limit?: number;
}

/** Events that are no longer kept. */
export interface Missing {
  /** The first of them. */
  readonly first: Cursor;
  /** A reader that accepts the gap may continue after this event. */
  readonly oldest: Cursor;
}

/** The result of comparing projections with a rebuild of them. */
export interface RowsReport {
  readonly compared: number;
  /** Rows that rest on pruned events: no proven events are left to compare them with. */
  readonly unproven: number;
  /** The first row that differs from the fold of its events. */
  readonly fault?: { readonly table: string; readonly object: string; readonly id: string; readonly what: string };
}

/**
 * The Merkle tree over events, grown from time to time behind the log. A leaf stays when its event is pruned, so a copy of the
 * event kept elsewhere can still be proven.
 */
export interface LogTree {
  state(): Promise<LogTreeState>;
  nodes(wanted: readonly { level: number; index: number }[]): Promise<readonly TreeNode[]>;
  /** The last pruned event of kind `TREE_HEAD` about this object: the next head names it. */
  prunedHead(object: string): Promise<CoreEvent | undefined>;
  /** False when another process has meanwhile grown the tree beyond `from`: then nothing is written. */
  grow(growth: {
    /** The size the tree is grown from. */
    readonly from: number;
    readonly first: number;
    readonly size: number;
    readonly frontier: readonly string[];
    /** The nodes completed by this growth. */
    readonly nodes: readonly GrownNode[];
  }): Promise<boolean>;
}
/** A node with its hash as 32 bytes in a binary string: there are two for each event, and hex encoding costs as much as hashing. */
export interface GrownNode {
  readonly level: number;
  readonly index: number;
  readonly bytes: string;
}
export interface LogTreeState {
  /** Position of the event that is leaf 0: the oldest event kept when the tree was begun. */
  readonly first: number | undefined;
  readonly size: number;
  readonly frontier: readonly string[];
}

/** Events in order. Waiting for each of many costs more than reading it. */
export interface EventStream extends AsyncIterable<CoreEvent> {
  /** The next event, where it is there already; the others are waited for. */
  ready?(): CoreEvent | undefined;
}

export interface Store {
  commit(unit: Unit): Promise<Committed>;
  read(range: EventRange): AsyncIterable<CoreEvent>;
  /**
   * Past events, then live ones, with no gap and no repeat, including those that other processes append to the same log. Ends when
   * the signal fires.
   */
  follow(from: { stream: Stream; after?: Cursor | 'now'; kinds?: readonly string[] }, signal: AbortSignal): EventStream;
  event(id: Cursor): Promise<CoreEvent | undefined>;
  /** The newest event of a stream. */
  tip(stream: Stream): Promise<Cursor | undefined>;
  /** The events of a task, session or resource that are no longer kept; undefined when all of them are. */
  firstMissing(stream: Stream): Promise<Missing | undefined>;
  /** The first event whose columns or indexes disagree with its body. Reads the whole log. */
  columnFault(progress?: (position: number) => void): Promise<{ event_id: Cursor; column: string } | undefined>;
  /** Compares every stored row with the fold of its events. Reads the whole log; changes nothing. */
  compareRows(progress?: (position: number) => void): Promise<RowsReport>;
  get<T extends Row>(object: string, id: string): Promise<T | undefined>;
  list<T extends Row>(query: ListQuery): Promise<readonly T[]>;

  receipt(id: string): Promise<StoredReceipt | undefined>;
  receipts(query: ReceiptQuery): Promise<readonly StoredReceipt[]>;
  tree(): Promise<ChainHead['tree']>;
  nodes(wanted: readonly { level: number; index: number }[]): Promise<readonly TreeNode[]>;
  /** The tree over the log itself. */
  readonly logTree: LogTree;

  /** Bytes by their hash (bare hex). Putting the same bytes twice keeps one copy. */
  putBlob(bytes: Uint8Array): Promise<string>;
  blob(sha256: string, range?: { start: number; end: number }): Promise<Uint8Array | undefined>;
  hasBlob(sha256: string): Promise<boolean>;

  /** Held as long as this process lives and reaches the database, and released however it dies. Undefined: another process holds it. */
  lease(name: string): Promise<Lease | undefined>;
  /** Drops events older than `before` that no open task needs. Reading before the cut is `cursor_expired`. */
  retain(before: string): Promise<{ dropped: number }>;
  /** Rebuilds projections from the log alone; they must equal the live ones. */
  rebuild(): Promise<void>;
  /** Bytes that can still be written, by the disk and the configured size; measured at most a few times a second. */
  room(): number;
  /** Why nothing can be written; undefined when the store is well. */
  trouble(): string | undefined;
  close(): Promise<void>;
}

export interface Closable {
  close(): Promise<void>;
}

export interface Lease extends Closable {
  readonly name: string;
  /** Grows each time the lease is taken. 0 where it cannot be lost while its holder lives: in a file, or in memory. */
  readonly epoch: number;
  /** Fires when the lease is closed, and when another process may have taken it: the connection that held it is gone. */
  readonly lost: AbortSignal;
}
