/**
 * Checks events: each against its stored leaf, all of them against every signed head, and each task's against the root its
 * receipt commits to. Names the first event that does not fit. Reads once, in order, and keeps only the tasks that are open at
 * that point.
 */
import { type CoreEvent, eventId, position } from '../../model/events.ts';
import type { Receipt, ReplayMaterial } from '../../model/receipt.ts';
import { createRun, type EventRun, extendRun, leafBytes, rootOfRun } from '../merkle/event-hash.ts';
import { createGrowth } from '../merkle/log-tree.ts';
import { foldPeaks, spelled } from '../merkle/merkle.ts';
import { isLogHead, type LogHead, verifyLogHead } from '../seal/log-head.ts';
import type { Jwks } from '../seal/public-keys.ts';

export type EventCode =
  | 'event_edited'
  | 'event_deleted'
  | 'event_reordered'
  | 'event_inserted'
  | 'events_mismatch'
  | 'commitment_mismatch'
  | 'columns_mismatch'
  | 'receipt_missing'
  | 'rolled_back'
  | 'log_head_invalid';

export interface BadEvent {
  readonly code: EventCode;
  readonly message: string;
  readonly event_id?: string;
  readonly receipt_id?: string;
}

export interface EventsReport {
  readonly valid: boolean;
  /** Sound events before the first bad one. */
  readonly events: number;
  /** Events known by their leaves alone. */
  readonly pruned: number;
  /** Signed heads that fit. */
  readonly heads: number;
  /** Receipts whose commitment was recomputed from the events. */
  readonly commitments: number;
  /** Events after the last signed head: only receipts vouch for them. */
  readonly unsigned: number;
  readonly firstBad?: BadEvent;
}

export interface EventsSource {
  readonly events: AsyncIterable<CoreEvent> | Iterable<CoreEvent>;
  /** Leaves whose events were pruned. Absent: none, and the log begins with event 1. */
  readonly pruned?: { readonly first: number; readonly size: number; readonly frontier: readonly string[] };
  /** Heads of the tree over the events, ordered by size. */
  readonly heads: AsyncIterable<KnownHead> | Iterable<KnownHead>;
  /** The root the tree had at a size within the pruned part, from the stored nodes. */
  readonly rootAt?: (size: number) => Promise<string>;
  /** Number of stored leaves: a log with fewer events has lost some. */
  readonly grown?: number;
  /** The stored leaf of an event, by its index in the tree: tells which of many events was changed. */
  readonly leaf?: (index: number) => Promise<string | undefined>;
  /** Finds a receipt by id. */
  readonly receipt: (id: string) => Promise<Pick<Receipt, 'receipt_id' | 'replay_input' | 'subject'> | undefined>;
  /** Finds the receipt of a task: a replay commits to the events of its source. */
  readonly receiptOf: (taskId: string) => Promise<Pick<Receipt, 'receipt_id' | 'replay_input'> | undefined>;
  /** The latest event that any receipt commits to: a log that ends before it has lost its end. */
  readonly covered?: () => { readonly event_id: string; readonly receipt_id: string } | undefined;
  /** The source has the events of some tasks only: each of those tasks completely, and nothing else. */
  readonly partial?: boolean;
  readonly keys: Jwks;
  readonly trustAnchor?: string | undefined;
  readonly progress?: (done: number) => void;
}

/** A head, and the witness that kept it when it does not come from the log itself. */
export type KnownHead = LogHead & { readonly kept_by?: string };

export async function verifyEvents(source: EventsSource): Promise<EventsReport> {
  const { pruned, keys, trustAnchor } = source;
  const tree = createGrowth(pruned?.size ?? 0, pruned?.frontier ?? []);
  const tasks = createTasks(source);
  const heads = iterate(source.heads);
  const counted = { events: 0, heads: 0, signed: pruned?.size ?? 0 };
  let first = pruned?.first;

  const report = (firstBad?: BadEvent): EventsReport => ({
    valid: !firstBad,
    events: counted.events,
    pruned: pruned?.size ?? 0,
    heads: counted.heads,
    commitments: tasks.checked(),
    unsigned: Math.max(0, tree.size() - counted.signed),
    ...(firstBad && { firstBad }),
  });

  let head = await heads();
  let headBefore: KnownHead | undefined;
  /** Checks every head up to the size reached now. */
  async function fitHeads(): Promise<BadEvent | undefined> {
    for (; head && head.size <= tree.size(); head = await heads()) {
      const state = isLogHead(head) ? verifyLogHead(head, keys, trustAnchor) : 'invalid';
      if (state !== 'ok') return badHead(head, state);
      const root = head.size === tree.size() ? foldPeaks(tree.frontier()) : await source.rootAt?.(head.size);
      if (root !== undefined) {
        if (root !== head.root) return otherEvents(head, headBefore);
        counted.heads += 1;
        counted.signed = head.size;
      }
      headBefore = head;
    }
    return undefined;
  }

  const early = await fitHeads();
  if (early) return report(early);
  for await (const event of readable(source.events)) {
    if (source.partial) {
      const bad = await tasks.take(event);
      if (bad) return report(bad);
      counted.events += 1;
      continue;
    }
    const at = position(event?.id ?? '');
    first ??= at;
    const expected = (first ?? 1) + tree.size();
    if (at !== expected) return report(misplaced(event, at, expected));
    const leaf = leafBytes(event);
    const kept = await source.leaf?.(tree.size());
    if (kept !== undefined && kept !== spelled(leaf)) {
      const what = 'it is not the event that was written there';
      return report({ code: 'event_edited', event_id: event.id, message: `event ${event.id}: ${what}` });
    }
    tree.add(leaf);
    const bad = (await tasks.take(event)) ?? (await fitHeads());
    if (bad) return report(bad);
    counted.events += 1;
    source.progress?.(at);
  }
  const cut = await tasks.cutOff();
  if (source.partial) return report(cut);
  if (head) return report(rolledBack(head, tree.size()));
  if (source.grown !== undefined && source.grown > tree.size()) {
    return report(cutOff(eventId((first ?? 1) + tree.size()), tree.size(), source.grown));
  }
  const covered = source.covered?.();
  if (covered && (position(covered.event_id) ?? 0) >= (first ?? 1) + tree.size()) {
    return report(uncovered(covered.receipt_id, covered.event_id, tree.size()));
  }
  return report(cut);
}

