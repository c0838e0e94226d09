/**
 * Prunes the oldest part of the log. Only a prefix is removed, and it ends before the first event of any task that is still open.
 * Removed events are folded into the baseline first, so a rebuild gives the same rows. Receipts stay, and so do the leaves of the
 * log's tree and the last signed head of each tree.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { type CoreEvent, type Stream, TREE_HEAD } from '../../model/events.ts';
import { isTerminal } from '../../model/words.ts';
import type { Clock, Projector } from '../../ports/index.ts';
import type { Connection } from './connection.ts';
import { createFold } from './fold.ts';
import { type Log, SPAN, stretchOf } from './log.ts';
import { prunedHeadName } from './log-tree.ts';
import type { Readers } from './reading/reader.ts';
import type { Writer } from './writing/writer.ts';

/** Events per transaction: a writer waits for at most one such transaction. */
const STRETCH = 250;
/** An idempotency key must stay valid for at least this long. */
const KEYS_KEPT_MS = 24 * 60 * 60 * 1000;

export interface RetainDeps {
  readonly connection: Connection;
  readonly log: Log;
  readonly logTree: { covered(): number | undefined };
  readonly readers: Readers;
  readonly projector: Projector;
  readonly writer: Writer;
  readonly clock: Clock;
}

export function createRetain({ connection, log, logTree, readers, projector, writer, clock }: RetainDeps) {
  const timeOf = connection.prepare(`SELECT body ->> '$.created_at' FROM events WHERE position = ?`);
  const nextState = connection.prepare('SELECT min(state) FROM tasks WHERE state > ?');
  const tasksIn = connection.prepare('SELECT id FROM tasks WHERE state = ?');
  const tasksWithout = connection.prepare('SELECT id FROM tasks WHERE state IS NULL AND body IS NOT NULL');
  const range = connection.prepare(
    'SELECT position, body, place FROM events WHERE position > ? AND position <= ? ORDER BY position',
  );
  const lastSequences = connection.prepare(
    'SELECT resource, max(sequence) FROM events WHERE position > ? AND position <= ? GROUP BY resource',
  );
  const setBase = connection.prepare('UPDATE resources SET base = ? WHERE id = ?');
  const markLocation = connection.prepare('UPDATE places SET pruned = ? WHERE id = ? AND pruned = 0');
  const removeStretches = connection.prepare('DELETE FROM stretches WHERE stretch < ?');
  const remove = connection.prepare('DELETE FROM events WHERE position <= ?');
  const setMeta = connection.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)');
  const removeSpans = connection.prepare('DELETE FROM spans WHERE span < ?');
  const oldKeys = connection.prepare('SELECT count(*) FROM (SELECT 1 FROM idempotency WHERE at < ? LIMIT ?)');
  const removeKeys = connection.prepare(
    'DELETE FROM idempotency WHERE scope IN (SELECT scope FROM idempotency WHERE at < ? LIMIT ?)',
  );
  const fold = createFold(connection, 'baseline', projector);

  /** Last position whose event is older than `before`. Times never go backwards in the log, so a binary search finds it. */
  function lastBefore(before: string): number {
    let low = log.floor();
    let high = log.last();
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const time = timeOf.get([middle]) as [string] | undefined;
      if (!time || time[0] < before) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  function openTasks(): string[] {
    const open = (tasksWithout.all() as [string][]).map(([id]) => id);
    let state = '';
    while (true) {
      const next = (nextState.get([state]) as [string | null])[0];
      if (next === null) return open;
      state = next;
      if (!isTerminal(state)) open.push(...(tasksIn.all([state]) as [string][]).map(([id]) => id));
    }
  }

  function firstOf(stream: Stream, upTo: number): number | undefined {
    const reader = readers.open(stream, log.floor());
    while (true) {
      const { items, done } = reader.page(upTo, 1);
      if (items[0]) return items[0].position;
      if (done) return undefined;
    }
  }

  /** Last position that may be pruned. */
  function cutFor(before: string): number {
    // Where the log's tree is kept, an event may be pruned only once its leaf is stored.
    let cut = Math.min(lastBefore(before), logTree.covered() ?? Number.POSITIVE_INFINITY);
    for (const id of openTasks()) {
      for (const stream of [{ of: 'task', id } as const, { of: 'resource', object: 'task', id } as const]) {
        cut = Math.min(cut, (firstOf(stream, cut) ?? cut + 1) - 1);
      }
    }
    return cut;
  }

  function prune(cut: number): number {
    const floor = log.floor();
    const end = Math.min(cut, floor + STRETCH);
    if (end <= floor) return 0;
    const found = range.all([floor, end]) as [number, string, number][];
    let at = '';
    for (const [, body] of found) {
      const event = JSON.parse(body) as CoreEvent;
      fold.apply(event);
      at = event.created_at;
      // The next head names the previous one, even when the previous one's event was pruned.
      if (event.event === TREE_HEAD) setMeta.run([prunedHeadName(event.resource.object), body]);
    }
    for (const [resource, sequence] of lastSequences.all([floor, end]) as [number, number][]) {
      setBase.run([sequence, resource]);
    }
    // Remembers the first pruned event of each location, to be named to a reader that misses it.
    const first = new Map<number, number>();
    for (const [position, , location] of found) if (!first.has(location)) first.set(location, position);
    for (const [location, position] of first) markLocation.run([position, location]);
    remove.run([end]);
    setMeta.run(['floor', String(end)]);
    setMeta.run(['floor_at', at]);
    return found.length;
  }

  return async function retain(before: string): Promise<{ dropped: number }> {
    const cut = cutFor(before);
    let dropped = 0;
    for (let some = -1; some !== 0; await turn()) {
      await writer.transact(() => {
        some = prune(cut);
      });
      dropped += some;
    }
    const oldest = new Date(Date.parse(clock.now()) - KEYS_KEPT_MS).toISOString();
    const keysBefore = oldest < before ? oldest : before;
    while ((oldKeys.get([keysBefore, STRETCH]) as [number])[0] > 0) {
      await writer.transact(() => removeKeys.run([keysBefore, STRETCH]));
      await turn();
    }
    await writer.transact(() => {
      const first = log.floor() + 1;
      removeSpans.run([Math.floor(first / SPAN)]);
      removeStretches.run([stretchOf(first)]);
    });
    return { dropped };
  };
}
