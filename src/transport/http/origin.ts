/**
 * Checks of Host and Origin: which names the gateway answers to, and which pages may use it. A browser sends both
 * headers honestly, so these two checks keep a web page from reaching a gateway on the same machine. Knows no protocol.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { timesSent } from './headers.ts';

export interface Edge {
  /** The port we listen on, once listening. */
  readonly port: number;
  /** Whether the port itself speaks TLS. */
  readonly secure?: boolean;
  /** Names beyond the loopback ones: `gateway.example`, with or without a port. */
  readonly allowedHosts: readonly string[];
  /** Origins beyond our own: `https://console.example`. */
  readonly allowedOrigins: readonly string[];
}

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/** True for an interface that only this machine can reach. */
export function isLoopback(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[|\]$/g, '');
  return bare === 'localhost' || bare === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'));
}

/** True for a request whose Host is a loopback name. */
export function isLoopbackName(host: string | undefined): boolean {
  const name = host === undefined ? undefined : parseHostPort(host, 0)?.name;
  return name !== undefined && isLoopback(name);
}

/** The reason to refuse this request, or undefined. Reads nothing but the two headers. */
export function edgeTrouble(request: IncomingMessage, edge: Edge): string | undefined {
  const { host, origin } = request.headers;
  if (host === undefined || timesSent(request, 'host') !== 1 || !hostAllowed(host, edge, request.socket.localAddress)) {
    return 'the Host header does not name this gateway';
  }
  if (origin !== undefined && timesSent(request, 'origin') !== 1) return 'more than one Origin header';
  if (origin !== undefined && !originAllowed(origin, edge, request.socket.localAddress)) {
    return 'pages of this origin may not use the gateway';
  }
  return undefined;
}

/** CORS headers for pages of other origins, and whether the request was only a preflight; then it is answered. For admitted requests. */
export function answeredPreflight(request: IncomingMessage, response: ServerResponse, edge: Edge): boolean {
  const { origin } = request.headers;
  if (!origin || !edge.allowedOrigins.some((allowed) => same(allowed, origin))) return false;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('vary', 'origin');
  response.setHeader('access-control-expose-headers', 'x-request-id');
  if (request.method !== 'OPTIONS' || !request.headers['access-control-request-method']) return false;
  response.writeHead(204, {
    'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': request.headers['access-control-request-headers'] ?? '',
    'access-control-max-age': '600',
  });
  response.end();
  return true;
}

/** A name or address and a port, as spelled. Nothing is normalised: unusual spellings are not names of ours. */
interface HostPort {
  readonly name: string;
  readonly port: number;
  readonly whole: string;
}

const HOST_PORT = /^(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?$/i;

function parseHostPort(text: string, defaultPort: number): HostPort | undefined {
  const found = HOST_PORT.exec(text);
  if (!found?.[1]) return undefined;
  return { name: found[1].toLowerCase(), port: found[2] ? Number(found[2]) : defaultPort, whole: text.toLowerCase() };
}

function hostAllowed(host: string, edge: Edge, localAddress: string | undefined): boolean {
  const hostPort = parseHostPort(host, edge.secure ? 443 : 80);
  return hostPort !== undefined && (known(hostPort, edge) || isOwnAddress(hostPort, edge, localAddress));
}

function originAllowed(origin: string, edge: Edge, localAddress: string | undefined): boolean {
  if (edge.allowedOrigins.some((allowed) => same(allowed, origin))) return true;
  const [, scheme, rest = ''] = /^(https?):\/\/(.+)$/i.exec(origin) ?? [];
  if (!scheme) return false;
  const secure = scheme.toLowerCase() === 'https';
  const hostPort = parseHostPort(rest, secure ? 443 : 80);
  if (!hostPort) return false;
  // A port that speaks TLS only cannot have served a page over plain HTTP.
  if (edge.secure && !secure) return false;
  // A page under one of our names is ours; behind a proxy that terminates TLS its origin says https.
  if (secure && !edge.secure) return named(hostPort, edge);
  return known(hostPort, edge) || isOwnAddress(hostPort, edge, localAddress);
}

function known(hostPort: HostPort, edge: Edge): boolean {
  return (LOOPBACK_NAMES.includes(hostPort.name) && hostPort.port === edge.port) || named(hostPort, edge);
}

function named(hostPort: HostPort, edge: Edge): boolean {
  return edge.allowedHosts.some((allowed) => same(allowed, hostPort.whole) || same(allowed, hostPort.name));
}

/** An address cannot be rebound the way a name can: the address the connection arrived at is ours. */
function isOwnAddress(hostPort: HostPort, edge: Edge, localAddress: string | undefined): boolean {
  const bare = hostPort.name.replace(/^\[|\]$/g, '');
  if (!isIP(bare) || !localAddress) return false;
  return bare === localAddress.replace(/^::ffff:/, '') && hostPort.port === edge.port;
}

function same(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
