/**
 * Where everything is kept. A commit resolves once it is durable; its events, projections, idempotency record and receipt are
 * written together or not at all.
 */
import type { CoreEvent, Cursor, EventDraft, Stream } from '../model/events.ts';
import type { Receipt } from '../model/receipt.ts';
import type { Pointer } from '../model/resources.ts';
import type { Json } from '../model/schema.ts';
import type { ChainHead, SealedReceipt, TreeNode } from './proof.ts';

/** A resource as last written. Every projection has these; the rest is its own. */
export interface Row {
  readonly id: string;
  readonly object: string;
  readonly created_at: string;
  readonly updated_at: string;
}

/** What a decision may look at, true at the moment of the commit. */
export interface At {
  /** Only what the unit named in `reads`. */
  get<T extends Row>(object: string, id: string): T | undefined;
  /** Sequence of the last event of a resource named in `reads`; 0 when it has none. */
  sequence(object: string, id: string): number;
  readonly now: string;
}

/**
 * One step: look, decide, append. `decide` runs inside the write transaction, so nothing can change between
 * looking and writing, in this process or another. It must be pure and quick; throwing a Fault refuses the unit and
 * writes nothing.
 */
export interface Unit {
  readonly reads?: readonly Pointer[];
  /** A repeat of the same scope and body is answered from the first one's result; another body is a fault. */
  readonly idempotency?: { readonly scope: string; readonly body: string };
  decide(at: At): Draft;
}

export interface Draft {
  readonly events: readonly EventDraft[];
  /**
   * Ids that were made for this unit a moment ago: nothing in the log is called so yet, whatever its kind. A hint, so that a store
   * need not look for what cannot be there.
   */
  readonly born?: readonly string[];
  /** Chained and sealed inside the transaction, so that every receipt has exactly one predecessor. */
  readonly receipt?: { readonly chain: string; seal(head: ChainHead): SealedReceipt };
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
  /** The receipt at this place of its chain. */
  readonly index?: number;
  readonly task?: string;
  /** Exclusive position; positions count from 0. */
  readonly after?: number;
  readonly limit?: number;
}

/** Turns events into resources. Pure; the only place projections come from, live and on rebuild. */
export interface Projector {
  /** Resources `apply` will look at for this event. */
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

export interface Store {
  commit(unit: Unit): Promise<Committed>;
  read(range: EventRange): AsyncIterable<CoreEvent>;
  /** Past, then live, no gap, no repeat; also what other processes append to the same log. Ends when the signal fires. */
  follow(
    from: { stream: Stream; after?: Cursor | 'now'; kinds?: readonly string[] },
    signal: AbortSignal,
  ): AsyncIterable<CoreEvent>;
  event(id: Cursor): Promise<CoreEvent | undefined>;
  /** The newest event of a stream. */
  tip(stream: Stream): Promise<Cursor | undefined>;
  get<T extends Row>(object: string, id: string): Promise<T | undefined>;
  list<T extends Row>(query: ListQuery): Promise<readonly T[]>;

  receipt(id: string): Promise<StoredReceipt | undefined>;
  receipts(query: ReceiptQuery): Promise<readonly StoredReceipt[]>;
  tree(): Promise<ChainHead['tree']>;
  nodes(wanted: readonly { level: number; index: number }[]): Promise<readonly TreeNode[]>;

  /** Bytes by their hash (bare hex). Putting the same bytes twice keeps one copy. */
  putBlob(bytes: Uint8Array): Promise<string>;
  blob(sha256: string, range?: { start: number; end: number }): Promise<Uint8Array | undefined>;
  hasBlob(sha256: string): Promise<boolean>;

  /** Held as long as this process lives, released by its death however it dies. Undefined: someone living has it. */
  lease(name: string): Promise<Closable | undefined>;
  /** Drop events older than `before` that no open task needs. Reading behind the cut is `cursor_expired`. */
  retain(before: string): Promise<{ dropped: number }>;
  /** Projections from nothing but the log; the live ones must come out equal. */
  rebuild(): Promise<void>;
  /** Bytes that can still be written, as far as the disk and the configured size tell; looked at a few times a second at most. */
  room(): number;
  /** Undefined when well; otherwise why nothing can be written. */
  trouble(): string | undefined;
  close(): Promise<void>;
}

export interface Closable {
  close(): Promise<void>;
}
