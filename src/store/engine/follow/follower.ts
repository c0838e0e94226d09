/**
 * One follower: reads its stream until nothing is left, then takes each new event as it is handed over, and goes back
 * to reading when it falls too far behind. Holds a bounded queue and nothing else; ends with its signal.
 */
import { type CoreEvent, position } from '../../../model/events.ts';
import type { EventStream } from '../../../ports/index.ts';
import type { Errors } from '../database.ts';
import { pauseMs, type Wait } from '../wait.ts';
import type { Pages } from './ranges.ts';

export interface Follower {
  readonly events: AsyncIterableIterator<CoreEvent> & EventStream;
  /** An event of its stream, while it is live. */
  take(event: CoreEvent, at: number): void;
  end(): void;
  fail(reason: unknown): void;
}
export interface FollowerDeps {
  /** The position to start behind. */
  start(): Wait<number>;
  readonly signal: AbortSignal;
  readonly queueSize: number;
  /** Only events of these kinds are delivered; undefined: all of them. */
  readonly kinds: readonly string[] | undefined;
  pagesAfter(at: number): Pages;
  /** The events of its stream behind this position, and up to where, if all of them were written just now. */
  recentAfter(at: number): { readonly events: readonly CoreEvent[]; readonly upTo: number } | undefined;
  /** The last position of the log at this moment. */
  last(): Wait<number>;
  /** All events up to `upTo` have been read: later ones are to be handed over. False: there are more to read already. */
  goLive(follower: Follower, upTo: number): boolean;
  leave(follower: Follower): void;
  ended(follower: Follower): void;
  readonly errors: Errors;
}

interface Look {
  resolve(result: IteratorResult<CoreEvent>): void;
  reject(reason: unknown): void;
}

export function createFollower(deps: FollowerDeps): Follower {
  const { signal, kinds, errors } = deps;
  /** Position of the last event that was delivered, queued or skipped. */
  let reached = 0;
  let live = false;
  /** Where reading continues, once it has begun. */
  let pages: Pages | undefined;
  /** Texts while reading, events while live. */
  let queue: (string | CoreEvent)[] = [];
  let taken = 0;
  let ended = false;
  /** An error that occurred while no `next()` was pending. */
  let failure: { readonly reason: unknown } | undefined;
  let soon: NodeJS.Immediate | NodeJS.Timeout | undefined;
  /** Finding the start, or reading a page: `serve` is called when it is done. */
  let reading = false;
  const looks: Look[] = [];

  const follower: Follower = {
    events: {
      [Symbol.asyncIterator]() {
        return this;
      },
      next,
      ready: () => (looks.length > 0 || failure || ended ? undefined : fromQueue()),
      async return() {
        end();
        return { value: undefined, done: true };
      },
    },
    take(event, at) {
      if (at <= reached) return;
      if (kinds && !kinds.includes(event.event)) {
        reached = at;
        return;
      }
      if (looks.length === 0 && queue.length - taken >= deps.queueSize) return fallBack();
      reached = at;
      const look = looks.shift();
      if (look) look.resolve({ value: event, done: false });
      else queue.push(event);
    },
    end,
    fail,
  };

  function next(): Promise<IteratorResult<CoreEvent>> {
    if (failure) {
      const { reason } = failure;
      failure = undefined;
      return Promise.reject(reason);
    }
    if (ended) return Promise.resolve({ value: undefined, done: true });
    const value = looks.length === 0 ? fromQueue() : undefined;
    if (value) return Promise.resolve({ value, done: false });
    return new Promise((resolve, reject) => {
      looks.push({ resolve, reject });
      serve();
    });
  }

  function fromQueue(): CoreEvent | undefined {
    if (taken === queue.length) return undefined;
    const one = queue[taken]!;
    queue[taken++] = '';
    if (taken === queue.length) clear();
    return typeof one === 'string' ? (JSON.parse(one) as CoreEvent) : one;
  }

  function clear(): void {
    queue = [];
    taken = 0;
  }

  /** The follower is too slow: drop the queue and read from the log again. */
  function fallBack(): void {
    deps.leave(follower);
    live = false;
    const oldest = queue[taken] as CoreEvent;
    reached = (position(oldest.id) ?? 1) - 1;
    clear();
  }

  function serve(): void {
    answer();
    if (looks.length === 0 || live || soon || reading) return;
    if (!pages && takeRecent()) {
      answer();
      return;
    }
    // A turn of the event loop between pages, so that reading a long past does not block the process.
    soon = setImmediate(readOn);
  }

  function answer(): void {
    while (looks.length > 0) {
      const value = fromQueue();
      if (!value) return;
      looks.shift()!.resolve({ value, done: false });
    }
  }

  function goLive(upTo: number): boolean {
    live = deps.goLive(follower, upTo);
    if (!live) return false;
    reached = upTo;
    pages = undefined;
    return true;
  }

  /** True when nothing had to be read: what was written since is queued, and later events are handed over. */
  function takeRecent(): boolean {
    const recent = deps.recentAfter(reached);
    if (!recent || !goLive(recent.upTo)) return false;
    for (const event of recent.events) if (!kinds || kinds.includes(event.event)) queue.push(event);
    return true;
  }

  async function readOn(): Promise<void> {
    soon = undefined;
    reading = true;
    try {
      const upTo = await deps.last();
      pages ??= deps.pagesAfter(reached);
      const { items, done } = await pages.next(upTo);
      if (ended) return;
      for (const { position: at, text } of items) {
        if (text !== undefined) queue.push(text);
        reached = at;
      }
      if (done && items.length === 0) goLive(upTo);
    } catch (thrown) {
      if (ended) return;
      if (errors.isBusy(thrown)) soon = setTimeout(readOn, pauseMs());
      else fail(errors.reading(thrown));
      return;
    } finally {
      reading = false;
    }
    serve();
  }

  function begin(): void {
    try {
      const at = deps.start();
      if (!(at instanceof Promise)) {
        reached = at;
        return;
      }
      reading = true;
      at.then(
        (start) => {
          reached = start;
          reading = false;
          if (!ended) serve();
        },
        (thrown) => {
          if (!ended) fail(errors.reading(thrown));
        },
      );
    } catch (thrown) {
      fail(errors.reading(thrown));
    }
  }

  function end(): void {
    if (ended) return;
    ended = true;
    deps.leave(follower);
    deps.ended(follower);
    signal.removeEventListener('abort', end);
    clearImmediate(soon as NodeJS.Immediate | undefined);
    clearTimeout(soon as NodeJS.Timeout | undefined);
    clear();
    pages = undefined;
    for (const look of looks.splice(0)) look.resolve({ value: undefined, done: true });
  }

  function fail(reason: unknown): void {
    const first = looks.shift();
    if (!first) failure = { reason };
    end();
    first?.reject(reason);
  }

  if (signal.aborted) {
    end();
  } else {
    signal.addEventListener('abort', end, { once: true });
    begin();
  }
  return follower;
}
