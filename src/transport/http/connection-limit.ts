/**
 * Limits the connections open at once, in all and per non-loopback address. When the limit is reached, the connection
 * that has been idle longest is closed: idle connections must not keep active ones out.
 */
import type { Socket } from 'node:net';
import { isLoopback } from './origin.ts';

export interface ConnectionLimit {
  /** False when the limit is reached; the socket is then not counted. */
  admits(socket: Socket): boolean;
  /** A request is in progress on it. */
  busy(socket: Socket): void;
  /** Its request is over; another may follow. */
  silent(socket: Socket): void;
}

export interface ConnectionLimitOptions {
  readonly most: number;
  /** From one address; loopback connections count in `most` only. A quarter of it when absent. */
  readonly mostEach?: number;
  /** A connection idle for less than this may only just have been opened, and is not closed. */
  readonly silentMs?: number;
}

export function createConnectionLimit(options: ConnectionLimitOptions): ConnectionLimit {
  const { most, mostEach = Math.max(8, Math.floor(most / 4)), silentMs = 1_000 } = options;
  /** The remote address, by connection. */
  const open = new Map<Socket, string>();
  const byAddress = new Map<string, number>();
  /** Idle connections, longest idle first, with the start of their idle time. */
  const waiting = new Map<Socket, number>();

  function forget(socket: Socket): void {
    const from = open.get(socket);
    if (from === undefined) return;
    open.delete(socket);
    waiting.delete(socket);
    const left = (byAddress.get(from) ?? 1) - 1;
    if (left > 0) byAddress.set(from, left);
    else byAddress.delete(from);
  }

  function madeRoom(): boolean {
    const [longest] = waiting;
    if (!longest || performance.now() - longest[1] < silentMs) return false;
    forget(longest[0]);
    longest[0].destroy();
    return true;
  }

  return {
    admits(socket) {
      const from = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
      if (!isLoopback(from) && (byAddress.get(from) ?? 0) >= mostEach) return false;
      if (open.size >= most && !madeRoom()) return false;
      open.set(socket, from);
      byAddress.set(from, (byAddress.get(from) ?? 0) + 1);
      waiting.set(socket, performance.now());
      socket.once('close', () => forget(socket));
      return true;
    },
    busy(socket) {
      waiting.delete(socket);
    },
    silent(socket) {
      if (open.has(socket)) waiting.set(socket, performance.now());
    },
  };
}
