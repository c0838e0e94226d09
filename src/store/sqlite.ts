/**
 * The store in one SQLite file: durable with nothing to set up, safe with several processes on the same file. This
 * file only puts the parts together; what they do is in `sqlite/`.
 */
import { type CoreEvent, type Cursor, eventId, position, type Stream } from '../model/events.ts';
import type { Clock, Closable, Logger, Projector, Row, Store } from '../ports.ts';
import { createBatches } from './sqlite/batch.ts';
import { createBlobs } from './sqlite/blobs.ts';
import { createCommits } from './sqlite/commits.ts';
import { openConnection } from './sqlite/connection.ts';
import { createFollowing } from './sqlite/follow.ts';
import { createFreeRoom } from './sqlite/free-room.ts';
import { createLately } from './sqlite/lately.ts';
import { createLeases } from './sqlite/lease.ts';
import { createLog } from './sqlite/log.ts';
import { patiently } from './sqlite/patience.ts';
import { createReaders } from './sqlite/reader.ts';
import { createReading } from './sqlite/reading.ts';
import { createRebuild } from './sqlite/rebuild.ts';
import { createReceipts } from './sqlite/receipts.ts';
import { createRetain } from './sqlite/retain.ts';
import { makeRoom } from './sqlite/room.ts';
import { createRows } from './sqlite/rows.ts';
import { type Crowd, createScribe } from './sqlite/scribe.ts';
import { readFault } from './sqlite/trouble.ts';
import { createWriter } from './sqlite/writer.ts';

export interface SqliteOptions {
  /** The file. Its directory is made when missing, readable by this user alone; so is the file. */
  readonly path: string;
  readonly clock: Clock;
  readonly projector: Projector;
  readonly log?: Logger;
  /** How long a write waits for another process before it is refused. */
  readonly patienceMs?: number;
  /** Refuse to let the file grow beyond this, as if the disk were full. */
  readonly maxBytes?: number;
  /** How long the write-ahead log is made at once, so that the first commits need not make it longer. */
  readonly roomBytes?: number;
  /** When a thread of its own writes. Absent: never. */
  readonly crowd?: Crowd;
  /** Events kept in memory for a follower that is slower than the log. */
  readonly queueSize?: number;
  /** How often to look for what other processes appended, while someone follows. */
  readonly pollMs?: number;
}

export interface SqliteStore extends Store {
  /** Transactions that reached the disk. */
  commits(): number;
  /** Those of them that were written on a thread of their own. */
  commitsElsewhere(): number;
}

export async function createSqliteStore(options: SqliteOptions): Promise<SqliteStore> {
  const { path, clock, projector, log: logger, patienceMs = 5_000 } = options;
  const { maxBytes } = options;
  const connection = await openConnection({ path, patienceMs, ...(maxBytes !== undefined && { maxBytes }) });
  if (options.roomBytes !== undefined) makeRoom(connection, options.roomBytes);
  const log = createLog(connection);
  const readers = createReaders(connection, log);
  const reading = createReading(log, readers, patienceMs);
  const rows = createRows(connection);
  const receipts = createReceipts(connection);
  const writer = createWriter(connection, patienceMs, logger);
  const lately = createLately(connection);
  const failed = (thrown: unknown): unknown => readFault(thrown, path);
  const following = createFollowing({
    connection,
    log,
    readers,
    reading,
    lately,
    failed,
    ...(options.queueSize !== undefined && { queueSize: options.queueSize }),
    ...(options.pollMs !== undefined && { pollMs: options.pollMs }),
  });
  const batches = createBatches({ connection, rows, receipts, projector });
  const limits = { ...(maxBytes !== undefined && { maxBytes }), ...(logger && { logger }) };
  const scribe = options.crowd && createScribe({ connection, log, crowd: options.crowd, ...limits });
  if (options.crowd?.times === 0) await scribe?.begin();
  const commits = createCommits({
    connection,
    log,
    batches: { ...batches, forget },
    clock,
    writer,
    ...(scribe && { scribe }),
    written(batch) {
      lately.add(batch);
      following.publish(batch.first, batch.events);
    },
  });
  function forget(): void {
    batches.forget();
    lately.clear();
  }
  const blobs = createBlobs(connection, writer.transact);
  const leases = createLeases(`${path}.leases`);
  const rebuild = createRebuild(connection, log, projector, writer);
  const retain = createRetain({ connection, log, readers, projector, writer, clock });

  /** One at a time: a rebuild and a retention would get in each other's way. */
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
      return await patiently(work, patienceMs);
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
    // Now is when the caller asked, not when it first waits.
    if (after === 'now') return log.last();
    if (after === undefined) return lately.start(stream) ?? reading.start(stream, after);
    const at = position(after);
    return at !== undefined && lately.holds(at) ? at : reading.start(stream, after);
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
    read: (range) => guarded(reading.read(range)),
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
    get<T extends Row>(object: string, id: string) {
      const get = () => {
        commits.check();
        return rows.get(object, id) as T | undefined;
      };
      try {
        // Mostly it is remembered, and then there is nothing to wait for.
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
    putBlob: (bytes) => look(() => blobs.put(bytes)),
    blob: (sha256, range) => look(() => blobs.get(sha256, range)),
    hasBlob: (sha256) => look(() => blobs.has(sha256)),
    lease: (name): Promise<Closable | undefined> => look(() => leases.take(name)),
    retain: (before) =>
      inTurn(async () => {
        const done = await retain(before);
        lately.clear();
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

/** Says no at the first look, as an iterable should. */
function refused(reason: unknown): AsyncIterable<CoreEvent> {
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => Promise.reject(reason),
    }),
  };
}
