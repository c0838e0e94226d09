/**
 * One server over HTTP. A request is one exchange with a stream of its own, so every frame on that stream belongs to it.
 * Credentials are ours and go to the configured origin only; redirects are refused. A broken stream is resumed where the
 * server gave its events ids.
 */
import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import { CODES, META, methodRow } from '../../../../mappings/mcp.ts';
import { Fault, type Json, type JsonObject } from '../../../../src/index.ts';
import { readLines } from '../../../../src/transport/ndjson/ndjson.ts';
import {
  type Incoming,
  type IncomingStream,
  type KeptConnection,
  type KeptConnections,
  NEVER_SENT,
  type Outgoing,
  type SendOptions,
  TooMuch,
} from '../../../../src/transport/outbound/kept-connections.ts';
import { outgoingTrace } from '../../../../src/transport/outbound/trace-context.ts';
import { readSse } from '../../../../src/transport/sse/read.ts';
import {
  type Frame,
  type FrameOutcome,
  failed,
  framesIn,
  isResponse,
  metaOf,
  notice,
  type Response,
} from '../../frames.ts';
import { headerValue } from '../../header-values.ts';
import { unanswered } from '../unanswered.ts';
import type { Opened, Sending, Unasked, Wire } from './transport.ts';

export interface HttpUpstream {
  readonly url: URL;
  /** Our headers, including credentials; called for every request. Returns a promise only where there is something to await. */
  headers(): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** The server refused our credentials: true when the request should be tried once more. */
  refused?(status: number, challenge: string | undefined): Promise<boolean>;
  /** What an operator can do about credentials that are not accepted. */
  readonly advice?: string;
  /** The byte limit of one answer. */
  readonly limit: number;
  /** Shared by all connections to this server. */
  readonly connections: KeptConnections;
}

export interface HttpWire extends Wire {
  readonly session: string | undefined;
  /** Listens for messages that belong to no request. Ends with the connection; a server without such a stream is not asked again. */
  listen(): void;
}

const RETRIES = 5;
const RETRY_MS = 1000;

