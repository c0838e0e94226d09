/**
 * The turns of several gateways on one log, as an advisory lock of a connection of its own: the server hands it on in the order in which it
 * was asked for, and it ends with its connection. With it comes the state of the log, so that the first batch of a turn need not ask.
 */
import pg from 'pg';
import type { WriterTurns } from '../../engine/database.ts';
import { lockKey, type Target } from '../location.ts';
import { filledIn } from '../schema/migrations.ts';
import { type LockedState, type StateRow, stateOf } from '../writing/locked-state.ts';
import { clientConfig, endClient, letExit } from './connections.ts';
import { SERVER, type Versions } from './versions.ts';

export interface DatabaseTurns extends WriterTurns {
  readonly held: boolean;
  /** The state of the log as the turn began, as long as nobody has committed since. */
  state(): LockedState | undefined;
  close(): Promise<void>;
}

/** The server takes it from a gateway that stands still for so long. */
const SILENT_MS = 5_000;
/** A connection that nobody needed for so long is closed. */
const IDLE_MS = 1_000;

export function createTurns(target: Target, versions: Versions, schema: string): DatabaseTurns {
  const key = lockKey(schema, 'turn');
  const STATE = filledIn(
    `SELECT s.generation, s.writer, s.position, s.resource, s.location, s.word, s.floor, s.floor_at,
       CASE WHEN s.position > s.floor THEN (SELECT e.body FROM $S.events e WHERE e.position = s.position) END, ${SERVER}
     FROM $S.state s`,
    schema,
  );
  let opening: Promise<pg.Client> | undefined;
  let current: pg.Client | undefined;
  let before: number | undefined;
  let held = false;
  let idle: NodeJS.Timeout | undefined;
  let found: { readonly generation: number; readonly state: LockedState } | undefined;

  async function open(): Promise<pg.Client> {
    const client = new pg.Client({ ...clientConfig(target), application_name: 'tollbridge turns' });
    current = client;
    const gone = (): void => {
      if (current !== client) return;
      current = undefined;
      opening = undefined;
      held = false;
      void endClient(client);
    };
    client.on('error', gone);
    client.on('end', gone);
    await client.connect();
    await client.query(`SET idle_session_timeout = ${SILENT_MS}`);
    letExit(client);
    return client;
  }

  function release(): void {
    held = false;
    before = versions.version();
    opening?.then((client) => client.query('SELECT pg_advisory_unlock($1::bigint)', [key])).catch(() => undefined);
    idle = setTimeout(() => void close(), IDLE_MS).unref();
  }

  async function close(): Promise<void> {
    clearTimeout(idle);
    const last = opening;
    current = undefined;
    opening = undefined;
    const client = await last?.catch(() => undefined);
    if (client) await endClient(client);
  }

  return {
    get held() {
      return held;
    },
    async take(longestMs) {
      clearTimeout(idle);
      opening ??= open();
      const mine = opening;
      const client = await mine.catch((thrown) => {
        if (opening === mine) opening = undefined;
        throw thrown;
      });
      // Sent together: the state is read once the turn has come.
      const [, taken, state] = await Promise.allSettled([
        client.query(`SET lock_timeout = ${longestMs}`),
        client.query('SELECT pg_advisory_lock($1::bigint)', [key]),
        client.query({ text: STATE, rowMode: 'array' }),
      ]);
      if (taken.status === 'rejected' || state.status === 'rejected') {
        if (taken.status === 'fulfilled') release();
        return undefined;
      }
      // The types of the driver leave out what `rowMode` does; the columns are those of the statement.
      const row = (state.value as unknown as pg.QueryArrayResult).rows[0] as StateRow;
      held = true;
      versions.seen(row[0], row[1], row[9]);
      found = { generation: row[0], state: stateOf(row) };
      return { othersWrote: versions.version() !== before, release };
    },
    state: () => (held && found?.generation === versions.generation() ? found.state : undefined),
    close,
  };
}
