/**
 * Handles one message and returns at most one, on any transport. Checks run in the protocol's own order; errors are only for
 * messages that no decision could answer, because agents take an error for a yes.
 */

import {
  CAPABILITIES,
  eventRow,
  faults,
  frames,
  type Method,
  NOTICES_BEFORE_2_4,
  PROTOCOL,
} from '../../../mappings/ahp.ts';
import {
  type Actor,
  asFault,
  asText,
  type Bridge,
  type Deps,
  type Fault,
  isObject,
  type Json,
  type JsonObject,
  LruMap,
  VERSION,
} from '../../../src/index.ts';
import { envelopeOf, isStrictId } from '../../../src/transport/json-rpc/messages.ts';
import type { AhpSettings } from '../config.ts';
import { Misfit } from '../decode.ts';
import { payloadShapes, shapes } from '../shapes.ts';
import { manyMayListen, wait } from '../timeout.ts';
import { type AhpEvent, failed, toWireRefusal, viaOf } from '../translate.ts';
import type { Asker } from './decide/ask-gate.ts';
import { createAuthorizer, type HoldTimeout } from './decide/authorize.ts';
import { createDecider } from './decide/decide.ts';
import { createObserver } from './observe/observe.ts';
import { createQueries } from './queries.ts';
import { createRuns, PROTOCOL_NAME, type SupervisedRun, scopeOf } from './supervised-tasks.ts';
import { readHandshake } from './tolerant.ts';

/** The caller and its transport. One per connection; over HTTP one per request. */
export interface HarnessCaller {
  readonly actor: Actor;
  /** Fires when the caller has disconnected. */
  readonly gone: AbortSignal;
  greeting?: Greeting;
}

export interface Greeting {
  readonly version: string;
  readonly framework: string;
}

export type MessageOutcome =
  | { readonly kind: 'reply'; readonly response: JsonObject }
  /** An accepted notification, or one that is ignored. */
  | { readonly kind: 'taken' }
  /** Streams send nothing for this; HTTP sends an error without an id. */
  | { readonly kind: 'rejected'; readonly code: number; readonly message: string };

export interface Harness {
  receive(message: unknown, caller: HarnessCaller): Promise<MessageOutcome>;
  /** Ends the work of the agents of a closed connection. */
  left(actor: Actor): Promise<void>;
  close(): Promise<void>;
}

async function within<T>(timeout: HoldTimeout, what: (timeout: HoldTimeout) => Promise<T>): Promise<T> {
  try {
    return await what(timeout);
  } finally {
    timeout.until.release();
  }
}

class Refusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const INVALID: MessageOutcome = { kind: 'rejected', code: -32600, message: 'Invalid JSON-RPC message' };
/** The share of the response time that each hop of a relay costs. */
const HOP_MS = 1_000;
const MOST_GREETINGS = 10_000;
const LONGEST_LOOK_MS = 10 * 60_000;

