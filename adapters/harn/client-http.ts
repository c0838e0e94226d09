/**
 * Requests to one remote and to no other place: the token goes to the configured origin only, redirects are refused,
 * answers are read within bounds, and whatever goes wrong is told in our words.
 */
import { RECEIPT_JSON, VERSION_HEADER } from '../../mappings/harn.ts';
import { Fault, type FaultKind, type JsonObject, PROTOCOL_VERSION } from '../../src/index.ts';

export interface RemoteOptions {
  readonly base: URL;
  readonly token: () => Promise<string | undefined>;
  readonly requestMs: number;
}

export interface Asking {
  readonly body?: unknown;
  /** Names the request, so that sending it again does it once. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** For what may be large. */
  readonly limit?: number;
}

export interface Remote {
  readonly base: URL;
  /** The JSON of a 2xx answer; undefined when it has none. */
  call<T>(method: string, path: string, asking?: Asking): Promise<T>;
  bytes(path: string, asking: Asking & { readonly limit: number }): Promise<Uint8Array>;
  /** An answer whose body is read by the caller. */
  open(path: string, asking?: Asking): Promise<Response>;
}

/** It answered, and the answer is no. */
export class Refusal extends Fault {
  readonly status: number;
  /** The remote's own word for it. */
  readonly code: string;
  readonly retryAfterMs: number | undefined;

  constructor(kind: FaultKind, message: string, status: number, code: string, retryAfterMs?: number) {
    super(kind, message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

const JSON_LIMIT = 32 * 1024 * 1024;

export function createRemote({ base, token, requestMs }: RemoteOptions): Remote {
  async function send(method: string, path: string, asking: Asking, accept: string, signal: AbortSignal) {
    const url = new URL(path.replace(/^\//, ''), base);
    // Ids come from the remote; none of them may lead anywhere else.
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
          [VERSION_HEADER]: PROTOCOL_VERSION,
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
    const signal = asking.signal ? AbortSignal.any([asking.signal, late]) : late;
    const response = await send(method, path, asking, accept, signal);
    try {
      if (!response.ok) throw await refusalOf(response);
      return await read(response);
    } catch (cause) {
      if (cause instanceof Fault) throw cause;
      throw unreached(cause, signal);
    }
  }

  return {
    base,
    async call<T>(method: string, path: string, asking: Asking = {}) {
      return await exchange(method, path, asking, `application/json, ${RECEIPT_JSON};q=0.1`, async (response) => {
        const content = Buffer.from(await readWithin(response, asking.limit ?? JSON_LIMIT)).toString();
        if (content === '') return undefined as T;
        const parsed = parsedJson(content);
        if (parsed === undefined) throw new Fault('upstream_unavailable', `the remote answered ${path} with no JSON`);
        return parsed as T;
      });
    },
    bytes: (path, asking) => exchange('GET', path, asking, '*/*', (response) => readWithin(response, asking.limit)),
    async open(path, asking = {}) {
      const connected = new AbortController();
      const late = setTimeout(() => connected.abort(), requestMs);
      const signal = asking.signal ? AbortSignal.any([asking.signal, connected.signal]) : connected.signal;
      try {
        const response = await send('GET', path, asking, 'text/event-stream', signal);
        if (!response.ok) throw await refusalOf(response);
        return response;
      } finally {
        clearTimeout(late);
      }
    },
  };
}

/** Whether trying again can help, when the request may be sent twice. */
export function isPassing(thrown: unknown): boolean {
  if (thrown instanceof Refusal) return thrown.status >= 500 || thrown.status === 429 || thrown.status === 408;
  return thrown instanceof Fault && (thrown.kind === 'upstream_unavailable' || thrown.kind === 'deadline_exceeded');
}

function unreached(cause: unknown, signal: AbortSignal): Fault {
  if (signal.aborted && (signal.reason as { name?: string } | undefined)?.name === 'TimeoutError') {
    return new Fault('deadline_exceeded', 'the remote took too long to answer', { cause });
  }
  if (signal.aborted) return new Fault('client_closed', 'the request was given up', { cause });
  return new Fault('upstream_unavailable', 'the remote cannot be reached', { cause });
}

async function refusalOf(response: Response): Promise<Refusal> {
  const { status, headers } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    return new Refusal('upstream_unavailable', 'the remote answers with a redirect, which is not followed', status, '');
  }
  const content = await readWithin(response, 64 * 1024).catch(() => new Uint8Array());
  const { error } = (parsedJson(Buffer.from(content).toString()) ?? {}) as { error?: JsonObject | string };
  const told = typeof error === 'object' && error !== null ? error : {};
  const code = typeof told.code === 'string' ? told.code : '';
  const message = typeof told.message === 'string' ? told.message : typeof error === 'string' ? error : '';
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const shown = `the remote answered ${status}${code && ` ${code}`}${message && `: ${message.slice(0, 300)}`}`;
  return new Refusal(kindOf(status), shown, status, code, Number.isFinite(seconds) ? seconds * 1000 : undefined);
}

/** What the remote says no to is our request's fault; what it cannot do is its own. */
function kindOf(status: number): FaultKind {
  if (status === 404) return 'not_found';
  if (status === 409) return 'conflict';
  if (status === 410) return 'cursor_expired';
  if (status === 422) return 'policy_violation';
  if (status === 429) return 'rate_limited';
  if (status === 504) return 'deadline_exceeded';
  return 'upstream_unavailable';
}

async function readWithin(response: Response, limit: number): Promise<Uint8Array> {
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

function parsedJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}
