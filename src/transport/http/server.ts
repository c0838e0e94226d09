/**
 * One port for every door. Checks that hold for all doors run here, before a door sees a byte: Host and Origin, limits,
 * request ids, slow peers, and an orderly shutdown. Refuses to listen where unauthenticated callers could reach it
 * unless the doors behind it authenticate. Knows no protocol.
 */
import { createServer, type IncomingMessage, type ServerOptions } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { Fault } from '../../model/faults.ts';
import type { Described, HttpHost, InternalLink, Logger } from '../../ports/index.ts';
import { InFlightMap } from '../in-flight-map.ts';
import { connectionShare } from './capacity.ts';
import { createConnectionLimit } from './connection-limit.ts';
import { crossOrigin, type Edge, edgeTrouble, isLoopback, isLoopbackName } from './origin.ts';
import { type Refusal, refusal, refuse, refuseSocket } from './refusal.ts';
import { GatewayRequest, GatewayResponse } from './response.ts';
import { createHttpRouter, type NewRouter } from './router.ts';

export interface HttpHostOptions {
  /** Interface to listen on. */
  readonly host?: string;
  /** 0 picks a free port. */
  readonly port?: number;
  /** The address clients use, where that is not the one listened on. */
  readonly publicUrl?: string;
  /** Names beyond the loopback ones that the Host header may carry. */
  readonly allowedHosts?: readonly string[];
  /** Origins beyond our own whose pages may use the gateway. */
  readonly allowedOrigins?: readonly string[];
  /** No request body may be longer, whatever a door allows. */
  readonly bodyLimit?: number;
  readonly headerLimit?: number;
  /** Connections open at once: in all, and from one address that is not this machine. */
  readonly connections?: number;
  readonly connectionsPerAddress?: number;
  /** How long a peer may take to send its headers, and its whole request. */
  readonly headersTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  readonly keepAliveMs?: number;
  /** How long open requests have to finish when closing. */
  readonly graceMs?: number;
  /** How long it goes on accepting connections after it says that it leaves. */
  readonly leaveMs?: number;
  /** Every door behind this port authenticates. Without it only loopback interfaces are listened on. */
  readonly authenticated?: boolean;
  /** The port speaks TLS itself, and nothing else. */
  readonly tls?: TlsOptions;
  readonly requestId: () => string;
  readonly log: Logger;
}

export interface TlsOptions extends TlsSecrets {
  /** `max-age` of the HSTS header in seconds; not sent for loopback names. */
  readonly hstsSeconds?: number;
}

/** Certificate and key of the TLS handshake. */
export interface TlsSecrets {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
}

export interface ListeningHost extends HttpHost {
  listen(): Promise<{ readonly url: string }>;
  /** From now on requests for things that other replicas hold are handed on over this link. Before it listens. */
  join(link: InternalLink): void;
  /**
   * Says that it leaves, goes on for a while so that load balancers notice, then accepts no more connections and waits for the requests
   * under way, but not for streams: their doors end them.
   */
  drain(): Promise<void>;
  /** Serves a request that came over the link. */
  serve(request: GatewayRequest, response: GatewayResponse): void;
  /** New connections use this pair; open ones keep theirs. */
  renew(secrets: TlsSecrets): void;
  /** Open requests get the grace period; then their stream is ended, then their connection. */
  close(): Promise<void>;
}

const MIB = 1024 * 1024;

/** The id of this request in answers and logs. Generated here; a client's own header of that name is not believed. */
export function requestIdOf(request: IncomingMessage): string {
  return request instanceof GatewayRequest ? request.id : '';
}

