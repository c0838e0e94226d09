/** A WebSocket as an outsider opens it: headers or subprotocols, one JSON text per frame. */
import { WebSocket } from 'ws';
import type { CoreEvent } from '../../../../src/model/events.ts';
import { VERSION_HEADER, type Wire, type WireError } from './wire.ts';

export interface SocketFrame {
  readonly type: string;
  readonly id?: string;
  readonly status?: number;
  readonly body?: unknown;
  readonly error?: WireError;
  readonly event?: CoreEvent;
  readonly cursor?: string | null;
  readonly replayed?: boolean;
  readonly kind?: string;
  readonly request_id?: string;
  readonly task_id?: string;
  readonly session_id?: string | null;
  readonly protocol_version?: string;
  readonly t?: unknown;
}

export interface SocketAsking {
  readonly as?: string | null | undefined;
  readonly version?: string | null;
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

export interface OpenSocket {
  readonly protocol: string;
  next(): Promise<SocketFrame>;
  /** Frames until this one, which is included. */
  until(last: (frame: SocketFrame) => boolean): Promise<readonly SocketFrame[]>;
  /** Frames until the socket is closed. */
  rest(): Promise<readonly SocketFrame[]>;
  send(frame: object): void;
  raw(data: string | Buffer): void;
  /** The code it was closed with. */
  readonly closed: Promise<number>;
  close(): void;
}

const TIMEOUT_MS = 10_000;

function connect(wire: Wire, path: string, asking: SocketAsking): WebSocket {
  const { as = wire.key, version = wire.revision.version, protocols = [], headers } = asking;
  return new WebSocket(`${wire.base.replace(/^http/, 'ws')}${path}`, [...protocols], {
    headers: {
      ...(version !== null && { [VERSION_HEADER]: version }),
      ...(as !== null && as !== undefined && { authorization: `Bearer ${as}` }),
      ...headers,
    },
  });
}

export async function openSocket(wire: Wire, path: string, asking: SocketAsking = {}): Promise<OpenSocket> {
  const socket = connect(wire, path, asking);
  const waiting: SocketFrame[] = [];
  let over = false;
  let wake = () => {};
  const closed = new Promise<number>((resolve) => {
    socket.once('close', (code) => {
      over = true;
      wake();
      resolve(code);
    });
  });
  socket.on('message', (data) => {
    waiting.push(JSON.parse(String(data)) as SocketFrame);
    wake();
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => {});

  async function take(deadline: number): Promise<SocketFrame | undefined> {
    for (;;) {
      const frame = waiting.shift();
      if (frame || over) return frame;
      if (Date.now() > deadline) throw new Error('no frame came in time');
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(1, deadline - Date.now()));
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  async function until(last: (frame: SocketFrame) => boolean): Promise<SocketFrame[]> {
    const deadline = Date.now() + TIMEOUT_MS;
    const seen: SocketFrame[] = [];
    for (;;) {
      const frame = await take(deadline);
      if (!frame) throw new Error(`the socket closed after ${seen.map(({ type }) => type).join(', ') || 'nothing'}`);
      seen.push(frame);
      if (last(frame)) return seen;
    }
  }

  return {
    protocol: socket.protocol,
    closed,
    until,
    async next() {
      return (await until(() => true))[0]!;
    },
    async rest() {
      const deadline = Date.now() + TIMEOUT_MS;
      const seen: SocketFrame[] = [];
      for (let frame = await take(deadline); frame; frame = await take(deadline)) seen.push(frame);
      return seen;
    },
    send: (frame) => socket.send(JSON.stringify(frame)),
    raw: (data) => socket.send(data),
    close: () => socket.close(),
  };
}

/** The answer to an upgrade that must not happen. */
export async function refusedUpgrade(wire: Wire, path: string, asking: SocketAsking = {}) {
  const socket = connect(wire, path, asking);
  return await new Promise<{ status: number; body: { error?: WireError } | undefined }>((resolve, reject) => {
    socket.once('unexpected-response', (_, response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += String(chunk);
      });
      response.on('end', () => {
        let body: { error?: WireError } | undefined;
        try {
          body = JSON.parse(text) as { error?: WireError };
        } catch {
          body = undefined;
        }
        resolve({ status: response.statusCode ?? 0, body });
      });
    });
    socket.once('open', () => {
      socket.close();
      reject(new Error('the upgrade was accepted'));
    });
    socket.once('error', reject);
  });
}
