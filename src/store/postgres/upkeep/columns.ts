/**
 * Compares the columns and indexes beside the event bodies with the bodies. Events are found by them, so an edited column hides
 * an event, or attributes it to another resource, while its body is intact. Reads the log in pages.
 */
import { eventId } from '../../../model/events.ts';
import { SPAN } from '../../engine/commit/write-set.ts';
import type { Database } from '../../engine/database.ts';
import { createWordReader } from '../../engine/packing/word-reader.ts';
import { type ColumnFault, type Columns, wrongColumn } from '../../engine/upkeep/columns.ts';
import type { Connections } from '../connection/connections.ts';
import type { LogRows } from '../reading/log.ts';
import { filledIn } from '../schema/migrations.ts';

/** Positions per query. */
const PAGE = 500;

export function createColumns(connections: Connections, log: LogRows, words: Database['words'], schema: string) {
  const sql = (text: string) => filledIn(text, schema);
  const SELECT = sql(
    `SELECT e.position, e.resource, e.sequence, e.body, r.object, r.name, p.resource, p.task, p.session, p.workspace
     FROM $S.events e LEFT JOIN $S.resources r ON r.id = e.resource LEFT JOIN $S.places p ON p.id = e.place
     WHERE e.position > $1 AND e.position <= $2 ORDER BY e.position`,
  );
  const UNLISTED = sql(
    `SELECT min(e.position) FROM $S.events e WHERE e.position > $1 AND e.position <= $2 AND NOT EXISTS
       (SELECT 1 FROM $S.stretches s WHERE s.resource = e.resource AND s.stretch = e.position / 4096 AND s.first <= e.sequence)`,
  );
  const UNSPANNED = sql(
    `SELECT min(e.position) FROM $S.events e JOIN $S.places p ON p.id = e.place
     WHERE e.position > $1 AND e.position <= $2 AND p.workspace IS NOT NULL AND NOT EXISTS
       (SELECT 1 FROM $S.spans s WHERE s.workspace = p.workspace AND s.span = e.position / ${SPAN})`,
  );
  // The sequences of a resource have no gap and no duplicate: each follows the one before on this page, the first of the page the newest
  // one before the page, and the very first one continues from the pruned part.
  const GAP = sql(
    `SELECT min(position) FROM (
       SELECT e.position, e.resource, e.sequence, lag(e.sequence) OVER (PARTITION BY e.resource ORDER BY e.position) AS before
       FROM $S.events e WHERE e.position > $1 AND e.position <= $2) page
     WHERE sequence - 1 IS DISTINCT FROM coalesce(before,
       (SELECT max(last.sequence) FROM $S.places p CROSS JOIN LATERAL (
          SELECT e.sequence FROM $S.events e WHERE e.place = p.id AND e.position <= $1
            AND e.position > (SELECT floor FROM $S.state) ORDER BY e.position DESC LIMIT 1) last WHERE p.resource = page.resource),
       (SELECT base FROM $S.resources WHERE id = page.resource))`,
  );
  const { unpack } = createWordReader(words);

  async function inPage(from: number, to: number): Promise<ColumnFault | undefined> {
    // The columns of the statement.
    const page = (await connections.query(SELECT, [from, to])) as unknown as Columns[];
    for (const [at, columns] of page.entries()) {
      if (columns[0] !== from + at + 1) return { event_id: eventId(from + at + 1), column: 'position' };
      const column = wrongColumn(columns, (await unpack(columns[3])) as string);
      if (column) return { event_id: eventId(columns[0]), column };
    }
    if (page.length < to - from) return { event_id: eventId(from + page.length + 1), column: 'position' };
    for (const [text, column] of [
      [UNLISTED, 'stretch'],
      [UNSPANNED, 'span'],
      [GAP, 'sequence'],
    ] as const) {
      const position = (await connections.query(text, [from, to]))[0]![0] as number | null;
      if (position !== null) return { event_id: eventId(position), column };
    }
    return undefined;
  }

  /** Finds the first fault. */
  return async function columnFault(progress?: (position: number) => void): Promise<ColumnFault | undefined> {
    const last = await log.last();
    for (let at = await log.floor(); at < last; at += PAGE) {
      const found = await inPage(at, Math.min(at + PAGE, last));
      if (found) return found;
      progress?.(at);
    }
    return undefined;
  };
}
