/**
 * A client session of the legacy era, from its first frame to its last: the requests under way, the questions the client has not
 * answered, and the stream for messages that belong to no request. The same over HTTP and over standard input and output.
 */

import { CODES } from '../../../../mappings/mcp.ts';
import { type Actor, anySignal, asText, Fault, isObject, type JsonObject, type Logger } from '../../../../src/index.ts';
import { InFlightMap } from '../../../../src/transport/in-flight-map.ts';
import { RpcError, soundError } from '../../../../src/transport/json-rpc/messages.ts';
import {
  createPendingRequests,
  type PendingRequests,
  RequestAbandoned,
} from '../../../../src/transport/json-rpc/pending-requests.ts';
import { clientFrameTrouble } from '../../frame-rules.ts';
import {
  type Frame,
  type FrameOutcome,
  failed,
  type Id,
  isRequest,
  isResponse,
  type Notice,
  notice,
  type Request,
  type Response,
} from '../../frames.ts';
import type { Inputs, Inputted, SessionContext } from '../../request-context.ts';
import { type Caller, type LegacyCaller, personOf } from '../caller.ts';
import type { EndpointHandler } from '../endpoint.ts';

/** A stream to the client. */
export interface Out {
  send(frame: Frame): void;
}

export interface LegacyClientSession extends SessionContext {
  readonly actor: Actor;
  /** The same principal has sent another request, perhaps with a newer token. */
  renew(actor: Actor): void;
  /** The outcome of a request that was not canceled, or the reason a notification was refused; undefined for everything else. */
  receive(frame: Frame, out: Out, headers?: Caller['headers']): Promise<FrameOutcome | undefined>;
  /** The revision in the server's answer to `initialize`. */
  readonly revision: string | undefined;
  /** The client has held no connection for a while. */
  leave(): void;
  /** The client reads what is under way to its end, but can answer nothing and cancel nothing: no request waits for a person any more. */
  unattended(): void;
  /** A request begins to wait for a person, until the returned function is called. */
  waits(giveUp: () => void): () => void;
  end(): void;
}

export interface LegacyClientSessionOptions {
  readonly id: string;
  readonly actor: Actor;
  /** The person who answers approvals at this client; the caller itself, unless it is an agent. */
  readonly person?: Actor;
  readonly handler: EndpointHandler;
  /** The stream for messages that belong to no request. */
  readonly standalone: Out;
  readonly log: Logger;
  /** The gateway session the client says it works in. */
  readonly home?: string | undefined;
}

/** Made once: a reason is made for every request otherwise, stack and all. */
const OVER = new Error('the request is over');

