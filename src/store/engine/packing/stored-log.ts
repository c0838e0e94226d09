/** Events and receipts as the engine reads them: what the database holds, unpacked. */
import type { CoreEvent, Stream } from '../../../model/events.ts';
import type { Receipt } from '../../../model/receipt.ts';
import type { ReceiptQuery, StoredReceipt } from '../../../ports/index.ts';
import { isOfKind } from '../commit/event.ts';
import type { Database, Events, ReceiptBody, StoredBody } from '../database.ts';
import { andThen, type Wait } from '../wait.ts';
import { createWordReader } from './word-reader.ts';

/** The text is undefined for an event of a kind that was not asked for. */
export interface Item<T extends string | undefined = string> {
  readonly position: number;
  readonly text: T;
}
export interface TextPage<T extends string | undefined = string> {
  readonly items: readonly Item<T>[];
  /** None is left up to the position asked for. */
  readonly done: boolean;
}
interface Reader<T extends string | undefined = string> {
  /** The next items up to and including `upTo`, at most `most`. */
  page(upTo: number, most: number): Wait<TextPage<T>>;
}
export interface StoredLog extends Pick<Events, 'last' | 'floor' | 'prunedFrom' | 'tip'> {
  /** The time of the last event; empty when there never was one. */
  endTime(position: number, floorAt: string): Wait<string>;
  text(position: number): Wait<string | undefined>;
  /** Reads a stream behind `after`, which must not be below the floor. */
  open(stream: Stream, after: number): Reader;
  /** The same, for a reader who asks for events of some kinds. */
  open(stream: Stream, after: number, kinds: readonly string[] | undefined): Reader<string | undefined>;
  receipt(id: string): Wait<StoredReceipt | undefined>;
  receipts(query: ReceiptQuery): Wait<StoredReceipt[]>;
}

export function createStoredLog({
  events,
  receipts,
  words,
}: Pick<Database, 'events' | 'receipts' | 'words'>): StoredLog {
  const { unpack, third } = createWordReader(words);

  function wants(body: string, kinds: ReadonlySet<string>): boolean {
    const kind = body.startsWith('{') ? undefined : third(body);
    return kind === undefined || kinds.has(kind);
  }

  function unpackAll<T extends string | undefined>(
    stored: readonly StoredBody[],
    kinds: ReadonlySet<string> | undefined,
  ): Wait<Item<T>[]> {
    const items: Item<T>[] = [];
    function from(index: number): Wait<Item<T>[]> {
      for (let at = index; at < stored.length; at++) {
        const { position, body } = stored[at]!;
        const text = kinds && !wants(body, kinds) ? undefined : unpack(body);
        if (text instanceof Promise) {
          return text.then((unpacked) => {
            items.push(of(position, unpacked));
            return from(at + 1);
          });
        }
        items.push(of(position, text));
      }
      return items;
    }
    const of = (position: number, text: string | undefined): Item<T> => ({
      position,
      // The kind was not looked at where the text is JSON, or where a word was not read yet.
      text: (text !== undefined && kinds && !isOfKind(text, kinds) ? undefined : text) as T,
    });
    return from(0);
  }

  function open<T extends string | undefined>(stream: Stream, after: number, kinds?: readonly string[]): Reader<T> {
    const reader = events.open(stream, after);
    const wanted = kinds && new Set(kinds.map((kind) => JSON.stringify(kind)));
    return {
      page: (upTo, most) =>
        andThen(reader.page(upTo, most), ({ items, done }) =>
          andThen(unpackAll<T>(items, wanted), (items) => ({ items, done })),
        ),
    };
  }

  const text = (position: number): Wait<string | undefined> =>
    andThen(events.body(position), (body) => (body === undefined ? undefined : unpack(body)));

  return {
    last: events.last,
    floor: events.floor,
    prunedFrom: events.prunedFrom,
    tip: events.tip,
    text,
    open,
    endTime: (position, floorAt) =>
      andThen(text(position), (found) => (found ? (JSON.parse(found) as CoreEvent).created_at : floorAt)),
    receipt: (id) => andThen(receipts.get(id), (found) => found && receiptOf(found)),
    receipts: (query) =>
      andThen(receipts.list(query), (found) => {
        const read = found.map(receiptOf);
        return read.some((one) => one instanceof Promise) ? Promise.all(read) : (read as StoredReceipt[]);
      }),
  };

  function receiptOf({ body, ...rest }: ReceiptBody): Wait<StoredReceipt> {
    return andThen(unpack(body), (text) => ({ ...rest, receipt: JSON.parse(text) as Receipt }));
  }
}
