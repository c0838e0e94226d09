/**
 * A database as if it were at the other end of a network: every answer comes in a later turn of the event loop, decisions find their
 * rows only once they are loaded, and one writer at a time holds the lock for as long as its round trips take.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { createRemoteLookups } from '../../../../src/store/engine/commit/remote-lookups.ts';
import type { Ahead, Database } from '../../../../src/store/engine/database.ts';
import type { Wait } from '../../../../src/store/engine/wait.ts';

/** The lock of one log, and how many transactions it has seen. */
export interface NetworkLock {
  held: Promise<unknown>;
}

/** `writesAhead`: batches are decided without the lock, one ahead of the one that is being written. */
export function overNetwork(
  database: Database,
  lock: NetworkLock,
  generation: () => number,
  writesAhead: boolean,
): Database {
  function locked<T>(work: () => Promise<T>): Promise<T> {
    const result = lock.held.then(work);
    lock.held = result.catch(() => undefined);
    return result;
  }
  const commit: Database['commit'] = (decide) =>
    locked(async () => {
      await turn();
      // Throws when it is closed.
      database.version();
      const writeSet = await decide();
      await turn();
      await database.commit(() => writeSet);
    });
  const ahead: Ahead = {
    generation,
    takes: (units) => units > 1,
    write: (writeSet, after) =>
      locked(async () => {
        await turn();
        if (generation() !== after) return false;
        await database.commit(() => writeSet);
        return true;
      }),
    close: async () => {},
  };
  const { lookups } = database;
  return {
    ...database,
    lookups: createRemoteLookups(async ({ rows, heads, answers, chains, leases }) => {
      await turn();
      return {
        rows: rows.map(({ object, id }) => lookups.row(object, id)),
        heads: heads.map(({ object, id }) => structuredClone(lookups.head(object, id))),
        answers: answers.map(lookups.answer),
        chains: chains.map(lookups.chain),
        epochs: leases.map(() => 0),
      };
    }),
    end: later(database.end),
    commit,
    transact: (work) =>
      locked(async () => {
        await turn();
        const result = await work();
        database.transact(() => undefined);
        return result;
      }),
    ...(writesAhead && { ahead }),
    events: {
      ...answersLater(database.events, ['open']),
      open(stream, after) {
        const reader = database.events.open(stream, after);
        return { page: later(reader.page) };
      },
    },
    words: later(database.words),
    recentWords: later(database.recentWords),
    row: later(database.row),
    list: later(database.list),
    receipts: answersLater(database.receipts),
    logTree: answersLater(database.logTree),
    blobs: answersLater(database.blobs),
    upkeep: {
      ...answersLater(database.upkeep, ['baseline', 'fresh']),
      baseline: answersLater(database.upkeep.baseline),
      async fresh() {
        const fresh = await database.upkeep.fresh();
        return {
          ...answersLater(fresh, ['table', 'consistently']),
          table: answersLater(fresh.table),
          consistently: (work) => locked(async () => work()),
        };
      },
    },
    lease: later(database.lease),
  };
}

function later<A extends unknown[], T>(method: (...args: A) => Wait<T>): (...args: A) => Promise<T> {
  return async (...args) => {
    await turn();
    return await method(...args);
  };
}

/** The same object, with all of its methods but those named answering later. */
function answersLater<T extends object>(of: T, but: readonly (keyof T)[] = []): T {
  const entries = Object.entries(of).map(([name, value]) =>
    typeof value === 'function' && !but.includes(name as keyof T)
      ? [name, later(value as () => unknown)]
      : [name, value],
  );
  return Object.fromEntries(entries) as T;
}
