/** Requests that reached a server, or may have, and were never answered: their outcome is unknown. */
import { asFault, Fault } from '../../../src/index.ts';

/** The request was sent and the server disconnected before it answered: it may have executed the request. */
export function unanswered(cause: Error): Fault {
  const { kind, message, details } = asFault(cause);
  return new Fault(kind, message, { cause, details: { ...details, unanswered: true } });
}
