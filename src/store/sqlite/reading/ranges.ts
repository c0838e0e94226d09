/**
 * Reads ranges of the log: checks cursors, fetches pages with a turn of the event loop between them, parses events as they are
 * consumed.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { type CoreEvent, type Cursor, eventId, position } from '../../../model/events.ts';
import { Fault } from '../../../model/faults.ts';
import type { EventRange, Missing } from '../../../ports/index.ts';
import { kindFilter } from '../../engine/event.ts';
import { withLockTimeout } from '../lock-timeout.ts';
import type { Log } from '../log.ts';
import type { Item, Reader, Readers } from './reader.ts';

export interface RangeReader {
  read(range: EventRange): AsyncIterable<CoreEvent>;
  /** The position to go on from, or `cursor_expired`. Undefined means the beginning. */
  start(stream: EventRange['stream'], after: Cursor | undefined): number;
  /** The first event of a task, session or resource that is no longer kept. */
  firstMissing(stream: EventRange['stream']): Missing | undefined;
  /** Pages of a stream in order; fails when pruning has overtaken the reader. */
  pages(stream: EventRange['stream'], after: number): Pages;
}
export interface Pages {
  next(upTo: number): { readonly items: Item[]; readonly done: boolean };
}

/** Approximate characters per page, so that big events come in small pages. */
const PAGE_CHARS = 262_144;
const PAGE_EVENTS = 128;

export function createRangeReader(log: Log, readers: Readers, lockTimeoutMs: number): RangeReader {
  function start(stream: EventRange['stream'], after: Cursor | undefined): number {
    const floor = log.floor();
    if (after === undefined) {
      const gone = floor > 0 && stream.of !== 'session' ? readers.prunedFrom(stream) : undefined;
      if (gone !== undefined) throw expired('the beginning of this stream is no longer kept', floor, named(gone));
      return floor;
    }
    const at = position(after);
    if (at === undefined) throw expired(`${after} is not a cursor of this log`);
    if (at < floor) {
      const first = Math.max(at + 1, readers.prunedFrom(stream) ?? 0);
      throw expired(`events after ${after} are no longer kept`, floor, eventId(first));
    }
    if (at > log.last()) throw expired(`${after} is not in this log`);
    return at;
  }

  function firstMissing(stream: EventRange['stream']): Missing | undefined {
    const floor = log.floor();
    const gone = floor > 0 ? readers.prunedFrom(stream) : undefined;
    // Older versions did not record what they pruned; the floor is the last event that can have been the first.
    return gone === undefined ? undefined : { first: named(gone) ?? eventId(floor), oldest: eventId(floor) };
  }

  function pages(stream: EventRange['stream'], after: number): Pages {
    const reader: Reader = readers.open(stream, after);
    let complete = after;
    let size = PAGE_EVENTS;
    return {
      next(upTo) {
        if (log.floor() > complete) throw expired('the events to go on from were pruned meanwhile');
        const page = reader.page(upTo, size);
        const chars = page.items.reduce((sum, { text }) => sum + text.length, 0);
        if (page.items.length > 0) {
          size = Math.max(1, Math.min(PAGE_EVENTS, Math.floor((PAGE_CHARS * page.items.length) / chars)));
        }
        complete = page.done ? Math.max(complete, upTo) : (page.items.at(-1)?.position ?? complete);
        return page;
      },
    };
  }

  async function* read({ stream, after, upTo, kinds, limit = Number.POSITIVE_INFINITY }: EventRange) {
    const from = await withLockTimeout(() => start(stream, after), lockTimeoutMs);
    const wanted = upTo === undefined ? Number.POSITIVE_INFINITY : position(upTo);
    if (wanted === undefined) throw expired(`${upTo} is not a cursor of this log`);
    // Events appended while we read are left to the next reader, or to a follower.
    const end = Math.min(wanted, log.last());
    const wants = kinds ? kindFilter(kinds) : () => true;
    const source = pages(stream, from);
    let left = limit;
    while (left > 0) {
      const { items, done } = await withLockTimeout(() => source.next(end), lockTimeoutMs);
      for (const { text } of items) {
        if (!wants(text)) continue;
        yield JSON.parse(text) as CoreEvent;
        if (--left <= 0) return;
      }
      if (done) return;
      await turn();
    }
  }

  return { read, start, firstMissing, pages };
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
