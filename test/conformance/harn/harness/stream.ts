/** Event streams read the way the public suite reads them: split on empty lines, everything between is a frame. */
import type { CoreEvent } from '../../../../src/model/events.ts';
import { equal, text, truth } from './expect.ts';
import type { Asking, Wire } from './wire.ts';

export interface Frame {
  readonly raw: string;
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

export interface OpenStream {
  readonly status: number;
  readonly headers: Headers;
  /** The next frame; undefined when the stream has ended. */
  next(withinMs?: number): Promise<Frame | undefined>;
  /** Frames until this one, which is included. */
  until(last: (frame: Frame) => boolean, withinMs?: number): Promise<readonly Frame[]>;
  /** Frames to the end of the stream. */
  rest(withinMs?: number): Promise<readonly Frame[]>;
  close(): void;
}

const TIMEOUT_MS = 10_000;

export async function openStream(wire: Wire, path: string, asking: Asking = {}): Promise<OpenStream> {
  const gone = new AbortController();
  const headers = { accept: 'text/event-stream', ...asking.headers };
  const response = await wire.open('GET', path, { ...asking, headers, signal: gone.signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';

  async function next(withinMs = TIMEOUT_MS): Promise<Frame | undefined> {
    const deadline = Date.now() + withinMs;
    for (;;) {
      const at = buffer.indexOf('\n\n');
      const chunk = at < 0 ? '' : buffer.slice(0, at);
      if (at >= 0) buffer = buffer.slice(at + 2);
      if (chunk.trim() !== '') return frameOf(chunk);
      if (at >= 0) continue;
      const read = await within(reader?.read(), deadline - Date.now());
      if (!read) throw new Error('no frame came in time');
      if (read.done) return undefined;
      buffer += read.value;
    }
  }

  /** Frames that count: comments only keep the line open. */
  async function* all(withinMs: number): AsyncGenerator<Frame> {
    const deadline = Date.now() + withinMs;
    for (;;) {
      const frame = await next(Math.max(1, deadline - Date.now()));
      if (!frame) return;
      if (!frame.raw.startsWith(':')) yield frame;
    }
  }

  return {
    status: response.status,
    headers: response.headers,
    next,
    async until(last, withinMs = TIMEOUT_MS) {
      const seen: Frame[] = [];
      for await (const frame of all(withinMs)) {
        seen.push(frame);
        if (last(frame)) return seen;
      }
      throw new Error(`the stream ended after ${seen.map(({ event }) => event).join(', ') || 'nothing'}`);
    },
    async rest(withinMs = TIMEOUT_MS) {
      const seen: Frame[] = [];
      for await (const frame of all(withinMs)) seen.push(frame);
      return seen;
    },
    close: () => gone.abort(),
  };
}

function frameOf(raw: string): Frame {
  const field = (name: string) =>
    raw
      .split('\n')
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /, ''))
      .join('\n');
  return { raw, id: field('id'), event: field('event'), data: field('data') };
}

/** The shape every frame must have, and the event in it. */
export function eventOf(frame: Frame | undefined): CoreEvent {
  truth(frame, 'the stream ended without a frame');
  text(frame.id, 'frame id');
  text(frame.event, 'frame event');
  const event = JSON.parse(frame.data) as CoreEvent;
  equal(event.object, 'event', 'data.object');
  text(event.id, 'data.id');
  text(event.event, 'data.event');
  truth(Number.isInteger(event.sequence) && event.sequence >= 0, 'data.sequence is not a count');
  return event;
}

async function within<T>(promise: Promise<T> | undefined, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), Math.max(0, ms));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
