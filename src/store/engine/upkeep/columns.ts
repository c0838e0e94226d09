/** The columns beside the body of an event, by which it is found, compared with the body: the same in every database. */
import { type CoreEvent, type Cursor, eventId } from '../../../model/events.ts';

export interface ColumnFault {
  readonly event_id: Cursor;
  /** The column that disagrees with the body, or the index entry that is missing. */
  readonly column: string;
}

export type Columns = [
  ...[position: number, resource: number, sequence: number, body: string],
  ...[object: string | null, name: string | null],
  ...[ofResource: number | null, task: string | null, session: string | null, workspace: string | null],
];

/** The first column that disagrees with the body. */
export function wrongColumn(
  [position, resource, sequence, , object, name, ofResource, task, session, workspace]: Columns,
  text: string,
): string | undefined {
  let event: CoreEvent;
  try {
    event = JSON.parse(text) as CoreEvent;
  } catch {
    return 'body';
  }
  if (event.id !== eventId(position)) return 'position';
  if (event.sequence !== sequence) return 'sequence';
  if (ofResource !== resource || event.resource?.object !== object || event.resource?.id !== name) return 'resource';
  const same = (event.task_id ?? null) === task && (event.session_id ?? null) === session;
  return same && (event.workspace_id ?? null) === workspace ? undefined : 'place';
}
