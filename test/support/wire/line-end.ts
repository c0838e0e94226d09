/** One end of a wire that carries a JSON-RPC frame to a line, for a test to play: whatever is received is kept, byte for byte. */
import type { Json, JsonObject } from '../../../src/model/schema.ts';

export type Wire = Readonly<Record<string, Json | undefined>> & {
  readonly id?: Json;
  readonly method?: string;
  readonly params?: JsonObject;
  readonly result?: JsonObject;
  readonly error?: JsonObject;
};
export type Handler = (params: JsonObject, frame: Wire) => Promise<unknown> | unknown;

/** One end of a wire, for a test to play. */
export interface End {
  readonly lines: string[];
  readonly frames: Wire[];
  raw(text: string | Uint8Array): void;
  say(frame: object): void;
  notify(method: string, params: object): void;
  ask(method: string, params: object, id?: Json): Promise<Wire>;
  /** Answers requests of this kind; `undefined` leaves them open. */
  on(method: string, handler: Handler): void;
  /** The first frame like this, received already or to come. */
  received(like: (frame: Wire) => boolean): Promise<Wire>;
  /** The next one, received from now on. */
  next(like: (frame: Wire) => boolean): Promise<Wire>;
  close(): void;
}

export function createEnd(input: NodeJS.ReadableStream, output: NodeJS.WritableStream): End {
  const lines: string[] = [];
  const frames: Wire[] = [];
  const handlers = new Map<string, Handler>();
  const waiting: { like: (frame: Wire) => boolean; found: (frame: Wire) => void }[] = [];
  let count = 0;
  let rest: Buffer[] = [];

  function take(line: string): void {
    lines.push(line);
    let frame: Wire;
    try {
      frame = JSON.parse(line) as Wire;
    } catch {
      return;
    }
    frames.push(frame);
    for (const each of waiting.splice(0)) {
      if (each.like(frame)) each.found(frame);
      else waiting.push(each);
    }
    const handler = frame.method === undefined ? undefined : handlers.get(frame.method);
    if (handler) void answer(frame, handler);
  }

  async function answer(frame: Wire, handler: Handler): Promise<void> {
    const reply = await Promise.resolve(handler(frame.params ?? {}, frame)).then(
      (result) => (result === undefined ? undefined : { result }),
      (error) => ({ error: error instanceof Error ? { code: -32603, message: error.message } : error }),
    );
    if (reply && frame.id !== undefined) end.say({ id: frame.id, ...reply });
  }

  input.on('data', (chunk: Buffer) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      take(Buffer.concat([...rest, chunk.subarray(from, at)]).toString('utf8'));
      rest = [];
      from = at + 1;
    }
    if (from < chunk.length) rest.push(chunk.subarray(from));
  });

  const end: End = {
    lines,
    frames,
    raw: (text) => {
      output.write(text);
    },
    say: (frame) => end.raw(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`),
    notify: (method, params) => end.say({ method, params }),
    ask(method, params, id = count++) {
      const found = end.next((frame) => frame.method === undefined && frame.id === id);
      end.say({ id, method, params });
      return found;
    },
    on: (method, handler) => {
      handlers.set(method, handler);
    },
    received(like) {
      const before = frames.find(like);
      return before ? Promise.resolve(before) : end.next(like);
    },
    close: () => {
      output.end();
    },
    next: (like) => new Promise<Wire>((found) => waiting.push({ like, found })),
  };
  return end;
}