export function createLegacyClientSession({
  id,
  actor: opener,
  person,
  handler,
  standalone,
  log,
  home,
}: LegacyClientSessionOptions): LegacyClientSession {
  let actor = opener;
  const ended = new AbortController();
  const flights = new InFlightMap<Id, AbortController>();
  /** Questions the client has not answered, each with the stream it was sent on. */
  const asked: PendingRequests<Out> = createPendingRequests(async (question) =>
    asked.noteOf(question.id)?.send(question),
  );
  /** The capabilities and client info from `initialize`. */
  let capabilities: JsonObject = {};
  let client: JsonObject = {};
  let revision: string | undefined;
  let count = 0;

  /** Asks the client, on the stream of the request it belongs to. If the request is abandoned, the client is notified. */
  async function ask(
    out: Out,
    method: string,
    params: JsonObject | undefined,
    signal: AbortSignal,
  ): Promise<JsonObject> {
    count += 1;
    const key = `tollbridge-${count}`;
    try {
      const message = { jsonrpc: '2.0' as const, id: key, method, ...(params && { params }) };
      const answer = await asked.request(message, signal, out, () =>
        out.send(notice('notifications/cancelled', { requestId: key })),
      );
      if ('error' in answer) throw new RpcError(soundError(answer.error));
      return answer.result as JsonObject;
    } catch (cause) {
      if (!(cause instanceof RequestAbandoned)) throw cause;
      throw new Fault('client_closed', 'the client no longer waits for the answer');
    }
  }

  async function inputOn(out: Out, requests: Inputs, signal: AbortSignal): Promise<Inputted> {
    const answers = Object.entries(requests).map(async ([key, { method, params }]) => {
      return [key, await ask(out, method, params, signal)] as const;
    });
    return { inputResponses: Object.fromEntries(await Promise.all(answers)) };
  }

  function callerOn(out: Out, signal: AbortSignal, headers?: Caller['headers']): LegacyCaller {
    return {
      actor,
      person: person ?? personOf(actor),
      era: 'legacy',
      capabilities,
      client,
      session: context,
      home,
      headers,
      signal,
      notify: (notice) => out.send(notice),
      input: (requests, _, withdrawn) => inputOn(out, requests, either(signal, withdrawn)),
    };
  }

  /** Undefined when the client has taken it back: it expects no answer. */
  async function request(frame: Request, out: Out, headers?: Caller['headers']): Promise<FrameOutcome | undefined> {
    // Two requests with one id could not be distinguished when one of them is canceled or answered.
    if (flights.has(frame.id)) return failed(CODES.invalidRequest, 'a request with this id is under way');
    if (frame.method === 'initialize') {
      if (revision !== undefined) return failed(CODES.invalidRequest, 'the session is open already');
      const { params = {} } = frame;
      capabilities = isObject(params.capabilities) ? params.capabilities : {};
      client = isObject(params.clientInfo) ? params.clientInfo : {};
    }
    const flight = new AbortController();
    flights.begin(frame.id, flight);
    try {
      const caller = { ...callerOn(out, flight.signal, headers), waits: () => waits(() => flight.abort()) };
      const outcome = await handler.receive(frame, caller);
      if (frame.method === 'initialize' && 'result' in outcome) revision = asText(outcome.result.protocolVersion);
      return flight.signal.aborted && !ended.signal.aborted && !alone ? undefined : outcome;
    } finally {
      flights.over(frame.id);
      // Open questions of this request are withdrawn. Aborting is costly even without listeners, so it is skipped without questions.
      if (asked.size > 0) flight.abort(OVER);
    }
  }

  async function noticed(frame: Notice): Promise<void> {
    const { method, params = {} } = frame;
    if (method === 'notifications/cancelled') {
      flights.get(params.requestId as Id)?.abort(params.reason);
      return;
    }
    await handler.notify(method, params, callerOn(standalone, ended.signal)).catch((cause) => {
      log.info({ err: cause, method }, 'a notification went no further');
    });
  }

  /** The reason, for a notification that the table of frames refuses. */
  async function received(frame: Notice | Response): Promise<FrameOutcome | undefined> {
    if (isResponse(frame)) {
      // A frame is an object of JSON.
      asked.deliver(frame as unknown as JsonObject);
      return undefined;
    }
    const trouble = clientFrameTrouble(frame);
    if (!trouble) {
      await noticed(frame);
      return undefined;
    }
    await handler.refuse(frame, trouble.error.message, callerOn(standalone, ended.signal)).catch((cause) => {
      log.warn({ err: cause }, 'a refused frame could not be written down');
    });
    return trouble;
  }

  const leaving = new Set<() => void>();
  /** Requests that wait for a person, by what ends them. */
  const waiting = new Set<() => void>();
  let alone = false;

  function waits(giveUp: () => void): () => void {
    if (alone) queueMicrotask(giveUp);
    waiting.add(giveUp);
    return () => waiting.delete(giveUp);
  }

  function endWaiting(): void {
    for (const giveUp of [...waiting]) giveUp();
  }

  const context: SessionContext = {
    id,
    ended: ended.signal,
    onLeave(listener) {
      leaving.add(listener);
      return () => leaving.delete(listener);
    },
    notify: (notice) => standalone.send(notice),
    input: (requests, _, withdrawn) => inputOn(standalone, requests, either(ended.signal, withdrawn)),
  };

  return {
    ...context,
    actor,
    renew(next) {
      actor = next;
    },
    get revision() {
      return revision;
    },
    receive(frame, out, headers) {
      return isRequest(frame) ? request(frame, out, headers) : received(frame);
    },
    waits,
    leave() {
      endWaiting();
      for (const listener of [...leaving]) listener();
    },
    unattended() {
      alone = true;
      endWaiting();
    },
    end() {
      ended.abort();
      for (const flight of flights.all()) flight.abort();
      asked.fail(new Fault('client_closed', 'the session is over'));
    },
  };
}

function either(signal: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other ? anySignal([signal, other]) : signal;
}
