/**
 * Counts the connections of a port before a byte is read, and refuses those over the limit: an idle connection takes a descriptor like
 * any other. Under TLS a connection is counted before its handshake.
 */
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ConnectionLimit } from '../connection-limit.ts';
import { refusal, refuseSocket } from '../refusal.ts';

export interface CountOptions {
  readonly limit: ConnectionLimit;
  /** A connection that was counted before, and whose request is parsed again. */
  again(socket: Duplex): boolean;
}

/** `secured` is the same server, if it speaks TLS. */
export function countConnections(
  server: Server,
  secured: Server | undefined,
  { limit, again }: CountOptions,
): Pick<ConnectionLimit, 'busy' | 'silent'> {
  /** What is counted is the connection, while its requests carry the TLS socket that the handshake made of it. */
  const shaking = new Map<string, Socket>();
  const carriers = new WeakMap<Socket, Socket>();
  const carrierOf = (socket: Socket) => carriers.get(socket) ?? socket;

  server.on('connection', (socket) => {
    if (again(socket)) return;
    if (limit.admits(socket)) {
      if (secured) awaitHandshake(socket);
      return;
    }
    socket.on('error', () => socket.destroy());
    // A peer that expects a handshake cannot read a plain-text refusal.
    if (secured) socket.destroy();
    else
      refuseSocket(socket, refusal('crowded', 'too many connections are open; close some, or try again later'), null);
  });

  function awaitHandshake(socket: Socket): void {
    const from = peerOf(socket);
    shaking.set(from, socket);
    socket.once('close', () => {
      if (shaking.get(from) === socket) shaking.delete(from);
    });
  }
  secured?.on('secureConnection', (socket: Socket) => {
    if (again(socket)) return;
    const from = peerOf(socket);
    const carrier = shaking.get(from);
    if (carrier) carriers.set(socket, carrier);
    shaking.delete(from);
  });
  // A peer without TLS, or with a version we do not accept: only its connection ends.
  secured?.on('tlsClientError', (_thrown: Error, socket: Socket) => socket.destroy());

  return {
    busy: (socket) => limit.busy(carrierOf(socket)),
    silent: (socket) => limit.silent(carrierOf(socket)),
  };
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