export function createHttpHost(options: HttpHostOptions): ListeningHost {
  const { host = '127.0.0.1', port = 0, bodyLimit = 64 * MIB, graceMs = 2000, leaveMs = 0, log } = options;
  const edge = {
    port: 0,
    secure: options.tls !== undefined,
    allowedHosts: options.allowedHosts ?? [],
    allowedOrigins: options.allowedOrigins ?? [],
  } satisfies Edge as Edge & { port: number };
  const documents = new Map<string, () => Promise<object | undefined>>();
  const described = new Map<string, Described>();
  const open = new InFlightMap<string, GatewayResponse>();
  const upgraded = new Set<Duplex>();
  /** Connections whose request is parsed a second time, without its offer to change protocols. */
  const reparsed = new WeakSet<Duplex>();
  let leaving = false;
  let draining = false;
  let reachedAt = '';
  let link: InternalLink | undefined;

  /** Loaded before listening: most commands open no port, and would wait for it. */
  let newRouter: NewRouter | undefined;
  const router = createHttpRouter({
    newRouter: () => (newRouter as NewRouter)(),
    wrongMethod(request, response, allowed) {
      response.setHeader('allow', allowed.join(', '));
      const said = refusal('wrongMethod', `this path is for ${allowed.join(', ')}`);
      refuse(response, said, requestIdOf(request));
    },
  });

  const { tls } = options;
  const settings: ServerOptions<typeof GatewayRequest, typeof GatewayResponse> = {
    IncomingMessage: GatewayRequest,
    ServerResponse: GatewayResponse,
    maxHeaderSize: options.headerLimit ?? 16 * 1024,
    headersTimeout: options.headersTimeoutMs ?? 10_000,
    requestTimeout: options.requestTimeoutMs ?? 60_000,
    keepAliveTimeout: options.keepAliveMs ?? 5_000,
    connectionsCheckingInterval: Math.min(1_000, options.headersTimeoutMs ?? 1_000),
    requireHostHeader: true,
    noDelay: true,
  };
  const secured: TlsServer<typeof GatewayRequest, typeof GatewayResponse> | undefined =
    tls && createTlsServer({ ...settings, ...secretsOf(tls), handshakeTimeout: settings.headersTimeout ?? 10_000 });
  const server = secured ?? createServer(settings);
  /** Under TLS a connection is counted before its handshake, while its requests carry the TLS socket made by it. */
  const shaking = new Map<string, Socket>();
  const carriers = new WeakMap<Socket, Socket>();
  const carrierOf = (socket: Socket) => carriers.get(socket) ?? socket;

  const limit = createConnectionLimit({
    most: options.connections ?? connectionShare(),
    ...(options.connectionsPerAddress !== undefined && { mostEach: options.connectionsPerAddress }),
  });

  /** Counted before a byte is read: an idle connection takes a descriptor like any other. */
  server.on('connection', (socket) => {
    if (reparsed.has(socket)) return;
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
    const from = `${socket.remoteAddress} ${socket.remotePort}`;
    shaking.set(from, socket);
    socket.once('close', () => {
      if (shaking.get(from) === socket) shaking.delete(from);
    });
  }
  secured?.on('secureConnection', (socket) => {
    if (reparsed.has(socket)) return;
    const from = `${socket.remoteAddress} ${socket.remotePort}`;
    const carrier = shaking.get(from);
    if (carrier) carriers.set(socket, carrier);
    shaking.delete(from);
  });
  // A peer without TLS, or with a version we do not accept: only its connection ends.
  secured?.on('tlsClientError', (_thrown, socket) => socket.destroy());

  /** Checks that need only the request line and the headers. */
  function admit(request: IncomingMessage): Refusal | undefined {
    // What came over the link was checked where it arrived.
    const handed = request instanceof GatewayRequest && request.hop !== undefined;
    const trouble = handed ? undefined : edgeTrouble(request, edge);
    if (trouble) return refusal('forbidden', trouble);
    if (!request.url?.startsWith('/') || request.url.startsWith('//')) {
      return refusal('malformed', 'the request target must be a path');
    }
    if (Number(request.headers['content-length'] ?? 0) > bodyLimit) {
      return refusal('tooLarge', `a body may have at most ${bodyLimit} bytes`);
    }
    if (draining) return refusal('draining', 'the gateway is shutting down');
    return undefined;
  }

  /** CORS preflight; only configured origins get past `admit` with a foreign origin. */
  function answeredPreflight(request: IncomingMessage, response: GatewayResponse): boolean {
    const origin = crossOrigin(request, edge);
    if (!origin) return false;
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

  /** Answers a request that no door handled, or that failed in one. */
  function left(request: GatewayRequest, response: GatewayResponse, thrown: unknown): void {
    if (thrown) log.error({ err: thrown, request_id: request.id }, 'a request failed outside its door');
    refuse(response, thrown ? refusal('internal', 'something went wrong inside the gateway') : absent(), request.id);
  }

  /** The doors are no secret: a caller that mistyped a path finds the right one in the answer. */
  function absent(): Refusal {
    const doors = router.doors();
    const names = doors.map(({ door }) => door).join(', ');
    return { ...refusal('absent', `no door has this path; the doors here: ${names || 'none'}`), details: { doors } };
  }

  function closed(this: GatewayResponse): void {
    open.over(this.req.id);
    limit.silent(carrierOf(this.req.socket));
  }

  server.on('request', (request: GatewayRequest, response: GatewayResponse) => {
    request.id = options.requestId();
    limit.busy(carrierOf(request.socket));
    serve(request, response);
  });

  function serve(request: GatewayRequest, response: GatewayResponse): void {
    response.last = leaving;
    if (tls?.hstsSeconds && !isLoopbackName(request.headers.host)) response.strictSeconds = tls.hstsSeconds;
    open.begin(request.id, response);
    response.on('close', closed);
    // Peers disconnect all the time; without a listener the error would end the process.
    request.on('error', unheard);
    response.on('error', unheard);
    const refused = admit(request);
    if (refused) refuse(response, refused, request.id);
    else if (!answeredPreflight(request, response)) route(request, response);
  }

  /** Held elsewhere: handed on. Everything else is for a door here. */
  function route(request: GatewayRequest, response: GatewayResponse): void {
    const here = () => router.serve(request, response, (thrown) => left(request, response, thrown));
    const { mark } = link ?? {};
    const held = mark && !request.hop ? router.namesIn(request).find((name) => !name.endsWith(mark)) : undefined;
    if (!link || held === undefined) {
      here();
      return;
    }
    link.handOn(held, request, response).then(
      (handed) => handed || here(),
      (thrown) => left(request, response, thrown),
    );
  }

  /**
   * A client may offer to change to a protocol that is not spoken here, as Java's does with HTTP/2 on every first request.
   * Such an offer is ignored: the parser has left this connection, so the request is handed to a new one without it.
   */
  function ignoreUpgrade(request: GatewayRequest, socket: Duplex, head: Buffer): void {
    // Answers to earlier requests of this connection go out first.
    const before = open.all().findLast((response) => response.req.socket === socket);
    if (before) {
      before.once('close', () => ignoreUpgrade(request, socket, head));
      return;
    }
    if (socket.destroyed) return;
    reparsed.add(socket);
    if (head.length > 0) socket.unshift(head);
    socket.unshift(Buffer.from(headOf(request), 'latin1'));
    server.emit(secured ? 'secureConnection' : 'connection', socket);
  }

  server.on('upgrade', (request: GatewayRequest, socket: Duplex, head: Buffer) => {
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') return ignoreUpgrade(request, socket, head);
    const id = options.requestId();
    request.id = id;
    limit.busy(carrierOf(request.socket));
    socket.on('error', () => socket.destroy());
    const refused = admit(request);
    if (refused) return refuseSocket(socket, refused, id);
    const path = request.url?.split('?', 1)[0] ?? '';
    const upgrade = router.upgradeAt(path);
    if (!upgrade) return refuseSocket(socket, absent(), id);
    upgraded.add(socket);
    socket.once('close', () => upgraded.delete(socket));
    try {
      upgrade(request, socket, head);
    } catch (thrown) {
      log.error({ err: thrown, request_id: id }, 'an upgrade failed outside its door');
      refuseSocket(socket, refusal('internal', 'something went wrong inside the gateway'), id);
    }
  });

  server.on('clientError', (thrown: NodeJS.ErrnoException, socket: Duplex) => {
    if (thrown.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    refuseSocket(socket, unreadable(thrown.code), null);
  });

  let ended: Promise<void> | undefined;
  function acceptNoMore(): Promise<void> {
    ended ??= new Promise<void>((resolve) => server.close(() => resolve()));
    return ended;
  }

  async function drain(): Promise<void> {
    if (!server.listening || leaving) return;
    leaving = true;
    await pause(leaveMs);
    void acceptNoMore();
    server.closeIdleConnections();
    await until(() => open.all().every(({ streams }) => streams), graceMs);
  }

  async function end(): Promise<void> {
    leaving = true;
    draining = true;
    const closing = acceptNoMore();
    server.closeIdleConnections();
    const over = () => open.size === 0 && upgraded.size === 0;
    await until(over, graceMs);
    for (const response of open.all()) response.headersSent ? response.end() : response.destroy();
    for (const socket of upgraded) socket.end();
    server.closeIdleConnections();
    await until(over, Math.min(graceMs, 500));
    for (const socket of upgraded) socket.destroy();
    server.closeAllConnections();
    await closing;
  }

  return {
    get url() {
      return options.publicUrl ?? reachedAt;
    },
    claim: router.claim,
    get leaving() {
      return leaving;
    },
    get mark() {
      return link?.mark ?? '';
    },
    handOn: async (held, request, response, body) =>
      link !== undefined && !held.endsWith(link.mark) && (await link.handOn(held, request, response, body)),
    join(joined) {
      link = joined;
    },
    serve,
    described,
    describe(name, document) {
      described.set(name, document);
    },
    publish: (path, make) => {
      documents.set(path, make);
    },
    published: async (path) => await documents.get(path)?.(),
    async listen() {
      if (!options.authenticated && !isLoopback(host)) {
        throw new Fault('permission_denied', `${host} can be reached by others, and no authentication is configured`);
      }
      const { Router } = (await import('express')).default;
      newRouter = () => Router({ caseSensitive: true, strict: true });
      await listening(server, host, port);
      const at = server.address() as AddressInfo;
      (edge as { port: number }).port = at.port;
      const name = isLoopback(host) || at.family !== 'IPv6' ? host : `[${at.address}]`;
      const scheme = tls ? 'https' : 'http';
      const url = `${scheme}://${host === '::1' ? '[::1]' : name}:${at.port}`;
      reachedAt = ANY_ADDRESS.has(host) ? `${scheme}://${ownName(edge.allowedHosts, at.port)}` : url;
      return { url };
    },
    renew(secrets) {
      secured?.setSecureContext(secretsOf(secrets));
    },
    drain,
    async close() {
      if (!server.listening && !ended) return;
      await end();
    },
  };
}

function unheard(): void {}

/** Interfaces to listen on that are no address of any machine. */
const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]']);

/** The first name that requests may address us by; without one only this machine can. */
function ownName([name = '127.0.0.1']: readonly string[], port: number): string {
  return /:\d+$/.test(name) ? name : `${name}:${port}`;
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

function secretsOf({ cert, key, minVersion = 'TLSv1.2' }: TlsSecrets): TlsSecrets {
  return { cert, key, minVersion };
}

function unreadable(code: string | undefined): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return refusal('headersTooLarge', 'the request headers are too large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return refusal('tooSlow', 'the request took too long to arrive');
    default:
      return refusal('malformed', 'this is not an HTTP request');
  }
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      server.on('error', () => {});
      resolve();
    });
  });
}

async function until(over: () => boolean, ms: number): Promise<void> {
  const deadline = Date.now() + ms;
  while (!over() && Date.now() < deadline) await pause(10);
}
