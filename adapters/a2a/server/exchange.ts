/**
 * Request and response handling shared by the HTTP bindings: version, identity, body, streams and refusals. A stream waits for
 * its reader and ends when the reader disconnects; the task does not.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ServerCallContext } from '@a2a-js/sdk/server';
import { PROTOCOL } from '../../../mappings/a2a.ts';
import { PROTOCOL as LEGACY } from '../../../mappings/a2a-0.3.ts';
import type { Actor, Authenticate, Json, Logger } from '../../../src/index.ts';
import { addressOf, bearerOf } from '../../../src/transport/http/bearer.ts';
import { JSON_LIMITS, readJson } from '../../../src/transport/http/body.ts';
import { requestIdOf } from '../../../src/transport/http/server.ts';
import { traceMembers, traceParentOf } from '../../../src/transport/outbound/trace-context.ts';
import { openSse, sseFrame } from '../../../src/transport/sse/write.ts';
import type { A2aSettings } from '../config.ts';
import { PeerUser } from './caller.ts';
import { Refusal, toErrorReply } from './refusal.ts';

/** A request with its path split: `query` is its query string, `path` is below the agent's base. */
export interface PeerRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: URLSearchParams;
}

/** From the header or the query; absent means 0.3. */
export function versionOf({ request, query }: Pick<PeerRequest, 'request' | 'query'>): string {
  const versions = headersOf(request, 'a2a-version');
  if (versions.length > 1) throw new Refusal('VERSION_NOT_SUPPORTED', 'more than one A2A-Version header');
  const text = versions[0] ?? query.get('A2A-Version') ?? query.get('a2a-version') ?? '';
  return plainVersion(text) || LEGACY;
}

/** All values of a header, separately. Few requests have any, and separating headers means reading all of them. */
function headersOf(request: IncomingMessage, name: string): readonly string[] {
  const joined = request.headers[name];
  if (joined === undefined) return NONE;
  return typeof joined === 'string' && !joined.includes(',') ? [joined] : (request.headersDistinct[name] ?? NONE);
}
const NONE: readonly string[] = [];

/** Major and minor only: patch numbers decide nothing. */
export function plainVersion(version: string): string {
  if (version === PROTOCOL) return version;
  const text = version.trim();
  return /^\d+\.\d+(\.\d+)*$/.test(text) ? text.split('.').slice(0, 2).join('.') : text;
}

export function requireVersion(version: string, settings: A2aSettings): void {
  if (version === PROTOCOL) return;
  const served = settings.legacy ? [PROTOCOL, LEGACY] : [PROTOCOL];
  if (served.includes(version)) return;
  const shown = JSON.stringify(version.slice(0, 40));
  throw new Refusal('VERSION_NOT_SUPPORTED', `A2A ${shown} is not served here; there is ${served.join(' and ')}`);
}

/** The idempotency key of the request; an invalid key is refused, because the caller relies on it. */
export function keyOf(keys: readonly string[]): string | undefined {
  if (keys.length === 0) return undefined;
  const [key] = keys;
  if (keys.length === 1 && key && key.length <= 255) return key;
  throw new Refusal('INVALID_PARAMS', 'an idempotency key has 1 to 255 characters');
}

export async function contextOf(
  { request }: PeerRequest,
  binding: 'JSONRPC' | 'HTTP+JSON',
  version: string,
  authenticate: Authenticate,
): Promise<ServerCallContext> {
  const actor = atThisDoor(await authenticate(bearerOf(request), addressOf(request)));
  const { headers } = request;
  const trace = traceParentOf(request);
  const user = new PeerUser({
    actor,
    signal: goneSignal(request.socket),
    binding,
    idempotencyKey: keyOf(headersOf(request, 'idempotency-key')),
    lastEventId: headersOf(request, 'last-event-id')[0],
    trace: traceMembers(trace),
  });
  const wanted = headers['a2a-extensions'] ?? headers['x-a2a-extensions'];
  return new ServerCallContext({
    user,
    requestedVersion: version,
    requestedExtensions: listOf(wanted),
  });
}

