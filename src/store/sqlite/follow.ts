/**
 * Past, then live, for any number of followers. An event costs the followers of its own streams and nobody else. What
 * other processes append is noticed by looking at the file's version now and then, only while someone is live.
 */
import type { CoreEvent, Stream } from '../../model/events.ts';
import { createAudience } from './audience.ts';
import type { Connection } from './connection.ts';
import { createFollower, type Follower } from './follower.ts';
import type { Lately } from './lately.ts';
import type { Log } from './log.ts';
import type { Readers } from './reader.ts';
import type { Reading } from './reading.ts';
import { isBusy } from './trouble.ts';

export interface Following {
  /** `kinds`: others are passed by. */
  follow(
    stream: Stream,
    after: number,
    signal: AbortSignal,
    kinds?: readonly string[],
  ): AsyncIterableIterator<CoreEvent>;
  /** A batch of ours reached the disk: contiguous, the first at `first`. */
  publish(first: number, events: readonly CoreEvent[]): void;
  close(): void;
}
export interface FollowingDeps {
  readonly connection: Connection;
  readonly log: Log;
  readonly readers: Readers;
  readonly reading: Reading;
  readonly lately: Lately;
  readonly queueSize?: number;
  readonly pollMs?: number;
  /** What a follower is told of an error. */
  failed(thrown: unknown): unknown;
}

export function createFollowing(deps: FollowingDeps): Following {
  const { connection, log, readers, reading, lately, queueSize = 1024, pollMs = 20, failed } = deps;
  const live = createAudience();
  const everyone = new Set<Follower>();
  let liveCount = 0;
  /** Up to here everything was handed to the live followers. Means nothing while there are none. */
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

  /** Hand out what is in the file but has not passed through here. */
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

  /** Reading failed, not writing: whoever committed is not to blame, and followers must not wait for nothing. */
  function attempt(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      version = undefined;
      // A lock passes, and the next look comes soon.
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
        pagesAfter: (at) => reading.pages(stream, at),
        lately(at) {
          const found = lately.after(stream, at);
          // What others wrote and was handed out since is not among it.
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
        // Others may have written between our last batch and this one; their events come first.
        catchUp(first - 1);
        for (let at = Math.max(first, published + 1); at < first + events.length; at++) hand(events[at - first]!, at);
      });
    },
    close() {
      for (const follower of [...everyone]) follower.end();
    },
  };
}
