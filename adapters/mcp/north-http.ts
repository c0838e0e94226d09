/**
 * One address for both eras, told apart request by request. Headers that repeat the body have to say what the body says;
 * whatever does not is refused before anyone behind is asked.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { classifyInboundRequest } from '@modelcontextprotocol/server';
import { CODES, META, MODERN, MODERN_STATUS, methodRow } from '../../mappings/mcp.ts';
import { asFault, asText, Fault, type JsonObject, type Logger } from '../../src/index.ts';
import { readJson } from '../../src/wire/body.ts';
import { timesSent } from '../../src/wire/headers.ts';
import { Stop } from '../../src/wire/stop.ts';
import { traceParentOf } from '../../src/wire/trace-context.ts';
import { type Caller, personOf } from './caller.ts';
import { clientFrameTrouble } from './frame-rules.ts';
import {
  failed,
  type Id,
  isId,
  isNotice,
  isObject,
  isRequest,
  isResponse,
  metaOf,
  type Notice,
  type Request,
  readFrame,
} from './frames.ts';
import { readHeader } from './header-values.ts';
import { batchTrouble } from './north-batch.ts';
import { createNorthLegacy, refuse, type Visitor } from './north-legacy.ts';
import { createReply, type Reply, writeJson } from './reply.ts';

export interface NorthHttp {
  handle(request: IncomingMessage, response: ServerResponse, who: Visitor): Promise<void> | void;
  close(): void;
}

export interface NorthOptions {
  readonly bodyLimit: number;
  readonly idleMs: number;
  readonly log: Logger;
  readonly ended: (sessionId: string) => void;
}

const DEPTH = 100;
const VALUES = 200_000;

export function createNorthHttp({ bodyLimit, ...options }: NorthOptions): NorthHttp {
  const legacy = createNorthLegacy(options);

  /** A promise only where there is something to wait for. */
  function handle(request: IncomingMessage, response: ServerResponse, who: Visitor): Promise<void> | void {
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

  async function post(request: IncomingMessage, response: ServerResponse, who: Visitor): Promise<void> {
    let body: unknown;
    try {
      body = await readJson(request, { bytes: bodyLimit, depth: DEPTH, values: VALUES });
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
    await serveModern(frame, request, response, who);
  }

  /** This era has no notification of a client's over HTTP: none is carried, and one that could not be any is refused. */
  async function noticed(frame: Notice, request: IncomingMessage, response: ServerResponse, who: Visitor) {
    const trouble = clientFrameTrouble(frame);
    if (!trouble) {
      response.writeHead(202).end();
      return;
    }
    const { code, message } = trouble.error;
    const caller = callerOf(frame, request, who, { gone: new Stop(), send() {} });
    await who.desk.refuse(frame, message, caller).catch((cause) => {
      options.log.warn({ err: cause }, 'a refused frame could not be written down');
    });
    refuse(response, 400, code, message);
  }

  async function serveModern(frame: Request, request: IncomingMessage, response: ServerResponse, who: Visitor) {
    const reply = createReply(response);
    const caller = callerOf(frame, request, who, reply);
    const outcome = await who.desk.receive(frame, caller);
    const status = 'error' in outcome ? (MODERN_STATUS[outcome.error.code] ?? 200) : 200;
    reply.finish(frame.id, outcome, status);
  }

  function callerOf(
    { params }: Request | Notice,
    request: IncomingMessage,
    who: Visitor,
    reply: Pick<Reply, 'gone' | 'send'>,
  ): Caller {
    const meta = metaOf(params);
    const capabilities = meta[META.capabilities];
    const client = meta[META.client];
    const trace = traceParentOf(request)?.trace_id;
    return {
      actor: who.actor,
      person: personOf(who.actor),
      era: 'modern',
      capabilities: isObject(capabilities) ? capabilities : {},
      client: isObject(client) ? client : {},
      home: who.home,
      headers: paramHeadersOf(request),
      signal: reply.gone,
      ...(trace && { trace }),
      notify: (notice) => reply.send(notice),
    };
  }

  return { handle, close: () => legacy.close() };
}

const ACCEPT_STREAM = 'Not Acceptable: Client must accept text/event-stream';
const ACCEPT_BOTH = 'Not Acceptable: Client must accept both application/json and text/event-stream';

/** What nearly every client sends, word for word. */
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

/** Everything that is wrong with a request of the modern era before anyone looks at what it wants. */
function modernTrouble(request: IncomingMessage, body: unknown): { status: number; text: string } | undefined {
  const header = (name: string) => {
    const value = request.headers[name] as string | undefined;
    return value !== undefined && timesSent(request, name) > 1 ? '\u0000two values' : value;
  };
  const id = isObject(body) && isId(body.id) ? body.id : null;
  const say = (status: number, code: number, message: string, data?: JsonObject) => ({
    status,
    text: JSON.stringify({ jsonrpc: '2.0', id: id as Id | null, ...failed(code, message, data) }),
  });
  if (Array.isArray(body)) return say(400, CODES.invalidRequest, batchTrouble(body, MODERN) ?? 'Invalid Request');
  const [version, method, name] = [header('mcp-protocol-version'), header('mcp-method'), header('mcp-name')];
  const ruling = classifyInboundRequest({
    httpMethod: 'POST',
    ...(version !== undefined && { protocolVersionHeader: version }),
    ...(method !== undefined && { mcpMethodHeader: method }),
    ...(name !== undefined && { mcpNameHeader: name }),
    body,
  });
  if (ruling.kind === 'reject') {
    return say(ruling.httpStatus, ruling.code, ruling.message, ruling.data as JsonObject | undefined);
  }
  const frame = readFrame(body);
  if (!frame || !('method' in frame)) return say(400, CODES.invalidRequest, 'Invalid Request');
  if (ruling.kind === 'legacy')
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
  // What the era has no method for is answered as such, whatever its headers lack.
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

/** For whoever mounts this: what a fault outside of any request looks like here. */
export function refuseFault(response: ServerResponse, thrown: unknown): void {
  const fault = thrown instanceof Fault ? thrown : asFault(thrown);
  const status = fault.kind === 'not_found' ? 404 : fault.kind === 'unavailable' ? 503 : 500;
  refuse(response, status, CODES.internal, fault.message);
}