/**
 * Fires when the connection ends. One signal serves all requests of a connection: they come one after the other, and a caller
 * with the whole response waits for no signal.
 */
function goneSignal(socket: Socket): AbortSignal {
  const known = GONE.get(socket);
  if (known) return known;
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  GONE.set(socket, gone.signal);
  return gone.signal;
}
/** A cache, collected with the connection. */
const GONE = new WeakMap<Socket, AbortSignal>();

/** The authenticated actor, marked with this door. Most callers return, and adding a member costs more than caching the result. */
function atThisDoor(actor: Actor): Actor {
  const known = HERE.get(actor);
  if (known) return known;
  const here = { ...actor, door: 'a2a' };
  HERE.set(actor, here);
  return here;
}
/** A cache, collected with the authenticator's actor. */
const HERE = new WeakMap<Actor, Actor>();

function listOf(header: string | string[] | undefined): string[] {
  if (header === undefined) return [];
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return [...new Set(text.split(',').map((uri) => uri.trim()))].filter((uri) => uri !== '').slice(0, 50);
}

export function bodyOf(request: IncomingMessage, settings: A2aSettings): Promise<unknown> {
  return readJson(request, { ...JSON_LIMITS, bytes: settings.jsonLimit });
}

export function answer(response: ServerResponse, status: number, type: string, body: Json | undefined): void {
  if (response.headersSent || response.destroyed) return;
  if (body === undefined) {
    response.writeHead(status).end();
    return;
  }
  // A text is sent in one piece with its headers.
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    ...(!response.req.complete && { connection: 'close' }),
  });
  response.end(text);
}

/** Sets the headers of a refusal, and logs the error when it was ours. */
export function refusing({ request, response }: PeerRequest, thrown: unknown, log: Logger): void {
  const { http, cause, retryAfterMs } = toErrorReply(thrown);
  if (cause !== undefined) log.error({ err: cause, request_id: requestIdOf(request) }, 'a call of a peer failed');
  if (response.headersSent) return;
  if (http === 401) response.setHeader('www-authenticate', 'Bearer');
  if (retryAfterMs !== undefined) response.setHeader('retry-after', Math.max(1, Math.ceil(retryAfterMs / 1000)));
}

export interface Streaming {
  readonly settings: A2aSettings;
  readonly context: ServerCallContext;
  readonly extensionHeader?: string;
  readonly log: Logger;
  /** One event, wrapped for this binding. */
  wrap(event: Json): Json;
  /** The event sent when the stream breaks in the middle. */
  failed(thrown: unknown): Json;
}

/** Waits for the first event before sending anything, so that a refusal is a response and not a broken stream. */
export async function sendStream(incoming: PeerRequest, stream: AsyncGenerator<Json>, how: Streaming): Promise<void> {
  const { response } = incoming;
  const first = await stream.next();
  showExtensions(response, how.context, how.extensionHeader);
  const { keepAliveMs, stallMs } = how.settings;
  const sse = openSse(response, { keepAliveMs, stallMs });
  try {
    for (let next = first; !next.done; next = await stream.next()) {
      if (!sse.write(sseFrame({ data: JSON.stringify(how.wrap(next.value)) })) && !(await sse.room())) break;
    }
  } catch (thrown) {
    refusing(incoming, thrown, how.log);
    sse.write(sseFrame({ event: 'error', data: JSON.stringify(how.failed(thrown)) }));
  } finally {
    sse.close();
    await stream.return(undefined);
  }
}

/** A refusal as a stream of one event: clients of 0.3 read nothing else when they asked for a stream. */
export function refuseStream(response: ServerResponse, error: Json): void {
  if (response.headersSent || response.destroyed) return;
  openSse(response).close(sseFrame({ event: 'error', data: JSON.stringify(error) }));
}

export function showExtensions(response: ServerResponse, context: ServerCallContext, header = 'A2A-Extensions'): void {
  const active = context.activatedExtensions;
  if (active?.length && !response.headersSent) response.setHeader(header, active.join(', '));
}
