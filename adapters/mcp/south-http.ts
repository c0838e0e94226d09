/**
 * One server over HTTP. A request is one exchange with a stream of its own, so whatever arrives on it belongs to it.
 * Credentials are ours and go to the configured origin only; redirects are refused. A stream that breaks off is gone on
 * with where the server gave it ids.
 */
import { setMaxListeners } from 'node:events';
import { CODES, META, methodRow } from '../../mappings/mcp.ts';
import { Fault, type Json, type JsonObject } from '../../src/index.ts';
import {
  type Incoming,
  type IncomingStream,
  type KeptConnections,
  type Line,
  type Outgoing,
  TooMuch,
} from '../../src/wire/kept-connections.ts';
import { readSse } from '../../src/wire/sse-read.ts';
import type { StopSignal } from '../../src/wire/stop.ts';
import { type Frame, failed, framesIn, isResponse, metaOf, notice, type Outcome, type Response } from './frames.ts';
import { headerValue } from './header-values.ts';
import type { Opened, Sending, Unasked, Wire } from './south.ts';

export interface Remote {
  readonly url: URL;
  /** Headers of ours, credentials among them; asked anew for every request. A promise only where there is something to wait for. */
  headers(): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** The server does not know us: true when it is worth trying once more. */
  refused?(status: number, challenge: string | undefined): Promise<boolean>;
  /** What somebody can do about credentials that are not accepted. */
  readonly advice?: string;
  /** Bytes of one answer. */
  readonly limit: number;
  /** Shared by all wires to this server. */
  readonly connections: KeptConnections;
}

export interface HttpWire extends Wire {
  readonly session: string | undefined;
  /** Listens for what the server says of itself. Ends with the wire; a server that has no such stream is left alone. */
  listen(): void;
}

const RETRIES = 5;
const RETRY_MS = 1000;

