/** A WebSocket client that remembers every frame and can wait for one. */
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';

// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely
export type WireFrame = any;

export interface SocketClient {
  readonly frames: WireFrame[];
  readonly protocol: string;
  send(frame: unknown): void;
  /** The first frame from here on that satisfies the wish; earlier ones are not looked at again. */
  next(wish: (frame: WireFrame) => boolean): Promise<WireFrame>;
  /** Sends a command and waits for what came of it. */
  command(frame: object): Promise<WireFrame>;
  /** Code and reason, once it is closed. */
  readonly closed: Promise<readonly [number, string]>;
  close(): void;
}

export async function openSocket(
  url: string,
  { headers = {}, protocols = [] }: { headers?: Record<string, string>; protocols?: string[] } = {},
): Promise<SocketClient> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols, { headers });
  onTestFinished(() => socket.terminate());
  const frames: WireFrame[] = [];
  const waiting: (() => void)[] = [];
  let looked = 0;
  let commands = 0;
  let over = false;
  const wake = () => {
    for (const go of waiting.splice(0)) go();
  };
  socket.on('message', (data) => {
    frames.push(JSON.parse(String(data)));
    wake();
  });
  const closed = new Promise<readonly [number, string]>((resolve) => {
    socket.once('close', (code, reason) => {
      over = true;
      wake();
      resolve([code, String(reason)]);
    });
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
    socket.once('unexpected-response', (_request, response) => {
      let body = '';
      response.on('data', (chunk) => {
        body += chunk;
      });
      response.on('end', () => reject(Object.assign(new Error(body), { status: response.statusCode, body })));
    });
  });
  socket.on('error', () => {});

  async function find(from: () => number, wish: (frame: WireFrame) => boolean, taken: (at: number) => void) {
    let at = from();
    for (;;) {
      for (; at < frames.length; at += 1) {
        if (!wish(frames[at])) continue;
        taken(at);
        return frames[at];
      }
      if (over) throw new Error(`closed after ${JSON.stringify(frames.map(({ type }) => type))}`);
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  }

  return {
    frames,
    get protocol() {
      return socket.protocol;
    },
    send: (frame) => socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    next: (wish) =>
      find(
        () => looked,
        wish,
        (at) => {
          looked = at + 1;
        },
      ),
    async command(frame) {
      const id = (frame as { id?: string }).id ?? `cmd-${++commands}`;
      const from = frames.length;
      socket.send(JSON.stringify({ id, ...frame }));
      return await find(
        () => from,
        (answer) => answer.id === id && (answer.type === 'result' || answer.type === 'error'),
        () => {},
      );
    },
    closed,
    close: () => socket.close(),
  };
}
