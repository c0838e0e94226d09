/**
 * Who may be spoken to under which name, and from whose page. A browser sends both headers honestly, so these two
 * questions are what keeps a web page from reaching a gateway on the same machine. Knows no protocol.
 */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { timesSent } from './headers.ts';

export interface Edge {
  /** The port we listen on, once we do. */
  readonly port: number;
  /** Names beyond the loopback ones: `gateway.example`, with or without a port. */
  readonly allowedHosts: readonly string[];
  /** Origins beyond our own: `https://console.example`. */
  readonly allowedOrigins: readonly string[];
}

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/** True for an interface nobody outside this machine can reach. */
export function isLoopback(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[|\]$/g, '');
  return bare === 'localhost' || bare === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'));
}

/** Why this request must not go further, or undefined. Looks at nothing but the two headers. */
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

/** The origin to answer a browser with; undefined when the request did not come from a page elsewhere. */
export function crossOrigin(request: IncomingMessage, edge: Edge): string | undefined {
  const { origin } = request.headers;
  return origin && edge.allowedOrigins.some((allowed) => same(allowed, origin)) ? origin : undefined;
}

/** A name or address and a port, as they are spelled. Nothing is tidied up: odd spellings are not names we gave. */
interface Place {
  readonly name: string;
  readonly port: number;
  readonly whole: string;
}

const PLACE = /^(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?$/i;

function placeOf(text: string, defaultPort: number): Place | undefined {
  const found = PLACE.exec(text);
  if (!found?.[1]) return undefined;
  return { name: found[1].toLowerCase(), port: found[2] ? Number(found[2]) : defaultPort, whole: text.toLowerCase() };
}

function hostAllowed(host: string, edge: Edge, localAddress: string | undefined): boolean {
  const place = placeOf(host, 80);
  return place !== undefined && (known(place, edge) || isOwnAddress(place, edge, localAddress));
}

function originAllowed(origin: string, edge: Edge, localAddress: string | undefined): boolean {
  if (edge.allowedOrigins.some((allowed) => same(allowed, origin))) return true;
  const [, scheme, rest = ''] = /^(https?):\/\/(.+)$/i.exec(origin) ?? [];
  if (!scheme) return false;
  const secure = scheme.toLowerCase() === 'https';
  const place = placeOf(rest, secure ? 443 : 80);
  if (!place) return false;
  // A page under one of our names is ours; behind a proxy that ends TLS it says https.
  if (secure) return named(place, edge);
  return known(place, edge) || isOwnAddress(place, edge, localAddress);
}

function known(place: Place, edge: Edge): boolean {
  return (LOOPBACK_NAMES.includes(place.name) && place.port === edge.port) || named(place, edge);
}

function named(place: Place, edge: Edge): boolean {
  return edge.allowedHosts.some((allowed) => same(allowed, place.whole) || same(allowed, place.name));
}

/** An address cannot be rebound the way a name can: the one the connection arrived at is ours. */
function isOwnAddress(place: Place, edge: Edge, localAddress: string | undefined): boolean {
  const bare = place.name.replace(/^\[|\]$/g, '');
  if (!isIP(bare) || !localAddress) return false;
  return bare === localAddress.replace(/^::ffff:/, '') && place.port === edge.port;
}

function same(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
