/**
 * One JSON text per line, over any byte stream. A line that is too long or not UTF-8 is skipped and reported. Reading
 * stops while the consumer is busy, and writing waits for a peer that does not read. Knows no protocol.
 */
import type { Readable, Writable } from 'node:stream';

export interface LineOptions {
  /** Bytes, without the newline. */
  readonly limit: number;
  /** Called once for every skipped line, with its beginning. */
  readonly skipped?: (why: string, head: string) => void;
}

const NEWLINE = 0x0a;
const HEAD_BYTES = 4096;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Lines without their newline; empty ones are left out. Ends with the stream, also when that breaks off. */
export async function* readLines(stream: Readable, options: LineOptions): AsyncGenerator<string> {
  const cut = createCutter(options);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer | string>) yield* cut.take(chunk);
    yield* cut.rest();
  } catch (cause) {
    if (!isBreak(cause)) throw cause;
  }
}

/** The same for synchronous consumers: nothing is awaited between two lines. Settles with the stream. */
export function forEachLine(stream: Readable, options: LineOptions, onLine: (line: string) => void): Promise<void> {
  const cut = createCutter(options);
  return new Promise((resolve, reject) => {
    const failed = (cause: unknown) => {
      stream.off('data', take).destroy();
      if (isBreak(cause)) resolve();
      else reject(cause);
    };
    const emit = (lines: Iterable<string>) => {
      try {
        for (const line of lines) onLine(line);
      } catch (cause) {
        failed(cause);
      }
    };
    const take = (chunk: Buffer | string) => emit(cut.take(chunk));
    stream.on('data', take);
    stream.once('end', () => {
      emit(cut.rest());
      resolve();
    });
    stream.on('error', failed);
    stream.once('close', resolve);
  });
}

/** Cuts chunks into lines. */
function createCutter({ limit, skipped }: LineOptions) {
  let pieces: Buffer[] = [];
  let size = 0;
  let over = false;
  let head = '';

  /** The bytes of a line that is too long are dropped, except for its beginning. */
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
      skipped?.('a line is not UTF-8', whole.toString('utf8', 0, HEAD_BYTES));
      return undefined;
    }
  };

  return {
    /** The lines that end in this chunk, one by one, so that skipped lines are reported in order. */
    *take(chunk: Buffer | string): Generator<string> {
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
    },
    /** The text after the last newline. */
    *rest(): Generator<string> {
      const line = size > 0 ? finish(Buffer.alloc(0)) : undefined;
      if (line) yield line;
    },
  };
}

function isBreak(cause: unknown): boolean {
  const { code } = cause as { code?: string };
  return code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ECONNRESET' || code === 'EPIPE' || code === 'ABORT_ERR';
}

/**
 * Writes whole lines. Lines written to a closed stream are dropped: its reader closed it. `batched`: the lines of one
 * tick leave as one chunk, for many concurrent writers.
 */
export function lineWriter(stream: Writable, { batched = false } = {}): (line: string) => Promise<void> {
  let room: Promise<void> | undefined;
  let held = false;
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
  const letGo = () => {
    held = false;
    stream.uncork();
  };
  return (line) => {
    if (stream.destroyed || stream.writableEnded) return WRITTEN;
    if (batched && !held) {
      held = true;
      stream.cork();
      // After every writer of this tick has written.
      process.nextTick(letGo);
    }
    if (stream.write(`${line}\n`)) return WRITTEN;
    room ??= drained();
    return room;
  };
}

const WRITTEN = Promise.resolve();
