/**
 * Requests to one remote and to no other address: the token goes to the configured origin only, redirects are refused,
 * responses are read within bounds, and every failure becomes a `Fault`. Knows no protocol.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Fault, type FaultKind } from '../../model/faults.ts';
import { beginning } from '../../model/values/as-text.ts';
import { anySignal } from '../../model/values/signals.ts';
import { JSON_LIMITS, parseJson } from '../http/body.ts';
import { outgoingTrace, type TraceMembers } from './trace-context.ts';

export interface RemoteOptions {
  readonly base: URL;
  readonly token: () => Promise<string | undefined>;
  readonly requestMs: number;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The trace its requests are part of; absent: a trace of its own for each. */
  readonly trace?: TraceMembers;
  /** The `Accept` header for JSON. */
  readonly accept?: string;
  /** Reads code and message of a refusal from its body. */
  readonly refusal?: (body: unknown) => { readonly code: string; readonly message: string };
}

interface Asking {
  readonly body?: unknown;
  /** Idempotency key: sending the request again does not repeat its effect. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** For responses that may be large. */
  readonly limit?: number;
}

export interface Remote {
  readonly base: URL;
  /** The JSON of a 2xx response; undefined when it has none. */
  call<T>(method: string, path: string, asking?: Asking): Promise<T>;
  bytes(path: string, asking: Asking & { readonly limit: number }): Promise<Uint8Array>;
  /** A response whose body the caller reads. */
  open(path: string, asking?: Asking): Promise<Response>;
  /** The same remote, with its requests in this trace. */
  within(trace: TraceMembers): Remote;
}

/** The remote answered with an error status. */
export class RemoteRefusal extends Fault {
  readonly status: number;
  /** The remote's own error code. */
  readonly code: string;
  readonly retryAfterMs: number | undefined;

