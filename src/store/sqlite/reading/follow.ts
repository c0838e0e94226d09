/**
 * Delivers past events, then live ones, to any number of followers. An event costs the followers of its own streams and no other.
 * Events appended by other processes are found by polling the file's version, only while there are live followers.
 */
import type { CoreEvent, Stream } from '../../../model/events.ts';
import type { Connection } from '../connection.ts';
import { isBusy } from '../errors.ts';
import type { Log } from '../log.ts';
import { createAudience } from './audience.ts';
import { createFollower, type Follower } from './follower.ts';
import type { RangeReader } from './ranges.ts';
import type { Readers } from './reader.ts';
import type { RecentEvents } from './recent-events.ts';

export interface Following {
  /** `kinds`: events of other kinds are skipped. */
  follow(
    stream: Stream,
    after: number,
    signal: AbortSignal,
    kinds?: readonly string[],
  ): AsyncIterableIterator<CoreEvent>;
  /** A batch of ours reached the disk: contiguous, its first event at `first`. */
  publish(first: number, events: readonly CoreEvent[]): void;
  close(): void;
}
export interface FollowingDeps {
  readonly connection: Connection;
  readonly log: Log;
  readonly readers: Readers;
  readonly ranges: RangeReader;
  readonly recentEvents: RecentEvents;
  readonly queueSize?: number;
  readonly pollMs?: number;
  /** Turns an error into the one a follower receives. */
  failed(thrown: unknown): unknown;
}

export function createFollowing(deps: FollowingDeps): Following {
  const { connection, log, readers, ranges, recentEvents, queueSize = 1024, pollMs = 20, failed } = deps;
  const live = createAudience();
  const everyone = new Set<Follower>();
  let liveCount = 0;
  /** Every event up to here was handed to the live followers. Meaningless while there are none. */
  let published = 0;
  let version: number | undefined;
  let timer: NodeJS.Timeout | undefined;

  function goLive(stream: Stream, follower: Follower, upTo: number): void {
    if (liveCount++ === 0) {
      published = upTo;
      version = undefined;
      timer = setInterval(poll, pollMs).unref();
    }
    live.add(stream, follower);
  }

  function leave(stream: Stream, follower: Follower): void {
    if (live.remove(stream, follower) && --liveCount === 0) clearInterval(timer);
  }

  function hand(event: CoreEvent, at: number): void {
    published = at;
    live.hand(event, at);
  }

  /** Hands out events that are in the file but were not published by this process. */
  function catchUp(upTo: number): void {
    if (published >= upTo) return;
    const reader = readers.open({ of: 'all' }, published);
    while (liveCount > 0) {
      const { items, done } = reader.page(upTo, 128);
      for (const { position: at, text } of items) hand(JSON.parse(text) as CoreEvent, at);
      if (done) return;
    }
  }

  function poll(): void {
    attempt(() => {
      const current = connection.version();
      if (current === version) return;
      catchUp(log.last());
      version = current;
    });
  }

  /** A read failed, not the commit: the committing caller is not affected, and the followers must learn of it. */
  function attempt(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      version = undefined;
      // A lock is brief, and the next poll comes soon.
      if (isBusy(thrown)) return;
      const reason = failed(thrown);
      for (const follower of live.all()) follower.fail(reason);
    }
  }

  return {
    follow(stream, after, signal, kinds) {
      const follower = createFollower({
        after,
        signal,
        queueSize,
        kinds,
        failed,
        last: log.last,
        pagesAfter: (at) => ranges.pages(stream, at),
        recentEvents(at) {
          const found = recentEvents.after(stream, at);
          // The cache lacks events by other processes that were handed out since.
          return found && (liveCount === 0 || published <= found.upTo) ? found : undefined;
        },
        goLive: (self, upTo) => goLive(stream, self, upTo),
        leave: (self) => leave(stream, self),
        ended: (self) => everyone.delete(self),
      });
      if (!signal.aborted) everyone.add(follower);
      return follower.events;
    },
    publish(first, events) {
      if (liveCount === 0) return;
      attempt(() => {
        // Other processes may have written between our last batch and this one; their events come first.
        catchUp(first - 1);
        for (let at = Math.max(first, published + 1); at < first + events.length; at++) hand(events[at - first]!, at);
      });
    },
    close() {
      for (const follower of [...everyone]) follower.end();
    },
  };
}
