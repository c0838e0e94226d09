/**
 * The log as this page follows it: one stream for all pages, rows in order, oldest first. Bursts are announced once per frame, so that
 * five hundred events a second cost one redraw.
 */
import { useLayoutEffect, useReducer } from 'preact/hooks';
import { call } from '../api.ts';
import { cursorAt, type EventRow, type GrowingRows, type LogEvent, positionOf, toRow } from '../rows.ts';
import { follow } from './stream.ts';

export type FeedState = 'opening' | 'live' | 'waiting' | 'over';

const FIRST = 5000;
/** Older rows are dropped beyond this; the log still has them. */
const MOST = 120_000;

export interface Feed extends GrowingRows {
  /** Grows with each change: views that filter remember how far they have read. */
  readonly version: number;
  readonly state: FeedState;
  readonly mayHaveOlder: boolean;
  readonly readingOlder: boolean;
}

type Listener = () => void;

class Live implements Feed {
  rows: EventRow[] = [];
  version = 0;
  epoch = 0;
  state: FeedState = 'opening';
  mayHaveOlder = false;
  private readonly listeners = new Set<Listener>();
  private readonly each = new Set<(events: readonly LogEvent[]) => void>();
  private stop: AbortController | undefined;
  private scheduled = false;
  /** Older rows are being read. Twice at once would add them twice. */
  readingOlder = false;

  async start(): Promise<void> {
    this.stop?.abort();
    const stop = new AbortController();
    this.stop = stop;
    this.rows = [];
    this.epoch += 1;
    const { cursor } = await call<{ cursor: string | null }>('/console/api/tip');
    const from = cursor ? positionOf(cursor) - FIRST : 0;
    this.mayHaveOlder = from > 0;
    void follow({
      path: '/v1/events/stream',
      after: cursorAt(from),
      signal: stop.signal,
      kept: true,
      onEvents: (events) => this.take(events),
      onState: (state) => {
        this.state = state;
        this.changed();
      },
    });
  }

  end(): void {
    this.stop?.abort();
    this.rows = [];
  }

  /** Reads up to this many rows from before the first one. */
  async older(count: number): Promise<void> {
    const first = this.rows[0];
    if (!first || !this.mayHaveOlder || this.readingOlder) return;
    this.readingOlder = true;
    this.changed();
    const from = positionOf(first.id) - 1 - count;
    const stop = new AbortController();
    const found: EventRow[] = [];
    await follow({
      path: '/v1/events/stream',
      after: cursorAt(from),
      signal: stop.signal,
      onEvents: (events) => {
        for (const event of events) if (event.id < first.id) found.push(toRow(event));
        if ((events.at(-1)?.id ?? '') >= first.id) stop.abort();
      },
    });
    this.readingOlder = false;
    // The list may have been dropped and begun again meanwhile.
    if (this.rows[0] !== first) return this.changed();
    this.rows = [...found, ...this.rows];
    this.mayHaveOlder = from > 0;
    this.epoch += 1;
    this.changed();
  }

  private take(events: readonly LogEvent[]): void {
    for (const event of events) this.rows.push(toRow(event));
    if (this.rows.length > MOST) {
      const over = this.rows.length - MOST + 10_000;
      this.rows.splice(0, over);
      this.epoch += 1;
    }
    for (const listener of this.each) listener(events);
    this.changed();
  }

  private changed(): void {
    this.version += 1;
    if (this.scheduled) return;
    this.scheduled = true;
    const announce = () => {
      this.scheduled = false;
      for (const listener of this.listeners) listener();
    };
    // A hidden tab draws no frames, and its badge still has to count.
    if (document.hidden) setTimeout(announce, 250);
    else requestAnimationFrame(announce);
  }

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Whole events as they come, for views that need more than the row. */
  onEvents(listener: (events: readonly LogEvent[]) => void): () => void {
    this.each.add(listener);
    return () => this.each.delete(listener);
  }
}

export const feed = new Live();

export function useFeed(): Feed {
  const [, redraw] = useReducer((count: number, _: undefined) => count + 1, 0);
  // Before the next rows can come: rows that nobody listens for are not drawn until there are more.
  useLayoutEffect(() => feed.subscribe(() => redraw(undefined)), []);
  return feed;
}
