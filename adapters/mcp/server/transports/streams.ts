/**
 * Streams of a legacy session. Every message has an id that names its stream and its position, so a client whose connection
 * broke resumes where it was; the events kept for that are bounded, and a position that is no longer kept is reported as gone.
 */

import type { ServerResponse } from 'node:http';
import { asText } from '../../../../src/index.ts';
import { openSse, type SseStream, sseFrame } from '../../../../src/transport/sse/write.ts';
import type { Frame } from '../../frames.ts';

export interface FrameStream {
  readonly id: string;
  send(frame: Frame): void;
  /** No more frames follow. */
  finish(): void;
  readonly finished: boolean;
}

export interface Streams {
  open(): FrameStream;
  /** Sends a stream over this connection: from its beginning, or from this client's cursor. */
  attach(
    stream: FrameStream,
    response: ServerResponse,
    options?: { primed?: boolean; headers?: Record<string, string> },
  ): void;
  /** The stream an event id belongs to, and the client's position in it. */
  find(
    lastEventId: string,
  ):
    | { readonly stream: FrameStream; resume(response: ServerResponse, headers: Record<string, string>): void }
    | undefined;
  close(): void;
}

interface Kept extends FrameStream {
  readonly events: { readonly at: number; readonly text: string }[];
  at: number;
  finished: boolean;
  sink: SseStream | undefined;
}

const MOST_EVENTS = 512;
const MOST_STREAMS = 64;
const RETRY_MS = 500;

export function createStreams(): Streams {
  const streams = new Map<string, Kept>();
  let count = 0;

  function open(): FrameStream {
    const id = asText(count++);
    const stream: Kept = {
      id,
      events: [],
      at: 0,
      finished: false,
      sink: undefined,
      send(frame) {
        const text = sseFrame({ id: eventId(stream), event: 'message', data: JSON.stringify(frame) });
        stream.events.push({ at: stream.at, text });
        stream.at += 1;
        if (stream.events.length > MOST_EVENTS) stream.events.shift();
        if (stream.sink?.write(text) === false) void stalled(stream);
      },
      finish() {
        stream.finished = true;
        stream.sink?.close();
        forgetOldest();
      },
    };
    streams.set(id, stream);
    return stream;
  }

  /** A client that does not read is disconnected; it can resume for the rest. */
  async function stalled(stream: Kept): Promise<void> {
    const { sink } = stream;
    if (sink && !(await sink.room()) && stream.sink === sink) {
      stream.sink = undefined;
      sink.close();
    }
  }

  function forgetOldest(): void {
    const over = [...streams.values()].filter(({ finished }) => finished);
    for (const { id } of over.slice(0, Math.max(0, over.length - MOST_STREAMS))) streams.delete(id);
  }

  function send(
    stream: Kept,
    from: number,
    response: ServerResponse,
    primed: boolean,
    headers: Record<string, string>,
  ) {
    stream.sink?.close();
    const sink = openSse(response, { headers });
    stream.sink = sink;
    // An event id to resume from, before there is an event.
    if (primed) sink.write(`id: ${stream.id}.p\nretry: ${RETRY_MS}\ndata: \n\n`);
    for (const { at, text } of stream.events) if (at >= from) sink.write(text);
    if (stream.finished) sink.close();
    sink.signal.addEventListener('abort', () => {
      if (stream.sink === sink) stream.sink = undefined;
    });
  }

  return {
    open,
    attach(stream, response, { primed = false, headers = {} } = {}) {
      send(stream as Kept, 0, response, primed, headers);
    },
    find(lastEventId) {
      const [id = '', position = ''] = lastEventId.split('.');
      const stream = streams.get(id);
      const from = position === 'p' ? 0 : Number(position) + 1;
      if (!stream || !Number.isInteger(from)) return undefined;
      const first = stream.events[0]?.at ?? stream.at;
      if (from > stream.at || from < first) return undefined;
      return { stream, resume: (response, headers) => send(stream, from, response, false, headers) };
    },
    close() {
      for (const { sink } of streams.values()) sink?.close();
      streams.clear();
    },
  };
}

function eventId({ id, at }: Kept): string {
  return `${id}.${at}`;
}
