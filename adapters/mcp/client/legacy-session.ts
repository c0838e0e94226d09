/**
 * A legacy session with one server. Questions of the server go to the client of the call they belong to; where that is unknown,
 * to the newest call, whose client in a session of one client may be asked in any case.
 */

import { CHANGES, CODES, MAY_ASK } from '../../../mappings/mcp.ts';
import { asFault, asText, Fault, isObject, type Json, type JsonObject } from '../../../src/index.ts';
import { InFlightMap } from '../../../src/transport/in-flight-map.ts';
import type { WireError } from '../../../src/transport/json-rpc/messages.ts';
import { inputTrouble, serverFrameTrouble } from '../frame-rules.ts';
import {
  type FrameOutcome,
  failed,
  isNotice,
  metaOf,
  type Notice,
  notice,
  outcomeOf,
  type Request,
} from '../frames.ts';
import type { McpRequestContext, SessionContext } from '../request-context.ts';
import { restored, withToken } from './progress-tokens.ts';
import { NOT_SHARED } from './shared-session.ts';
import type { ResponseTimeout } from './timeout.ts';
import type { Opened, Unasked, Wire } from './transport/transport.ts';

/** `listen` opens the stream for messages that belong to no request, on transports that have one. */
export type OpenedWire = Wire & { readonly listen?: (() => void) | undefined };
export type OpenWire = (opened: Opened, unasked: Unasked) => Promise<OpenedWire>;

