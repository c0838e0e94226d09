/**
 * Private files of an installation in the database of its log, for all of its gateways. Each has the files in memory, sealed, and asks four
 * times a second what has changed. What is older than that is asked for again before it is used, or, where that cannot wait, used for a few
 * seconds more and then refused: a gateway that cannot reach the database does not go on with keys that may be revoked.
 */
import { Fault } from '../../../model/faults.ts';
import type { PrivateFiles } from '../../../ports/index.ts';
import type { ActRows } from '../../pending-acts.ts';
import type { Connection, Connections, ResultRows } from '../connection/connections.ts';
import { createConnections } from '../connection/connections.ts';
import { environmentFault, isConnectionLoss } from '../errors.ts';
import { lockKey, nameOf, type PostgresLocation, SCHEMA, targetOf } from '../location.ts';
import { COPYING, filledIn, MAJOR, prepare } from '../schema/migrations.ts';
import { createActRows } from './acts.ts';
import { createSeal } from './seal.ts';

export interface DatabaseFiles extends PrivateFiles {
  readonly acts: ActRows;
  /** The files there are, as last known. */
  list(): readonly string[];
}

const LOOK_MS = 250;
/** A file that can be waited for is never older than this. */
const FRESH_MS = 500;
/** A file that cannot be waited for is refused when it is older than this. */
const STALE_MS = 4_000;
/** `STALE_MS`, and as much again for clocks that differ. */
const LAG_MS = 10_000;
const STATEMENT_MS = 10_000;
/** Work under a name holds a transaction open. */
const ALONE_MS = 120_000;

/** `incomplete`: the log beside them is a copy that is not complete yet. */
export async function openDatabaseFiles(
  location: PostgresLocation,
  secret: string,
  incomplete = false,
): Promise<DatabaseFiles> {
  const seal = createSeal(secret);
  const schema = location.schema ?? SCHEMA;
  const name = nameOf(location);
  const pool = (most: number, statementTimeoutMs: number) =>
    createConnections(targetOf(location), { ...location, connections: most, statementTimeoutMs });
  const connections = pool(3, STATEMENT_MS);
  // Of its own, so that work under a name, which changes files, never waits for itself.
  const turns = pool(8, 2 * ALONE_MS);
  const sql = (text: string) => filledIn(text, schema);
  const CHANGED = sql('SELECT name, revision, sealed FROM $S.private_files WHERE revision > $1 ORDER BY revision');
  const ONE = sql('SELECT sealed FROM $S.private_files WHERE name = $1');
  // Above those of changes that a standby lacked which took over: other gateways have seen their numbers.
  const PUT = sql(`INSERT INTO $S.private_files AS f (name, revision, sealed)
    SELECT $1, greatest(coalesce(max(revision), 0) + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), $2 FROM $S.private_files
    ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, sealed = excluded.sealed`);
  const known = new Map<string, { readonly revision: number; readonly sealed: Uint8Array }>();
  let newest = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  async function guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (thrown) {
      throw environmentFault(thrown, name) ?? thrown;
    }
  }

  /** Revisions become visible in their order, because writers take turns: none can come later below the newest one seen. */
  async function ask(): Promise<void> {
    const asked = performance.now();
    for (const [file, revision, sealed] of (await connections.query(CHANGED, [newest])) as FileRow[]) {
      known.set(file, { revision, sealed });
      newest = Math.max(newest, revision);
    }
    lookedAt = asked;
  }
  function look(): Promise<void> {
    looking ??= guarded(ask).finally(() => {
      looking = undefined;
    });
    return looking;
  }
  /** A question that is under way may have been asked before what has to be known. */
  async function lookNow(): Promise<void> {
    await looking?.catch(() => undefined);
    await look();
  }
  function lookAgain(): void {
    timer = setTimeout(() => {
      look()
        .catch(() => undefined)
        .finally(() => {
          if (!closed) lookAgain();
        });
    }, LOOK_MS).unref();
  }

  function requireRecent(): void {
    if (performance.now() - lookedAt <= STALE_MS) return;
    throw new Fault('unavailable', `${name} has not said for ${STALE_MS / 1000} s whether keys have changed`);
  }

  const isFresh = (): boolean => performance.now() - lookedAt <= FRESH_MS;
  const versionOf = (file: string): string => String(known.get(file)?.revision ?? 'absent');

  function opened(file: string, sealed: Uint8Array): string {
    const text = seal.open(file, sealed);
    if (text !== undefined) return text;
    throw new Fault(
      'unavailable',
      `the secret that store.keys names does not open ${file} in ${name}: all gateways of a log need the same one`,
    );
  }
  function textOf(file: string): string | undefined {
    const found = known.get(file);
    return found && opened(file, found.sealed);
  }

  async function inTransaction<T>(
    from: Connections,
    { lock, waitMs }: { readonly lock: string; readonly waitMs: number },
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const connection = await from.take();
    let broken = true;
    try {
      await connection.batch(
        `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = ${waitMs}; SET LOCAL statement_timeout = ${2 * waitMs};
         SET LOCAL idle_in_transaction_session_timeout = ${waitMs}; SET LOCAL synchronous_commit = on; SELECT 1`,
      );
      await connection.query('SELECT pg_advisory_xact_lock($1::bigint)', [lockKey(schema, lock)]);
      const result = await work(connection);
      if ((await connection.end('COMMIT')) !== 'COMMIT') throw new Error('the transaction had failed');
      broken = false;
      return result;
    } catch (thrown) {
      if (!isConnectionLoss(thrown))
        broken = await connection.end('ROLLBACK').then(
          () => false,
          () => true,
        );
      throw thrown;
    } finally {
      connection.release(broken);
    }
  }

  const files: DatabaseFiles = {
    nameOf: (file) => `${file} in ${name}`,
    async read(file) {
      if (!isFresh()) await look();
      return textOf(file);
    },
    fresh(file) {
      return isFresh() ? versionOf(file) : look().then(() => versionOf(file));
    },
    version(file) {
      requireRecent();
      return versionOf(file);
    },
    readNow(file) {
      requireRecent();
      return textOf(file);
    },
    async replace(file, change) {
      await guarded(() =>
        inTransaction(connections, { lock: 'private files', waitMs: STATEMENT_MS }, async (connection) => {
          const [found] = await connection.query(ONE, [file]);
          const text = change(found && opened(file, found[0] as Uint8Array));
          await connection.query(PUT, [file, seal.seal(file, text)]);
        }),
      );
      // What this process has changed it knows at once.
      await lookNow();
    },
    alone: (what, work) =>
      guarded(() =>
        inTransaction(turns, { lock: `alone ${what}`, waitMs: ALONE_MS }, async () => {
          // The one before may have changed what this work rests on.
          await lookNow();
          return await work();
        }),
      ),
    lagMs: LAG_MS,
    list: () => [...known.keys()],
    acts: createActRows(connections, schema, guarded),
    async close() {
      closed = true;
      clearTimeout(timer);
      await looking?.catch(() => undefined);
      await Promise.all([connections.close(), turns.close()]);
    },
  };
  try {
    await guarded(() => prepare(connections, schema, name, incomplete ? COPYING : MAJOR));
    await look();
    // A wrong secret is found at the start, and not with the first request.
    const [first] = known.keys();
    if (first !== undefined) textOf(first);
  } catch (thrown) {
    await files.close();
    throw thrown;
  }
  lookAgain();
  return files;
}

type FileRow = ResultRows[number] & readonly [string, number, Uint8Array];
