/**
 * One server over HTTP. A request is one exchange with a stream of its own, so whatever arrives on it belongs to it.
 * Credentials are ours and go to the configured origin only; redirects are refused. A stream that breaks off is gone on
 * with where the server gave it ids.
 */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as plainRequest } from 'node:http';
import { Agent as HttpsAgent, request as secureRequest } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { urlToHttpOptions } from 'node:url';
import { CODES, META, methodRow } from '../../mappings/mcp.ts';
import { Fault, type Json, type JsonObject } from '../../src/index.ts';
import { readSse } from '../../src/wire/sse-read.ts';
import { type Frame, failed, isResponse, metaOf, notice, type Outcome, type Response, readFrame } from './frames.ts';
import { headerValue } from './header-values.ts';
import type { Opened, Sending, Unasked, Wire } from './south.ts';

export interface Remote {
  readonly url: URL;
  /** Headers of ours, credentials among them; asked anew for every request. */
  headers(): Promise<Readonly<Record<string, string>>>;
  /** The server does not know us: true when it is worth trying once more. */
  refused?(status: number, challenge: string | undefined): Promise<boolean>;
  /** What somebody can do about credentials that are not accepted. */
  readonly advice?: string;
  /** Bytes of one answer. */
  readonly limit: number;
}

export interface HttpWire extends Wire {
  readonly session: string | undefined;
  /** Listens for what the server says of itself. Ends with the wire; a server that has no such stream is left alone. */
  listen(): void;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly message: IncomingMessage;
}

const IDLE_MS = 3_000;
const RETRIES = 5;
const RETRY_MS = 1000;

export function openHttp(remote: Remote, opened: Opened, unasked: Unasked): HttpWire {
  const { url } = remote;
  const secure = url.protocol === 'https:';
  const agent = new (secure ? HttpsAgent : HttpAgent)({
    keepAlive: true,
    // Streams that listen and calls that wait for a person hold a connection each: a limit would have calls wait for them.
    maxFreeSockets: 64,
    scheduling: 'lifo',
    // Servers commonly let go of a connection after five idle seconds; a request that crosses with that would be lost.
    timeout: IDLE_MS,
  });
  const cut = new AbortController();
  /** Cut with the wire; a joined signal for each would cost more. */
  const live = new Set<ClientRequest>();
  const where = urlToHttpOptions(url);
  let session: string | undefined;
  let settle = () => {};
  const gone = new Promise<void>((resolve) => {
    settle = resolve;
  });

  function send(
    method: 'POST' | 'GET' | 'DELETE',
    headers: Record<string, string>,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const make = secure ? secureRequest : plainRequest;
      const out: ClientRequest = make({
        ...where,
        method,
        agent,
        signal,
        headers: { ...headers, ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }) },
      });
      out.once('response', (message) => {
        message.on('error', () => {});
        const type = (message.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
        resolve({ status: message.statusCode ?? 0, type, message });
      });
      out.once('error', reject);
      live.add(out);
      out.once('close', () => live.delete(out));
      if (cut.signal.aborted) out.destroy();
      out.end(body);
    });
  }

  async function common(more: Readonly<Record<string, string>> = {}): Promise<Record<string, string>> {
    return {
      ...(await remote.headers()),
      ...(session !== undefined && { 'mcp-session-id': session }),
      ...(opened.revision !== undefined && { 'mcp-protocol-version': opened.revision }),
      ...more,
    };
  }

  async function post(
    frame: JsonObject,
    signal: AbortSignal,
    more?: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    const body = JSON.stringify(frame);
    for (let again = false; ; again = true) {
      const headers = await common({ ...named(frame), ...more });
      const answer = await send(
        'POST',
        { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body,
        signal,
      ).catch((cause) => {
        throw unreached(cause, signal);
      });
      if ((answer.status !== 401 && answer.status !== 403) || again) return answer;
      const worth = await remote.refused?.(answer.status, answer.message.headers['www-authenticate']);
      if (!worth) return answer;
      answer.message.resume();
    }
  }

  /** Reads a stream to its response, and goes on with it where it broke off. */
  async function followed(first: IncomingMessage, id: string, { signal, heard }: Sending): Promise<Outcome> {
    const place = createPlace();
    let message: IncomingMessage | undefined = first;
    for (let tries = 0; ; ) {
      if (message) {
        for await (const frame of framesIn(message, place)) {
          tries = 0;
          if (isResponse(frame)) {
            if (frame.id !== id) continue;
            // The rest of the stream has nothing more to say to this request.
            message.destroy();
            return outcome(frame);
          }
          heard(frame);
        }
      }
      if (signal.aborted || cut.signal.aborted) throw unreached(signal.reason, signal);
      if (place.last === undefined || tries >= RETRIES) {
        throw new Fault('upstream_unavailable', 'the server ended the stream without an answer');
      }
      tries += 1;
      await pause(place.retryMs, undefined, { signal: AbortSignal.any([signal, cut.signal]) }).catch(() => {});
      message = await resume(place.last, signal);
    }
  }

  async function resume(last: string | undefined, signal: AbortSignal): Promise<IncomingMessage | undefined> {
    const headers = await common({ accept: 'text/event-stream', ...(last !== undefined && { 'last-event-id': last }) });
    const answer = await send('GET', headers, undefined, AbortSignal.any([signal, cut.signal])).catch(() => undefined);
    if (answer?.status === 200 && answer.type === 'text/event-stream') return answer.message;
    answer?.message.resume();
    return undefined;
  }

  async function request(...[id, method, params, sending]: Parameters<Wire['request']>): Promise<Outcome> {
    const frame = { jsonrpc: '2.0', id, method, ...(params && { params }) };
    // Hanging up means nothing in a session; it has to be said.
    const inSession = opened.revision !== undefined && method !== 'initialize';
    if (inSession) sending.signal.addEventListener('abort', () => cancel(id), { once: true });
    const { status, type, message } = await post(frame, sending.signal, sending.headers);
    if (status === 200 && method === 'initialize') session = message.headers['mcp-session-id'] as string | undefined;
    if (status === 200 && type === 'text/event-stream') return await followed(message, id, sending);
    const body = await textOf(message, remote.limit);
    const frames = frameOf(body);
    if (frames && isResponse(frames) && (frames.id === id || frames.id === null || status >= 400)) {
      if (!('error' in frames) || frames.error.code !== CODES.sessionGone || status !== 404) return outcome(frames);
    }
    if (status === 404 && session !== undefined) throw new SessionGone();
    if (status === 401 || status === 403) {
      const { advice } = remote;
      const why = `the server does not accept our credentials${advice ? `; ${advice}` : ''}`;
      throw new Fault('upstream_unavailable', why, { details: { status } });
    }
    throw new Fault('upstream_unavailable', `the server answered ${status} and nothing that can be read`, {
      details: { status },
    });
  }

  function cancel(id: string): void {
    tell(notice('notifications/cancelled', { requestId: id })).catch(() => {});
  }

  async function tell(frame: object): Promise<void> {
    const { status, message } = await post(frame as JsonObject, cut.signal);
    message.resume();
    if (status >= 400) throw new Fault('upstream_unavailable', `the server answered ${status} to a notification`);
  }

  return {
    gone,
    get session() {
      return session;
    },
    request,
    notify: tell,
    respond: (id, answered) => tell({ jsonrpc: '2.0', id, ...answered }),
    listen() {
      void keepListening().catch(() => {});
    },
    async close() {
      if (session !== undefined && !cut.signal.aborted) {
        const headers = await common().catch(() => ({}));
        await send('DELETE', headers, undefined, AbortSignal.timeout(CLOSE_MS)).then(
          ({ message }) => void message.resume(),
          () => {},
        );
      }
      cut.abort();
      for (const out of live) out.destroy();
      agent.destroy();
      settle();
    },
  };

  async function keepListening(): Promise<void> {
    const place = createPlace();
    for (let misses = 0; !cut.signal.aborted && misses < RETRIES; ) {
      const message = await resume(place.last, cut.signal);
      if (!message) misses += 1;
      else {
        misses = 0;
        for await (const frame of framesIn(message, place)) if (!isResponse(frame)) unasked(frame);
      }
      await pause(place.retryMs, undefined, { signal: cut.signal }).catch(() => {});
    }
  }
}

