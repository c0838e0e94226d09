/** Ranges of the log: cursors checked, pages fetched one turn of the event loop apart, events parsed as they are taken. */
import { setImmediate as turn } from 'node:timers/promises';
import { type CoreEvent, type Cursor, eventId, position } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { EventRange } from '../../ports.ts';
import { kindFilter } from './event.ts';
import type { Log } from './log.ts';
import { patiently } from './patience.ts';
import type { Item, Reader, Readers } from './reader.ts';

export interface Reading {
  read(range: EventRange): AsyncIterable<CoreEvent>;
  /** The position to go on from, or `cursor_expired`. Undefined is the beginning. */
  start(stream: EventRange['stream'], after: Cursor | undefined): number;
  /** Pages of a stream in order, never reaching behind the floor unnoticed. */
  pages(stream: EventRange['stream'], after: number): Pages;
}
export interface Pages {
  next(upTo: number): { readonly items: Item[]; readonly done: boolean };
}

/** A page is about this many characters, so that big events come in small pages. */
const PAGE_CHARS = 262_144;
const PAGE_EVENTS = 128;

export function createReading(log: Log, readers: Readers, patienceMs: number): Reading {
  function start(stream: EventRange['stream'], after: Cursor | undefined): number {
    const floor = log.floor();
    if (after === undefined) {
      if (floor > 0 && readers.beheaded(stream)) throw expired('the beginning of this stream is no longer kept', floor);
      return floor;
    }
    const at = position(after);
    if (at === undefined) throw expired(`${after} is not a cursor of this log`);
    if (at < floor) throw expired(`events after ${after} are no longer kept`, floor);
    if (at > log.last()) throw expired(`${after} is not in this log`);
    return at;
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
    const from = await patiently(() => start(stream, after), patienceMs);
    const wanted = upTo === undefined ? Number.POSITIVE_INFINITY : position(upTo);
    if (wanted === undefined) throw expired(`${upTo} is not a cursor of this log`);
    // What is appended while we read is for the next reader, or for one that follows.
    const end = Math.min(wanted, log.last());
    const wants = kinds ? kindFilter(kinds) : () => true;
    const source = pages(stream, from);
    let left = limit;
    while (left > 0) {
      const { items, done } = await patiently(() => source.next(end), patienceMs);
      for (const { text } of items) {
        if (!wants(text)) continue;
        yield JSON.parse(text) as CoreEvent;
        if (--left <= 0) return;
      }
      if (done) return;
      await turn();
    }
  }

  return { read, start, pages };
}

/** Whoever can live with a gap may go on after `oldest`. */
function expired(message: string, floor?: number): Fault {
  return new Fault('cursor_expired', message, floor === undefined ? {} : { details: { oldest: eventId(floor) } });
}
