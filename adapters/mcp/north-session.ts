/**
 * A client of the legacy era, from its first word to its last: which requests are under way, what it was asked and has not
 * answered, and where to say what belongs to no request. The same over HTTP and over standard input and output.
 */

import { CODES } from '../../mappings/mcp.ts';
import { type Actor, asText, Fault, type JsonObject, type Logger } from '../../src/index.ts';
import { UnderWay } from '../../src/wire/under-way.ts';
import { type Caller, type LegacyCaller, personOf } from './caller.ts';
import type { Desk } from './desk.ts';
import { clientFrameTrouble } from './frame-rules.ts';
import {
  type Frame,
  failed,
  type Id,
  isObject,
  isRequest,
  isResponse,
  type Notice,
  notice,
  type Outcome,
  type Request,
  type Response,
  RpcError,
} from './frames.ts';
import type { Inputs, Inputted, SessionLine } from './line.ts';
import { createSpareSignals } from './spare-signals.ts';
import { cameToTask } from './task-owners.ts';

/** Where things are said. */
export interface Out {
  send(frame: Frame): void;
}

export interface NorthSession extends SessionLine {
  readonly actor: Actor;
  /** The outcome of a request that was not taken back, or why a notification was refused; undefined for everything else. */
  receive(frame: Frame, out: Out, headers?: Caller['headers']): Promise<Outcome | undefined>;
  /** What the server answered the opening with. */
  readonly revision: string | undefined;
  end(): void;
}

export interface NorthOptions {
  readonly id: string;
  readonly actor: Actor;
  /** Who answers approvals at this client; the caller itself, unless it is an agent. */
  readonly person?: Actor;
  readonly desk: Desk;
  /** What belongs to no request. */
  readonly standalone: Out;
  readonly log: Logger;
  /** The session of ours the client says it works in. */
  readonly home?: string | undefined;
}

/** Made once: a reason is made for every request otherwise, stack and all. */
const OVER = new Error('the request is over');

/** So many calls of one client at a time find a signal that is there already. */
const MOST_SPARE = 16;

export function createNorthSession({ id, actor, person, desk, standalone, log, home }: NorthOptions): NorthSession {
  const ended = new AbortController();
  const flights = new UnderWay<Id, AbortController>();
  const asked = new Map<Id, { answer(result: JsonObject): void; refuse(cause: Error): void }>();
  const spare = createSpareSignals(MOST_SPARE);
  /** What the client said of itself when it opened the session. */
  let capabilities: JsonObject = {};
  let client: JsonObject = {};
  let revision: string | undefined;
  let count = 0;

  /** Asks the client, on the stream of the request it belongs to. Given up with the request, the client is told. */
  function ask(out: Out, method: string, params: JsonObject | undefined, signal: AbortSignal): Promise<JsonObject> {
    count += 1;
    const key = `tollbridge-${count}`;
    return new Promise((resolve, reject) => {
      const over = () => {
        asked.delete(key);
        signal.removeEventListener('abort', giveUp);
      };
      const giveUp = () => {
        over();
        out.send(notice('notifications/cancelled', { requestId: key }));
        reject(new Fault('client_closed', 'nobody waits for the answer any more'));
      };
      if (signal.aborted) return giveUp();
      signal.addEventListener('abort', giveUp, { once: true });
      asked.set(key, {
        answer(result) {
          over();
          resolve(result);
        },
        refuse(cause) {
          over();
          reject(cause);
        },
      });
      out.send({ jsonrpc: '2.0', id: key, method, ...(params && { params }) });
    });
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
      session: line,
      home,
      headers,
      signal,
      notify: (heard) => out.send(heard),
      input: (requests, _, withdrawn) => inputOn(out, requests, either(signal, withdrawn)),
    };
  }

  /** Undefined when the client has taken it back: it expects no answer. */
  async function request(frame: Request, out: Out, headers?: Caller['headers']): Promise<Outcome | undefined> {
    // Two requests of one name cannot be told apart when one of them is canceled or answered.
    if (flights.has(frame.id)) return failed(CODES.invalidRequest, 'a request with this id is under way');
    if (frame.method === 'initialize') {
      if (revision !== undefined) return failed(CODES.invalidRequest, 'the session is open already');
      const { params = {} } = frame;
      capabilities = isObject(params.capabilities) ? params.capabilities : {};
      client = isObject(params.clientInfo) ? params.clientInfo : {};
    }
    const flight = spare.take();
    flights.begin(frame.id, flight);
    let whole = false;
    try {
      const outcome = await desk.receive(frame, callerOn(out, flight.signal, headers));
      // What else is asked for may go on after its answer, as a subscription or a task does.
      whole = frame.method === 'tools/call' && !cameToTask(outcome);
      if (frame.method === 'initialize' && 'result' in outcome) revision = asText(outcome.result.protocolVersion);
      return flight.signal.aborted && !ended.signal.aborted ? undefined : outcome;
    } finally {
      flights.over(frame.id);
      // What was asked for its sake is nobody's question any more. To tell nobody costs as much as to tell someone.
      if (asked.size > 0) flight.abort(OVER);
      else if (whole) spare.giveBack(flight);
    }
  }

  function answered({ id: key, ...outcome }: Response): void {
    const waiting = key === null ? undefined : asked.get(key);
    if ('error' in outcome) {
      const { code, message, data } = outcome.error;
      waiting?.refuse(new RpcError(code, message, data));
    } else waiting?.answer(outcome.result);
  }

  async function told(frame: Notice): Promise<void> {
    const { method, params = {} } = frame;
    if (method === 'notifications/cancelled') {
      flights.get(params.requestId as Id)?.abort(params.reason);
      return;
    }
    await desk.tell(method, params, callerOn(standalone, ended.signal)).catch((cause) => {
      log.info({ err: cause, method }, 'a notification went no further');
    });
  }

  /** The reason, for a notification that the table of frames refuses. */
  async function heard(frame: Notice | Response): Promise<Outcome | undefined> {
    if (isResponse(frame)) {
      answered(frame);
      return undefined;
    }
    const trouble = clientFrameTrouble(frame);
    if (!trouble) {
      await told(frame);
      return undefined;
    }
    await desk.refuse(frame, trouble.error.message, callerOn(standalone, ended.signal)).catch((cause) => {
      log.warn({ err: cause }, 'a refused frame could not be written down');
    });
    return trouble;
  }

  const line: SessionLine = {
    id,
    ended: ended.signal,
    hear: (heard) => standalone.send(heard),
    input: (requests, _, withdrawn) => inputOn(standalone, requests, either(ended.signal, withdrawn)),
  };

  return {
    ...line,
    actor,
    get revision() {
      return revision;
    },
    receive(frame, out, headers) {
      return isRequest(frame) ? request(frame, out, headers) : heard(frame);
    },
    end() {
      ended.abort();
      for (const flight of flights.all()) flight.abort();
      for (const waiting of asked.values()) waiting.refuse(new Fault('client_closed', 'the session is over'));
    },
  };
}

function either(signal: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other ? AbortSignal.any([signal, other]) : signal;
}
