/**
 * How many connections are open at once, in all and from one address elsewhere. When there is no room, the connection that
 * has been silent longest makes place: connections that say nothing must not keep those out that have something to say.
 */
import type { Socket } from 'node:net';
import { isLoopback } from './origin.ts';

export interface ConnectionLimit {
  /** False when there is no room; the socket is then not counted. */
  admits(socket: Socket): boolean;
  /** A request is under way on it. */
  busy(socket: Socket): void;
  /** Its request is over; another may follow. */
  silent(socket: Socket): void;
}

export interface ConnectionLimitOptions {
  readonly most: number;
  /** From one address; connections from this machine count in `most` only. A quarter of it when absent. */
  readonly mostEach?: number;
  /** Silent for less long than this, a connection may only just have been opened. */
  readonly silentMs?: number;
}

export function createConnectionLimit(options: ConnectionLimitOptions): ConnectionLimit {
  const { most, mostEach = Math.max(8, Math.floor(most / 4)), silentMs = 1_000 } = options;
  /** By connection: the address it came from. */
  const open = new Map<Socket, string>();
  const byAddress = new Map<string, number>();
  /** Without a request under way, longest silence first, and since when. */
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
