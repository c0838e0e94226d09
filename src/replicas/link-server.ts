/**
 * Where requests of other replicas come in: a listener of its own, apart from the port of the clients. Nothing is served without a valid
 * token. A request is confirmed at once, so that the other side can tell a slow answer from a replica that does not run.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { asFault } from '../model/faults.ts';
import type { Closable, Logger } from '../ports/index.ts';
import { refusal, refuse } from '../transport/http/refusal.ts';
import { GatewayRequest, GatewayResponse } from '../transport/http/response.ts';
import { HOP_HEADER, type HopTokens } from './hop-token.ts';

export interface LinkServer extends Closable {
  /** As the row of this replica has it. */
  readonly address: string;
}

export interface LinkServerOptions {
  readonly id: string;
  /** The directory that the processes of this machine share. */
  readonly directory: string;
  /** Listens on TCP instead of a socket in the directory. */
  readonly tcp?: TcpAddress;
  readonly headerLimit?: number;
  readonly log: Logger;
}

export interface TcpAddress {
  readonly host: string;
  readonly port: number;
  /** Where the other replicas reach it, if that is another address. */
  readonly address?: string;
}

export interface LinkServing {
  readonly tokens: HopTokens;
  /** Serves a request as the port of the clients does. */
  readonly serve: (request: GatewayRequest, response: GatewayResponse) => void;
}

/** Listens at once, and serves once it is told how: its address is on record before it can know the other replicas. */
export async function openLinkServer({
  id,
  directory,
  tcp,
  headerLimit,
  log,
}: LinkServerOptions): Promise<LinkServer & { begin(serving: LinkServing): void }> {
  let serving: LinkServing | undefined;
  let leaving = false;
  const open = new Set<Socket>();
  /** Answers to requests that were confirmed. */
  const owed = new Set<GatewayResponse>();

  async function receive(request: GatewayRequest, response: GatewayResponse): Promise<void> {
    request.on('error', () => {});
    response.on('error', () => {});
    const token = request.headers[HOP_HEADER];
    delete request.headers[HOP_HEADER];
    try {
      if (!serving) throw new Error('the replica is starting');
      const hop = await serving.tokens.verify(typeof token === 'string' ? token : undefined, request);
      request.id = hop.requestId;
      request.hop = hop;
    } catch (thrown) {
      const { kind, message } = asFault(thrown);
      log.warn({ kind, why: message }, 'a request over the internal link was refused');
      refuse(response, refusal(kind === 'unauthenticated' ? 'unproven' : 'elsewhere', message), request.id);
      return;
    }
    // What was not confirmed was not begun: the other side asks again, here or elsewhere.
    if (leaving) request.socket.destroy();
    if (request.socket.destroyed) return;
    owed.add(response);
    response.once('close', () => owed.delete(response));
    response.writeProcessing();
    serving.serve(request, response);
  }

  const server = createServer(
    {
      IncomingMessage: GatewayRequest,
      ServerResponse: GatewayResponse,
      // The token comes on top of what the client sent.
      maxHeaderSize: (headerLimit ?? 16 * 1024) + 4 * 1024,
      // The other side closes a connection with that of its client.
      keepAliveTimeout: 0,
      requestTimeout: 0,
      noDelay: true,
    },
    // Node gives the listener the classes named above.
    receive as unknown as RequestListener<typeof GatewayRequest, typeof GatewayResponse>,
  );
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  const { address, end } = tcp ? await listenTcp(server, tcp) : await listenUnix(server, directory, id);

  return {
    address,
    begin(how) {
      serving = how;
    },
    async close() {
      leaving = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const until = performance.now() + GRACE_MS;
      while ([...owed].some(({ streams }) => !streams) && performance.now() < until) await pause(10);
      for (const socket of open) socket.destroy();
      await closed;
      await end();
    },
  };
}

/** How long a request that was confirmed may take once this replica is to end. */
const GRACE_MS = 2_000;
/** The longest path that every system takes for a socket. */
const LONGEST_PATH = 103;

async function listenUnix(server: Server, directory: string, id: string) {
  const inside = join(directory, 'replicas', `${id}.sock`);
  const fits = Buffer.byteLength(inside) <= LONGEST_PATH;
  // A directory of our own: in a shared one another user could put a socket in place of ours.
  const path = fits ? inside : join(await mkdtemp(join(tmpdir(), 'tollbridge-')), 'link.sock');
  if (fits) await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const before = process.umask(0o177);
  try {
    await listening(server, { path });
  } finally {
    process.umask(before);
  }
  return { address: `unix:${path}`, end: () => rm(fits ? path : dirname(path), { recursive: true, force: true }) };
}

async function listenTcp(server: Server, { host, port, address }: TcpAddress) {
  await listening(server, { host, port });
  const { port: taken } = server.address() as AddressInfo;
  const name = host.includes(':') ? `[${host}]` : host;
  return { address: `tcp:${address ?? `${name}:${taken}`}`, end: async () => {} };
}

function listening(server: Server, where: { path: string } | { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ ...where, exclusive: true }, () => {
      server.off('error', reject);
      server.on('error', () => {});
      resolve();
    });
  });
}
