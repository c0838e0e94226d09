/** Errors of a peer: whether a retry may succeed, and the fault each one becomes. Each names the host it came from. */
import { asText, beginning, Fault } from '../../../src/index.ts';
import { NEVER_SENT } from '../../../src/transport/outbound/kept-connections.ts';
import type { PeerSettings } from './config.ts';

type Where = Pick<PeerSettings, 'name' | 'base'>;

/** No connection was made, so nothing was handed over: another address may be tried. */
export class NotReached extends Fault {
  constructor(where: Where, cause: unknown) {
    super('upstream_unavailable', unreachable(where, cause), { cause });
  }
}

function unreachable({ name, base }: Where, cause: unknown): string {
  return `${name} at ${base.host} cannot be reached: ${networkCode(cause) ?? asText(cause)}`;
}

/** The peer does not have the work it may have been given before a restart. */
export class NotKnown extends Fault {
  constructor() {
    super('upstream_unavailable', 'the peer no longer knows the task it was given before the restart');
  }
}

/** The peer answered with a status of HTTP, and no error of the protocol. */
export class PeerStatusError extends Error {
  readonly statusCode: number;

  constructor({ status, statusText }: Response, text: string) {
    super([`HTTP ${status} ${statusText}`.trim(), beginning(text.trim(), 200)].filter(Boolean).join(': '));
    this.statusCode = status;
  }
}

/** A cut connection or a server error may pass by the next attempt. A refusal, and what cannot be read, is final. */
export function isPassing(cause: unknown): boolean {
  if (cause instanceof Fault) return false;
  const { name, code, statusCode, envelopeCode } = cause as {
    name?: string;
    code?: string;
    statusCode?: number;
    envelopeCode?: number;
  };
  if (statusCode !== undefined) return statusCode >= 500 || statusCode === 429;
  if (envelopeCode !== undefined) return envelopeCode === -32603;
  return (
    // `fetch` gives the failure of the connection as the cause; an error of the language has none.
    (cause instanceof TypeError && cause.cause !== undefined) ||
    name === 'TimeoutError' ||
    name === 'AbortError' ||
    code !== undefined ||
    /HTTP error.*(5\d\d|429)|terminated/i.test(asText(cause))
  );
}

export function wasNeverSent(cause: unknown): boolean {
  return !(cause instanceof Fault) && NEVER_SENT.has(networkCode(cause) ?? '');
}

/** The system's word for a failed connection, below the words of `fetch` and of the SDK. */
function networkCode(cause: unknown): string | undefined {
  for (let at = cause, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code)) return code;
  }
  return undefined;
}

/** Turns an error of the SDK, or of the connection, into a fault that names the peer's host. */
export function unwrapped(cause: unknown, where: Where): unknown {
  const inner =
    !(cause instanceof Fault) && cause instanceof Error && cause.cause instanceof Fault ? cause.cause : cause;
  if (inner instanceof Fault) return inner.kind === 'upstream_unavailable' ? withHost(inner, where) : inner;
  // Not a `NotReached`: the work may be there.
  if (networkCode(cause) !== undefined) return new Fault('upstream_unavailable', unreachable(where, cause), { cause });
  return new Fault('upstream_unavailable', `${where.name} at ${where.base.host} said: ${wordsIn(cause)}`, { cause });
}

/** Errors of the language are about our reading, and say nothing to people. */
export function wordsIn(cause: unknown): string {
  if (networkCode(cause) !== undefined) return networkCode(cause) as string;
  if (cause instanceof TypeError || cause instanceof SyntaxError) return 'what the protocol does not know';
  return beginning(cause instanceof Error ? cause.message : 'something unplanned', 300);
}

function withHost(fault: Fault, { base }: Where): Fault {
  if (fault.message.includes(base.host)) return fault;
  return new Fault(fault.kind, `${fault.message} (${base.host})`, { cause: fault });
}
