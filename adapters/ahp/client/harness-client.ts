/**
 * The agent's side of the protocol: the handshake comes first, ids are strings, and a response counts only with the right
 * version, the right id, and a result of the right shape.
 */

import { type EventType, eventRow, PROTOCOL } from '../../../mappings/ahp.ts';
import { asText, isObject, type Json, type JsonObject, VERSION } from '../../../src/index.ts';
import { Misfit } from '../decode.ts';
import { decisionShapes, shapes } from '../shapes.ts';
import { manyMayListen, wait } from '../timeout.ts';
import type { AhpEvent } from '../translate.ts';
import { HarnessError } from './harness-error.ts';
import type { HarnessLink } from './transports.ts';

export interface Welcome {
  readonly version: string;
  readonly name: string;
  readonly harnessVersion: string;
  readonly timeoutMs: number | undefined;
  readonly batchSize: number | undefined;
  readonly maxDepth: number | undefined;
  /** Free text; we act on only a few of them. */
  readonly capabilities: readonly string[];
}

export interface Asking {
  handshake(who: { readonly session_id: string; readonly agent_id: string }, signal?: AbortSignal): Promise<Welcome>;
  /** The decision, of the event's own family. */
  event(event: AhpEvent, signal?: AbortSignal): Promise<JsonObject>;
  query(query: JsonObject, signal?: AbortSignal): Promise<JsonObject>;
  batch(events: readonly AhpEvent[], signal?: AbortSignal): Promise<readonly JsonObject[]>;
  notify(event: AhpEvent): Promise<void>;
  readonly welcome: Welcome | undefined;
  readonly cut: AbortSignal;
  /** We closed the connection because the harness hung. */
  readonly hung: boolean;
  close(): Promise<void>;
}

/** A connection without any message for this long is closed. */
const HANGS_MS = 2_000;

const NEVER = manyMayListen(new AbortController()).signal;

export function createAsking(link: HarnessLink, newId: () => string, timeoutMs: number): Asking {
  let welcome: Welcome | undefined;
  let hung = false;

  async function call(method: string, params: Json, signal: AbortSignal): Promise<Json> {
    const id = newId();
    const longest = Math.min(timeoutMs, welcome?.timeoutMs ?? timeoutMs);
    const held = wait(longest, signal);
    const began = performance.now();
    try {
      const response = await link.request({ jsonrpc: '2.0', id, method, params }, held.signal);
      return resultOf(response, id, method);
    } catch (cause) {
      const waited = performance.now() - began;
      // The harness hangs: further questions on this connection would wait as long. A new connection may work.
      if (waited >= Math.min(longest - 1, HANGS_MS) && link.silentSince(began)) {
        hung = true;
        await link.close();
      }
      throw cause;
    } finally {
      held.release();
    }
  }

  function requireWelcome(): Welcome {
    if (!welcome) throw new HarnessError('protocol', 'hands have to be shaken before anything is asked');
    return welcome;
  }

  return {
    get welcome() {
      return welcome;
    },
    get hung() {
      return hung;
    },
    cut: link.cut,

    async handshake({ session_id, agent_id }, signal = NEVER) {
      const agent_info = { framework: 'tollbridge', version: VERSION, capabilities: [] };
      const params = { protocol_version: PROTOCOL, agent_info, session_id, agent_id };
      const answer = shaped(shapes.HandshakeResponse, await call('ahp/handshake', params, signal));
      const version = asText(answer.protocol_version);
      if (version.split('.')[0] !== PROTOCOL.split('.')[0]) {
        throw new HarnessError('protocol', `the harness speaks version ${version}, and we speak ${PROTOCOL}`);
      }
      const { timeout_ms, batch_size, max_depth } = (answer.config ?? {}) as Record<string, number | undefined>;
      const info = answer.harness_info as { name: string; version: string; capabilities?: readonly string[] };
      welcome = {
        version,
        name: info.name,
        harnessVersion: info.version,
        timeoutMs: timeout_ms,
        batchSize: batch_size,
        maxDepth: max_depth,
        capabilities: info.capabilities ?? [],
      };
      return welcome;
    },

    async event(event, signal = NEVER) {
      requireWelcome();
      const family = familyOf(event.event_type);
      return shaped(decisionShapes[family], await call('ahp/event', event as Json, signal));
    },

    async query(query, signal = NEVER) {
      requireWelcome();
      return shaped(shapes.QueryResponse, await call('ahp/query', query, signal));
    },

    async batch(events, signal = NEVER) {
      requireWelcome();
      const odd = events.find(({ event_type }) => !eventRow(event_type).batch);
      if (odd) throw new HarnessError('protocol', `${odd.event_type} cannot be batched`);
      const answer = shaped(shapes.BatchResponse, await call('ahp/batch', { events } as Json, signal));
      const decisions = answer.decisions as readonly JsonObject[];
      if (decisions.length !== events.length) {
        throw new HarnessError('protocol', `${decisions.length} decisions about ${events.length} events`);
      }
      return decisions;
    },

    async notify(event) {
      requireWelcome();
      const held = wait(timeoutMs);
      try {
        await link.notify({ jsonrpc: '2.0', method: 'ahp/event', params: event as Json }, held.signal);
      } finally {
        held.release();
      }
    },

    close: () => link.close(),
  };
}

function familyOf(type: EventType) {
  return eventRow(type).answer ?? 'generic';
}

function resultOf(response: unknown, id: string, method: string): Json {
  if (!isObject(response)) throw new HarnessError('protocol', 'the answer is not a response');
  if ('method' in response) throw new HarnessError('protocol', 'a harness answers; it asks and tells nothing itself');
  if (response.jsonrpc !== '2.0') throw new HarnessError('protocol', 'the answer is not JSON-RPC 2.0');
  if (typeof response.id !== 'string') throw new HarnessError('protocol', 'the answer has no id that could be ours');
  if (response.id !== id) throw new HarnessError('protocol', 'the answer belongs to another question');
  // The harness's error message may contain anything, so it is not shown to people.
  if (response.error !== undefined && response.error !== null) throw new HarnessError('protocol', `${method} failed`);
  if (response.result === undefined || response.result === null)
    throw new HarnessError('protocol', 'the answer is empty');
  return response.result as Json;
}

function shaped(shape: (value: unknown) => Json, value: Json): JsonObject {
  try {
    return shape(value) as JsonObject;
  } catch (cause) {
    if (!(cause instanceof Misfit)) throw cause;
    throw new HarnessError('shape', 'the answer is not a decision of this kind');
  }
}