/** The server no longer knows the session; what was asked did not happen. */
export class SessionGone extends Fault {
  constructor() {
    super('upstream_unavailable', 'the server has ended the session');
  }
}

const CLOSE_MS = 1000;

/** Where a stream is to be gone on with, and how soon. */
interface Place {
  last: string | undefined;
  retryMs: number;
  id(mark: string): void;
  retry(ms: number): void;
}

function createPlace(): Place {
  return {
    last: undefined,
    retryMs: RETRY_MS,
    id(mark) {
      this.last = mark;
    },
    retry(ms) {
      this.retryMs = ms;
    },
  };
}

/** Frames of a stream; what breaks off just ends, and its reader knows what that means. */
async function* framesIn(message: IncomingMessage, place: Place): AsyncGenerator<Frame> {
  try {
    for await (const { event, data } of readSse(message, undefined, place)) {
      const frame = event === 'message' ? frameOf(data) : undefined;
      if (frame) yield frame;
    }
  } catch {
    // The connection is gone, or was ended by us.
  }
}

/** What the modern era repeats of a request in its headers. */
function named({ method, params }: JsonObject): Record<string, string> {
  const version = metaOf(params as JsonObject | undefined)[META.version];
  if (typeof version !== 'string' || typeof method !== 'string') return {};
  const member = methodRow(method)?.name;
  const value = member && (params as JsonObject)[member];
  return {
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(typeof value === 'string' && { 'mcp-name': headerValue(value) }),
  };
}

function frameOf(text: string): Frame | undefined {
  try {
    return readFrame(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function outcome(response: Response): Outcome {
  return 'error' in response
    ? failed(response.error.code, response.error.message, response.error.data as Json | undefined)
    : { result: response.result };
}

async function textOf(message: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) {
      message.destroy();
      throw new Fault('upstream_unavailable', `the server answered with more than ${limit} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size).toString('utf8');
}

function unreached(cause: unknown, signal: AbortSignal): Fault {
  if (signal.aborted) return new Fault('client_closed', 'the request was given up');
  const { code } = (cause ?? {}) as { code?: string };
  return new Fault('upstream_unavailable', `the server cannot be reached${code ? ` (${code})` : ''}`, { cause });
}
