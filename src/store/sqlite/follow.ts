/**
 * Past, then live. A follower reads the log until nothing is left and is then handed each new event of its stream; one
 * that does not keep up goes back to reading. An event costs the followers of its own streams and nobody else.
 *
 * What other processes append is noticed by looking at the file's version now and then, and only while someone is live.
 */
import { type CoreEvent, position, type Stream } from '../../model/events.ts';
import type { Connection } from './connection.ts';
import type { Log } from './log.ts';
import { pauseMs } from './patience.ts';
import type { Readers } from './reader.ts';
import type { Pages, Reading } from './reading.ts';
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
  readonly queueSize?: number;
  readonly pollMs?: number;
  readonly failed: (thrown: unknown) => unknown;
}

interface Follower {
  take(event: CoreEvent, at: number): void;
  end(): void;
  fail(reason: unknown): void;
}

export function createFollowing(deps: FollowingDeps): Following {
  const { connection, log, readers, reading, queueSize = 1024, pollMs = 20, failed } = deps;
  /** Live followers by stream. */
  const live = new Map<string, Set<Follower>>();
  const everyone = new Set<Follower>();
  let liveCount = 0;
  /** Up to here everything was handed to the live followers. Means nothing while there are none. */
  let published = 0;
  let version: number | undefined;
  let timer: NodeJS.Timeout | undefined;

  function goLive(key: string, follower: Follower, tip: number): void {
    if (liveCount++ === 0) {
      published = tip;
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

  function follow(stream: Stream, after: number, signal: AbortSignal): AsyncIterableIterator<CoreEvent> {
    const key = keyOf(stream);
    /** The last event that was delivered or is in `ready`. */
    let complete = after;
    let pages: Pages | undefined = reading.pages(stream, after);
    let ready: (string | CoreEvent)[] = [];
    let taken = 0;
    let ended = false;
    /** What went wrong while nobody was asking. */
    let failure: { readonly reason: unknown } | undefined;
    let turn: NodeJS.Immediate | NodeJS.Timeout | undefined;
    const asking: { resolve(result: IteratorResult<CoreEvent>): void; reject(reason: unknown): void }[] = [];

    const follower: Follower = {
      take(event, at) {
        if (at <= complete) return;
        if (asking.length > 0) {
          complete = at;
          asking.shift()!.resolve({ value: event, done: false });
          return;
        }
        if (ready.length - taken >= queueSize) {
          // Too slow: forget the queue and read it from the log again.
          leave(key, follower);
          complete = positionOf(ready[taken] as CoreEvent) - 1;
          ready = [];
          taken = 0;
          pages = reading.pages(stream, complete);
          return;
        }
        complete = at;
        ready.push(event);
      },
      end() {
        if (ended) return;
        ended = true;
        leave(key, follower);
        everyone.delete(follower);
        signal.removeEventListener('abort', follower.end);
        clearImmediate(turn as NodeJS.Immediate | undefined);
        clearTimeout(turn as NodeJS.Timeout | undefined);
        ready = [];
        pages = undefined;
        for (const one of asking.splice(0)) one.resolve({ value: undefined, done: true });
      },
      fail(reason) {
        const first = asking.shift();
        if (!first) failure = { reason };
        follower.end();
        first?.reject(reason);
      },
    };

    function fromReady(): CoreEvent | undefined {
      if (taken === ready.length) return undefined;
      const one = ready[taken]!;
      ready[taken++] = undefined as never;
      if (taken === ready.length) {
        ready = [];
        taken = 0;
      }
      return typeof one === 'string' ? (JSON.parse(one) as CoreEvent) : one;
    }

    /** Read on until there is something to hand out, or nothing left: then this follower is live. */
    function readOn(): void {
      turn = undefined;
      try {
        const upTo = log.last();
        const { items, done } = pages!.next(upTo);
        for (const { position: at, text } of items) {
          ready.push(text);
          complete = at;
        }
        if (done && items.length === 0) {
          pages = undefined;
          goLive(key, follower, upTo);
        }
      } catch (thrown) {
        if (isBusy(thrown)) turn = setTimeout(readOn, pauseMs());
        else follower.fail(failed(thrown));
        return;
      }
      serve();
    }

    function serve(): void {
      while (asking.length > 0) {
        const value = fromReady();
        if (!value) break;
        asking.shift()!.resolve({ value, done: false });
      }
      // A turn of the event loop between pages, or a reader of a long past would be alone in the process.
      if (asking.length > 0 && pages && !turn) turn = setImmediate(readOn);
    }

    everyone.add(follower);
    if (signal.aborted) follower.end();
    else signal.addEventListener('abort', follower.end, { once: true });

    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next() {
        if (failure) {
          const { reason } = failure;
          failure = undefined;
          return Promise.reject(reason);
        }
        if (ended) return Promise.resolve({ value: undefined, done: true });
        const value = asking.length === 0 ? fromReady() : undefined;
        if (value) return Promise.resolve({ value, done: false });
        return new Promise((resolve, reject) => {
          asking.push({ resolve, reject });
          serve();
        });
      },
      async return() {
        follower.end();
        return { value: undefined, done: true };
      },
    };
  }

  return {
    follow,
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

function positionOf(event: CoreEvent): number {
  return position(event.id) ?? 0;
}
