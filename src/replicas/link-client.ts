/**
 * Hands requests on to the replica that holds the thing they are about: the raw request with the caller's credentials there, the answer
 * as it comes back, with backpressure and hang-ups in both directions. A request is handed on once; one that came over the link is not.
 *
 * Each connection of a client has connections of its own to other replicas, which live as long as it does: a holder that watches whether
 * its client is still connected sees the same as if it were connected to it.
 */
import { Agent, type ClientRequest, type IncomingMessage, request as open, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { InternalLink, Logger } from '../ports/index.ts';
import { refusal, refuse } from '../transport/http/refusal.ts';
import { GatewayRequest } from '../transport/http/response.ts';
import { HOP_HEADER, HOP_LIFETIME_S, type HopTokens } from './hop-token.ts';
import { holderOf, markOf } from './mark.ts';
import type { Registry, ReplicaRow } from './registry.ts';

export interface LinkClientDeps {
  readonly registry: Registry;
  readonly tokens: HopTokens;
  readonly log: Logger;
}

export function createLinkClient({ registry, tokens, log }: LinkClientDeps): InternalLink {
  const agents = new WeakMap<Socket, Map<string, Agent>>();

  function agentOf(socket: Socket, to: string): Agent {
    const mine = agents.get(socket) ?? new Map<string, Agent>();
    if (!agents.has(socket)) {
      agents.set(socket, mine);
      socket.once('close', () => {
        for (const agent of mine.values()) agent.destroy();
      });
    }
    const known = mine.get(to) ?? new Agent({ keepAlive: true });
    mine.set(to, known);
    return known;
  }

  async function connect(
    row: ReplicaRow,
    request: IncomingMessage,
    body?: Uint8Array,
  ): Promise<ClientRequest | undefined> {
    const requestId = request instanceof GatewayRequest ? request.id : '';
    const address = request.socket.remoteAddress;
    const hop = { from: registry.id, requestId, ...(address && { address }) };
    const token = await tokens.sign(hop, row.id, request);
    if (request.socket.destroyed) return undefined;
    const outgoing = open({
      ...locationOf(row.address),
      agent: agentOf(request.socket, row.id),
      method: request.method,
      path: request.url,
      setHost: false,
    });
    for (const [name, values] of headersOf(request, body)) outgoing.setHeader(name, values);
    outgoing.setHeader(HOP_HEADER, token);
    const connected = await new Promise<boolean>((resolve) => {
      outgoing.once('error', () => resolve(false));
      outgoing.once('socket', (socket) => {
        if (socket.connecting) socket.once('connect', () => resolve(true));
        else resolve(true);
      });
    });
    return connected ? outgoing : undefined;
  }

  return {
    mark: markOf(registry.id),
    async handOn(held, request, response, body) {
      const to = holderOf(held);
      const came = request instanceof GatewayRequest && request.hop !== undefined;
      if (to === undefined || to === registry.id || came) return false;
      const row = await registry.find(to);
      if (!row) return false;
      // One that is about to end accepts nothing any more, and is gone a moment later.
      const until = performance.now() + HOP_LIFETIME_S * 1000;
      for (;;) {
        const outgoing = await connect(row, request, body);
        if (outgoing) {
          carry(outgoing, request, response, { body, log, to });
          return true;
        }
        if (request.socket.destroyed) return true;
        if (await registry.isGone(to)) return false;
        if (performance.now() > until) break;
        await pause(AGAIN_MS);
      }
      refuse(response, refusal('elsewhere', UNREACHABLE), idOf(request));
      return true;
    },
  };
}

const AGAIN_MS = 50;
const UNREACHABLE = 'the replica that holds this does not answer; try again';
const BROKEN = 'the replica that held this broke off; whether the request had an effect is not known';

function carry(
  outgoing: ClientRequest,
  request: IncomingMessage,
  response: ServerResponse,
  { body, log, to }: { readonly body: Uint8Array | undefined; readonly log: Logger; readonly to: string },
): void {
  let over = false;
  function fail(why: string): void {
    if (over) return;
    over = true;
    clearTimeout(silent);
    outgoing.destroy();
    if (response.destroyed) return;
    log.warn({ replica: to, request_id: idOf(request) }, why);
    refuse(response, refusal('elsewhere', why), idOf(request));
  }
  // The holder confirms a request before it does anything with it.
  const silent = setTimeout(() => fail(UNREACHABLE), HOP_LIFETIME_S * 1000).unref();
  outgoing.on('information', () => clearTimeout(silent));
  outgoing.on('error', () => fail(BROKEN));
  outgoing.on('response', (answer) => {
    clearTimeout(silent);
    response.writeHead(answer.statusCode ?? 502, answer.rawHeaders.filter(staysOnRaw));
    response.flushHeaders();
    pipeline(answer, response, () => {
      over = true;
      outgoing.destroy();
    });
  });
  response.once('close', () => {
    if (!over && !response.writableFinished) {
      over = true;
      clearTimeout(silent);
      outgoing.destroy();
    }
  });
  if (body) outgoing.end(body);
  else pipeline(request, outgoing, () => {});
}

function idOf(request: IncomingMessage): string {
  return request instanceof GatewayRequest ? request.id : '';
}

/** What concerns one connection stays on it. A token that a client made up is not passed on. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'expect',
  'te',
  'trailer',
  'upgrade',
  'http2-settings',
  HOP_HEADER,
]);

/** In the order and number they came. */
function headersOf({ rawHeaders }: IncomingMessage, body: Uint8Array | undefined): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    if (NOT_PASSED.has(name)) continue;
    const values = found.get(name);
    if (values) values.push(rawHeaders[at + 1] as string);
    else found.set(name, [rawHeaders[at + 1] as string]);
  }
  if (body) {
    found.delete('transfer-encoding');
    found.set('content-length', [String(body.byteLength)]);
  }
  return found;
}

function staysOnRaw(_: string, at: number, all: readonly string[]): boolean {
  const name = (all[at - (at % 2)] as string).toLowerCase();
  return !NOT_PASSED.has(name) && name !== 'transfer-encoding';
}

function locationOf(address: string): { socketPath: string } | { host: string; port: number } {
  if (address.startsWith('unix:')) return { socketPath: address.slice('unix:'.length) };
  const { hostname, port } = new URL(`http://${address.slice('tcp:'.length)}`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
}
