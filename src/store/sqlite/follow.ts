/**
 * Past, then live, for any number of followers. An event costs the followers of its own streams and nobody else. What
 * other processes append is noticed by looking at the file's version now and then, only while someone is live.
 */
import type { CoreEvent, Stream } from '../../model/events.ts';
import type { Connection } from './connection.ts';
import { createFollower, type Follower } from './follower.ts';
import type { Lately } from './lately.ts';
import type { Log } from './log.ts';
import type { Readers } from './reader.ts';
import type { Reading } from './reading.ts';
import { isBusy } from './trouble.ts';

export interface Following {
  follow(stream: Stream, after: number, signal: AbortSignal): AsyncIterableIterator<CoreEvent>;
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
  /** Live followers by stream. */
  const live = new Map<string, Set<Follower>>();
  const everyone = new Set<Follower>();
  let liveCount = 0;
  /** Up to here everything was handed to the live followers. Means nothing while there are none. */
  let published = 0;
  let version: number | undefined;
  let timer: NodeJS.Timeout | undefined;

  function goLive(key: string, follower: Follower, upTo: number): void {
    if (liveCount++ === 0) {
      published = upTo;
      version = undefined;
      timer = setInterval(poll, pollMs).unref();
    }
    const group = live.get(key);
    if (group) group.add(follower);
    else live.set(key, new Set([follower]));
  }

  function leave(key: string, follower: Follower): void {
    const group = live.get(key);
    if (!group?.delete(follower)) return;
    if (group.size === 0) live.delete(key);
    if (--liveCount === 0) clearInterval(timer);
  }

  function hand(event: CoreEvent, at: number): void {
    published = at;
    for (const key of keysOf(event)) {
      const group = live.get(key);
      if (group) for (const follower of group) follower.take(event, at);
    }
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
      for (const group of [...live.values()]) for (const follower of [...group]) follower.fail(reason);
    }
  }

  return {
    follow(stream, after, signal) {
      const key = keyOf(stream);
      const follower = createFollower({
        after,
        signal,
        queueSize,
        failed,
        last: log.last,
        pagesAfter: (at) => reading.pages(stream, at),
        lately(at) {
          const found = lately.after(stream, at);
          // What others wrote and was handed out since is not among it.
          return found && (liveCount === 0 || published <= found.upTo) ? found : undefined;
        },
        goLive: (self, upTo) => goLive(key, self, upTo),
        leave: (self) => leave(key, self),
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
        for (const [index, event] of events.entries()) if (first + index > published) hand(event, first + index);
      });
    },
    close() {
      for (const follower of [...everyone]) follower.end();
    },
  };
}

function keyOf(stream: Stream): string {
  switch (stream.of) {
    case 'all':
      return 'all';
    case 'resource':
      return `resource\n${stream.object}\n${stream.id}`;
    default:
      return `${stream.of}\n${stream.id}`;
  }
}

function keysOf(event: CoreEvent): string[] {
  const keys = ['all', `resource\n${event.resource.object}\n${event.resource.id}`];
  if (event.task_id) keys.push(`task\n${event.task_id}`);
  if (event.session_id) keys.push(`session\n${event.session_id}`);
  if (event.workspace_id) keys.push(`workspace\n${event.workspace_id}`);
  return keys;
}
