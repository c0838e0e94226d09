/**
 * Compares the columns and indexes beside the event bodies with the bodies. Events are found by them, so an edited column hides
 * an event, or attributes it to another resource, while its body is intact. Reads the log in pages.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { eventId } from '../../model/events.ts';
import { SPAN } from '../engine/commit/write-set.ts';
import { createWordReader } from '../engine/packing/word-reader.ts';
import { type ColumnFault, type Columns, wrongColumn } from '../engine/upkeep/columns.ts';
import type { Connection } from './file/connection.ts';
import type { LogRows } from './log.ts';
import type { WordRows } from './words.ts';

/** Positions per query. */
const PAGE = 250;

export function createColumns(connection: Connection, log: LogRows, words: WordRows) {
  const select = connection.prepare(
    `SELECT e.position, e.resource, e.sequence, e.body, r.object, r.name, p.resource, p.task, p.session, p.workspace
     FROM events e LEFT JOIN resources r ON r.id = e.resource LEFT JOIN places p ON p.id = e.place
     WHERE e.position > ? AND e.position <= ? ORDER BY e.position`,
  );
  const { unpack } = createWordReader(words.words);
  const unlisted = connection.prepare(
    `SELECT min(e.position) FROM events e WHERE e.position > ? AND e.position <= ? AND NOT EXISTS
       (SELECT 1 FROM stretches s WHERE s.resource = e.resource AND s.stretch = e.position >> 12 AND s.first <= e.sequence)`,
  );
  const unspanned = connection.prepare(
    `SELECT min(e.position) FROM events e JOIN places p ON p.id = e.place
     WHERE e.position > ? AND e.position <= ? AND p.workspace IS NOT NULL AND NOT EXISTS
       (SELECT 1 FROM spans s WHERE s.workspace = p.workspace AND s.span = e.position / ${SPAN})`,
  );
  // The sequences of a resource have no gap and no duplicate: each follows one in its stretch, the first of a stretch follows the
  // last of the stretch before, and the very first continues from the pruned part. Looked up by index, so that nothing is sorted.
  const gap = connection.prepare(
    `SELECT min(e.position) FROM events e JOIN resources r ON r.id = e.resource
     WHERE e.position > ? AND e.position <= ? AND NOT EXISTS
       (SELECT 1 FROM events b WHERE b.position >> 12 = e.position >> 12 AND b.resource = e.resource AND b.sequence = e.sequence - 1)
       AND e.sequence - 1 IS NOT coalesce(
         (SELECT max(b.sequence) FROM events b WHERE b.resource = e.resource AND b.position >> 12 =
           (SELECT max(stretch) FROM stretches WHERE resource = e.resource AND stretch < e.position >> 12)), r.base)`,
  );

  function inPage(from: number, to: number): ColumnFault | undefined {
    for (const columns of select.all([from, to]) as Columns[]) {
      const column = wrongColumn(columns, unpack(columns[3]) as string);
      if (column) return { event_id: eventId(columns[0]), column };
    }
    const [hidden] = unlisted.get([from, to]) as [number | null];
    if (hidden !== null) return { event_id: eventId(hidden), column: 'stretch' };
    const [unseen] = unspanned.get([from, to]) as [number | null];
    if (unseen !== null) return { event_id: eventId(unseen), column: 'span' };
    const [alone] = gap.get([from, to]) as [number | null];
    return alone === null ? undefined : { event_id: eventId(alone), column: 'sequence' };
  }

  /** Finds the first fault. */
  return async function columnFault(progress?: (position: number) => void): Promise<ColumnFault | undefined> {
    const last = log.last();
    for (let at = log.floor(); at < last; at += PAGE) {
      const found = inPage(at, at + PAGE);
      if (found) return found;
      progress?.(at);
      await turn();
    }
    return undefined;
  };
}
