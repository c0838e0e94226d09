/**
 * The recent-events cache: the end of the log as this process has just written it. A client that follows the work it has just
 * submitted is served from here and neither reads nor unpacks the log. Always one contiguous piece up to our last commit, bounded in
 * size, and filled only while followers look for it: events that are kept without a reader cost the collector more than they save.
 */
import type { CoreEvent, Stream } from '../../../model/events.ts';

export interface RecentEvents {
  /** One commit of ours: contiguous, its first event at `first`; `chars` approximates the memory that the events take. */
  add(first: number, events: readonly CoreEvent[], chars: number): void;
  /** Whether all events behind this position are here, up to our last commit. */
  holds(position: number): boolean;
  /** The events of a stream behind a position that is held, and up to where that is all of them; undefined when it is not held. */
  after(stream: Stream, position: number): { readonly events: CoreEvent[]; readonly upTo: number } | undefined;
  clear(): void;
}

interface Commit {
  readonly first: number;
  readonly events: readonly CoreEvent[];
  readonly chars: number;
}

const MOST_EVENTS = 1_024;
const MOST_CHARS = 2_097_152;
/** Commits for which the cache is still filled after a follower has looked for it. */
const COMMITS_KEPT = 1_024;

export function createRecentEvents(): RecentEvents {
  let kept: Commit[] = [];
  let count = 0;
  let chars = 0;
  let last = 0;
  let wanted = 0;

  function clear(): void {
    kept = [];
    count = 0;
    chars = 0;
  }

  function holds(position: number): boolean {
    wanted = COMMITS_KEPT;
    return kept.length > 0 && position >= kept[0]!.first - 1 && position <= last;
  }

  return {
    clear,
    holds,
    add(first, events, added) {
      // Other processes wrote in between, or nobody looks.
      if (first !== last + 1 || wanted === 0) clear();
      last = first + events.length - 1;
      if (wanted === 0) return;
      wanted -= 1;
      // The batch empties its list when it is done, so it is copied.
      kept.push({ first, events: events.slice(), chars: added });
      count += events.length;
      chars += added;
      while (kept.length > 0 && (count > MOST_EVENTS || chars > MOST_CHARS)) {
        const oldest = kept.shift()!;
        count -= oldest.events.length;
        chars -= oldest.chars;
      }
    },
    after(stream, position) {
      if (!holds(position)) return undefined;
      const events: CoreEvent[] = [];
      // From the newest: most followers begin at the end.
      for (let index = kept.length - 1; index >= 0; index--) {
        const { first, events: own } = kept[index]!;
        for (let at = own.length - 1; at >= 0 && first + at > position; at--) {
          if (isIn(stream, own[at]!)) events.push(own[at]!);
        }
        if (first <= position + 1) break;
      }
      return { events: events.reverse(), upTo: last };
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
