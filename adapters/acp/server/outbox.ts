/**
 * The unread messages of a connection, by stream. A reader may disconnect and return: unread messages are kept, and recently
 * sent ones too, because they may have been lost. Bounded over all streams; a reader that never returns is given up.
 */
import { asText, Fault } from '../../../src/index.ts';
import { type SseStream, sseFrame } from '../../../src/transport/sse/write.ts';

interface Outbox {
  /** Resolves when there is room for more. */
  put(text: string): Promise<void>;
  /** Continues after a position, or from the first unsent frame. A fault when that position is no longer kept. */
  attach(open: () => SseStream, after: number | undefined): SseStream;
  readonly read: boolean;
  /** No reader is connected, and no message is left to read. */
  readonly idle: boolean;
  close(): void;
}

export interface Outboxes {
  /** The stream of a session; of the connection itself without a name. */
  of(sessionId: string): Outbox;
  readonly read: boolean;
  close(): void;
}

export interface OutboxLimits {
  /** Characters that wait in all streams together. */
  readonly unsent: number;
  /** Beyond this, what idle streams remember is forgotten, the oldest first. */
  readonly streams: number;
}

/** `overflow`: more waits than is kept. */
export function createOutboxes({ unsent, streams: most }: OutboxLimits, overflow: () => void): Outboxes {
  const streams = new Map<string, Outbox>();
  let waiting = 0;

  function waits(characters: number): void {
    waiting += characters;
    if (waiting > unsent) overflow();
  }

  return {
    of(sessionId) {
      const known = streams.get(sessionId);
      if (known) return known;
      const [idle] = streams.size < most ? [] : ([...streams].find(([, stream]) => stream.idle) ?? []);
      if (idle !== undefined) streams.delete(idle);
      const made = createOutbox(waits);
      streams.set(sessionId, made);
      return made;
    },
    get read() {
      return [...streams.values()].some(({ read }) => read);
    },
    close() {
      for (const stream of streams.values()) stream.close();
    },
  };
}

interface Frame {
  readonly at: number;
  readonly text: string;
}

/** The size of sent messages that are kept, in characters. */
const REMEMBERED = 1024 * 1024;

/** `waits`: how many characters more, or less, wait to be sent. */
function createOutbox(waits: (characters: number) => void): Outbox {
  let frames: Frame[] = [];
  let next = 1;
  let sent = 0;
  let kept = 0;
  let stream: SseStream | undefined;

  function forget(): void {
    while (kept > REMEMBERED && frames[0] && frames[0].at <= sent) kept -= (frames.shift() as Frame).text.length;
  }

  function write({ at, text }: Frame, to: SseStream): boolean {
    sent = Math.max(sent, at);
    return to.write(sseFrame({ id: asText(at), data: text }));
  }

  return {
    get read() {
      return stream !== undefined;
    },
    get idle() {
      return stream === undefined && sent === next - 1;
    },
    async put(text) {
      const frame = { at: next++, text };
      frames.push(frame);
      kept += text.length;
      const reader = stream;
      if (!reader) return waits(text.length);
      if (!write(frame, reader) && !(await reader.room())) reader.close();
      forget();
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
      for (const frame of frames) {
        if (frame.at > sent) waits(-frame.text.length);
        if (frame.at > from) write(frame, reader);
      }
      sent = Math.max(sent, from);
      forget();
      return reader;
    },
    close() {
      stream?.close();
      frames = [];
    },
  };
}
