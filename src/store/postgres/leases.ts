/**
 * Leases as session-level advisory locks on one connection: they end with it. The server ends it when nothing was received from its holder for
 * the timeout, so a process that was paused or cut off loses its leases; it believes so itself after the same time. Each taking has a later
 * epoch, which later commits are checked against.
 */
import { createHash } from 'node:crypto';
import pg from 'pg';
import type { HeldLease } from '../engine/database.ts';
import { clientConfig, endClient, letExit } from './connection/connections.ts';
import type { Versions } from './connection/versions.ts';
import { lockKey, type Target } from './location.ts';
import { filledIn } from './schema/migrations.ts';

interface Leases {
  take(name: string): Promise<HeldLease | undefined>;
  close(): Promise<void>;
}
export interface LeasesDeps {
  readonly target: Target;
  readonly versions: Versions;
  readonly schema: string;
  readonly writer: string;
  readonly timeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly standby: boolean;
  announce(generation: number): void;
}

export const LEASE_MS = 10_000;

/** Names may hold any character; in the database a lease is known by a digest of its name. */
export const leaseKey = (name: string): Buffer => createHash('sha256').update(name).digest();

interface Session {
  readonly client: pg.Client;
  readonly lost: AbortController;
  readonly held: Set<string>;
  /** When it last answered. */
  answeredAt: number;
  beat: NodeJS.Timeout | undefined;
}

export function createLeases(deps: LeasesDeps): Leases {
  const { target, versions, schema, writer, timeoutMs, lockTimeoutMs, standby } = deps;
  const TAKE = filledIn('SELECT epoch, generation FROM $S.lease_2($1, $2, $3, $4)', schema);
  let session: Promise<Session> | undefined;
  let closed = false;

  async function open(): Promise<Session> {
    const client = new pg.Client({
      ...clientConfig(target),
      ...{ application_name: 'tollbridge leases', query_timeout: timeoutMs },
    });
    const fresh: Session = {
      ...{ client, lost: new AbortController(), held: new Set<string>() },
      ...{ answeredAt: performance.now(), beat: undefined },
    };
    const gone = (): void => drop(fresh);
    client.on('error', gone);
    client.on('end', gone);
    try {
      await client.connect();
      await client.query(
        `SET idle_session_timeout = ${timeoutMs}; SET default_transaction_isolation = 'read committed'`,
      );
    } catch (thrown) {
      void endClient(client);
      throw thrown;
    }
    letExit(client);
    fresh.answeredAt = performance.now();
    fresh.beat = setInterval(() => void beat(fresh), timeoutMs / 4).unref();
    return fresh;
  }

  function drop(fresh: Session): void {
    clearInterval(fresh.beat);
    // Its end is told more than once, and the last time there may be another session already.
    if (fresh.lost.signal.aborted) return;
    session = undefined;
    fresh.lost.abort();
    void endClient(fresh.client);
  }

  async function beat(fresh: Session): Promise<void> {
    // No answer in time, or this process was paused: the server has ended the session, or is about to.
    if (performance.now() - fresh.answeredAt > timeoutMs) return drop(fresh);
    try {
      const asked = performance.now();
      await fresh.client.query('SELECT 1');
      fresh.answeredAt = asked;
    } catch {
      drop(fresh);
    }
  }

  return {
    async take(name) {
      if (closed) return undefined;
      session ??= open();
      const opening = session;
      let own: Session;
      try {
        own = await opening;
      } catch (thrown) {
        if (session === opening) session = undefined;
        throw thrown;
      }
      if (own.held.has(name)) return undefined;
      own.held.add(name);
      const key = lockKey(schema, `lease ${name}`);
      const release = async (): Promise<void> => {
        if (own.lost.signal.aborted) return;
        await own.client.query('SELECT pg_advisory_unlock($1::bigint)', [key]).catch(() => drop(own));
        own.held.delete(name);
      };
      try {
        const { rows } = await own.client.query('SELECT pg_try_advisory_lock($1::bigint) AS taken', [key]);
        if (rows[0].taken !== true) {
          own.held.delete(name);
          return undefined;
        }
        const taken = await own.client.query(TAKE, [leaseKey(name), writer, lockTimeoutMs, standby]);
        const { epoch, generation } = taken.rows[0] as { epoch: number; generation: number };
        versions.own(generation);
        deps.announce(generation);
        let released: Promise<void> | undefined;
        return {
          epoch,
          lost: own.lost.signal,
          close() {
            released ??= release();
            return released;
          },
        };
      } catch (thrown) {
        await release();
        throw thrown;
      }
    },
    async close() {
      closed = true;
      const own = await session?.catch(() => undefined);
      if (own) {
        clearInterval(own.beat);
        own.lost.abort();
        await endClient(own.client);
      }
    },
  };
}
