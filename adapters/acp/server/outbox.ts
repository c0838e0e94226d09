/**
 * The unread messages of one stream of a connection. A reader may disconnect and return: unread messages are kept, and recently
 * sent ones too, because they may have been lost. Bounded; a reader that never returns is given up.
 */
import { asText, Fault } from '../../../src/index.ts';
import { type SseStream, sseFrame } from '../../../src/transport/sse/write.ts';

export interface Outbox {
  /** Resolves when there is room for more. */
  put(text: string): Promise<void>;
  /** Continues after a position, or from the first unsent frame. A fault when that position is no longer kept. */
  attach(open: () => SseStream, after: number | undefined): SseStream;
  readonly read: boolean;
  close(): void;
}

interface Frame {
  readonly at: number;
  readonly text: string;
}

/** The size of sent messages that are kept, in characters. */
const REMEMBERED = 1024 * 1024;

export function createOutbox(limit: number, overflow: () => void): Outbox {
  let frames: Frame[] = [];
  let next = 1;
  let sent = 0;
  let unsent = 0;
  let kept = 0;
  let stream: SseStream | undefined;

  function forget(): void {
    while (kept > REMEMBERED && frames[0] && frames[0].at <= sent) kept -= (frames.shift() as Frame).text.length;
  }

  function write({ at, text }: Frame, to: SseStream): boolean {
    const room = to.write(sseFrame({ id: asText(at), data: text }));
    if (at > sent) {
      sent = at;
      unsent -= text.length;
    }
    return room;
  }

  return {
    get read() {
      return stream !== undefined;
    },
    async put(text) {
      const frame = { at: next++, text };
      frames.push(frame);
      kept += text.length;
      unsent += text.length;
      const reader = stream;
      if (reader) {
        if (!write(frame, reader) && !(await reader.room())) reader.close();
        forget();
      } else if (unsent > limit) overflow();
    },
    attach(open, after) {
      if (stream) throw new Fault('conflict', 'this stream has a reader already');
      const from = after ?? sent;
      const first = frames[0]?.at ?? next;
      if (from + 1 < first || from >= next)
        throw new Fault('cursor_expired', 'that position is no longer kept: load the session');
      const reader = open();
      stream = reader;
      reader.signal.addEventListener(
        'abort',
        () => {
          if (stream === reader) stream = undefined;
        },
        { once: true },
      );
      for (const frame of frames) if (frame.at > from) write(frame, reader);
      forget();
      return reader;
    },
    close() {
      stream?.close();
      frames = [];
    },
  };
}
