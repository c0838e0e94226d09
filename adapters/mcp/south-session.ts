/**
 * A session of the legacy era with one server. What the server asks goes to the client of the call it belongs to; where
 * that cannot be told, to the newest call, which in a session of one client is a client who may be asked anyway.
 */

import { CHANGES, CODES } from '../../mappings/mcp.ts';
import { asText, Fault, type Json, type JsonObject } from '../../src/index.ts';
import { UnderWay } from '../../src/wire/under-way.ts';
import { inputTrouble, serverFrameTrouble } from './frame-rules.ts';
import {
  failed,
  isNotice,
  isObject,
  metaOf,
  type Notice,
  notice,
  type Outcome,
  outcomeOf,
  type Request,
} from './frames.ts';
import type { McpLine, SessionLine } from './line.ts';
import type { Patience } from './patience.ts';
import type { Opened, Unasked, Wire } from './south.ts';
import { restored, withToken } from './tokens.ts';

/** One with a stream of its own for what belongs to no request has to be told when to open it. */
export type OpenedWire = Wire & { readonly listen?: (() => void) | undefined };
export type OpenWire = (opened: Opened, unasked: Unasked) => Promise<OpenedWire>;

export interface UpstreamSession {
  /** What the server said of itself, as it said it. */
  readonly about: JsonObject;
  call(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome>;
  notify(notice: Notice): Promise<void>;
  /** Lists that changed, resources that were updated. */
  onChange(heard: (notice: Notice) => void): () => void;
  readonly busy: boolean;
  readonly gone: Promise<void>;
  close(): Promise<void>;
}

interface Flight {
  readonly line: McpLine;
  readonly patience: Patience;
}

export async function openSession(
  open: OpenWire,
  opening: JsonObject,
  owner: SessionLine | undefined,
  patience: Patience,
): Promise<UpstreamSession> {
  const opened: Opened = { revision: undefined };
  const flights = new UnderWay<string, Flight>();
  const changes = new Set<(notice: Notice) => void>();
  /** What the server asked and may take back. */
  const asked = new Map<string, AbortController>();
  /** Tokens of work that goes on after its request was answered. */
  const lasting = new Map<string, Json>();
  /** The wire, once there is one: a server may speak before it is handed to us. */
  let speaking: OpenedWire | undefined;
  const wire = await open(opened, unasked);
  speaking = wire;
  let count = 0;

  const first = await wire
    .request(nextId(), 'initialize', opening, { signal: patience.signal, heard: unasked })
    .catch(async (cause) => {
      await wire.close();
      throw cause;
    });
  if ('error' in first) {
    await wire.close();
    throw new Fault('upstream_unavailable', `the server does not open a session: ${first.error.message}`);
  }
  const { result: about } = first;
  opened.revision = asText(about.protocolVersion);
  // A client of its own says so itself.
  if (!owner) await ready();

  function nextId(): string {
    count += 1;
    return `t${count}`;
  }

  async function ready(): Promise<void> {
    await wire.notify(notice('notifications/initialized'));
    wire.listen?.();
  }

  /** True when it goes no further: a server may not say this, or not yet. Who asked is told. */
  function turnedAway(frame: Notice | Request, line: McpLine | undefined): boolean {
    const early = opened.revision === undefined && 'id' in frame && frame.method !== 'ping';
    const trouble = early ? 'no request is made before the session is open' : serverFrameTrouble(frame);
    if (!trouble) return false;
    line?.refused?.(frame.method, trouble);
    if ('id' in frame) speaking?.respond(frame.id, failed(CODES.methodNotFound, trouble)).catch(() => {});
    return true;
  }

  function unasked(frame: Notice | Request): void {
    const newest = flights.all().at(-1);
    if (turnedAway(frame, newest?.line)) return;
    if (!isNotice(frame)) {
      void answer(frame, newest);
      return;
    }
    if (takenBack(frame)) return;
    if (isChange(frame)) for (const heard of changes) heard(frame);
    const token = frame.method === 'notifications/progress' ? asText(frame.params?.progressToken) : '';
    const told = restored(frame, lasting.get(token));
    // On one line for everything a message names no request: it belongs to what is being done. A stream of its own says so.
    const spoken = newest && !isChange(frame) && (!owner || !speaking?.listen);
    if (spoken) newest.line.notify(told);
    else owner?.hear(told);
  }

  /**
   * True when it takes back a question of the server's. Its ids mean something on this wire only: carried to the client, one could
   * name a question of ours.
   */
  function takenBack({ method, params }: Notice): boolean {
    if (method !== 'notifications/cancelled') return false;
    asked.get(asText(params?.requestId))?.abort();
    return true;
  }

  /** Only what the client said it can be asked is asked. */
  async function answer(frame: Request, flight: Flight | undefined): Promise<void> {
    const { id, method, params } = frame;
    if (!speaking) return;
    const withdrawn = new AbortController();
    try {
      if (method === 'ping') return await wire.respond(id, { result: {} });
      const client = flight?.line ?? owner;
      const said = flight ? flight.line.capabilities : opening.capabilities;
      const trouble = client ? inputTrouble(method, isObject(said) ? said : {}) : `nobody here answers ${method}`;
      if (!client || trouble) {
        flight?.line.refused?.(method, trouble ?? '');
        return await wire.respond(id, failed(CODES.methodNotFound, trouble ?? ''));
      }
      asked.set(asText(id), withdrawn);
      const asking = client.input({ [asText(id)]: { method, ...(params && { params }) } }, undefined, withdrawn.signal);
      const { inputResponses } = await (flight ? flight.patience.during(asking) : asking);
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
    async call(method, params, line, waiting) {
      const id = nextId();
      const token = withToken(params, id);
      flights.begin(id, { line, patience: waiting });
      const heard = (frame: Notice | Request) => {
        waiting.moved();
        if (turnedAway(frame, line)) return;
        if (!isNotice(frame)) void answer(frame, { line, patience: waiting });
        else if (isChange(frame)) unasked(frame);
        else if (!takenBack(frame)) line.notify(restored(frame, token?.theirs));
      };
      const sending = { signal: waiting.signal, heard, ...(line.headers && { headers: line.headers }) };
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
    onChange(heard) {
      changes.add(heard);
      return () => changes.delete(heard);
    },
    close: () => wire.close(),
  };
}

function isChange({ method }: Notice): boolean {
  return method === 'notifications/resources/updated' || CHANGES.some(({ wire }) => wire === method);
}

function metaTask(result: JsonObject): boolean {
  return typeof result.task === 'object' || metaOf(result)['io.modelcontextprotocol/related-task'] !== undefined;
}
