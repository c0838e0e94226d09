/**
 * WebSocket connections that carry one JSON text per frame. Binary frames, frames too large and peers that no longer
 * answer end the connection with a close code for the reason; a peer that does not read is cut off at a bound. Knows no
 * protocol beyond RFC 6455.
 */
import { setMaxListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';

export interface SocketOptions {
  readonly frameLimit?: number;
  /** Bytes that may wait for the peer. */
  readonly bufferLimit?: number;
  readonly pingMs?: number;
  readonly pongMs?: number;
  /** How long sending waits for a peer that does not read. */
  readonly stallMs?: number;
  /** Whether binary frames end the connection or are ignored. */
  readonly binary?: 'close' | 'ignore';
  /** Selects the subprotocol out of those the client offers. */
  readonly choose?: (protocols: ReadonlySet<string>) => string | false;
  /** Header lines for the upgrade response: `Name: value`. */
  readonly headers?: (request: IncomingMessage) => readonly string[];
}

export const CLOSE = {
  normal: 1000,
  goingAway: 1001,
  unsupportedData: 1003,
  policy: 1008,
  tooLarge: 1009,
  internal: 1011,
  drain: 1012,
  overloaded: 1013,
  unauthenticated: 4401,
  heartbeat: 4408,
  cursorExpired: 4410,
} as const;

export interface TextSocket {
  readonly signal: AbortSignal;
  /** True when there is room for more; otherwise wait for `room`. */
  send(text: string): boolean;
  room(): Promise<boolean>;
  close(code: number, reason?: string): void;
}

export type TextHandler = (socket: TextSocket) => { message(text: string): void };

export interface SocketServer {
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, open: TextHandler): void;
  /** Closes every connection with the code for a restart. */
  close(): void;
}

const POLL_MS = 10;

export function createSocketServer(options: SocketOptions = {}): SocketServer {
  const { frameLimit = 1024 * 1024, bufferLimit = 1024 * 1024, pingMs = 30_000, pongMs = 10_000 } = options;
  const { stallMs = 30_000, choose } = options;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: true,
    maxPayload: frameLimit,
    perMessageDeflate: false,
    handleProtocols: (protocols) => choose?.(protocols) ?? false,
  });
  server.on('headers', (lines, request) => {
    lines.push(...(options.headers?.(request) ?? []));
  });

  function serve(peer: WebSocket, open: TextHandler): void {
    const gone = new AbortController();
    // Every pending question on the connection adds a listener.
    setMaxListeners(0, gone.signal);
    const socket: TextSocket = {
      signal: gone.signal,
      send(text) {
        if (peer.readyState !== WebSocket.OPEN) return false;
        peer.send(text);
        return peer.bufferedAmount < bufferLimit;
      },
      async room() {
        const deadline = Date.now() + stallMs;
        while (peer.readyState === WebSocket.OPEN && peer.bufferedAmount >= bufferLimit) {
          if (Date.now() > deadline) return false;
          await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        }
        return peer.readyState === WebSocket.OPEN;
      },
      close(code, reason = '') {
        peer.close(code, reason.slice(0, 120));
        setTimeout(() => peer.terminate(), 2_000).unref();
      },
    };

    let late: NodeJS.Timeout | undefined;
    const heartbeat = setInterval(() => {
      if (peer.readyState !== WebSocket.OPEN || late) return;
      peer.ping();
      late = setTimeout(() => socket.close(CLOSE.heartbeat, 'no answer to a ping'), pongMs).unref();
    }, pingMs).unref();
    const alive = () => {
      clearTimeout(late);
      late = undefined;
    };

    peer.on('pong', alive);
    peer.on('error', () => {}); // the close event that follows carries the reason
    peer.once('close', () => {
      clearInterval(heartbeat);
      clearTimeout(late);
      gone.abort();
    });
    const handler = open(socket);
    peer.on('message', (data, binary) => {
      alive();
      if (binary && options.binary === 'ignore') return;
      if (binary) socket.close(CLOSE.unsupportedData, 'text frames only');
      else if (!gone.signal.aborted) handler.message(String(data));
    });
  }

  return {
    accept(request, socket, head, open) {
      server.handleUpgrade(request, socket, head, (peer) => serve(peer, open));
    },
    close() {
      for (const peer of server.clients) {
        peer.close(CLOSE.drain, 'the gateway is shutting down');
        setTimeout(() => peer.terminate(), 2_000).unref();
      }
      server.close();
    },
  };
}
