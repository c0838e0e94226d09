/**
 * The bearer token of a request, or none. Two Authorization headers are refused: choosing either could be the wrong
 * one.
 */
import type { IncomingMessage } from 'node:http';
import { Fault } from '../../model/faults.ts';
import { timesSent } from './headers.ts';
import { GatewayRequest } from './response.ts';

/**
 * The peer's address, for counting failed logins. Headers that a proxy adds about it are not believed; what another replica of ours saw
 * is.
 */
export function addressOf(request: IncomingMessage): { readonly address: string | undefined } {
  if (request instanceof GatewayRequest && request.hop) return { address: request.hop.address };
  return { address: request.socket.remoteAddress };
}

export function bearerOf(request: IncomingMessage): string | undefined {
  const header = request.headers.authorization;
  if (header === undefined) return undefined;
  if (timesSent(request, 'authorization') > 1) throw new Fault('unauthenticated', 'more than one Authorization header');
  const token = /^bearer +([A-Za-z0-9._~+/=-]+)$/i.exec(header.trim())?.[1];
  if (!token) throw new Fault('unauthenticated', 'the Authorization header must be: Bearer <token>');
  return token;
}
