/**
 * The store in one SQLite file: durable with nothing to set up, safe with several processes on the same file. This file only
 * wires the modules of this folder together.
 */
import { type CoreEvent, type Cursor, eventId, position, type Stream } from '../../model/events.ts';
import type { Clock, Closable, Logger, Projector, Row, Store } from '../../ports/index.ts';
import { createBlobs } from './blobs.ts';
import { createComparison } from './compare.ts';
import { openConnection } from './connection.ts';
import { readFault } from './errors.ts';
import { createLeases } from './lease.ts';
import { withLockTimeout } from './lock-timeout.ts';
import { createLog } from './log.ts';
import { createLogTree } from './log-tree.ts';
import { createColumns } from './reading/columns.ts';
import { createFollowing } from './reading/follow.ts';
import { createRangeReader } from './reading/ranges.ts';
import { createReaders } from './reading/reader.ts';
import { createRecentEvents } from './reading/recent-events.ts';
import { createRebuild } from './rebuild.ts';
import { createReceipts } from './receipts.ts';
import { createRetain } from './retain.ts';
import { createRows } from './rows.ts';
import { createBatches } from './writing/batch.ts';
import { createCommits } from './writing/commits.ts';
import { createFreeRoom } from './writing/free-space.ts';
import { makeRoom } from './writing/log-growth.ts';
import { createWriter } from './writing/writer.ts';
import { createWriterThread, type WriterThreadThreshold } from './writing/writer-thread.ts';

export interface SqliteOptions {
  /** The database file. It is created when missing, and so is its directory; both are accessible to this user alone. */
  readonly path: string;
  readonly clock: Clock;
  readonly projector: Projector;
  readonly log?: Logger;
  /** How long a write waits for another process before it is refused. */
  readonly lockTimeoutMs?: number;
  /** The file is refused growth beyond this size, as if the disk were full. */
  readonly maxBytes?: number;
  /** Initial length of the write-ahead log, so that the first commits need not extend it. */
  readonly roomBytes?: number;
  /** The load from which a writer thread does the writing. Absent: never. */
  readonly concurrentWriters?: WriterThreadThreshold;
  /** Events kept in memory for a follower that is slower than the log. */
  readonly queueSize?: number;
  /** How often to look for events appended by other processes, while there are live followers. */
  readonly pollMs?: number;
}

export interface SqliteStore extends Store {
  /** Transactions that reached the disk. */
  commits(): number;
  /** Those of them that the writer thread wrote. */
  commitsElsewhere(): number;
}

