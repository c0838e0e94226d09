/** The log itself: its end, its floor since pruning, and single events. Inside a transaction that holds the lock, from what it read with it. */
import type { LogEnd } from '../../engine/database.ts';
import type { Connections } from '../connection/connections.ts';
import { filledIn } from '../schema/migrations.ts';
import type { LockedState } from '../writing/locked-state.ts';
import type { LockedTransaction } from '../writing/writer.ts';

export interface LogRows {
  end(): Promise<LogEnd> | LogEnd;
  last(): Promise<number>;
  floor(): Promise<number> | number;
  body(position: number): Promise<string | undefined>;
}

/** `inTurn`: what was read as a turn of ours began, if nobody has been heard of since. */
export function createLog(connections: Connections, schema: string, inTurn: () => LockedState | undefined): LogRows {
  const END = filledIn('SELECT position, floor_at, resource, location, word FROM $S.state', schema);
  const LAST = filledIn('SELECT position FROM $S.state', schema);
  const FLOOR = filledIn('SELECT floor FROM $S.state', schema);
  const BODY = filledIn(
    'SELECT body FROM $S.events WHERE position = $1 AND position > (SELECT floor FROM $S.state)',
    schema,
  );

  /** What was read with the lock, until this transaction changes it. */
  function locked(): LockedState | undefined {
    const transaction = connections.current() as LockedTransaction | undefined;
    return transaction?.noticed ? undefined : transaction?.state;
  }

  return {
    async end() {
      // Only commits ask, and what they rest on is checked. Readers ask anew: others may have written without a turn.
      const state = locked() ?? (connections.current() ? undefined : inTurn());
      if (state) return state.end;
      // The columns of the statement.
      const [position, floorAt, resource, location, word] = (await connections.query(END))[0] as unknown as [
        number,
        string,
        number,
        number,
        number,
      ];
      return { position, floorAt, resource, location, word };
    },
    last: async () => locked()?.end.position ?? ((await connections.query(LAST))[0]![0] as number),
    floor: async () => locked()?.floor ?? ((await connections.query(FLOOR))[0]![0] as number),
    async body(position) {
      const state = locked() ?? inTurn();
      if (state?.body !== undefined && state.end.position === position) return state.body;
      return (await connections.query(BODY, [position]))[0]?.[0] as string | undefined;
    },
  };
}
