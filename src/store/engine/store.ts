/** A store on a database: wires the modules of this folder together. */
import { type CoreEvent, eventId, position } from '../../model/events.ts';
import type { Clock, Logger, Projector, Row, Store } from '../../ports/index.ts';
import { createBlobs } from './blobs.ts';
import { createBatches } from './commit/batch.ts';
import { createCommits } from './commit/commits.ts';
import type { Database } from './database.ts';
import { createFollowing } from './follow/follow.ts';
import { createRangeReader } from './follow/ranges.ts';
import { createLeases } from './lease.ts';
import { createStoredLog } from './packing/stored-log.ts';
import { createWordWriter } from './packing/words.ts';
import { createRows } from './rows.ts';
import { compareRows } from './upkeep/compare.ts';
import { rebuildRows } from './upkeep/rebuild.ts';
import { createRetain } from './upkeep/retain.ts';
import { andThen, type Wait, withLockTimeout } from './wait.ts';
import { createWriter } from './writer.ts';

export interface EngineOptions {
  readonly clock: Clock;
  readonly projector: Projector;
  readonly log?: Logger;
  /** How long a write waits for another process before it is refused. */
  readonly lockTimeoutMs?: number;
  /** Events kept in memory for a follower that is slower than the log. */
  readonly queueSize?: number;
  /** How often to look for events appended by other processes, while there are live followers. */
  readonly pollMs?: number;
}

export interface EngineStore extends Store {
  /** Transactions that reached the disk. */
  commits(): number;
  /** Those of them that were decided without the lock. */
  commitsElsewhere(): number;
}

export const LOCK_TIMEOUT_MS = 5_000;

export function createStore(database: Database, options: EngineOptions): EngineStore {
  const { clock, projector, log: logger, lockTimeoutMs: timeoutMs = LOCK_TIMEOUT_MS, queueSize, pollMs } = options;
  const { errors, receipts, logTree } = database;
  const log = createStoredLog(database);
  const lockTimeout = { timeoutMs, isBusy: errors.isBusy };
  const reading = createRangeReader(log, lockTimeout);
  const rows = createRows(database);
  const writer = createWriter(database, lockTimeout, logger);
  const following = createFollowing({ database, log, reading, queueSize, pollMs });
  const batches = createBatches({ lookups: database.lookups, rows, words: createWordWriter(database), projector });
  const commits = createCommits({
    database,
    log,
    batches,
    clock,
    writer,
    lockTimeoutMs: timeoutMs,
    written: ({ first, events, chars }) => following.publish(first, events, chars),
  });
  const blobs = createBlobs(database.blobs, writer);
  const leases = createLeases();
  const retain = createRetain({ database, log, projector, writer, clock });

  /** Runs one at a time: a rebuild and a retention would interfere with each other. */
  let upkeep: Promise<unknown> = Promise.resolve();
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = upkeep.then(work);
    upkeep = result.catch(() => undefined);
    return result.catch((thrown) => {
      throw errors.reading(thrown);
    });
  }
  async function look<T>(work: () => Wait<T>): Promise<T> {
    try {
      return await withLockTimeout(work, lockTimeout);
    } catch (thrown) {
      throw errors.reading(thrown);
    }
  }
  async function* guarded(source: AsyncIterable<CoreEvent>): AsyncGenerator<CoreEvent> {
    try {
      yield* source;
    } catch (thrown) {
      throw errors.reading(thrown);
    }
  }

  let closing: Promise<void> | undefined;
  async function close(): Promise<void> {
    await commits.close();
    await upkeep;
    following.close();
    leases.close();
    await database.close();
  }

  return {
    commit: commits.commit,
    read: (range) => guarded(reading.read(range)),
    follow: ({ stream, after, kinds }, signal) => following.follow(stream, after, signal, kinds),
    event: (id) =>
      look(async () => {
        const text = await log.text(position(id) ?? -1);
        return text === undefined ? undefined : (JSON.parse(text) as CoreEvent);
      }),
    tip: (stream) =>
      look(async () => {
        const tip = await log.tip(stream);
        return tip === undefined ? undefined : eventId(tip);
      }),
    columnFault: (progress) => database.upkeep.columnFault(progress),
    compareRows: (progress) => inTurn(() => compareRows(database, log, projector, progress)),
    firstMissing: (stream) => look(() => reading.firstMissing(stream)),
    get<T extends Row>(object: string, id: string) {
      const get = () => {
        commits.check();
        return rows.get(object, id) as Wait<T | undefined>;
      };
      try {
        // Most rows are in the cache, so there is nothing to wait for.
        const found = get();
        return found instanceof Promise ? look(() => found) : Promise.resolve(found);
      } catch {
        return look(get);
      }
    },
    list: <T extends Row>(query: Parameters<Store['list']>[0]) =>
      // The caller says which rows an object has; the database does not know.
      look(() => database.list(query) as unknown as Wait<readonly T[]>),
    receipt: (id) => look(() => log.receipt(id)),
    receipts: (query) => look(() => log.receipts(query)),
    tree: () => look(() => receipts.tree()),
    nodes: (wanted) => look(() => receipts.nodes(wanted)),
    logTree: {
      state: () => look(() => logTree.state()),
      nodes: (wanted) => look(() => logTree.nodes(wanted)),
      prunedHead: (object) =>
        look(async () => {
          const text = await logTree.prunedHead(object);
          return text === undefined ? undefined : (JSON.parse(text) as CoreEvent);
        }),
      grow: (growth) => inTurn(() => writer.transact(() => logTree.grow(growth))),
    },
    putBlob: (bytes) => look(() => blobs.put(bytes)),
    blob: (sha256, range) => look(() => blobs.get(sha256, range)),
    hasBlob: (sha256) => look(() => blobs.has(sha256)),
    lease: (name) => look(() => andThen(database.lease(name), (held) => held && leases.hold(name, held))),
    retain: (before) =>
      inTurn(async () => {
        const done = await retain(before);
        following.forget();
        return done;
      }),
    rebuild: () =>
      inTurn(async () => {
        await rebuildRows(database, log, projector, writer);
        commits.forget();
      }),
    room: () => database.room(),
    trouble: writer.trouble,
    commits: commits.count,
    commitsElsewhere: commits.countElsewhere,
    close() {
      closing ??= close();
      return closing;
    },
  };
}
