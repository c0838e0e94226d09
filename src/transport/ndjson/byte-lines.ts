/**
 * Lines as bytes, exactly as they came, newlines included. The `line` callback decides whether a line passes unchanged;
 * adjacent lines that pass are forwarded together, without being copied. Reading stops while paused. Knows no protocol.
 */
import type { Readable } from 'node:stream';

/**
 * `true`: the line passes unchanged, in order. Otherwise a function to run instead, once everything before it was
 * forwarded.
 */
export type LineVerdict = true | (() => void);

export interface ByteLinesOptions {
  /**
   * Bytes without the newline. A longer line ends the reading, or is skipped where `tooLong` is given and the line
   * ends.
   */
  readonly limit: number;
  /** Called once for a line that is too long; the lines after it are read as before. */
  tooLong?(): void;
  line(bytes: Buffer): LineVerdict;
  /**
   * Called before the line at `from` is examined: returns the offset to continue at, when that line and following ones
   * may pass unexamined.
   */
  through?(chunk: Buffer, from: number): number;
  /** One or more whole lines, unchanged. */
  pass(bytes: Buffer): void;
  /** Called once, after the last line; `why` when the stream did not simply end. */
  end(why?: Error): void;
}

export interface ByteLines {
  /** No more lines are examined until `resume`; received bytes are kept. */
  pause(): void;
  resume(): void;
}

const NEWLINE = 0x0a;

export function readByteLines(stream: Readable, options: ByteLinesOptions): ByteLines {
  const { limit, line, through, pass, end } = options;
  let pieces: Buffer[] = [];
  let size = 0;
  /** Chunks received while paused. */
  let unread: Buffer[] = [];
  let paused = false;
  let over = false;
  /** The rest of a line that is too long is not kept. */
  let skipping = false;
  let skipped = 0;
  let ended: Error | true | undefined;

  function take(chunk: Buffer): void {
    let run = -1; // start of the lines that are forwarded together
    let from = 0;
    const flush = (upTo: number) => {
      if (run >= 0 && upTo > run) pass(chunk.subarray(run, upTo));
      run = -1;
    };
    for (;;) {
      if (skipping) {
        const rest = chunk.indexOf(NEWLINE, from) + 1;
        if (rest === 0) {
          skipped += chunk.length - from;
          // After as many bytes again without a newline it is not taken for a line any more.
          if (skipped > limit) finish(endless());
          return;
        }
        skipping = false;
        from = rest;
      }
      const unlooked = through && size === 0 ? through(chunk, from) : from;
      if (unlooked > from) {
        if (run < 0) run = from;
        from = unlooked;
      }
      const next = chunk.indexOf(NEWLINE, from) + 1;
      if (next === 0) break;
      const whole = size === 0 ? chunk.subarray(from, next) : Buffer.concat([...pieces, chunk.subarray(from, next)]);
      const joined = size > 0;
      pieces = [];
      size = 0;
      const verdict = whole.length - 1 > limit ? () => tooLong(false) : line(whole);
      if (verdict !== true) {
        flush(from);
        verdict();
      } else if (joined) pass(whole);
      else if (run < 0) run = from;
      from = next;
      if (over) return;
      if (paused) {
        flush(from);
        if (from < chunk.length) unread.unshift(chunk.subarray(from));
        return;
      }
    }
    flush(from);
    if (from < chunk.length) {
      pieces.push(chunk.subarray(from));
      size += chunk.length - from;
      if (size > limit) tooLong(true);
    }
  }

  const endless = () => new Error(`a line is longer than ${limit} bytes`);

  /** `more`: its newline has not been seen yet. */
  function tooLong(more: boolean): void {
    pieces = [];
    size = 0;
    skipping = more;
    skipped = 0;
    if (options.tooLong) options.tooLong();
    else finish(endless());
  }

  function finish(why?: Error): void {
    if (over) return;
    over = true;
    stream.off('data', arrived);
    if (why) stream.destroy();
    pieces = [];
    unread = [];
    end(why);
  }

  function arrived(chunk: Buffer): void {
    if (paused || unread.length > 0) unread.push(chunk);
    else take(chunk);
  }

  /** A last line without a newline is still a line, and is forwarded without one. */
  function close(): void {
    if (paused || over) return;
    const last = size > 0 ? Buffer.concat(pieces) : undefined;
    pieces = [];
    size = 0;
    if (last) {
      const verdict = line(last);
      if (verdict === true) pass(last);
      else verdict();
    }
    finish(ended === true ? undefined : ended);
  }

  const stopped = (why: Error | true) => {
    ended ??= why;
    if (unread.length === 0) close();
  };
  stream.on('data', arrived);
  stream.once('end', () => stopped(true));
  stream.once('error', (cause: Error) => stopped(cause));
  stream.once('close', () => stopped(true));

  return {
    pause() {
      paused = true;
      stream.pause();
    },
    resume() {
      if (!paused || over) return;
      paused = false;
      while (!paused && !over && unread.length > 0) take(unread.shift() as Buffer);
      if (paused || over) return;
      if (ended) close();
      else stream.resume();
    },
  };
}
