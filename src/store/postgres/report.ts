/** What an operator wants to know of a database: whether it can be used, how far away it is, and how safe a commit is there. */
import { TIME } from './connection/clock.ts';
import { connected } from './index.ts';
import { type PostgresLocation, SCHEMA } from './location.ts';
import { versionOf } from './schema/migrations.ts';

export interface DatabaseReport {
  readonly server: string;
  /** Undefined: there is no log yet. */
  readonly schema: string | undefined;
  /** The quickest of a few queries. */
  readonly latencyMs: number;
  readonly readOnly: boolean;
  /** How far its clock is ahead of this machine's. */
  readonly aheadMs: number;
  readonly fsync: boolean;
  readonly encrypted: boolean;
  /** Names of the synchronous standbys, as the server is configured; empty: a commit waits for none. */
  readonly standbys: string;
  /** How many of them are connected; undefined where this user may not see it. */
  readonly connectedStandbys: number | undefined;
}

const ASKED = 5;

export function reportOn(location: PostgresLocation): Promise<DatabaseReport> {
  return connected(location, async (connections) => {
    const [found] = await connections.query(
      `SELECT current_setting('server_version'), pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
         current_setting('fsync') = 'on', current_setting('synchronous_standby_names'),
         coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
         (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))`,
    );
    const [server, readOnly, fsync, standbys, encrypted, count] = found as [
      ...[string, boolean, boolean, string],
      ...[boolean, number],
    ];
    let latencyMs = Number.POSITIVE_INFINITY;
    let aheadMs = 0;
    for (let n = 0; n < ASKED; n++) {
      const asked = performance.now();
      const [time] = await connections.query(`SELECT ${TIME}`);
      const took = performance.now() - asked;
      if (took >= latencyMs) continue;
      latencyMs = took;
      aheadMs = (time![0] as number) + took / 2 - Date.now();
    }
    const connection = await connections.take();
    try {
      const version = await versionOf(connection, location.schema ?? SCHEMA);
      return {
        ...{ server, readOnly, fsync, standbys, encrypted, latencyMs, aheadMs },
        schema: version && `${version.major}.${version.minor}`,
        connectedStandbys: standbys === '' ? 0 : count,
      };
    } finally {
      connection.release();
    }
  });
}
