/**
 * A cache of the end of the log, as this process has just written it. A client that follows the work it has just submitted is
 * served from here, without reading the log. Always one contiguous piece up to the last commit, bounded in size, and empty while
 * there are no followers, or once another process has written or events were pruned.
 */
import type { CoreEvent, Stream } from '../../../model/events.ts';

/** One commit: its events are contiguous. */
export interface Written {
  readonly first: number;
  readonly events: readonly CoreEvent[];
  /** Ids created in this commit: no earlier event carries them. */
  readonly born: ReadonlySet<string>;
  /** Approximates the memory the events take. */
  readonly chars: number;
}

export interface RecentEvents {
  add(batch: Written): void;
  /** A position behind which this whole stream is cached; undefined when some of it is older. */
  start(stream: Stream): number | undefined;
  /** All events of this stream behind `after`, and up to where that holds; undefined when they are not all cached. */
  after(stream: Stream, after: number): { readonly events: CoreEvent[]; readonly upTo: number } | undefined;
  /** True for a position inside the cached piece. */
  holds(position: number): boolean;
  clear(): void;
}

const MOST_EVENTS = 1024;
/**
 * How many commits the cache outlives the last lookup. Cached events without a reader cost the collector a third of an append.
 */
const COMMITS_KEPT = 1024;
const MOST_CHARS = 2_097_152;

export function createRecentEvents(): RecentEvents {
  let kept: Written[] = [];
  let count = 0;
  let chars = 0;
  let wanted = 0;

  const last = (): number => {
    const newest = kept.at(-1);
    return newest ? newest.first + newest.events.length - 1 : -1;
  };

  function clear(): void {
    kept = [];
    count = 0;
    chars = 0;
  }

  function holds(position: number): boolean {
    return kept.length > 0 && position >= kept[0]!.first - 1 && position <= last();
  }

  return {
    holds,
    clear,
    add(batch) {
      if (wanted === 0) return clear();
      wanted -= 1;
      // The batch empties its lists when it is done, so they are copied.
      const written = {
        first: batch.first,
        events: batch.events.slice(),
        born: batch.born,
        chars: batch.chars,
      };
      if (kept.length > 0 && written.first !== last() + 1) clear();
      kept.push(written);
      count += written.events.length;
      chars += written.chars;
      while (kept.length > 1 && (count > MOST_EVENTS || chars > MOST_CHARS)) {
        const oldest = kept.shift()!;
        count -= oldest.events.length;
        chars -= oldest.chars;
      }
    },
    start(stream) {
      wanted = COMMITS_KEPT;
      const oldest = kept[0];
      if (!oldest) return undefined;
      if (stream.of === 'resource') {
        const born = kept.some(({ events }) => events.some((event) => event.sequence === 1 && isIn(stream, event)));
        return born ? oldest.first - 1 : undefined;
      }
      if (stream.of !== 'task' && stream.of !== 'session') return undefined;
      // A client that follows the work it has just submitted finds its id in the last commit or the one before.
      return kept.findLast(({ born }) => born.has(stream.id)) ? oldest.first - 1 : undefined;
    },
    after(stream, after) {
      wanted = COMMITS_KEPT;
      if (!holds(after)) return undefined;
      const events: CoreEvent[] = [];
      for (const written of kept) {
        const from = Math.max(0, after + 1 - written.first);
        for (let at = from; at < written.events.length; at++) {
          const event = written.events[at]!;
          if (isIn(stream, event)) events.push(event);
        }
      }
      return { events, upTo: last() };
    },
  };
}

function isIn(stream: Stream, event: CoreEvent): boolean {
  switch (stream.of) {
    case 'all':
      return true;
    case 'task':
      return event.task_id === stream.id;
    case 'session':
      return event.session_id === stream.id;
    case 'workspace':
      return event.workspace_id === stream.id;
    case 'resource':
      return event.resource.id === stream.id && event.resource.object === stream.object;
  }
}