export interface Covering {
  note(receipt: Pick<Receipt, 'receipt_id' | 'replay_input' | 'subject'>): void;
  readonly covered: NonNullable<EventsSource['covered']>;
}

/** Keeps, among many receipts, the one that commits to the latest event. */
export function createCovering(): Covering {
  let furthest: { event_id: string; receipt_id: string } | undefined;
  return {
    note(receipt) {
      const { last_event_id } = (commitmentIn(receipt)?.metadata ?? {}) as { last_event_id?: unknown };
      if (receipt.subject.object === 'replay_segment' || typeof last_event_id !== 'string') return;
      if (furthest && last_event_id <= furthest.event_id) return;
      furthest = { event_id: last_event_id, receipt_id: receipt.receipt_id };
    },
    covered: () => furthest,
  };
}

/** Merges heads of the log and heads kept elsewhere into one sequence. */
export async function* bySize(
  inLog: AsyncIterable<KnownHead> | Iterable<KnownHead>,
  kept: readonly KnownHead[],
): AsyncGenerator<KnownHead> {
  const others = kept.toSorted((a, b) => a.size - b.size);
  for await (const head of inLog) {
    while (others[0] && others[0].size <= head.size) yield others.shift()!;
    yield head;
  }
  yield* others;
}

/** The events of each task that is open at this point of the log, and its receipt once it has ended. */
function createTasks({ receipt, receiptOf, partial }: EventsSource) {
  const open = new Map<string, { run: EventRun; receiptId: string | undefined }>();
  /** Used for partial sources only: in a whole log the beginning of any task may have been pruned. */
  const ended = new Set<string>();
  let checked = 0;
  return {
    checked: () => checked,
    /** Finds a task that has no end here although it has a receipt. */
    async cutOff(): Promise<BadEvent | undefined> {
      for (const [id, { run }] of open) {
        const found = await receiptOf(id);
        const stated = found && commitmentIn(found);
        const { count, last_event_id } = (stated?.metadata ?? {}) as { count?: number; last_event_id?: string };
        if (!found || typeof count !== 'number' || typeof last_event_id !== 'string') continue;
        return unfinished(found.receipt_id, id, run.count, count, last_event_id);
      }
      return undefined;
    },
    async take(event: CoreEvent): Promise<BadEvent | undefined> {
      if (event.resource?.object !== 'task') return undefined;
      const { id } = event.resource;
      const known = open.get(id) ?? { run: createRun(), receiptId: undefined };
      if (event.sequence !== known.run.count + 1) {
        // Its beginning was pruned, or it has ended and this event came after.
        if (known.run.count === 0 && (!partial || ended.has(id))) return undefined;
        return misnumbered(event, known.run.count + 1);
      }
      open.set(id, known);
      extendRun(known.run, event);
      if (event.event === 'receipt.issued' && event.receipt_id) known.receiptId = event.receipt_id;
      if (!ENDS.has(event.event)) return undefined;
      open.delete(id);
      if (partial) ended.add(id);
      if (known.receiptId === undefined) return undefined;
      const found = await receipt(known.receiptId);
      if (!found) return noReceipt(event, known.receiptId);
      const stated = commitmentIn(found);
      if (!stated?.sha256) return undefined;
      const { count, task_id } = (stated.metadata ?? {}) as { count?: unknown; task_id?: unknown };
      if (found.subject.object === 'replay_segment') {
        // A replay commits to the events it repeats: those its source's receipt was sealed over.
        const source = typeof task_id === 'string' ? await receiptOf(task_id) : undefined;
        const root = source && commitmentIn(source)?.sha256;
        return root === undefined || root === stated.sha256
          ? undefined
          : otherSource(found.receipt_id, task_id as string);
      }
      checked += 1;
      const fits = stated.sha256 === rootOfRun(known.run.frontier) && count === known.run.count;
      return fits ? undefined : otherTask(found.receipt_id, known.run, id);
    },
  };
}
const ENDS: ReadonlySet<string> = new Set(['task.completed', 'task.failed', 'task.canceled']);

