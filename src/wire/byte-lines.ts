/**
 * Lines as bytes, exactly as they came, ends included. Whoever looks at a line says whether it may go on as it is; lines
 * that may and that lie side by side go on together, without being copied. Reading stops while told to. Knows no protocol.
 */
import type { Readable } from 'node:stream';

/** `true`: it goes on as it is, in its place. Otherwise what to do instead, once everything before it has gone on. */
export type LineVerdict = true | (() => void);

export interface ByteLinesOptions {
  /** Bytes without the newline. A longer line ends the reading, or is skipped where `tooLong` is given and it has an end. */
  readonly limit: number;
  /** Called once for a line that is too long; the lines after it are read as before. */
  tooLong?(): void;
  line(bytes: Buffer): LineVerdict;
  /** Before the line that begins at `from` is looked at by itself: where to go on, when it and some after it may pass unlooked. */
  through?(chunk: Buffer, from: number): number;
  /** One or more whole lines, untouched. */
  pass(bytes: Buffer): void;
  /** Once, after the last line; `why` when it was not the stream that ended. */
  end(why?: Error): void;
}

export interface ByteLines {
  /** Nothing more is looked at until `resume`; what has arrived is kept. */
  pause(): void;
  resume(): void;
}

const NEWLINE = 0x0a;

export function readByteLines(stream: Readable, options: ByteLinesOptions): ByteLines {
  const { limit, line, through, pass, end } = options;
  let pieces: Buffer[] = [];
  let size = 0;
  /** What arrived while nobody looked. */
  let unread: Buffer[] = [];
  let paused = false;
  let over = false;
  /** The rest of a line that is too long is not kept. */
  let skipping = false;
  let skipped = 0;
  let ended: Error | true | undefined;

  function take(chunk: Buffer): void {
    let run = -1; // where the lines begin that may go on together
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
          // As much again, and still no end: it is not a line, and never will be.
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

  /** `more`: its end has not been seen yet. */
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

  /** A last line without its end is a line all the same, and stays without. */
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
