/** Offers of a client to change protocols: those that were taken up, until their connection ends, and those that are ignored. */
import type { IncomingMessage } from 'node:http';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { InFlightMap } from '../../in-flight-map.ts';
import type { GatewayRequest, GatewayResponse } from '../response.ts';

export interface Upgrades {
  /** Connections that speak another protocol now. */
  readonly taken: ReadonlySet<Duplex>;
  begun(socket: Duplex): void;
  /**
   * A client may offer to change to a protocol that is not spoken here, as Java's does with HTTP/2 on every first request.
   * Such an offer is ignored: the parser has left this connection, so the request is handed to a new one without it.
   */
  ignore(request: GatewayRequest, socket: Duplex, head: Buffer): void;
  /** Whether the request on this connection is parsed a second time, without its offer. */
  again(socket: Duplex): boolean;
}

export function createUpgrades(
  server: Server,
  connected: 'connection' | 'secureConnection',
  open: InFlightMap<string, GatewayResponse>,
): Upgrades {
  const taken = new Set<Duplex>();
  const reparsed = new WeakSet<Duplex>();

  function ignore(request: GatewayRequest, socket: Duplex, head: Buffer): void {
    // Answers to earlier requests of this connection go out first.
    const before = open.all().findLast((response) => response.req.socket === socket);
    if (before) {
      before.once('close', () => ignore(request, socket, head));
      return;
    }
    if (socket.destroyed) return;
    reparsed.add(socket);
    if (head.length > 0) socket.unshift(head);
    socket.unshift(Buffer.from(headOf(request), 'latin1'));
    server.emit(connected, socket);
  }

  return {
    taken,
    begun(socket) {
      taken.add(socket);
      socket.once('close', () => taken.delete(socket));
    },
    ignore,
    again: (socket) => reparsed.has(socket),
  };
}

const UPGRADE_HEADERS: ReadonlySet<string> = new Set(['upgrade', 'http2-settings', 'connection']);

/** The request line and headers as they arrived, without the offer to change protocols. */
function headOf({ method, url, httpVersion, rawHeaders, headers }: IncomingMessage): string {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (!UPGRADE_HEADERS.has(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[at + 1]}`);
  }
  if (/\bclose\b/i.test(headers.connection ?? '')) lines.push('connection: close');
  return `${lines.join('\r\n')}\r\n\r\n`;
}
