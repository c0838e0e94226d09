/** Reads an event stream as the standard defines it: CR, LF or CRLF, comments skipped, fields in any order. */

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
  let event = '';
  let data: string[] = [];
  let size = 0;
  for await (const line of readLines(body, moved)) {
    if (line === '') {
      if (data.length > 0) yield { id, event: event || 'message', data: data.join('\n') };
      event = '';
      data = [];
      size = 0;
      continue;
    }
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === 'id' && !value.includes('\0')) {
      id = value;
      marks.id?.(value);
    } else if (name === 'retry' && /^\d+$/.test(value)) marks.retry?.(Number(value));
    else if (name === 'event') event = value;
    else if (name === 'data') {
      // Many short lines add up to as much as one long line.
      size += value.length + 1;
      if (size > LONGEST) throw new Error('an event of the stream is too long');
      data.push(value);
    }
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
