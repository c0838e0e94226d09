/** The log itself: its end, its floor since pruning, and single events. */
import type { LogEnd } from '../engine/database.ts';
import type { Connection } from './file/connection.ts';

export interface LogRows {
  end(): LogEnd;
  /** Last position; cheaper than `end`. */
  last(): number;
  /** Last position that was pruned; 0 when none was. */
  floor(): number;
  body(position: number): string | undefined;
}

export function createLog(connection: Connection): LogRows {
  const last = connection.prepare('SELECT max(position) FROM events');
  const meta = connection.prepare('SELECT value FROM meta WHERE name = ?');
  const lastResource = connection.prepare('SELECT max(id) FROM resources');
  const lastLocation = connection.prepare('SELECT max(id) FROM places');
  const lastWord = connection.prepare('SELECT max(id) FROM words');
  const select = connection.prepare('SELECT body FROM events WHERE position = ?');

  const floor = (): number => Number((meta.get(['floor']) as [string] | undefined)?.[0] ?? 0);
  const lastPosition = (): number => (last.get() as [number | null])[0] ?? floor();
  const body = (position: number): string | undefined => (select.get([position]) as [string] | undefined)?.[0];

  return {
    floor,
    body,
    last: lastPosition,
    end() {
      return {
        position: lastPosition(),
        floorAt: (meta.get(['floor_at'])?.[0] as string | undefined) ?? '',
        resource: (lastResource.get() as [number | null])[0] ?? 0,
        location: (lastLocation.get() as [number | null])[0] ?? 0,
        word: (lastWord.get() as [number | null])[0] ?? 0,
      };
    },
  };
}
