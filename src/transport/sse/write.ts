/**
 * Server-Sent Events, exactly framed: LF only, nothing before the first event, one line of data per event. Writing
 * waits for a reader that stops reading, within bounds, and then cuts it off; the reader can resume from its last id.
 * Nothing is queued here, so a slow reader delays no other.
 */
import type { ServerResponse } from 'node:http';

export interface SseOptions {
  /** Comments that keep idle connections open; none before the first event. */
  readonly keepAliveMs?: number;
  /** Bytes that may wait for the reader before writing waits too. */
  readonly bufferLimit?: number;
  /** How long writing waits for a reader that does not read. */
  readonly stallMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface SseFrame {
  readonly id?: string;
  readonly event?: string;
  readonly data: string;
}

export interface SseStream {
  /** Aborted when the reader is gone, was cut off, or the stream was closed. */
  readonly signal: AbortSignal;
  /** True when the frame was written and there is room for more; otherwise wait for `room`. */
  write(frame: string | Uint8Array): boolean;
  /** Resolves true when there is room again, false when there never will be. */
  room(): Promise<boolean>;
  /** Ends the stream, after a last frame if there is one. */
  close(last?: string): void;
  readonly stalled: boolean;
}

/**
 * One frame. Data is a single line because JSON text is. A client-supplied cursor or name with a line break could add
 * members to this frame, or a frame of its own: it is left out.
 */
export function sseFrame({ id, event, data }: SseFrame): string {
  return `${member('id', id)}${member('event', event)}data: ${data}\n\n`;
}

function member(name: string, value: string | undefined): string {
  return value === undefined || MORE_THAN_A_LINE.test(value) ? '' : `${name}: ${value}\n`;
}
const MORE_THAN_A_LINE = /[\r\n\0]/;

const KEEP_ALIVE = ': keep-alive\n\n';
/** How long a reader that was cut off has to read the bytes already sent. */
const LAST_WORDS_MS = 5_000;

export function openSse(response: ServerResponse, options: SseOptions = {}): SseStream {
  const { keepAliveMs = 15_000, bufferLimit = 1024 * 1024, stallMs = 30_000 } = options;
  const gone = new AbortController();
  let begun = false;
  let stalled = false;
  let ended = false;

  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
    ...options.headers,
  });
  response.flushHeaders();

  // Counted from the last frame: counted by itself, the first comment could be almost two intervals late.
  const heartbeat = setInterval(() => {
    if (begun && response.writableLength === 0) response.write(KEEP_ALIVE);
  }, keepAliveMs).unref();

  function leave(): void {
    clearInterval(heartbeat);
    ended = true;
    gone.abort();
  }
  response.once('close', leave);

  function close(last?: string): void {
    if (ended) return;
    leave();
    response.end(last);
    const { socket } = response;
    const impatience = setTimeout(() => socket?.destroy(), LAST_WORDS_MS).unref();
    response.once('close', () => clearTimeout(impatience));
  }

  return {
    signal: gone.signal,
    get stalled() {
      return stalled;
    },
    write(frame) {
      if (ended) return false;
      begun = true;
      heartbeat.refresh();
      response.write(frame);
      return response.writableLength < bufferLimit;
    },
    room() {
      if (ended) return Promise.resolve(false);
      if (response.writableLength < bufferLimit) return Promise.resolve(true);
      return new Promise((resolve) => {
        const settle = (room: boolean) => {
          clearTimeout(timer);
          response.off('drain', drained);
          gone.signal.removeEventListener('abort', over);
          resolve(room);
        };
        const drained = () => settle(true);
        const over = () => settle(false);
        const timer = setTimeout(() => {
          stalled = true;
          settle(false);
        }, stallMs).unref();
        response.once('drain', drained);
        gone.signal.addEventListener('abort', over, { once: true });
      });
    },
    close,
  };
}
