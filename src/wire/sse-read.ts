/** Reads an event stream as the standard has it: CR, LF or CRLF, comments passed over, fields in any order. */

export interface SseMessage {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Longer than any event; a stream that never ends its line is no event stream. */
const LONGEST = 8 * 1024 * 1024;

/** For whoever goes on where a stream broke off: these also come without an event. */
export interface SseMarks {
  id?(id: string): void;
  retry?(ms: number): void;
}

/** `moved` is told of every chunk, also of those that hold nothing but a comment. */
export async function* readSse(
  body: AsyncIterable<Uint8Array>,
  moved = () => {},
  marks: SseMarks = {},
): AsyncGenerator<SseMessage> {
  let id: string | undefined;
  let event = '';
  let data: string[] = [];
  for await (const line of readLines(body, moved)) {
    if (line === '') {
      if (data.length > 0) yield { id, event: event || 'message', data: data.join('\n') };
      event = '';
      data = [];
      continue;
    }
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === 'id' && !value.includes('\0')) {
      id = value;
      marks.id?.(value);
    } else if (name === 'retry' && /^\d+$/.test(value)) marks.retry?.(Number(value));
    else if (name === 'event') event = value;
    else if (name === 'data') data.push(value);
  }
}

/** Whole lines only: what is not ended when the stream ends was never said. */
async function* readLines(body: AsyncIterable<Uint8Array>, moved: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    moved();
    rest += decoder.decode(chunk, { stream: true });
    if (rest.length > LONGEST) throw new Error('a line of the event stream is too long');
    // A CR at the very end may be the first half of a CRLF.
    const whole = rest.endsWith('\r') ? rest.length - 1 : rest.length;
    const lines = rest.slice(0, whole).split(/\r\n|\n|\r/);
    rest = (lines.pop() ?? '') + rest.slice(whole);
    yield* lines;
  }
  if (rest.endsWith('\r')) yield rest.slice(0, -1);
}
