/**
 * One JSON text per line, over anything that has bytes. A line too long is skipped and told; a line that is not UTF-8 is
 * not a line. Reading stops while the reader is busy, and writing waits for whoever does not read. Knows no protocol.
 */
import type { Readable, Writable } from 'node:stream';

export interface LineOptions {
  /** Bytes, without the newline. */
  readonly limit: number;
  /** Told once for every line that was skipped, and how it began if it was too long. */
  readonly skipped?: (why: string, head: string) => void;
}

const NEWLINE = 0x0a;
const HEAD_BYTES = 4096;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Lines without their ends; empty ones are left out. Ends with the stream, also when that breaks off. */
export async function* readLines(stream: Readable, { limit, skipped }: LineOptions): AsyncGenerator<string> {
  let pieces: Buffer[] = [];
  let size = 0;
  let over = false;
  let head = '';

  /** What is known to be too long is not kept, except for how it began. */
  const giveUp = (more: Buffer) => {
    if (!over) head = Buffer.concat([...pieces, more.subarray(0, HEAD_BYTES)]).toString('utf8', 0, HEAD_BYTES);
    over = true;
    pieces = [];
  };

  const finish = (last: Buffer): string | undefined => {
    if (size + last.length > limit) giveUp(last);
    const whole = over ? undefined : pieces.length === 0 ? last : Buffer.concat([...pieces, last]);
    pieces = [];
    size = 0;
    over = false;
    if (!whole) {
      skipped?.(`a line is longer than ${limit} bytes`, head);
      return undefined;
    }
    try {
      return utf8.decode(whole).trim() || undefined;
    } catch {
      skipped?.('a line is not UTF-8', '');
      return undefined;
    }
  };

  try {
    for await (const chunk of stream as AsyncIterable<Buffer | string>) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      let from = 0;
      for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, from)) {
        const line = finish(bytes.subarray(from, at));
        from = at + 1;
        if (line) yield line;
      }
      const rest = bytes.subarray(from);
      size += rest.length;
      if (size > limit) giveUp(rest);
      else if (rest.length > 0) pieces.push(rest);
    }
    const line = size > 0 ? finish(Buffer.alloc(0)) : undefined;
    if (line) yield line;
  } catch (cause) {
    if (!isBreak(cause)) throw cause;
  }
}

function isBreak(cause: unknown): boolean {
  const { code } = cause as { code?: string };
  return code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ECONNRESET' || code === 'EPIPE' || code === 'ABORT_ERR';
}

/** Writes whole lines. What is written to a stream that is gone is lost, which its reader has brought about. */
export function lineWriter(stream: Writable): (line: string) => Promise<void> {
  let room: Promise<void> | undefined;
  stream.on('error', () => {});
  const drained = () =>
    new Promise<void>((resolve) => {
      const done = () => {
        stream.off('drain', done).off('close', done);
        room = undefined;
        resolve();
      };
      stream.once('drain', done).once('close', done);
    });
  return (line) => {
    if (stream.destroyed || stream.writableEnded) return Promise.resolve();
    if (stream.write(`${line}\n`)) return Promise.resolve();
    room ??= drained();
    return room;
  };
}