export function openHttp(remote: HttpUpstream, opened: Opened, unasked: Unasked): HttpWire {
  const { url } = remote;
  const path = `${url.pathname}${url.search}`;
  const cut = new AbortController();
  // Every request under way listens to it, however many there are.
  setMaxListeners(0, cut.signal);
  let opening: Promise<KeptConnection> | undefined;
  let line: KeptConnection | undefined;
  let session: string | undefined;
  let settle = () => {};
  const gone = new Promise<void>((resolve) => {
    settle = resolve;
  });

  async function firstSend(outgoing: Outgoing, signal: AbortSignal, options?: SendOptions): Promise<Incoming> {
    opening ??= remote.connections.open();
    line ??= await opening;
    return await line.send(outgoing, signal, options);
  }

  function send(outgoing: Outgoing, signal: AbortSignal, options?: SendOptions): Promise<Incoming> {
    return line ? line.send(outgoing, signal, options) : firstSend(outgoing, signal, options);
  }

  function common(
    own: Readonly<Record<string, string>>,
    more: Readonly<Record<string, string>>,
  ): Record<string, string> {
    const headers: Record<string, string> = { ...own, ...outgoingTrace() };
    if (session !== undefined) headers['mcp-session-id'] = session;
    if (opened.revision !== undefined) headers['mcp-protocol-version'] = opened.revision;
    return Object.assign(headers, more);
  }

  async function post(
    frame: JsonObject,
    signal: AbortSignal,
    more?: Readonly<Record<string, string>>,
    options?: SendOptions,
  ): Promise<Incoming> {
    const body = JSON.stringify(frame);
    for (let again = false; ; again = true) {
      const own = remote.headers();
      const headers = common(own instanceof Promise ? await own : own, named(frame));
      Object.assign(headers, more, POSTED);
      let answer: Incoming;
      try {
        answer = await send({ method: 'POST', path, headers, body }, signal, options);
      } catch (cause) {
        throw cause instanceof TooMuch ? tooMuch(remote.limit) : unreached(cause, signal);
      }
      if ((answer.status !== 401 && answer.status !== 403) || again) return answer;
      const worth = await remote.refused?.(answer.status, answer.header('www-authenticate'));
      if (!worth) return answer;
    }
  }

  /** Reads a stream to its response, and goes on with it where it broke off. */
  async function followed(
    { type, stream: first }: Incoming,
    id: string,
    { signal, received }: Sending,
  ): Promise<FrameOutcome> {
    const position = createStreamPosition();
    let stream = first;
    for (let tries = 0; ; ) {
      if (stream) {
        for await (const frame of type === EVENTS ? framesOf(stream, position) : framesInLines(stream)) {
          tries = 0;
          if (isResponse(frame)) {
            if (frame.id !== id) continue;
            return outcome(frame);
          }
          received(frame);
        }
      }
      if (signal.aborted || cut.signal.aborted) throw unreached(signal.reason, signal);
      if (position.last === undefined || tries >= RETRIES) {
        throw unanswered(new Fault('upstream_unavailable', 'the server ended the stream without an answer'));
      }
      tries += 1;
      await pause(position.retryMs, signal, cut.signal);
      stream = await resume(position.last, signal);
    }
  }

  async function resume(last: string | undefined, signal: AbortSignal): Promise<IncomingStream | undefined> {
    const more = { accept: 'text/event-stream', ...(last !== undefined && { 'last-event-id': last }) };
    const headers = common(await remote.headers(), more);
    const answer = await send({ method: 'GET', path, headers }, signal).catch(() => undefined);
    return answer?.status === 200 ? answer.stream : undefined;
  }

  async function request(...[id, method, params, sending]: Parameters<Wire['request']>): Promise<FrameOutcome> {
    const frame = { jsonrpc: '2.0', id, method, ...(params && { params }) };
    try {
      const incoming = await post(frame, sending.signal, sending.headers, methodRow(method)?.long ? LONG : undefined);
      const { status, stream } = incoming;
      if (status === 200 && method === 'initialize') session = incoming.header('mcp-session-id');
      if (status === 200 && stream) return await followed(incoming, id, sending);
      stream?.cancel();
      return answered(incoming, id, sending);
    } catch (thrown) {
      // In a session, disconnecting does not cancel a request; that takes a notification.
      const inSession = opened.revision !== undefined && method !== 'initialize';
      if (inSession && sending.signal.aborted) cancel(id);
      throw thrown;
    }
  }

  function answered({ status, text }: Incoming, id: string, { received }: Sending): FrameOutcome {
    const whole = framesIn(text);
    // Some servers write notifications and the answer on lines of one body.
    const frames = whole.length > 0 ? whole : text.split('\n').flatMap(framesIn);
    for (const frame of frames) if (!isResponse(frame)) received(frame);
    const answers = frames.filter(isResponse);
    // A server that could not read the id answers with null or an id of its own: that is accepted only for errors.
    const unnamed = (each: Response) => 'error' in each && (each.id === null || status >= 400);
    const answer = answers.find((each) => each.id === id) ?? answers.find(unnamed);
    if (answer && (!('error' in answer) || answer.error.code !== CODES.sessionGone || status !== 404)) {
      return outcome(answer);
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
    sendNotice(notice('notifications/cancelled', { requestId: id })).catch(() => {});
  }

  async function sendNotice(frame: object): Promise<void> {
    const { status, stream } = await post(frame as JsonObject, cut.signal);
    stream?.cancel();
    if (status >= 400) throw new Fault('upstream_unavailable', `the server answered ${status} to a notification`);
  }

  return {
    gone,
    get session() {
      return session;
    },
    request,
    notify: sendNotice,
    respond: (id, answered) => sendNotice({ jsonrpc: '2.0', id, ...answered }),
    listen() {
      void keepListening().catch(() => {});
    },
    async close() {
      if (session !== undefined && !cut.signal.aborted) {
        const own = await Promise.resolve(remote.headers()).catch(() => ({}));
        const leaving = { method: 'DELETE', path, headers: common(own, {}) } as const;
        await send(leaving, AbortSignal.timeout(CLOSE_MS)).catch(() => {});
      }
      cut.abort();
      (await opening)?.cut();
      settle();
    },
  };

  async function keepListening(): Promise<void> {
    const position = createStreamPosition();
    for (let misses = 0; !cut.signal.aborted && misses < RETRIES; ) {
      const stream = await resume(position.last, cut.signal);
      if (!stream) misses += 1;
      else {
        misses = 0;
        for await (const frame of framesOf(stream, position)) if (!isResponse(frame)) unasked(frame);
      }
      await pause(position.retryMs, cut.signal);
    }
  }
}

/** The server no longer knows the session; the request was not executed. */
export class SessionGone extends Fault {
  constructor() {
    super('upstream_unavailable', 'the server has ended the session');
  }
}

const EVENTS = 'text/event-stream';
/** The answer to a request that goes on for long is read as it arrives. */
const LONG: SendOptions = { streamed: true };
const CLOSE_MS = 1000;
const POSTED = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' } as const;

/** Where a stream is to be gone on with, and how soon. */
interface StreamPosition {
  last: string | undefined;
  retryMs: number;
  id(mark: string): void;
  retry(ms: number): void;
}

function createStreamPosition(): StreamPosition {
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

/** The frames of a stream; a broken stream just ends, which its reader handles. */
async function* framesOf(stream: IncomingStream, position: StreamPosition): AsyncGenerator<Frame> {
  try {
    for await (const { event, data } of readSse(stream, undefined, position)) {
      if (event === 'message') yield* framesIn(data);
    }
  } catch {
    // The connection is gone, or was ended by us.
  }
}

/** The same for servers that write one frame per line instead of an event stream. */
async function* framesInLines(stream: IncomingStream): AsyncGenerator<Frame> {
  try {
    for await (const line of readLines(Readable.from(stream), { limit: LONGEST_LINE, skipped() {} })) {
      yield* framesIn(line);
    }
  } catch {
    // As above.
  }
}
const LONGEST_LINE = 8 * 1024 * 1024;

/** The headers in which the modern era repeats members of a request. */
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

function outcome(response: Response): FrameOutcome {
  return 'error' in response
    ? failed(response.error.code, response.error.message, response.error.data as Json | undefined)
    : { result: response.result };
}

/** Readable messages for error codes of the HTTP client. */
const TROUBLES: Readonly<Record<string, string>> = {
  HTTPParserError: 'the server does not answer in HTTP',
  UND_ERR_SOCKET: 'the server broke off the connection',
  UND_ERR_CONNECT_TIMEOUT: 'the server cannot be reached (nothing there answers)',
};

/** Resolves after this time, or when a signal fires. */
function pause(ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    for (const signal of signals) {
      if (signal.aborted) over();
      else signal.addEventListener('abort', over);
    }
  });
}

function tooMuch(limit: number): Fault {
  return new Fault('upstream_unavailable', `the server answered with more than ${limit} bytes`);
}

function unreached(cause: unknown, signal: AbortSignal): Fault {
  if (signal.aborted) return new Fault('client_closed', 'the request was given up');
  const { code = '', name } = (cause ?? {}) as { code?: string; name?: string };
  const known = TROUBLES[name === 'HTTPParserError' ? name : code];
  const why = known ?? `the server cannot be reached${code.startsWith('E') ? ` (${code})` : ''}`;
  const fault = new Fault('upstream_unavailable', why, { cause });
  return NEVER_SENT.has(code) ? fault : unanswered(fault);
}
