/**
 * One port for every door. What must hold for all of them is done here, before any of them sees a byte: names and
 * origins, limits, request ids, slow peers, and an orderly end. Refuses to listen where strangers could reach it unless
 * the doors behind it ask who is there. Knows no protocol.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { Fault } from '../model/faults.ts';
import type { HttpHost, Logger, UpgradeHandler } from '../ports.ts';
import { connectionShare } from './capacity.ts';
import { createConnectionLimit } from './connection-limit.ts';
import { createMounting } from './mounting.ts';
import { crossOrigin, type Edge, edgeTrouble, isLoopback } from './origin.ts';
import { type Refusal, refusal, refuse, refuseSocket } from './refusal.ts';
import { HouseRequest, HouseResponse } from './response.ts';
import { UnderWay } from './under-way.ts';

export interface HttpHostOptions {
  /** Interface to listen on. */
  readonly host?: string;
  /** 0 takes a free one. */
  readonly port?: number;
  /** Names beyond the loopback ones that requests may address us by. */
  readonly allowedHosts?: readonly string[];
  /** Origins beyond our own whose pages may use us. */
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
  /** How long open exchanges have to end by themselves when closing. */
  readonly graceMs?: number;
  /** Says that every door behind this port authenticates. Without it only loopback interfaces are listened on. */
  readonly authenticated?: boolean;
  readonly requestId: () => string;
  readonly log: Logger;
}

export interface ListeningHost extends HttpHost {
  listen(): Promise<{ readonly url: string }>;
  /** Open exchanges get the grace period, then the end of their stream, then the end of their connection. */
  close(): Promise<void>;
}

const MIB = 1024 * 1024;

/** The id this request goes by in answers and logs. Ours; what a client sends under that name is not believed. */
export function requestIdOf(request: IncomingMessage): string {
  return request instanceof HouseRequest ? request.id : '';
}

export function createHttpHost(options: HttpHostOptions): ListeningHost {
  const { host = '127.0.0.1', port = 0, bodyLimit = 64 * MIB, graceMs = 2000, log } = options;
  const edge = {
    port: 0,
    allowedHosts: options.allowedHosts ?? [],
    allowedOrigins: options.allowedOrigins ?? [],
  } satisfies Edge as Edge & { port: number };
  const upgrades: { mine: (path: string) => boolean; handler: UpgradeHandler }[] = [];
  const open = new UnderWay<string, HouseResponse>();
  const upgraded = new Set<Duplex>();
  let draining = false;
  let url = '';

  const mounting = createMounting();

  const server = createServer({
    IncomingMessage: HouseRequest,
    ServerResponse: HouseResponse,
    maxHeaderSize: options.headerLimit ?? 16 * 1024,
    headersTimeout: options.headersTimeoutMs ?? 10_000,
    requestTimeout: options.requestTimeoutMs ?? 60_000,
    keepAliveTimeout: options.keepAliveMs ?? 5_000,
    connectionsCheckingInterval: Math.min(1_000, options.headersTimeoutMs ?? 1_000),
    requireHostHeader: true,
    noDelay: true,
  });

  const limit = createConnectionLimit({
    most: options.connections ?? connectionShare(),
    ...(options.connectionsPerAddress !== undefined && { mostEach: options.connectionsPerAddress }),
  });

  /** Counted before a byte is read: a connection that says nothing takes a descriptor like any other. */
  server.on('connection', (socket) => {
    if (limit.admits(socket)) return;
    socket.on('error', () => socket.destroy());
    refuseSocket(socket, refusal('crowded', 'too many connections are open; close some, or try again later'), null);
  });

  /** Everything that can be said about a request from its first line and its headers. */
  function admit(request: IncomingMessage): Refusal | undefined {
    const trouble = edgeTrouble(request, edge);
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

  /** Browsers ask before they send; only pages we were told about get past `admit` with a foreign origin. */
  function answeredPreflight(request: IncomingMessage, response: HouseResponse): boolean {
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

  /** What no door wanted, or one of them failed at. */
  function left(request: HouseRequest, response: HouseResponse, thrown: unknown): void {
    if (thrown) log.error({ err: thrown, request_id: request.id }, 'a request failed outside its door');
    const said = thrown
      ? refusal('internal', 'something went wrong inside the gateway')
      : refusal('absent', 'there is nothing at this address');
    refuse(response, said, request.id);
  }

  function closed(this: HouseResponse): void {
    open.over(this.req.id);
    limit.silent(this.req.socket);
  }

  server.on('request', (request: HouseRequest, response: HouseResponse) => {
    request.id = options.requestId();
    limit.busy(request.socket);
    response.last = draining;
    open.begin(request.id, response);
    response.on('close', closed);
    // A peer that goes away is everyday; without a listener it would be the end of the process.
    request.on('error', unheard);
    response.on('error', unheard);
    const refused = admit(request);
    if (refused) refuse(response, refused, request.id);
    else if (!answeredPreflight(request, response)) {
      mounting.show(request, response, (thrown) => left(request, response, thrown));
    }
  });

  server.on('upgrade', (request: HouseRequest, socket: Duplex, head: Buffer) => {
    const id = options.requestId();
    request.id = id;
    limit.busy(request.socket);
    socket.on('error', () => socket.destroy());
    const refused = admit(request);
    if (refused) return refuseSocket(socket, refused, id);
    const path = request.url?.split('?', 1)[0] ?? '';
    const door = upgrades.find(({ mine }) => mine(path));
    if (!door) return refuseSocket(socket, refusal('absent', 'there is nothing to upgrade at this address'), id);
    upgraded.add(socket);
    socket.once('close', () => upgraded.delete(socket));
    try {
      door.handler(request, socket, head);
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

  async function drain(): Promise<void> {
    draining = true;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    const over = () => open.size === 0 && upgraded.size === 0;
    await until(over, graceMs);
    for (const response of open.all()) response.headersSent ? response.end() : response.destroy();
    for (const socket of upgraded) socket.end();
    server.closeIdleConnections();
    await until(over, Math.min(graceMs, 500));
    for (const socket of upgraded) socket.destroy();
    server.closeAllConnections();
    await closed;
  }

  return {
    get url() {
      return url;
    },
    mount: mounting.add,
    upgrade(mine, handler) {
      upgrades.push({ mine, handler });
    },
    async listen() {
      if (!options.authenticated && !isLoopback(host)) {
        throw new Fault('permission_denied', `${host} can be reached by others, and no authentication is configured`);
      }
      await listening(server, host, port);
      const at = server.address() as AddressInfo;
      (edge as { port: number }).port = at.port;
      const name = isLoopback(host) || at.family !== 'IPv6' ? host : `[${at.address}]`;
      url = `http://${host === '::1' ? '[::1]' : name}:${at.port}`;
      return { url };
    },
    async close() {
      if (!server.listening) return;
      await drain();
    },
  };
}

function unheard(): void {}

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
  while (!over() && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
}
