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

  /** Resolves once the holder has confirmed the request, whose body it does not have yet, or has refused it, or is not there. */
  async function propose(
    row: ReplicaRow,
    request: IncomingMessage,
    body: Uint8Array | undefined,
    longestMs: number,
  ): Promise<Reply> {
    const requestId = request instanceof GatewayRequest ? request.id : '';
    const address = request.socket.remoteAddress;
    const hop = { from: registry.id, requestId, ...(address && { address }) };
    const token = await tokens.sign(hop, row.id, request);
    if (request.socket.destroyed) return 'unwanted';
    const outgoing = open({
      ...locationOf(row.address),
      agent: agentOf(request.socket, row.id),
      method: request.method,
      path: request.url,
      setHost: false,
    });
    for (const [name, values] of headersOf(request, body)) outgoing.setHeader(name, values);
    outgoing.setHeader(HOP_HEADER, token);
    outgoing.flushHeaders();
    const taken: Taken = { outgoing };
    return await new Promise<Reply>((resolve) => {
      const over = (how: Reply) => {
        clearTimeout(late);
        request.socket.off('close', left);
        resolve(how);
        if (typeof how === 'string') outgoing.destroy();
      };
      const left = () => over('unwanted');
      const late = setTimeout(() => over('silent'), longestMs);
      request.socket.once('close', left);
      // Also later, when nobody waits here any more.
      outgoing.on('error', () => over('gone'));
      outgoing.once('information', () => over(taken));
      outgoing.once('response', (answer) => {
        taken.answer = answer;
        over(taken);
      });
    });
  }

  return {
    mark: markOf(registry.id),
    async handOn(held, request, response, body) {
      const to = holderOf(held);
      const came = request instanceof GatewayRequest && request.hop !== undefined;
      if (to === undefined || to === registry.id || came) return false;
      const row = await registry.find(to);
      if (!row) return false;
      // One that is about to end confirms nothing any more, and is gone a moment later.
      const until = performance.now() + HOP_LIFETIME_S * 1000;
      for (;;) {
        const reply = await propose(row, request, body, Math.max(until - performance.now(), 1));
        if (reply === 'unwanted') return true;
        if (typeof reply !== 'string') {
          carry(reply, request, response, { body, log, to });
          return true;
        }
        if (reply === 'gone' && (await registry.isGone(to))) return false;
        if (reply === 'silent' || performance.now() > until) break;
        await pause(AGAIN_MS);
      }
      log.warn({ replica: to, request_id: idOf(request) }, UNREACHABLE);
      refuse(response, refusal('elsewhere', UNREACHABLE), idOf(request));
      return true;
    },
  };
}

/**
 * The holder confirms a request before it does anything with it, and gets the body only then. So one that broke off before has done
 * nothing, and one that stood still until its caller was told that it does not answer has nothing to act on.
 */
type Reply = 'unwanted' | 'gone' | 'silent' | Taken;
interface Taken {
  readonly outgoing: ClientRequest;
  /** Where it came as early: a refusal without a confirmation, or that of a request without a body. */
  answer?: IncomingMessage;
}

const AGAIN_MS = 50;
const UNREACHABLE = 'the replica that holds this does not answer; try again';
const BROKEN = 'the replica that held this broke off; whether the request had an effect is not known';

function carry(
  { outgoing, answer }: Taken,
  request: IncomingMessage,
  response: ServerResponse,
  { body, log, to }: { readonly body: Uint8Array | undefined; readonly log: Logger; readonly to: string },
): void {
  let over = false;
  function render(answered: IncomingMessage): void {
    response.writeHead(answered.statusCode ?? 502, answered.rawHeaders.filter(staysOnRaw));
    response.flushHeaders();
    pipeline(answered, response, () => {
      over = true;
      outgoing.destroy();
    });
  }
  outgoing.on('error', () => {
    if (over) return;
    over = true;
    outgoing.destroy();
    if (response.destroyed) return;
    log.warn({ replica: to, request_id: idOf(request) }, BROKEN);
    refuse(response, refusal('elsewhere', BROKEN), idOf(request));
  });
  response.once('close', () => {
    if (!over && !response.writableFinished) {
      over = true;
      outgoing.destroy();
    }
  });
  if (answer) {
    render(answer);
    return;
  }
  outgoing.on('response', render);
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