/** The material of a receipt that represents its task's events. */
export function commitmentIn({ replay_input }: Pick<Receipt, 'replay_input'>): ReplayMaterial | undefined {
  return replay_input.materials.find(({ kind }) => kind === 'event_log');
}

function misplaced(event: CoreEvent | undefined, at: number | undefined, expected: number): BadEvent {
  const wanted = eventId(expected);
  if (at === undefined) {
    return {
      code: 'event_edited',
      event_id: wanted,
      message: `where event ${wanted} should be there is no event of a log`,
    };
  }
  const id = event?.id ?? wanted;
  return at > expected
    ? { code: 'event_deleted', event_id: wanted, message: `event ${wanted} is missing: ${id} follows directly` }
    : { code: 'event_reordered', event_id: id, message: `event ${id} stands where ${wanted} should` };
}

function misnumbered(event: CoreEvent, expected: number): BadEvent {
  const { id: event_id, sequence, resource } = event;
  const what = `it says it is number ${sequence} of task ${resource.id}, where number ${expected} should be`;
  const code = sequence > expected ? 'event_deleted' : 'event_inserted';
  return { code, event_id, message: `event ${event_id}: ${what}` };
}

function noReceipt({ id: event_id, resource }: CoreEvent, receipt_id: string): BadEvent {
  const message = `the log says that task ${resource.id} ended with receipt ${receipt_id}, which is missing`;
  return { code: 'receipt_missing', event_id, receipt_id, message };
}

function otherTask(receipt_id: string, { first, last, count }: EventRun, task: string): BadEvent {
  const events = `the ${count} events of task ${task} (${first} to ${last})`;
  const message = `${events} are not the ones that receipt ${receipt_id} was sealed over`;
  return { code: 'commitment_mismatch', receipt_id, ...(first && { event_id: first }), message };
}

function otherSource(receipt_id: string, task: string): BadEvent {
  const message = `receipt ${receipt_id} is of a replay of other events than the receipt of task ${task} was sealed over`;
  return { code: 'commitment_mismatch', receipt_id, message };
}

function cutOff(event_id: string, size: number, grown: number): BadEvent {
  const message = `the log ends after ${size} events; ${grown} leaves were kept: event ${event_id} is missing`;
  return { code: 'event_deleted', event_id, message };
}

function unfinished(receipt_id: string, task: string, held: number, count: number, event_id: string): BadEvent {
  const message = `receipt ${receipt_id} was sealed over ${count} events of task ${task}, to ${event_id}; ${held} of them are there`;
  return { code: 'event_deleted', receipt_id, event_id, message };
}

function uncovered(receipt_id: string, event_id: string, size: number): BadEvent {
  const message = `the log ends after ${size} events; receipt ${receipt_id} was sealed over event ${event_id}, which is missing`;
  return { code: 'event_deleted', receipt_id, event_id, message };
}

function otherEvents(head: KnownHead, before: LogHead | undefined): BadEvent {
  const from = before ? eventId((position(before.last_event_id) ?? 0) + 1) : head.first_event_id;
  const message = `the events from ${from} to ${head.last_event_id} are not the ones that ${nameOf(head)} was signed over`;
  return { code: 'events_mismatch', event_id: from, message };
}

function rolledBack(head: KnownHead, size: number): BadEvent {
  const message = `the log ends after ${size} events; ${nameOf(head)} counts ${head.size}, to ${head.last_event_id}`;
  return { code: 'rolled_back', event_id: head.last_event_id, message };
}

function badHead(head: KnownHead, state: string): BadEvent {
  return { code: 'log_head_invalid', message: `${nameOf(head)} cannot be trusted: its signature is ${state}` };
}

function nameOf({ at, root, kept_by }: KnownHead): string {
  return `the log head of ${at} (${root}${kept_by ? `, kept by ${kept_by}` : ''})`;
}

/** A body that is no longer JSON ends the log there: a placeholder names its position. */
async function* readable(events: EventsSource['events']): AsyncGenerator<CoreEvent> {
  try {
    yield* events;
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    yield {} as CoreEvent;
  }
}

function iterate<T>(source: AsyncIterable<T> | Iterable<T>): () => Promise<T | undefined> {
  const later = (source as Partial<AsyncIterable<T>>)[Symbol.asyncIterator];
  const iterator = later ? later.call(source) : (source as Iterable<T>)[Symbol.iterator]();
  return async () => {
    const { value, done } = await iterator.next();
    return done ? undefined : (value as T);
  };
}
