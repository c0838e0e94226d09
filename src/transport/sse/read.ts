/**
 * Reads an event stream with `eventsource-parser`, which gets it line by line. That keeps what the parser alone would lose: an id
 * holds until the next one and arrives also without data, and a CR that ends a chunk ends its line at once.
 */
import { createParser } from 'eventsource-parser';

export interface SseMessage {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Longer than any event; a stream that never ends its line is no event stream. */
const LONGEST = 8 * 1024 * 1024;

/** For clients that resume a broken stream: ids and retry times also arrive without an event. */
export interface SseMarks {
  id?(id: string): void;
  retry?(ms: number): void;
}

/** `moved` is called for every chunk, also for those with nothing but a comment. */
export async function* readSse(
  body: AsyncIterable<Uint8Array>,
  moved = () => {},
  marks: SseMarks = {},
): AsyncGenerator<SseMessage> {
  let id: string | undefined;
  let came: SseMessage | undefined;
  const parser = createParser({
    // Many short lines add up to as much as one long line.
    maxBufferSize: LONGEST,
    onEvent: ({ event = 'message', data }) => {
      came = { id, event, data };
    },
    onRetry: (ms) => marks.retry?.(ms),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw new Error('an event of the stream is too long');
    },
  });
  for await (const line of readLines(body, moved)) {
    if (line === 'id' || line.startsWith('id:')) {
      const value = line.slice(line[3] === ' ' ? 4 : 3);
      if (!value.includes('\0')) {
        id = value;
        marks.id?.(value);
      }
    }
    parser.feed(`${line}\n`);
    if (came) yield came;
    came = undefined;
  }
}

/** Whole lines only: an unterminated last line is dropped. Each character is examined once. */
async function* readLines(body: AsyncIterable<Uint8Array>, moved: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  /** The beginning of a line, in the pieces it came in. */
  let begun: string[] = [];
  let length = 0;
  let afterReturn = false;
  for await (const chunk of body) {
    moved();
    let text = decoder.decode(chunk, { stream: true });
    // A CR at the very end of the last chunk may have been the first half of a CRLF.
    if (afterReturn && text.startsWith('\n')) {
      text = text.slice(1);
      afterReturn = false;
    }
    if (text !== '') afterReturn = text.endsWith('\r');
    const lines = text.split(/\r\n|\n|\r/);
    const last = lines.pop() ?? '';
    for (const line of lines) {
      if (length + line.length > LONGEST) throw new Error('a line of the event stream is too long');
      yield begun.length > 0 ? begun.join('') + line : line;
      begun = [];
      length = 0;
    }
    if (last === '') continue;
    begun.push(last);
    length += last.length;
    if (length > LONGEST) throw new Error('a line of the event stream is too long');
  }
}
