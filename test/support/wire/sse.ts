/** A reader of event streams that keeps the bytes as they came. */
// biome-ignore lint/suspicious/noExplicitAny: events are looked into freely
export type Data = any;

export interface Frame {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: Data;
}

export interface SseReader {
  readonly status: number;
  readonly headers: Headers;
  /** Everything that came so far. */
  raw(): string;
  /** The next frame; undefined when the stream has ended. Comments are passed over. */
  next(): Promise<Frame | undefined>;
  /** Frames until one satisfies the wish, that one included. */
  until(wish: (frame: Frame) => boolean): Promise<Frame[]>;
  rest(): Promise<Frame[]>;
  stop(): void;
}

export async function openSse(url: string, headers: Record<string, string>): Promise<SseReader> {
  const stop = new AbortController();
  const answer = await fetch(url, { headers, signal: stop.signal });
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  let raw = '';
  let pending = '';

  async function next(): Promise<Frame | undefined> {
    for (;;) {
      const at = pending.indexOf('\n\n');
      if (at >= 0) {
        const chunk = pending.slice(0, at);
        pending = pending.slice(at + 2);
        if (chunk.startsWith(':')) continue;
        const field = (name: string) =>
          chunk
            .split('\n')
            .find((line) => line.startsWith(`${name}: `))
            ?.slice(name.length + 2);
        return { id: field('id'), event: field('event'), data: JSON.parse(field('data') ?? 'null') };
      }
      const piece = await reader?.read();
      if (!piece || piece.done) return undefined;
      const text = decoder.decode(piece.value, { stream: true });
      raw += text;
      pending += text;
    }
  }

  async function until(wish: (frame: Frame) => boolean): Promise<Frame[]> {
    const frames: Frame[] = [];
    for (;;) {
      const frame = await next();
      if (!frame) return frames;
      frames.push(frame);
      if (wish(frame)) return frames;
    }
  }

  return {
    status: answer.status,
    headers: answer.headers,
    raw: () => raw,
    next,
    until,
    rest: () => until(() => false),
    stop: () => stop.abort(),
  };
}
