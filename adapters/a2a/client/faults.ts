/** Errors of a peer: whether a retry may succeed, and the fault each one becomes. */
import { asText, Fault } from '../../../src/index.ts';

/** A cut connection or a server error may pass by the next attempt. A refusal is final. */
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
    cause instanceof TypeError ||
    name === 'TimeoutError' ||
    name === 'AbortError' ||
    code !== undefined ||
    /HTTP error.*(5\d\d|429)|terminated/i.test(asText(cause))
  );
}

/** Turns the SDK's error for a refusal into a fault. */
export function unwrapped(cause: unknown): unknown {
  if (cause instanceof Fault) return cause;
  const inner = cause instanceof Error && cause.cause instanceof Fault ? cause.cause : undefined;
  if (inner) return inner;
  const words = cause instanceof Error ? cause.message : 'something unplanned';
  return new Fault('upstream_unavailable', `the peer said: ${words.slice(0, 300)}`, { cause });
}
