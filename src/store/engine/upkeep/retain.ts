/**
 * Prunes the oldest part of the log. Only a prefix is removed, and it ends before the first event of any task that is still open.
 * Removed events are folded into the baseline first, so a rebuild gives the same rows. Receipts stay, and so do the leaves of the
 * log's tree and the last signed head of each tree.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { type CoreEvent, type Stream, TREE_HEAD } from '../../../model/events.ts';
import { isTerminal } from '../../../model/words.ts';
import type { Clock, Projector } from '../../../ports/index.ts';
import type { Database } from '../database.ts';
import type { StoredLog } from '../packing/stored-log.ts';
import { andThen, type Wait } from '../wait.ts';
import type { Writer } from '../writer.ts';
import { foldInto } from './fold.ts';

/** Events per transaction: a writer waits for at most one such transaction. */
const STRETCH = 250;
/** An idempotency key must stay valid for at least this long. */
const KEYS_KEPT_MS = 24 * 60 * 60 * 1000;

export interface RetainDeps {
  readonly database: Database;
  readonly log: StoredLog;
  readonly projector: Projector;
  readonly writer: Writer;
  readonly clock: Clock;
}

export function createRetain({ database, log, projector, writer, clock }: RetainDeps) {
  const { upkeep, logTree } = database;

  /** Last position whose event is older than `before`. Times never go backwards in the log, so a binary search finds it. */
  async function lastBefore(before: string): Promise<number> {
    let low = await log.floor();
    let high = await log.last();
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const text = await log.text(middle);
      if (text === undefined || (JSON.parse(text) as CoreEvent).created_at < before) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  async function firstOf(stream: Stream, upTo: number): Promise<number | undefined> {
    const reader = log.open(stream, await log.floor());
    while (true) {
      const { items, done } = await reader.page(upTo, 1);
      if (items[0]) return items[0].position;
      if (done) return undefined;
    }
  }

  /** Last position whose event is a leaf of the log's tree; without a tree there is no such limit. */
  async function covered(): Promise<number> {
    const { first, size } = await logTree.state();
    return first === undefined ? Number.POSITIVE_INFINITY : first + size - 1;
  }

  /** Last position that may be pruned. */
  async function cutFor(before: string): Promise<number> {
    // Where the log's tree is kept, an event may be pruned only once its leaf is stored.
    let cut = Math.min(await lastBefore(before), await covered());
    for (const id of await upkeep.openTasks(isTerminal)) {
      for (const stream of [{ of: 'task', id } as const, { of: 'resource', object: 'task', id } as const]) {
        cut = Math.min(cut, ((await firstOf(stream, cut)) ?? cut + 1) - 1);
      }
    }
    return cut;
  }

  /** Removes the next events, inside a transaction; returns how many. */
  function prune(cut: number): Wait<number> {
    return andThen(log.floor(), (floor) => {
      const end = Math.min(cut, floor + STRETCH);
      if (end <= floor) return 0;
      return andThen(log.open({ of: 'all' }, floor).page(end, STRETCH), ({ items }) =>
        andThen(foldInto(upkeep.baseline, projector, items), (events) => {
          // The next head names the previous one, even when the previous one's event was pruned.
          const heads = new Map<string, string>();
          for (const [at, { event, resource }] of events.entries()) {
            if (event === TREE_HEAD) heads.set(resource.object, items[at]!.text);
          }
          return andThen(upkeep.prune({ upTo: end, at: events.at(-1)?.created_at ?? '', heads }), () => items.length);
        }),
      );
    });
  }

  return async function retain(before: string): Promise<{ dropped: number }> {
    const cut = await cutFor(before);
    let dropped = 0;
    for (let some = -1; some !== 0; await turn()) {
      some = await writer.transact(() => prune(cut));
      dropped += some;
    }
    const oldest = new Date(Date.parse(clock.now()) - KEYS_KEPT_MS).toISOString();
    const keysBefore = oldest < before ? oldest : before;
    while ((await writer.transact(() => upkeep.dropKeys(keysBefore, STRETCH))) === STRETCH) await turn();
    await writer.transact(upkeep.tidy);
    return { dropped };
  };
}
