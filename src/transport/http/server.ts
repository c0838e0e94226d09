/**
 * One port for every door. Checks that hold for all doors run here, before a door sees a byte: Host and Origin, limits,
 * request ids, slow peers, and an orderly shutdown. Refuses to listen where unauthenticated callers could reach it
 * unless the doors behind it authenticate. Knows no protocol.
 */
import { createServer, type IncomingMessage, type ServerOptions } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { Fault } from '../../model/faults.ts';
import type { Described, HttpHost, InternalLink } from '../../ports/index.ts';
import { InFlightMap } from '../in-flight-map.ts';
import { connectionShare } from './capacity.ts';
import { createConnectionLimit } from './connection-limit.ts';
import { countConnections } from './host/connections.ts';
import type { HttpHostOptions, TlsSecrets } from './host/options.ts';
import { createShutdown } from './host/shutdown.ts';
import { createUpgrades } from './host/upgrades.ts';
import { answeredPreflight, type Edge, edgeTrouble, isLoopback, isLoopbackName } from './origin.ts';
import { type HttpRefusal, refusal, refuse, refuseSocket } from './refusal.ts';
import { GatewayRequest, GatewayResponse } from './response.ts';
import { createHttpRouter, type NewRouter } from './router.ts';

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
  const upgrades = createUpgrades(server, secured ? 'secureConnection' : 'connection', open);
  const connections = countConnections(server, secured, {
    again: upgrades.again,
    limit: createConnectionLimit({
      most: options.connections ?? connectionShare(),
      ...(options.connectionsPerAddress !== undefined && { mostEach: options.connectionsPerAddress }),
    }),
  });

  const shutdown = createShutdown({ server, open, upgraded: upgrades.taken, graceMs, leaveMs });

  /** Checks that need only the request line and the headers. */
  function admit(request: IncomingMessage): HttpRefusal | undefined {
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
    if (shutdown.refusing) return refusal('draining', 'the gateway is shutting down');
    return undefined;
  }

  /** Answers a request that no door handled, or that failed in one. */
  function left(request: GatewayRequest, response: GatewayResponse, thrown: unknown): void {
    if (thrown) log.error({ err: thrown, request_id: request.id }, 'a request failed outside its door');
    refuse(response, thrown ? refusal('internal', 'something went wrong inside the gateway') : absent(), request.id);
  }

  /** The doors are no secret: a caller that mistyped a path finds the right one in the answer. */
  function absent(): HttpRefusal {
    const doors = router.doors();
    const names = doors.map(({ door }) => door).join(', ');
    return { ...refusal('absent', `no door has this path; the doors here: ${names || 'none'}`), details: { doors } };
  }

  function closed(this: GatewayResponse): void {
    open.over(this.req.id);
    connections.silent(this.req.socket);
  }

  server.on('request', (request: GatewayRequest, response: GatewayResponse) => {
    request.id = options.requestId();
    connections.busy(request.socket);
    serve(request, response);
  });

  function serve(request: GatewayRequest, response: GatewayResponse): void {
    response.last = shutdown.leaving;
    if (tls?.hstsSeconds && !isLoopbackName(request.headers.host)) response.strictSeconds = tls.hstsSeconds;
    open.begin(request.id, response);
    response.on('close', closed);
    // Peers disconnect all the time; without a listener the error would end the process.
    request.on('error', unheard);
    response.on('error', unheard);
    const refused = admit(request);
    if (refused) refuse(response, refused, request.id);
    else if (!answeredPreflight(request, response, edge)) route(request, response);
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

  server.on('upgrade', (request: GatewayRequest, socket: Duplex, head: Buffer) => {
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') return upgrades.ignore(request, socket, head);
    const id = options.requestId();
    request.id = id;
    connections.busy(request.socket);
    socket.on('error', () => socket.destroy());
    const refused = admit(request);
    if (refused) return refuseSocket(socket, refused, id);
    const path = request.url?.split('?', 1)[0] ?? '';
    const upgrade = router.upgradeAt(path);
    if (!upgrade) return refuseSocket(socket, absent(), id);
    upgrades.begun(socket);
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

  return {
    get url() {
      return options.publicUrl ?? reachedAt;
    },
    claim: router.claim,
    get leaving() {
      return shutdown.leaving;
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
    drain: shutdown.drain,
    close: shutdown.close,
  };
}

function unheard(): void {}

/** Interfaces to listen on that are no address of any machine. */
const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]']);

/** The first name that requests may address us by; without one only this machine can. */
function ownName([name = '127.0.0.1']: readonly string[], port: number): string {
  return /:\d+$/.test(name) ? name : `${name}:${port}`;
}

function secretsOf({ cert, key, minVersion = 'TLSv1.2' }: TlsSecrets): TlsSecrets {
  return { cert, key, minVersion };
}

function unreadable(code: string | undefined): HttpRefusal {
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
