/** Requests as an outsider would send them: plain fetch, nothing of ours between the check and the wire. */
import { equal, text, truth } from './expect.ts';
import type { Revision } from './revision.ts';

export const VERSION_HEADER = 'harn-agents-protocol-version';

/** The protocol's table of errors: what each code's status and type must be. */
export const ERRORS = {
  invalid_request: [400, 'request_error'],
  invalid_state_transition: [400, 'request_error'],
  unauthenticated: [401, 'auth_error'],
  permission_denied: [403, 'permission_error'],
  resource_not_found: [404, 'not_found_error'],
  conflict: [409, 'conflict_error'],
  idempotency_key_reused: [409, 'conflict_error'],
  cursor_expired: [410, 'request_error'],
  payload_too_large: [413, 'request_error'],
  policy_violation: [422, 'permission_error'],
  resource_locked: [423, 'conflict_error'],
  unsupported_protocol_version: [426, 'request_error'],
  rate_limited: [429, 'rate_limit_error'],
  client_closed_request: [499, 'request_error'],
  internal_error: [500, 'server_error'],
  upstream_unavailable: [502, 'upstream_error'],
  service_unavailable: [503, 'server_error'],
  deadline_exceeded: [504, 'upstream_error'],
} as const;
export type ErrorCode = keyof typeof ERRORS;

export interface Asking {
  readonly body?: unknown;
  /** Sent as it is, instead of `body`. */
  readonly raw?: string | Uint8Array;
  /** A token other than the suite's own; null sends none. */
  readonly as?: string | null;
  /** A version other than the one examined; null sends none. */
  readonly version?: string | null;
  readonly once?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface Answer<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined when the text is not JSON. */
  readonly body: T;
}

export interface WireError {
  readonly code: string;
  readonly message: string;
  readonly type: string;
  readonly param?: string | null;
  readonly request_id?: string | null;
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface List<T> {
  readonly object: 'list';
  readonly data: readonly T[];
  readonly page: { readonly has_more: boolean; readonly next_cursor?: string | null };
}

export interface Wire {
  readonly base: string;
  readonly key: string | undefined;
  readonly timeoutMs: number;
  /** What is spoken, and the rules it has. */
  readonly revision: Revision;
  ask<T = unknown>(method: string, path: string, asking?: Asking): Promise<Answer<T>>;
  open(method: string, path: string, asking?: Asking): Promise<Response>;
  /** The body of an answer that must be a 2xx. */
  ok<T>(method: string, path: string, asking?: Asking): Promise<T>;
  /** A refusal with this code, in the whole envelope and with the status that goes with it. */
  refused(code: ErrorCode, method: string, path: string, asking?: Asking): Promise<WireError>;
}

export function createWire(base: string, key: string | undefined, revision: Revision, timeoutMs = 30_000): Wire {
  async function open(method: string, path: string, asking: Asking = {}): Promise<Response> {
    const { as = key, version = revision.version, once, headers, raw, body } = asking;
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    return await fetch(`${base}${path}`, {
      method,
      redirect: 'manual',
      headers: {
        accept: 'application/json',
        ...(version !== null && { [VERSION_HEADER]: version }),
        ...(as !== null && as !== undefined && { authorization: `Bearer ${as}` }),
        ...(once !== undefined && { 'idempotency-key': once }),
        ...(content !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(content !== undefined && { body: content as string }),
      signal: asking.signal ?? AbortSignal.timeout(timeoutMs),
    });
  }

  async function ask<T>(method: string, path: string, asking?: Asking): Promise<Answer<T>> {
    const response = await open(method, path, asking);
    const content = await response.text();
    return { status: response.status, headers: response.headers, text: content, body: parsed(content) as T };
  }

  return {
    base,
    key,
    timeoutMs,
    revision,
    ask,
    open,
    async ok<T>(method: string, path: string, asking?: Asking) {
      const { status, text: shown, body } = await ask<T>(method, path, asking);
      truth(status >= 200 && status < 300, `${method} ${path}: expected success, got ${status} ${shown.slice(0, 300)}`);
      return body;
    },
    async refused(code, method, path, asking) {
      const answer = await ask<{ error?: WireError }>(method, path, asking);
      const what = `${method} ${path}`;
      truth(answer.body?.error, `${what}: expected ${code}, got ${answer.status} ${answer.text.slice(0, 300)}`);
      return checkError(answer as Answer<{ error: WireError }>, code, what);
    },
  };
}

/** The envelope whole: code, status and type go together, the message is plain, the request has a name. */
function checkError(answer: Answer<{ error: WireError }>, code: ErrorCode, what: string): WireError {
  const { status, headers, body, text: raw } = answer;
  const { error } = body;
  const [expected, type] = ERRORS[code];
  equal(error.code, code, `${what}: error.code`);
  equal(status, expected, `${what}: status of ${code}`);
  equal(error.type, type, `${what}: error.type of ${code}`);
  text(error.message, `${what}: error.message`);
  text(error.request_id, `${what}: error.request_id`);
  truth(/^[\x20-\x7e]*$/.test(raw), `${what}: the error is not ASCII`);
  truth((headers.get('content-type') ?? '').startsWith('application/json'), `${what}: an error is JSON`);
  return error;
}

function parsed(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}
