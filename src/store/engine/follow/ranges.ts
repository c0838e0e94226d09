/**
 * Reads ranges of the log: checks cursors, fetches pages with a turn of the event loop between them, parses events as they are
 * consumed.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { type CoreEvent, type Cursor, eventId, position } from '../../../model/events.ts';
import { Fault } from '../../../model/faults.ts';
import type { EventRange, Missing } from '../../../ports/index.ts';
import type { StoredLog, TextPage } from '../packing/stored-log.ts';
import { andThen, type LockTimeout, type Wait, withLockTimeout } from '../wait.ts';

export interface RangeReader {
  read(range: EventRange): AsyncIterable<CoreEvent>;
  /** The position to go on from, or `cursor_expired`. Undefined means the beginning. */
  start(stream: EventRange['stream'], after: Cursor | undefined): Promise<number>;
  /** The position of the last event. */
  last(): Promise<number>;
  /** The first event of a task, session or resource that is no longer kept. */
  firstMissing(stream: EventRange['stream']): Promise<Missing | undefined>;
  /** Pages of a stream in order; fails when pruning has overtaken the reader. */
  pages(stream: EventRange['stream'], after: number, kinds?: readonly string[]): Pages;
}
export interface Pages {
  /** The text is undefined for an event of a kind that was not asked for. */
  next(upTo: number): Wait<TextPage<string | undefined>>;
}

/** Approximate characters per page, so that big events come in small pages. */
const PAGE_CHARS = 262_144;
const PAGE_EVENTS = 128;

export function createRangeReader(log: StoredLog, lockTimeout: LockTimeout): RangeReader {
  const last = () => withLockTimeout(log.last, lockTimeout);
  const start: RangeReader['start'] = (stream, after) => withLockTimeout(() => startOnce(stream, after), lockTimeout);

  async function startOnce(stream: EventRange['stream'], after: Cursor | undefined): Promise<number> {
    const floor = await log.floor();
    if (after === undefined) {
      const gone = floor > 0 && stream.of !== 'session' ? await log.prunedFrom(stream) : undefined;
      if (gone !== undefined) throw expired('the beginning of this stream is no longer kept', floor, named(gone));
      return floor;
    }
    const at = position(after);
    if (at === undefined) throw expired(`${after} is not a cursor of this log`);
    if (at < floor) {
      const first = Math.max(at + 1, (await log.prunedFrom(stream)) ?? 0);
      throw expired(`events after ${after} are no longer kept`, floor, eventId(first));
    }
    if (at > (await log.last())) throw expired(`${after} is not in this log`);
    return at;
  }

  async function firstMissing(stream: EventRange['stream']): Promise<Missing | undefined> {
    const floor = await log.floor();
    const gone = floor > 0 ? await log.prunedFrom(stream) : undefined;
    // Older versions did not record what they pruned; the floor is the last event that can have been the first.
    return gone === undefined ? undefined : { first: named(gone) ?? eventId(floor), oldest: eventId(floor) };
  }

  function pages(stream: EventRange['stream'], after: number, kinds?: readonly string[]): Pages {
    const reader = log.open(stream, after, kinds);
    let complete = after;
    let size = PAGE_EVENTS;
    /** The next page is as long as the events of this one suggest. */
    function turned(page: TextPage<string | undefined>, upTo: number): TextPage<string | undefined> {
      const chars = page.items.reduce((sum, { text = '' }) => sum + text.length, 0);
      if (page.items.length > 0) {
        size = Math.max(1, Math.min(PAGE_EVENTS, Math.floor((PAGE_CHARS * page.items.length) / chars)));
      }
      complete = page.done ? Math.max(complete, upTo) : (page.items.at(-1)?.position ?? complete);
      return page;
    }
    /** Kept until the floor is known too, so that a retry loses nothing. */
    let unread: { readonly page: TextPage<string | undefined>; readonly upTo: number } | undefined;
    return {
      next: (wanted) =>
        andThen(unread ?? andThen(reader.page(wanted, size), (page) => ({ page, upTo: wanted })), (read) => {
          unread = read;
          return andThen(log.floor(), (floor) => {
            unread = undefined;
            if (floor > complete) throw expired('the events to go on from were pruned meanwhile');
            return turned(read.page, read.upTo);
          });
        }),
    };
  }

  async function* read({ stream, after, upTo, kinds, limit = Number.POSITIVE_INFINITY }: EventRange) {
    const from = await start(stream, after);
    const wanted = upTo === undefined ? Number.POSITIVE_INFINITY : position(upTo);
    if (wanted === undefined) throw expired(`${upTo} is not a cursor of this log`);
    // Events appended while we read are left to the next reader, or to a follower.
    const end = Math.min(wanted, await last());
    const source = pages(stream, from, kinds);
    let left = limit;
    while (left > 0) {
      const { items, done } = await withLockTimeout(() => source.next(end), lockTimeout);
      for (const { text } of items) {
        if (text === undefined) continue;
        yield JSON.parse(text) as CoreEvent;
        if (--left <= 0) return;
      }
      if (done) return;
      await turn();
    }
  }

  return { read, start, last, firstMissing, pages };
}

/** A client that accepts a gap may go on after `oldest`. */
function expired(message: string, floor?: number, first?: Cursor): Fault {
  if (floor === undefined) return new Fault('cursor_expired', message);
  const details = { oldest: eventId(floor), ...(first && { first_unavailable: first }) };
  return new Fault('cursor_expired', first ? `${message}; ${first} is the first that is gone` : message, { details });
}

function named(position: number): Cursor | undefined {
  return position > PRUNED_ONCE ? eventId(position) : undefined;
}
/** What older versions wrote beside a location instead of a position. */
const PRUNED_ONCE = 1;