  constructor(kind: FaultKind, message: string, status: number, code: string, retryAfterMs?: number) {
    super(kind, message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The base URL of a remote; refused when the token could be read on the way to it. */
export function remoteBase(url: string, insecure = false): URL {
  const base = new URL(url.endsWith('/') ? url : `${url}/`);
  if (base.protocol !== 'https:' && !(base.protocol === 'http:' && (isLoopback(base) || insecure))) {
    throw new Fault('invalid_request', `${base.origin}: a remote has to be https, or on this machine`, {
      param: '/url',
    });
  }
  if (base.username || base.password || base.search || base.hash) {
    throw new Fault('invalid_request', 'the address of a remote has no user, query or fragment', { param: '/url' });
  }
  return base;
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

const JSON_LIMIT = 8 * 1024 * 1024;

export function createRemote(options: RemoteOptions): Remote {
  const { base, token, requestMs } = options;

  async function send(method: string, path: string, asking: Asking, accept: string, signal: AbortSignal) {
    const url = new URL(path.replace(/^\//, ''), base);
    // Paths contain ids from the remote; none of them may lead to another address.
    if (url.origin !== base.origin || !url.pathname.startsWith(base.pathname)) {
      throw new Fault('upstream_unavailable', 'the remote named an address outside of itself');
    }
    const bearer = await token();
    try {
      return await fetch(url, {
        method,
        redirect: 'manual',
        signal,
        headers: {
          accept,
          ...outgoingTrace(options.trace),
          ...options.headers,
          ...(bearer && { authorization: `Bearer ${bearer}` }),
          ...(asking.body !== undefined && { 'content-type': 'application/json' }),
          ...(asking.key && { 'idempotency-key': asking.key }),
          ...asking.headers,
        },
        ...(asking.body !== undefined && { body: JSON.stringify(asking.body) }),
      });
    } catch (cause) {
      throw unreached(cause, signal);
    }
  }

  async function exchange<T>(
    method: string,
    path: string,
    asking: Asking,
    accept: string,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const late = AbortSignal.timeout(requestMs);
    const signal = asking.signal ? anySignal([asking.signal, late]) : late;
    const response = await send(method, path, asking, accept, signal);
    try {
      if (!response.ok) throw await refusalOf(response, options.refusal);
      return await read(response);
    } catch (cause) {
      if (cause instanceof Fault) throw cause;
      throw unreached(cause, signal);
    }
  }

  return {
    base,
    within: (trace) => createRemote({ ...options, trace }),
    async call<T>(method: string, path: string, asking: Asking = {}) {
      return await exchange(method, path, asking, options.accept ?? 'application/json', async (response) => {
        const content = await readWithin(response, asking.limit ?? JSON_LIMIT);
        if (content.byteLength === 0) return undefined as T;
        const parsed = parsedJson(content);
        if (parsed === undefined) throw new Fault('upstream_unavailable', `the remote answered ${path} with no JSON`);
        return parsed as T;
      });
    },
    bytes: (path, asking) => exchange('GET', path, asking, '*/*', (response) => readWithin(response, asking.limit)),
    async open(path, asking = {}) {
      const connected = new AbortController();
      const late = setTimeout(() => connected.abort(), requestMs);
      const signal = asking.signal ? anySignal([asking.signal, connected.signal]) : connected.signal;
      try {
        const response = await send('GET', path, asking, 'text/event-stream', signal);
        if (!response.ok) throw await refusalOf(response, options.refusal);
        return response;
      } finally {
        clearTimeout(late);
      }
    },
  };
}

/** Whether a retry can help, when the request may be sent twice. */
export function isPassing(thrown: unknown): boolean {
  if (thrown instanceof RemoteRefusal) return thrown.status >= 500 || thrown.status === 429 || thrown.status === 408;
  return thrown instanceof Fault && (thrown.kind === 'upstream_unavailable' || thrown.kind === 'deadline_exceeded');
}

/** Ends early, and without an error, when the signal fires. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}

const TRIES = 6;

/** Retries while that may help, for `silenceMs` at most; only for requests that may be sent twice. */
export async function persist<T>(request: () => Promise<T>, signal: AbortSignal, silenceMs: number): Promise<T> {
  const began = performance.now();
  for (let tries = 1, wait = 250; ; tries += 1, wait *= 2) {
    try {
      return await request();
    } catch (cause) {
      const enough = tries >= TRIES || performance.now() - began > silenceMs;
      if (signal.aborted || !isPassing(cause) || enough) throw cause;
      const asked = cause instanceof RemoteRefusal ? cause.retryAfterMs : undefined;
      await pause(Math.min(asked ?? wait, 10_000), signal);
    }
  }
}

function unreached(cause: unknown, signal: AbortSignal): Fault {
  if (signal.aborted && (signal.reason as { name?: string } | undefined)?.name === 'TimeoutError') {
    return new Fault('deadline_exceeded', 'the remote took too long to answer', { cause });
  }
  if (signal.aborted) return new Fault('client_closed', 'the request was given up', { cause });
  return new Fault('upstream_unavailable', 'the remote cannot be reached', { cause });
}

async function refusalOf(response: Response, read: RemoteOptions['refusal']): Promise<RemoteRefusal> {
  const { status, headers } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    return new RemoteRefusal(
      'upstream_unavailable',
      'the remote answers with a redirect, which is not followed',
      status,
      '',
    );
  }
  const content = await readWithin(response, 64 * 1024).catch(() => new Uint8Array());
  const body = parsedJson(content);
  const { code, message } = read?.(body) ?? { code: '', message: '' };
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const shown = `the remote answered ${status}${code && ` ${code}`}${message && `: ${beginning(message, 300)}`}`;
  return new RemoteRefusal(kindOf(status), shown, status, code, Number.isFinite(seconds) ? seconds * 1000 : undefined);
}

/** A status of the remote as a fault kind. */
function kindOf(status: number): FaultKind {
  if (status === 404) return 'not_found';
  if (status === 409) return 'conflict';
  if (status === 410) return 'cursor_expired';
  if (status === 422) return 'policy_violation';
  if (status === 429) return 'rate_limited';
  if (status === 504) return 'deadline_exceeded';
  return 'upstream_unavailable';
}

/** An id of the remote as one path segment, whatever characters it has. */
export function segment(id: string): string {
  if (/^\.{0,2}$/.test(id)) throw new Fault('upstream_unavailable', 'the remote gave a name that is no name');
  return encodeURIComponent(id);
}

/** The whole body, or a fault as soon as it exceeds the limit, counted after decompression. */
export async function readWithin(response: Response, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > limit) {
      throw new Fault('payload_too_large', `the remote sent more than ${limit} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * Undefined for invalid JSON, or JSON that two readers could read differently: a question in it may be about two acts.
 */
function parsedJson(content: Uint8Array): unknown {
  try {
    return parseJson(content, JSON_LIMITS);
  } catch {
    return undefined;
  }
}