export async function createSqliteStore(options: SqliteOptions): Promise<SqliteStore> {
  const { path, clock, projector, log: logger, lockTimeoutMs = 5_000 } = options;
  const { maxBytes } = options;
  const connection = await openConnection({
    path,
    lockTimeoutMs: lockTimeoutMs,
    ...(maxBytes !== undefined && { maxBytes }),
  });
  if (options.roomBytes !== undefined) makeRoom(connection, options.roomBytes);
  const log = createLog(connection);
  const readers = createReaders(connection, log);
  const ranges = createRangeReader(log, readers, lockTimeoutMs);
  const rows = createRows(connection);
  const receipts = createReceipts(connection);
  const logTree = createLogTree(connection);
  const columnFault = createColumns(connection, log);
  const writer = createWriter(connection, lockTimeoutMs, logger);
  const recentEvents = createRecentEvents(connection);
  const failed = (thrown: unknown): unknown => readFault(thrown, path);
  const following = createFollowing({
    connection,
    log,
    readers,
    ranges,
    recentEvents: recentEvents,
    failed,
    ...(options.queueSize !== undefined && { queueSize: options.queueSize }),
    ...(options.pollMs !== undefined && { pollMs: options.pollMs }),
  });
  const batches = createBatches({ connection, rows, receipts, projector });
  const limits = { ...(maxBytes !== undefined && { maxBytes }), ...(logger && { logger }) };
  const writerThread =
    options.concurrentWriters &&
    createWriterThread({ connection, log, threshold: options.concurrentWriters, ...limits });
  if (options.concurrentWriters?.times === 0) await writerThread?.begin();
  const commits = createCommits({
    connection,
    log,
    batches: { ...batches, forget },
    clock,
    writer,
    ...(writerThread && { writerThread: writerThread }),
    written(batch) {
      recentEvents.add(batch);
      following.publish(batch.first, batch.events);
    },
  });
  function forget(): void {
    batches.forget();
    recentEvents.clear();
  }
  const blobs = createBlobs(connection, writer.transact);
  const leases = createLeases(`${path}.leases`);
  const rebuild = createRebuild(connection, log, projector, writer);
  const compareRows = createComparison(connection, log, projector);
  const retain = createRetain({ connection, log, logTree, readers, projector, writer, clock });

  /** Runs one at a time: a rebuild and a retention would interfere with each other. */
  let upkeep: Promise<unknown> = Promise.resolve();
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = upkeep.then(work);
    upkeep = result.catch(() => undefined);
    return result.catch((thrown) => {
      throw failed(thrown);
    });
  }
  async function look<T>(work: () => T): Promise<Awaited<T>> {
    try {
      return await withLockTimeout(work, lockTimeoutMs);
    } catch (thrown) {
      throw failed(thrown);
    }
  }
  async function* guarded(source: AsyncIterable<CoreEvent>): AsyncGenerator<CoreEvent> {
    try {
      yield* source;
    } catch (thrown) {
      throw failed(thrown);
    }
  }

  function startOf(stream: Stream, after: Cursor | 'now' | undefined): number {
    // `now` is the moment of this call, not of the first `next()`.
    if (after === 'now') return log.last();
    if (after === undefined) return recentEvents.start(stream) ?? ranges.start(stream, after);
    const at = position(after);
    return at !== undefined && recentEvents.holds(at) ? at : ranges.start(stream, after);
  }

  let closing: Promise<void> | undefined;
  async function close(): Promise<void> {
    await commits.close();
    await upkeep;
    following.close();
    leases.close();
    connection.close();
  }

  return {
    commit: commits.commit,
    read: (range) => guarded(ranges.read(range)),
    follow({ stream, after, kinds }, signal) {
      try {
        commits.check();
        return following.follow(stream, startOf(stream, after), signal, kinds);
      } catch (thrown) {
        return refused(failed(thrown));
      }
    },
    event: (id) =>
      look(() => {
        const text = log.text(position(id) ?? -1);
        return text === undefined ? undefined : (JSON.parse(text) as CoreEvent);
      }),
    tip: (stream) =>
      look(() => {
        const tip = readers.tip(stream);
        return tip === undefined ? undefined : eventId(tip);
      }),
    columnFault,
    compareRows: (progress) => inTurn(() => compareRows(progress)),
    firstMissing: (stream) => look(() => ranges.firstMissing(stream)),
    get<T extends Row>(object: string, id: string) {
      const get = () => {
        commits.check();
        return rows.get(object, id) as T | undefined;
      };
      try {
        // Most rows are in the cache, so there is nothing to wait for.
        return Promise.resolve(get());
      } catch {
        return look(get);
      }
    },
    list: <T extends Row>(query: Parameters<Store['list']>[0]) =>
      look(() => rows.list(query) as unknown as readonly T[]),
    receipt: (id) => look(() => receipts.get(id)),
    receipts: (query) => look(() => receipts.list(query)),
    tree: () => look(() => receipts.tree()),
    nodes: (wanted) => look(() => receipts.nodes(wanted)),
    logTree: {
      state: () => look(logTree.state),
      nodes: (wanted) => look(() => logTree.nodes(wanted)),
      prunedHead: (object) => look(() => logTree.prunedHead(object)),
      grow: (growth) =>
        inTurn(async () => {
          let grown = false;
          await writer.transact(() => {
            grown = logTree.grow(growth);
          });
          return grown;
        }),
    },
    putBlob: (bytes) => look(() => blobs.put(bytes)),
    blob: (sha256, range) => look(() => blobs.get(sha256, range)),
    hasBlob: (sha256) => look(() => blobs.has(sha256)),
    lease: (name): Promise<Closable | undefined> => look(() => leases.take(name)),
    retain: (before) =>
      inTurn(async () => {
        const done = await retain(before);
        recentEvents.clear();
        await writer.transact(blobs.sweep);
        leases.sweep();
        return done;
      }),
    rebuild: () =>
      inTurn(async () => {
        await rebuild();
        commits.forget();
      }),
    room: createFreeRoom(connection, maxBytes),
    trouble: writer.trouble,
    commits: commits.count,
    commitsElsewhere: commits.countElsewhere,
    close() {
      closing ??= close();
      return closing;
    },
  };
}

/** Rejects at the first `next()`, as an iterable should. */
function refused(reason: unknown): AsyncIterable<CoreEvent> {
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => Promise.reject(reason),
    }),
  };
}
