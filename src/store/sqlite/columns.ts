/**
 * Compares the columns and indexes beside the event bodies with the bodies. Events are found by them, so an edited column hides
 * an event, or attributes it to another resource, while its body is intact. Reads the log in pages.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { type Cursor, eventId } from '../../model/events.ts';
import { SPAN } from '../engine/commit/write-set.ts';
import type { Connection } from './file/connection.ts';
import type { Log } from './log.ts';

export interface ColumnFault {
  readonly event_id: Cursor;
  /** The column that disagrees with the body, or the index entry that is missing. */
  readonly column: string;
}

/** Positions per query. */
const PAGE = 2_000;

const IN_BODY = `json_extract(e.body, '$.sequence'), json_extract(e.body, '$.id'), json_extract(e.body, '$.resource.object'),
  json_extract(e.body, '$.resource.id'), json_extract(e.body, '$.task_id'), json_extract(e.body, '$.session_id'),
  json_extract(e.body, '$.workspace_id')`;
const IN_COLUMNS = `e.sequence, printf('evt_%016d', e.position), r.object, r.name, p.task, p.session, p.workspace`;

export function createColumns(connection: Connection, log: Log) {
  const wrong = connection.prepare(
    `SELECT e.position, CASE WHEN json_valid(e.body) = 0 THEN 'body'
       WHEN json_extract(e.body, '$.id') IS NOT printf('evt_%016d', e.position) THEN 'position'
       WHEN json_extract(e.body, '$.sequence') IS NOT e.sequence THEN 'sequence'
       WHEN (p.resource, r.object, r.name) IS NOT
         (e.resource, json_extract(e.body, '$.resource.object'), json_extract(e.body, '$.resource.id')) THEN 'resource'
       ELSE 'place' END
     FROM events e LEFT JOIN resources r ON r.id = e.resource LEFT JOIN places p ON p.id = e.place
     WHERE e.position > ? AND e.position <= ? AND
       CASE json_valid(e.body) WHEN 0 THEN 1 ELSE p.resource IS NOT e.resource OR (${IN_BODY}) IS NOT (${IN_COLUMNS}) END
     ORDER BY e.position LIMIT 1`,
  );
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
    const [position, column] = (wrong.get([from, to]) as [number, string] | undefined) ?? [];
    if (position !== undefined && column !== undefined) return { event_id: eventId(position), column };
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