export function createHarness(
  bridge: Bridge,
  settings: AhpSettings,
  deps: Pick<Deps, 'log' | 'clock' | 'ids'>,
): Harness {
  const runs = createRuns(bridge, settings, deps);
  const authorizer = createAuthorizer(bridge, deps.ids);
  const decider = createDecider({ bridge, runs, authorizer, settings, deps });
  const observer = createObserver({ bridge, runs, settings, deps });
  const queries = createQueries({ runs, authorizer, hop: settings.hop });
  const greetings = new LruMap<string, Greeting>(MOST_GREETINGS);
  const closing = manyMayListen(new AbortController());

  /** HTTP has no disconnect; without this check, abandoned work would stay open, and in memory, for ever. */
  function lookForLeft(): void {
    observer
      .away(Date.now() - settings.awayMs)
      .catch((cause) => deps.log.error({ err: cause }, 'work that was left could not be ended'));
  }
  const looking = setInterval(lookForLeft, Math.min(Math.ceil(settings.awayMs / 4), LONGEST_LOOK_MS)).unref();

  // ---- Envelopes ----

  async function receive(message: unknown, caller: HarnessCaller): Promise<MessageOutcome> {
    if (!isObject(message) || typeof message.jsonrpc !== 'string' || message.params === undefined) return INVALID;
    const envelope = envelopeOf(message);
    if (envelope.kind === 'notification') return await notified(envelope.method, message, caller);
    if (envelope.kind !== 'request' || !isStrictId(envelope.id)) return INVALID;
    const { id, method } = envelope;
    const reply = (said: JsonObject): MessageOutcome => ({ kind: 'reply', response: { jsonrpc: '2.0', id, ...said } });
    try {
      if (message.jsonrpc !== '2.0') throw new Refusal(-32600, 'jsonrpc must be 2.0');
      return reply({ result: await requested(method, message.params as Json, caller, asText(id)) });
    } catch (thrown) {
      return reply({ error: errorOf(thrown) });
    }
  }

  async function notified(
    method: string,
    message: Record<string, unknown>,
    caller: HarnessCaller,
  ): Promise<MessageOutcome> {
    try {
      if (message.jsonrpc !== '2.0') throw new Refusal(-32600, 'jsonrpc must be 2.0');
      if (method !== 'ahp/event') {
        const judged = frames.judge('agent', 'notification', method);
        throw new Misfit(`Protocol error: ${judged.handling === 'refuse' ? judged.reason : 'not a notification'}`);
      }
      const event = readEvent(message.params as Json);
      requireGreeting(event, caller);
      const judged = frames.judge('agent', 'notification', `ahp/event ${event.event_type}`);
      if (judged.handling === 'pass') {
        await observer.take(event, caller.actor, greetingOf(event, caller)?.framework);
      } else if (sentByOlder(event, caller)) {
        await decided(event, askerOf(event, caller, false));
      } else throw new Misfit(`Protocol error: Blocking event ${event.event_type} must be sent as a request`);
      return { kind: 'taken' };
    } catch (thrown) {
      const { code, message: why } = errorOf(thrown);
      deps.log.warn({ method, why }, 'a notification was not taken in');
      return { kind: 'rejected', code: code === -32600 ? code : -32603, message: `Handler error: ${why}` };
    }
  }

  /** Peers up to 2.2 send as notifications what later ones ask. */
  function sentByOlder(event: AhpEvent, caller: HarnessCaller): boolean {
    if (!NOTICES_BEFORE_2_4.includes(event.event_type)) return false;
    const [, minor] = (greetingOf(event, caller)?.version ?? PROTOCOL).split('.');
    return Number(minor ?? 0) <= 2;
  }

  function requested(method: string, params: Json, caller: HarnessCaller, id: string): Promise<Json> {
    switch (method as Method) {
      case 'ahp/handshake':
        return handshake(params, caller);
      case 'ahp/event':
        return event(params, caller, id);
      case 'ahp/query': {
        const query = read(shapes.QueryRequest, params) as Parameters<typeof queries.answer>[0];
        requireGreeting(query, caller);
        return within(timeout(caller, settings.holdMs, true), (held) => queries.answer(query, caller.actor, held));
      }
      case 'ahp/batch':
        return batch(params, caller, id);
      default:
        throw new Refusal(-32601, 'Method not found');
    }
  }

  // ---- Methods ----

  async function handshake(params: Json, caller: HarnessCaller): Promise<JsonObject> {
    const { value, mended } = mending(() => readHandshake(params));
    const version = asText(value.protocol_version);
    if (version.split('.')[0] !== PROTOCOL.split('.')[0]) {
      throw new Refusal(-32000, `Unsupported protocol version: ${version}`);
    }
    const { framework } = value.agent_info as { framework: string };
    if (mended) deps.log.info({ framework, mended }, 'a handshake was read with what it left out filled in');
    await written(value, caller);
    caller.greeting = { version, framework };
    greetings.set(greetingKey(caller.actor, value as AhpEvent), caller.greeting);
    return {
      protocol_version: PROTOCOL,
      harness_info: { name: settings.name, version: VERSION, capabilities: CAPABILITIES },
      config: { timeout_ms: settings.timeoutMs, batch_size: settings.batchSize, max_depth: settings.maxDepth },
    };
  }

  /** Policy may refuse an agent at the handshake. A failed write is no reason to: the handshake lets no act through. */
  async function written(params: JsonObject, { actor }: HarnessCaller): Promise<void> {
    try {
      const { decision } = await bridge.submit({
        kind: 'passthrough',
        actor,
        body: {
          protocol: PROTOCOL_NAME,
          method: 'ahp/handshake',
          params,
          workspace_id: await runs.workspace(actor),
        },
        ext: { ahp: params },
      });
      if (decision?.verdict === 'block') throw new Refusal(-32000, `Handshake refused: ${decision.reason}`);
    } catch (thrown) {
      if (thrown instanceof Refusal || asFault(thrown).kind === 'permission_denied') throw thrown;
      deps.log.warn({ err: thrown }, 'a handshake could not be written down');
    }
  }

  function event(params: Json, caller: HarnessCaller, id: string): Promise<JsonObject> {
    const read = readEvent(params);
    requireGreeting(read, caller);
    const { event_type } = read;
    const judged = frames.judge('agent', 'request', `ahp/event ${event_type}`);
    if (judged.handling === 'refuse') {
      const own = eventRow(event_type).dir === 'none' ? judged.reason : undefined;
      throw new Refusal(-32602, own ?? `Fire-and-forget event ${event_type} must be sent as a notification`);
    }
    return decided(read, askerOf(read, caller, true, id));
  }

  async function batch(params: Json, caller: HarnessCaller, id: string): Promise<JsonObject> {
    const size = isObject(params) && Array.isArray(params.events) ? params.events.length : 0;
    if (size > settings.batchSize) {
      throw new Refusal(-32602, `Batch size ${size} exceeds configured limit ${settings.batchSize}`);
    }
    const { events } = read(shapes.BatchRequest, params) as { events: readonly AhpEvent[] };
    // All events are validated before any has an effect.
    for (const event of events) {
      checkEvent(event);
      requireGreeting(event, caller);
      if (!eventRow(event.event_type).batch) {
        throw new Refusal(
          -32602,
          `Event type ${event.event_type} cannot be batched because it does not return a generic Decision`,
        );
      }
    }
    // The whole batch has the time of one question, and people are not waited for: the other events would wait too.
    return await within(timeout(caller, settings.holdMs, false), async (whole) => {
      const decisions: JsonObject[] = [];
      for (const event of events) decisions.push(await entry(event, caller, whole, id));
      return { decisions };
    });
  }

  async function entry(event: AhpEvent, caller: HarnessCaller, whole: HoldTimeout, id: string): Promise<JsonObject> {
    if (eventRow(event.event_type).answer)
      return await decider.decide(event, { ...identityOf(event, caller, id), timeout: whole });
    try {
      await observer.take(event, caller.actor, greetingOf(event, caller)?.framework);
      return { decision: 'allow' };
    } catch (thrown) {
      return toWireRefusal('generic', failed(`Handler error: ${errorOf(thrown).message}`));
    }
  }

  // ---- Checks ----

  function readEvent(params: Json): AhpEvent {
    const event = read(shapes.AhpEvent, params) as AhpEvent;
    checkEvent(event);
    return event;
  }

  function checkEvent({ depth, event_type, payload }: AhpEvent): void {
    if (depth > settings.maxDepth) {
      const why = `Event depth ${depth} exceeds configured max depth ${settings.maxDepth}`;
      throw new Refusal(-32602, `Invalid event: Protocol error: ${why}`);
    }
    if (event_type !== 'run_lifecycle' && event_type !== 'task_list' && event_type !== 'verification') return;
    try {
      payloadShapes[event_type](payload);
    } catch (cause) {
      if (!(cause instanceof Misfit)) throw cause;
      throw new Refusal(-32602, `Invalid event: Serialization error: ${cause.message}`);
    }
  }

  function read(shape: (value: unknown) => Json, params: Json): JsonObject {
    return mending(() => ({ value: shape(params) as JsonObject })).value;
  }

  function mending<T>(decode: () => T): T {
    try {
      return decode();
    } catch (cause) {
      if (!(cause instanceof Misfit)) throw cause;
      throw new Refusal(-32602, `Invalid params: ${cause.message}`);
    }
  }

  // ---- Who, and for how long ----

  function greetingKey(actor: Actor, { session_id, agent_id }: Pick<AhpEvent, 'session_id' | 'agent_id'>): string {
    return JSON.stringify([scopeOf(actor), session_id, agent_id]);
  }

  function greetingOf(event: Pick<AhpEvent, 'session_id' | 'agent_id'>, caller: HarnessCaller): Greeting | undefined {
    return caller.greeting ?? greetings.get(greetingKey(caller.actor, event));
  }

  function requireGreeting(event: Pick<AhpEvent, 'session_id' | 'agent_id'>, caller: HarnessCaller): void {
    if (settings.strictHandshake && !greetingOf(event, caller)) {
      throw new Refusal(-32000, 'Handshake must complete before anything else');
    }
  }

  function identityOf(event: AhpEvent, caller: HarnessCaller, request_id?: string): Omit<Asker, 'timeout'> {
    const framework = greetingOf(event, caller)?.framework;
    return {
      actor: caller.actor,
      ...(framework && { framework }),
      ...(request_id !== undefined && { request_id }),
    };
  }

  function askerOf(event: AhpEvent, caller: HarnessCaller, hold: boolean, id?: string): Asker {
    const ms = Math.max(0, settings.holdMs - viaOf(event.metadata).length * HOP_MS);
    return { ...identityOf(event, caller, id), timeout: timeout(caller, ms, hold) };
  }

  function timeout({ gone }: HarnessCaller, ms: number, hold: boolean): HoldTimeout {
    return { until: wait(ms, gone, closing.signal), gone, hold };
  }

  function decided(event: AhpEvent, asker: Asker): Promise<JsonObject> {
    return within(asker.timeout, () => decider.decide(event, asker));
  }

  function errorOf(thrown: unknown): { code: number; message: string } {
    if (thrown instanceof Refusal) return { code: thrown.code, message: thrown.message };
    if (thrown instanceof Misfit) return { code: -32602, message: thrown.message };
    const fault: Fault = asFault(thrown);
    if (fault.kind === 'internal') deps.log.error({ err: fault.cause ?? fault }, 'a message failed');
    return { code: faults[fault.kind], message: fault.kind === 'internal' ? 'Internal error' : fault.message };
  }

  return {
    receive,
    async left(actor) {
      const scope = scopeOf(actor);
      await observer.left(runs.all().filter((run: SupervisedRun) => run.scope === scope));
    },
    async close() {
      closing.abort();
      clearInterval(looking);
      await observer.settle();
    },
  };
}
