/**
 * One address for both eras, distinguished request by request. Headers that repeat members of the body have to agree with it;
 * a request whose headers do not is refused before the server is asked.
 */

import { setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { classifyInboundRequest } from '@modelcontextprotocol/server';
import { CODES, META, MODERN, MODERN_STATUS, methodRow } from '../../../../mappings/mcp.ts';
import {
  asFault,
  asText,
  Fault,
  type HttpHost,
  isObject,
  type JsonObject,
  type Logger,
} from '../../../../src/index.ts';
import { parseJson, readBytes } from '../../../../src/transport/http/body.ts';
import { timesSent } from '../../../../src/transport/http/headers.ts';
import { isStrictId } from '../../../../src/transport/json-rpc/messages.ts';
import { traceMembers, traceParentOf } from '../../../../src/transport/outbound/trace-context.ts';
import { openSse, type SseStream, sseFrame } from '../../../../src/transport/sse/write.ts';
import { clientFrameTrouble } from '../../frame-rules.ts';
import {
  answerTo,
  type Frame,
  type FrameOutcome,
  failed,
  type Id,
  isNotice,
  isRequest,
  isResponse,
  metaOf,
  type Notice,
  type Request,
  readFrame,
} from '../../frames.ts';
import { readHeader } from '../../header-values.ts';
import { type Caller, personOf } from '../caller.ts';
import { batchTrouble } from './batch.ts';
import { createLegacySessions, type LegacyClient, refuse, writeJson } from './legacy-sessions.ts';
import type { SessionNames } from './session-name.ts';

interface HttpHandler {
  handle(request: IncomingMessage, response: ServerResponse, who: LegacyClient): Promise<void> | void;
  close(): void;
}

export interface HttpHandlerOptions {
  readonly bodyLimit: number;
  readonly silenceMs: number;
  readonly idleMs: number;
  readonly awayMs: number;
  readonly log: Logger;
  /** What ends the names of sessions. */
  readonly mark: () => string;
  readonly names: SessionNames;
  readonly hold: (name: string) => Promise<string>;
  /** Hands the request on to the replica that holds the thing of this name. False: it is served here. */
  readonly handOn: NonNullable<HttpHost['handOn']>;
  readonly ended: (sessionId: string) => void;
}

const DEPTH = 100;
const VALUES = 200_000;

export function createHttpHandler({ bodyLimit, ...options }: HttpHandlerOptions): HttpHandler {
  const { handOn, mark } = options;
  const legacy = createLegacySessions(options);

  /** Returns a promise only where there is something to wait for. */
  function handle(request: IncomingMessage, response: ServerResponse, who: LegacyClient): Promise<void> | void {
    const named = request.headers['mcp-session-id'];
    const foreign = typeof named === 'string' && named.includes('~') && !named.endsWith(mark());
    if (!foreign) return here(request, response, who);
    return legacy.adopt(request, response, who).then((handed) => (handed ? undefined : here(request, response, who)));
  }

  function here(request: IncomingMessage, response: ServerResponse, who: LegacyClient): Promise<void> | void {
    const { method } = request;
    const modern = request.headers['mcp-protocol-version'] === MODERN;
    if (method !== 'POST' && (modern || (method !== 'GET' && method !== 'DELETE'))) {
      response.setHeader('allow', modern ? 'POST' : 'GET, POST, DELETE');
      return refuse(response, 405, -32000, 'Method not allowed.');
    }
    if (method === 'GET') {
      if (!accepts(request, 'text/event-stream')) return refuse(response, 406, -32000, ACCEPT_STREAM);
      return legacy.get(request, response, who);
    }
    if (method === 'DELETE') return legacy.remove(request, response, who);
    if (!accepts(request, 'application/json') || !accepts(request, 'text/event-stream')) {
      return refuse(response, 406, -32000, ACCEPT_BOTH);
    }
    const contentType = request.headers['content-type'] ?? '';
    if (contentType !== 'application/json' && !/^application\/json\s*(;|$)/i.test(contentType)) {
      return refuse(response, 415, -32000, 'Unsupported Media Type: Content-Type must be application/json');
    }
    return post(request, response, who);
  }

  async function post(request: IncomingMessage, response: ServerResponse, who: LegacyClient): Promise<void> {
    let body: unknown;
    let bytes: Buffer;
    try {
      bytes = await readBytes(request, bodyLimit);
      body = bytes.length === 0 ? undefined : parseJson(bytes, { depth: DEPTH, values: VALUES });
    } catch (thrown) {
      const { kind, message } = asFault(thrown);
      if (kind === 'payload_too_large') return refuse(response, 413, CODES.invalidRequest, message);
      return refuse(response, 400, CODES.parse, `Parse error: ${message}`);
    }
    if (!claimsModern(request, body)) {
      if (Array.isArray(body)) return await legacy.postAll(body, request, response, who);
      const frame = readFrame(body);
      if (!frame) return refuse(response, 400, CODES.invalidRequest, 'Invalid Request: this is not a JSON-RPC message');
      return await legacy.post(frame, request, response, who);
    }
    const trouble = modernTrouble(request, body);
    if (trouble) return writeJson(response, trouble.status, trouble.text);
    const frame = readFrame(body);
    if (!frame || isResponse(frame)) return refuse(response, 400, CODES.invalidRequest, 'Invalid Request');
    if (isNotice(frame)) return await noticed(frame, request, response, who);
    // The call that waits for this answer is in one process.
    const state = (frame as Request).params?.requestState;
    if (typeof state === 'string' && (await handOn(state, request, response, bytes))) return;
    await serveModern(frame, request, response, who);
  }

  /** The modern era has no client notifications over HTTP: none is forwarded, and one the table does not allow is refused. */
  async function noticed(frame: Notice, request: IncomingMessage, response: ServerResponse, who: LegacyClient) {
    const trouble = clientFrameTrouble(frame);
    if (!trouble) {
      response.writeHead(202).end();
      return;
    }
    const { code, message } = trouble.error;
    const caller = callerOf(frame, request, who, { gone: new AbortController().signal, send() {} });
    await who.handler.refuse(frame, message, caller).catch((cause) => {
      options.log.warn({ err: cause }, 'a refused frame could not be written down');
    });
    refuse(response, 400, code, message);
  }

  async function serveModern(frame: Request, request: IncomingMessage, response: ServerResponse, who: LegacyClient) {
    const reply = createReply(response, options.silenceMs);
    const caller = callerOf(frame, request, who, reply);
    const outcome = await who.handler.receive(frame, caller);
    const status = 'error' in outcome ? (MODERN_STATUS[outcome.error.code] ?? 200) : 200;
    reply.finish(frame.id, outcome, status);
  }

  function callerOf(
    { params }: Request | Notice,
    request: IncomingMessage,
    who: LegacyClient,
    reply: Pick<Reply, 'gone' | 'send'>,
  ): Caller {
    const meta = metaOf(params);
    const capabilities = meta[META.capabilities];
    const client = meta[META.client];
    const trace = traceParentOf(request);
    return {
      actor: who.actor,
      person: personOf(who.actor),
      era: 'modern',
      capabilities: isObject(capabilities) ? capabilities : {},
      client: isObject(client) ? client : {},
      home: who.home,
      headers: paramHeadersOf(request),
      signal: reply.gone,
      ...(trace && { trace: traceMembers(trace) }),
      notify: (notice) => reply.send(notice),
    };
  }

  return { handle, close: () => legacy.close() };
}

/**
 * One answer over HTTP: a JSON body when nothing has to be sent before it; a stream as soon as something has, or when the answer
 * takes longer than `silenceMs`, so that the connection is not silent.
 */
interface Reply {
  send(frame: Frame): void;
  finish(id: Id, outcome: FrameOutcome, status: number): void;
  /** Fires when the client has disconnected. */
  readonly gone: AbortSignal;
}

function createReply(response: ServerResponse, silenceMs: number): Reply {
  const gone = new AbortController();
  // One request may ask many servers, and each listens.
  setMaxListeners(0, gone.signal);
  let stream: SseStream | undefined;
  let over = false;
  const timer = setTimeout(streaming, silenceMs).unref();

  function streaming(): SseStream {
    clearTimeout(timer);
    if (!stream) {
      stream = openSse(response);
      // Headers alone do not keep a client from timing out.
      stream.write(': working\n\n');
    }
    return stream;
  }

  response.once('close', () => {
    clearTimeout(timer);
    if (!over) gone.abort();
  });

  return {
    gone: gone.signal,
    send(frame) {
      if (!over && !response.destroyed) streaming().write(sseFrame({ event: 'message', data: JSON.stringify(frame) }));
    },
    finish(id, outcome, status) {
      over = true;
      clearTimeout(timer);
      if (response.destroyed) return;
      const text = JSON.stringify(answerTo(id, outcome));
      if (stream) stream.close(sseFrame({ event: 'message', data: text }));
      else writeJson(response, status, text);
    },
  };
}

const ACCEPT_STREAM = 'Not Acceptable: Client must accept text/event-stream';
const ACCEPT_BOTH = 'Not Acceptable: Client must accept both application/json and text/event-stream';

/** The exact value that nearly every client sends. */
const BOTH = 'application/json, text/event-stream';

function accepts({ headers }: IncomingMessage, type: 'application/json' | 'text/event-stream'): boolean {
  if (headers.accept === BOTH) return true;
  const listed = (headers.accept ?? '').split(',').map((each) => each.split(';', 1)[0]?.trim().toLowerCase());
  const [family] = type.split('/');
  return listed.some((each) => each === type || each === '*/*' || each === `${family}/*`);
}

/** A request with an envelope, or under a version that has no other kind. */
function claimsModern(request: IncomingMessage, body: unknown): boolean {
  const version = request.headers['mcp-protocol-version'];
  if (request.headers['mcp-session-id'] !== undefined && version !== MODERN) {
    return isObject(body) && META.version in metaOf(body.params as JsonObject | undefined);
  }
  const claims = isObject(body) && isObject(body.params) && META.version in metaOf(body.params);
  const initializes = isObject(body) && body.method === 'initialize';
  return claims || (!initializes && (version === MODERN || request.headers['mcp-method'] !== undefined));
}

/** The first error in the headers and envelope of a modern request, found before its method is handled. */
function modernTrouble(request: IncomingMessage, body: unknown): { status: number; text: string } | undefined {
  const header = (name: string) => {
    const value = request.headers[name] as string | undefined;
    return value !== undefined && timesSent(request, name) > 1 ? '\u0000two values' : value;
  };
  const id = isObject(body) && isStrictId(body.id) ? body.id : null;
  const say = (status: number, code: number, message: string, data?: JsonObject) => ({
    status,
    text: JSON.stringify({ jsonrpc: '2.0', id: id as Id | null, ...failed(code, message, data) }),
  });
  if (Array.isArray(body)) return say(400, CODES.invalidRequest, batchTrouble(body, MODERN) ?? 'Invalid Request');
  const [version, method, name] = [header('mcp-protocol-version'), header('mcp-method'), header('mcp-name')];
  const classified = classifyInboundRequest({
    httpMethod: 'POST',
    ...(version !== undefined && { protocolVersionHeader: version }),
    ...(method !== undefined && { mcpMethodHeader: method }),
    ...(name !== undefined && { mcpNameHeader: name }),
    body,
  });
  if (classified.kind === 'reject') {
    return say(classified.httpStatus, classified.code, classified.message, classified.data as JsonObject | undefined);
  }
  const frame = readFrame(body);
  if (!frame || !('method' in frame)) return say(400, CODES.invalidRequest, 'Invalid Request');
  if (classified.kind === 'legacy')
    return say(400, CODES.invalidParams, 'the request lacks the _meta of its protocol version');
  if (!isRequest(frame)) return undefined;
  const requested = metaOf(frame.params)[META.version];
  if (requested !== MODERN) {
    const data = { supported: [MODERN], requested: requested ?? null };
    return say(400, CODES.unsupportedVersion, `Unsupported protocol version: ${asText(requested)}`, data);
  }
  if (version === undefined) return say(400, CODES.headerMismatch, 'Header mismatch: MCP-Protocol-Version is missing');
  if (method === undefined) return say(400, CODES.headerMismatch, 'Header mismatch: Mcp-Method is missing');
  if (method !== frame.method) return say(400, CODES.headerMismatch, 'Header mismatch: Mcp-Method is not the method');
  // A method that the era does not have is answered as unknown, even if its headers are incomplete.
  const row = methodRow(frame.method);
  const member = row?.eras.includes('modern') ? row.name : undefined;
  const named = member && frame.params?.[member];
  if (typeof named === 'string') {
    if (name === undefined) return say(400, CODES.headerMismatch, 'Header mismatch: Mcp-Name is missing');
    if (readHeader(name) !== named)
      return say(400, CODES.headerMismatch, `Header mismatch: Mcp-Name is not the ${member}`);
  }
  return undefined;
}

function paramHeadersOf({ headers }: IncomingMessage): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (name.startsWith('mcp-param-') && typeof value === 'string') found[name] = value;
  }
  return found;
}

/** Writes a fault that was raised outside of any request, for the caller that mounts this handler. */
export function refuseFault(response: ServerResponse, thrown: unknown): void {
  const fault = thrown instanceof Fault ? thrown : asFault(thrown);
  const status = fault.kind === 'not_found' ? 404 : fault.kind === 'unavailable' ? 503 : 500;
  refuse(response, status, CODES.internal, fault.message);
}
