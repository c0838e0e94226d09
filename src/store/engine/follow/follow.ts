/**
 * Delivers past events, then live ones, to any number of followers. An event costs the followers of its own streams and no other.
 * Events appended by other processes are found by polling the database's version, only while there are live followers.
 */
import { type CoreEvent, type Cursor, position, type Stream } from '../../../model/events.ts';
import type { EventStream } from '../../../ports/index.ts';
import type { Database } from '../database.ts';
import type { StoredLog } from '../packing/stored-log.ts';
import type { Wait } from '../wait.ts';
import { createAudience } from './audience.ts';
import { createFollower, type Follower } from './follower.ts';
import type { RangeReader } from './ranges.ts';
import { createRecentEvents } from './recent-events.ts';

export interface Following {
  /** `after`: exclusive; undefined is the beginning, `now` the moment of this call. `kinds`: events of other kinds are skipped. */
  follow(
    stream: Stream,
    after: Cursor | 'now' | undefined,
    signal: AbortSignal,
    kinds?: readonly string[],
  ): EventStream;
  /** A batch of ours reached the disk: contiguous, its first event at `first`; `chars` approximates its size. */
  publish(first: number, events: readonly CoreEvent[], chars: number): void;
  /** Events were pruned, so those that were just written may be among them. */
  forget(): void;
  close(): void;
}
export interface FollowingDeps {
  readonly database: Database;
  readonly log: StoredLog;
  readonly reading: RangeReader;
  readonly queueSize?: number | undefined;
  readonly pollMs?: number | undefined;
}

const PAGE = 128;

export function createFollowing(deps: FollowingDeps): Following {
  const { database, log, reading, queueSize = 1024, pollMs = 20 } = deps;
  const { errors } = database;
  const live = createAudience();
  const everyone = new Set<Follower>();
  const recentEvents = createRecentEvents();
  let liveCount = 0;
  /** Every event up to here was handed to the live followers. Meaningless while there are none. */
  let published = 0;
  /** The end of our last batch. */
  let newest = 0;
  let version: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  /** How often the first follower went live: then `published` was set anew. */
  let beginnings = 0;
  /** Events are being read for the live followers; `again`: more were written meanwhile. */
  let pulling = false;
  let again = false;
  /** Starts at `now` whose position is still being read; events of ours that were written since come after it. */
  const starting = new Set<{ before: number }>();

  /** False when events behind `upTo` were published already: the follower has to read them. */
  function goLive(stream: Stream, follower: Follower, upTo: number): boolean {
    if (newest > upTo || (liveCount > 0 && published > upTo)) return false;
    if (liveCount++ === 0) {
      published = upTo;
      version = undefined;
      beginnings += 1;
      timer = setInterval(poll, pollMs).unref();
    }
    live.add(stream, follower);
    return true;
  }

  function leave(stream: Stream, follower: Follower): void {
    if (live.remove(stream, follower) && --liveCount === 0) clearInterval(timer);
  }

  function hand(event: CoreEvent, at: number): void {
    published = at;
    live.hand(event, at);
  }

  /** Hands out events that are in the log and were not published yet. */
  async function catchUp(): Promise<void> {
    const upTo = await log.last();
    const since = beginnings;
    if (published >= upTo) return;
    const reader = log.open({ of: 'all' }, published);
    while (liveCount > 0) {
      const { items, done } = await reader.page(upTo, PAGE);
      if (beginnings !== since) {
        again = true;
        return;
      }
      for (const { position: at, text } of items) hand(JSON.parse(text) as CoreEvent, at);
      if (done) return;
    }
  }

  /** A read failed, not the commit: the committing caller is not affected, and the followers must learn of it. */
  async function pull(): Promise<void> {
    again = true;
    if (pulling) return;
    pulling = true;
    try {
      while (again && liveCount > 0) {
        again = false;
        await catchUp();
      }
    } catch (thrown) {
      version = undefined;
      // A lock is brief, and the next poll comes soon.
      if (!errors.isBusy(thrown)) for (const follower of live.all()) follower.fail(errors.reading(thrown));
    } finally {
      pulling = false;
    }
  }

  function poll(): void {
    try {
      const current = database.version();
      if (current === version) return;
      version = current;
      void pull();
    } catch (thrown) {
      version = undefined;
      for (const follower of live.all()) follower.fail(errors.reading(thrown));
    }
  }

  function startOf(stream: Stream, after: Cursor | 'now' | undefined): Wait<number> {
    if (after === 'now') return now();
    const at = after === undefined ? undefined : position(after);
    return at !== undefined && recentEvents.holds(at) ? at : reading.start(stream, after);
  }

  /** Follows nothing, but a cursor that is not in this log is an error all the same: doors ask in this way whether it is. */
  function checked(stream: Stream, after: Cursor | 'now' | undefined): AsyncIterableIterator<CoreEvent> {
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      async next() {
        try {
          await startOf(stream, after);
        } catch (thrown) {
          throw errors.reading(thrown);
        }
        return { value: undefined, done: true };
      },
    };
  }

  function now(): Wait<number> {
    const last = log.last();
    if (!(last instanceof Promise)) return last;
    const start = { before: Number.POSITIVE_INFINITY };
    starting.add(start);
    // A connection that broke says nothing of the next one.
    const found = last.catch((thrown) => (errors.isBusy(thrown) ? reading.last() : Promise.reject(thrown)));
    return found.then((at) => Math.min(at, start.before)).finally(() => starting.delete(start));
  }

  return {
    follow(stream, after, signal, kinds) {
      if (signal.aborted) return checked(stream, after);
      const follower = createFollower({
        start: () => startOf(stream, after),
        signal,
        queueSize,
        kinds,
        errors,
        last: log.last,
        pagesAfter: (at) => reading.pages(stream, at, kinds),
        recentAfter: (at) => recentEvents.after(stream, at),
        goLive: (self, upTo) => goLive(stream, self, upTo),
        leave: (self) => leave(stream, self),
        ended: (self) => everyone.delete(self),
      });
      everyone.add(follower);
      return follower.events;
    },
    publish(first, events, chars) {
      newest = first + events.length - 1;
      recentEvents.add(first, events, chars);
      for (const start of starting) start.before = Math.min(start.before, first - 1);
      if (liveCount === 0) return;
      // Other processes may have written between our last batch and this one; their events come first.
      if (pulling || published !== first - 1) return void pull();
      for (const [at, event] of events.entries()) hand(event, first + at);
    },
    forget: recentEvents.clear,
    close() {
      for (const follower of [...everyone]) follower.end();
    },
  };
}