export function openHttp(remote: Remote, opened: Opened, unasked: Unasked): HttpWire {
  const { url } = remote;
  const path = `${url.pathname}${url.search}`;
  const cut = new AbortController();
  // Everything on its way listens to it, however much that is.
  setMaxListeners(0, cut.signal);
  let opening: Promise<Line> | undefined;
  let line: Line | undefined;
  let session: string | undefined;
  let settle = () => {};
  const gone = new Promise<void>((resolve) => {
    settle = resolve;
  });

  async function firstSend(outgoing: Outgoing, signal: StopSignal): Promise<Incoming> {
    opening ??= remote.connections.open();
    line ??= await opening;
    return await line.send(outgoing, signal);
  }

  function send(outgoing: Outgoing, signal: StopSignal): Promise<Incoming> {
    return line ? line.send(outgoing, signal) : firstSend(outgoing, signal);
  }

  function common(
    own: Readonly<Record<string, string>>,
    more: Readonly<Record<string, string>>,
  ): Record<string, string> {
    const headers: Record<string, string> = { ...own };
    if (session !== undefined) headers['mcp-session-id'] = session;
    if (opened.revision !== undefined) headers['mcp-protocol-version'] = opened.revision;
    return Object.assign(headers, more);
  }

  async function post(
    frame: JsonObject,
    signal: StopSignal,
    more?: Readonly<Record<string, string>>,
  ): Promise<Incoming> {
    const body = JSON.stringify(frame);
    for (let again = false; ; again = true) {
      const own = remote.headers();
      const headers = common(own instanceof Promise ? await own : own, named(frame));
      Object.assign(headers, more, POSTED);
      let answer: Incoming;
      try {
        answer = await send({ method: 'POST', path, headers, body }, signal);
      } catch (cause) {
        throw cause instanceof TooMuch ? tooMuch(remote.limit) : unreached(cause, signal);
      }
      if ((answer.status !== 401 && answer.status !== 403) || again) return answer;
      const worth = await remote.refused?.(answer.status, answer.header('www-authenticate'));
      if (!worth) return answer;
    }
  }

  /** Reads a stream to its response, and goes on with it where it broke off. */
  async function followed(first: IncomingStream, id: string, { signal, heard }: Sending): Promise<Outcome> {
    const place = createPlace();
    let stream: IncomingStream | undefined = first;
    for (let tries = 0; ; ) {
      if (stream) {
        for await (const frame of framesOf(stream, place)) {
          tries = 0;
          if (isResponse(frame)) {
            if (frame.id !== id) continue;
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
      await pause(place.retryMs, signal, cut.signal);
      stream = await resume(place.last, signal);
    }
  }

  async function resume(last: string | undefined, signal: StopSignal): Promise<IncomingStream | undefined> {
    const more = { accept: 'text/event-stream', ...(last !== undefined && { 'last-event-id': last }) };
    const headers = common(await remote.headers(), more);
    const answer = await send({ method: 'GET', path, headers }, signal).catch(() => undefined);
    return answer?.status === 200 ? answer.stream : undefined;
  }

  async function request(...[id, method, params, sending]: Parameters<Wire['request']>): Promise<Outcome> {
    const frame = { jsonrpc: '2.0', id, method, ...(params && { params }) };
    try {
      const incoming = await post(frame, sending.signal, sending.headers);
      const { status, stream } = incoming;
      if (status === 200 && method === 'initialize') session = incoming.header('mcp-session-id');
      if (status === 200 && stream) return await followed(stream, id, sending);
      stream?.cancel();
      return answered(incoming, id);
    } catch (thrown) {
      // Hanging up means nothing in a session; it has to be said.
      const inSession = opened.revision !== undefined && method !== 'initialize';
      if (inSession && sending.signal.aborted) cancel(id);
      throw thrown;
    }
  }

  function answered({ status, text }: Incoming, id: string): Outcome {
    const answers = framesIn(text).filter(isResponse);
    // A server that could not read the id answers under none, or under one of its own: that may only be an error.
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
    tell(notice('notifications/cancelled', { requestId: id })).catch(() => {});
  }

  async function tell(frame: object): Promise<void> {
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
    notify: tell,
    respond: (id, answered) => tell({ jsonrpc: '2.0', id, ...answered }),
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
    const place = createPlace();
    for (let misses = 0; !cut.signal.aborted && misses < RETRIES; ) {
      const stream = await resume(place.last, cut.signal);
      if (!stream) misses += 1;
      else {
        misses = 0;
        for await (const frame of framesOf(stream, place)) if (!isResponse(frame)) unasked(frame);
      }
      await pause(place.retryMs, cut.signal);
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
const POSTED = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' } as const;

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
async function* framesOf(stream: IncomingStream, place: Place): AsyncGenerator<Frame> {
  try {
    for await (const { event, data } of readSse(stream, undefined, place)) {
      if (event === 'message') yield* framesIn(data);
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

function outcome(response: Response): Outcome {
  return 'error' in response
    ? failed(response.error.code, response.error.message, response.error.data as Json | undefined)
    : { result: response.result };
}

/** What the connection calls things nobody else does. */
const TROUBLES: Readonly<Record<string, string>> = {
  HTTPParserError: 'the server does not answer in HTTP',
  UND_ERR_SOCKET: 'the server broke off the connection',
  UND_ERR_CONNECT_TIMEOUT: 'the server cannot be reached (nothing there answers)',
};

/** Some time, or until somebody has enough. */
function pause(ms: number, ...signals: readonly StopSignal[]): Promise<void> {
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

function unreached(cause: unknown, signal: StopSignal): Fault {
  if (signal.aborted) return new Fault('client_closed', 'the request was given up');
  const { code = '', name } = (cause ?? {}) as { code?: string; name?: string };
  const known = TROUBLES[name === 'HTTPParserError' ? name : code];
  const why = known ?? `the server cannot be reached${code.startsWith('E') ? ` (${code})` : ''}`;
  return new Fault('upstream_unavailable', why, { cause });
}