export interface UpstreamSession {
  /** The server's answer to `initialize`, unchanged. */
  readonly about: JsonObject;
  call(method: string, params: JsonObject, context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome>;
  notify(notice: Notice): Promise<void>;
  /** Lists that changed, resources that were updated. */
  onChange(listener: (notice: Notice) => void): () => void;
  readonly busy: boolean;
  readonly gone: Promise<void>;
  close(): Promise<void>;
}

/** Legacy servers put the questions of a task to the client that waits for its result. */
const TASK_RESULT = 'tasks/result';

interface Flight {
  /** Whether a question may be put to its client before it is answered. */
  readonly asks: boolean;
  readonly context: McpRequestContext;
  readonly timeout: ResponseTimeout;
}

export async function openSession(
  open: OpenWire,
  opening: JsonObject,
  owner: SessionContext | undefined,
  timeout: ResponseTimeout,
  /** Receives frames that the server may not send, where they belong to no call. */
  refused: (method: string, reason: string) => void = () => {},
  /** Sessions of several clients use it: a message that names no request could be about any of them. */
  shared = false,
): Promise<UpstreamSession> {
  const opened: Opened = { revision: undefined };
  const flights = new InFlightMap<string, Flight>();
  const changes = new Set<(notice: Notice) => void>();
  /** Questions that wait for a call whose client can be asked: a shared session opens before there is one. */
  const waiting: Request[] = [];
  /** Questions of the server, which it may cancel. */
  const asked = new Map<string, AbortController>();
  /** Progress tokens of work that continues after its request was answered. */
  const lasting = new Map<string, Json>();
  /** The connection, once it is open: a server may send frames before `open` returns. */
  let speaking: OpenedWire | undefined;
  const wire = await open(opened, unasked);
  speaking = wire;
  let count = 0;

  const first = await wire
    .request(nextId(), 'initialize', opening, { signal: timeout.signal, received: unasked })
    .catch((cause) => {
      // The caller does not wait for a program that is slow to exit.
      void wire.close().catch(() => {});
      const { status } = (asFault(cause).details ?? {}) as { status?: number };
      throw status !== undefined && MISPLACED.includes(status) ? new SessionRefused(outcomeOf(cause)) : cause;
    });
  if ('error' in first) {
    void wire.close().catch(() => {});
    throw new SessionRefused(first);
  }
  const { result: about } = first;
  opened.revision = asText(about.protocolVersion);
  // A session's own client sends `notifications/initialized` itself.
  if (!owner) await ready();

  function nextId(): string {
    count += 1;
    return `t${count}`;
  }

  async function ready(): Promise<void> {
    await wire.notify(notice('notifications/initialized'));
    wire.listen?.();
  }

  /** True when the frame is refused: the server may not send it, or not yet. A request is answered with the reason. */
  function turnedAway(frame: Notice | Request, context: McpRequestContext | undefined): boolean {
    const early = opened.revision === undefined && 'id' in frame && frame.method !== 'ping';
    const trouble = early ? 'no request is made before the session is open' : serverFrameTrouble(frame);
    if (!trouble) return false;
    (context?.refused ?? refused)(frame.method, trouble);
    if ('id' in frame) speaking?.respond(frame.id, failed(CODES.methodNotFound, trouble)).catch(() => {});
    return true;
  }

  function unasked(frame: Notice | Request): void {
    const newest = flights.all().at(-1);
    if (turnedAway(frame, shared ? undefined : newest?.context)) return;
    if (shared) {
      unattributed(frame);
      return;
    }
    if (!isNotice(frame)) {
      const question: Request = frame;
      const asks = flights.all().findLast((flight) => flight.asks);
      if (asks || owner || question.method === 'ping') void answer(question, asks);
      else waiting.push(question);
      return;
    }
    if (takenBack(frame)) return;
    if (isChange(frame)) for (const listener of changes) listener(frame);
    const token = frame.method === 'notifications/progress' ? asText(frame.params?.progressToken) : '';
    const restoredFrame = restored(frame, lasting.get(token));
    // On a shared connection a message names no request, so it goes to the newest call; a separate stream is for the session.
    const spoken = newest && !isChange(frame) && (!owner || !speaking?.listen);
    if (spoken) newest.context.notify(restoredFrame);
    else owner?.notify(restoredFrame);
  }

  function unattributed(frame: Notice | Request): void {
    if (!isNotice(frame)) {
      const { id, method }: Request = frame;
      if (method === 'ping') return void speaking?.respond(id, { result: {} }).catch(() => {});
      refused(method, NOT_SHARED);
      speaking?.respond(id, failed(CODES.methodNotFound, `${method}: ${NOT_SHARED}`)).catch(() => {});
    } else if (isChange(frame)) for (const listener of changes) listener(frame);
  }

  /**
   * True when the server cancels a question of its own. The id is valid on this connection only: forwarded to the client, it could
   * name one of our questions.
   */
  function takenBack({ method, params }: Notice): boolean {
    if (method !== 'notifications/cancelled') return false;
    asked.get(asText(params?.requestId))?.abort();
    return true;
  }

  /** Only questions that the client has declared to support are put to it. */
  async function answer(frame: Request, flight: Flight | undefined): Promise<void> {
    const { id, method, params } = frame;
    if (!speaking) return;
    const withdrawn = new AbortController();
    try {
      if (method === 'ping') return await wire.respond(id, { result: {} });
      const client = flight?.context ?? owner;
      const said = flight ? flight.context.capabilities : opening.capabilities;
      const trouble = client
        ? inputTrouble(method, isObject(said) ? said : {})
        : `this client does not answer ${method}`;
      if (!client || trouble) {
        (flight?.context.refused ?? refused)(method, trouble ?? '');
        return await wire.respond(id, failed(CODES.methodNotFound, trouble ?? ''));
      }
      asked.set(asText(id), withdrawn);
      const asking = client.input({ [asText(id)]: { method, ...(params && { params }) } }, undefined, withdrawn.signal);
      const { inputResponses } = await (flight ? flight.timeout.during(asking) : asking);
      const key = asText(id);
      const result = Object.hasOwn(inputResponses, key) ? (inputResponses[key] as JsonObject) : undefined;
      await wire.respond(id, result ? { result } : failed(CODES.internal, `${method} was not answered`));
    } catch (thrown) {
      if (!withdrawn.signal.aborted) await wire.respond(id, outcomeOf(thrown)).catch(() => {});
    } finally {
      asked.delete(asText(id));
    }
  }

  return {
    about,
    gone: wire.gone,
    get busy() {
      return flights.size > 0;
    },
    async call(method, params, context, timeout) {
      const id = nextId();
      const token = withToken(params, id);
      const asks =
        !shared && (context.era === 'legacy' || method === TASK_RESULT || MAY_ASK.some((each) => each === method));
      const flight = { asks, context, timeout };
      flights.begin(id, flight);
      if (flight.asks) for (const question of waiting.splice(0)) void answer(question, flight);
      const receive = (frame: Notice | Request) => {
        timeout.moved();
        if (turnedAway(frame, context)) return;
        if (!isNotice(frame)) void (flight.asks ? answer(frame, flight) : unasked(frame));
        else if (isChange(frame)) unasked(frame);
        else if (!takenBack(frame)) context.notify(restored(frame, token?.theirs));
      };
      const sending = {
        signal: timeout.signal,
        received: receive,
        ...(context.headers && { headers: context.headers }),
      };
      try {
        const outcome = await wire.request(id, method, token?.params ?? params, sending);
        if (token && 'result' in outcome && metaTask(outcome.result)) lasting.set(id, token.theirs);
        return outcome;
      } finally {
        flights.over(id);
      }
    },
    async notify(frame) {
      if (frame.method === 'notifications/initialized') await ready();
      else await wire.notify(frame);
    },
    onChange(listener) {
      changes.add(listener);
      return () => changes.delete(listener);
    },
    close: () => wire.close(),
  };
}

/** With these statuses a server refuses a post that does not belong at its address. */
const MISPLACED: readonly number[] = [400, 404, 405, 406, 415];

/** The server has answered `initialize` with an error: it may have no sessions. */
export class SessionRefused extends Fault {
  readonly outcome: { readonly error: WireError };

  constructor(outcome: { readonly error: WireError }) {
    super('upstream_unavailable', `the server does not open a session: ${outcome.error.message}`);
    this.outcome = outcome;
  }
}

function isChange({ method }: Notice): boolean {
  return method === 'notifications/resources/updated' || CHANGES.some(({ wire }) => wire === method);
}

function metaTask(result: JsonObject): boolean {
  return typeof result.task === 'object' || metaOf(result)['io.modelcontextprotocol/related-task'] !== undefined;
}
