/**
 * Where we answer differently from the recorded server on purpose. Each is a rule with a reason, not a list of cases, so that
 * it holds for cases nobody has recorded yet, and says what is to come instead.
 */

import { decisionShapes, shapes } from '../../../adapters/ahp/shapes.ts';
import { type EventType, eventRow, type Family } from '../../../mappings/ahp.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely
type Frame = any;

export interface Difference {
  readonly name: string;
  readonly why: string;
  applies(sent: Frame, recorded: Frame): boolean;
  /** Throws when the answer is not the one this difference stands for. */
  instead(came: Frame, sent: Frame): void;
}

const TYPED = new Set([
  'idle',
  'intent_detection',
  'context_perception',
  'memory_recall',
  'planning',
  'reasoning',
  'rate_limit',
  'confirmation',
]);

export const DIFFERENCES: readonly Difference[] = [
  {
    name: 'integer ids',
    why: 'the recorded server takes a request with an integer id for a notification; real clients send them, and get an answer here',
    applies: (sent) => Number.isInteger(sent?.id),
    instead(came, sent) {
      if (came === undefined || came.id !== sent.id) throw new Error(`no answer under id ${sent.id}`);
    },
  },
  {
    name: 'an id is a text or an integer',
    why: 'with null or anything else there it is neither a request nor a notification: nobody could be answered, so nothing is done',
    applies: (sent) => sent?.id !== undefined && typeof sent.id !== 'string' && !Number.isInteger(sent.id),
    instead(came) {
      if (came !== undefined) expectCode(came, -32600);
    },
  },
  {
    name: 'jsonrpc is checked',
    why: 'a message that says it is not JSON-RPC 2.0 is refused instead of guessed at',
    applies: (sent) => typeof sent?.jsonrpc === 'string' && sent.jsonrpc !== '2.0' && sent.id !== undefined,
    instead: (came) => expectCode(came, -32600),
  },
  {
    name: 'a method nobody knows is refused, whatever kind of frame it comes in',
    why: 'the recorded server takes any notification it does not know and says nothing; its sender should hear that nothing came of it',
    applies: (sent) => sent?.id === undefined && typeof sent?.method === 'string' && sent.method !== 'ahp/event',
    instead(came) {
      if (came !== undefined) expectCode(came, -32603);
    },
  },
  {
    name: 'what is too deep to read is refused',
    why: 'the recorded server drops a question nested deeper than its reader goes, and agents take silence for a yes',
    applies: (sent, recorded) => recorded === undefined && sent?.method === 'ahp/event' && isDeep(sent),
    instead: (came, sent) => expectDecision(came?.result, sent.params.event_type),
  },
  {
    name: 'what cannot be written down again is refused',
    why: 'the same for half of a character or a number without a value, which an agent that cuts texts off may well send',
    applies: (sent, recorded) =>
      recorded === undefined && sent?.method === 'ahp/event' && isRequest(sent) && isCut(sent),
    instead: (came, sent) => expectDecision(came?.result, sent.params.event_type),
  },
  {
    name: 'typed events are decided',
    why: 'an error is taken for a yes by agents that fail open, so these are always answered with a decision of their family; a payload that cannot be read is refused in it',
    applies: (sent, recorded) =>
      sent?.method === 'ahp/event' &&
      isRequest(sent) &&
      TYPED.has(sent.params?.event_type) &&
      recorded?.error?.code === -32603,
    instead: (came, sent) => expectDecision(came?.result, sent.params.event_type),
  },
  {
    name: 'a failing handler blocks',
    why: 'the same, for the generic events: fail closed everywhere, not only in batches',
    applies: (sent, recorded) => sent?.method === 'ahp/event' && isRequest(sent) && recorded?.error?.code === -32603,
    instead(came, sent) {
      expectDecision(came?.result, sent.params.event_type);
      if (came.result.decision !== 'block') throw new Error(`${came.result.decision} instead of block`);
    },
  },
  {
    name: 'queries are answered',
    why: 'the recorded server has no handler for them',
    applies: (sent, recorded) => sent?.method === 'ahp/query' && recorded?.error?.code === -32603,
    instead: (came) => void shapes.QueryResponse(came?.result),
  },
  {
    name: 'handshakes may leave members out',
    why: 'older peers and the examples of the protocol do; what is missing is filled in',
    applies: (sent, recorded) =>
      sent?.method === 'ahp/handshake' && recorded?.error?.code === -32602 && leavesOut(sent.params),
    instead: (came) => void shapes.HandshakeResponse(came?.result),
  },
  {
    name: 'events with a method of their own',
    why: 'handshake and query inside ahp/event would get a decision that means nothing',
    applies: (sent) =>
      sent?.method === 'ahp/event' &&
      ['handshake', 'query'].includes(sent?.params?.event_type) &&
      sent.id !== undefined,
    instead: (came) => expectCode(came, -32602),
  },
];

function isDeep(value: Frame, left = 127): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return left === 0 || Object.values(value).some((inner) => isDeep(inner, left - 1));
}

function isCut(value: Frame): boolean {
  if (typeof value === 'string') return /\p{Surrogate}/u.test(value);
  return typeof value === 'object' && value !== null && Object.entries(value).some((pair) => pair.some(isCut));
}

function isRequest(sent: Frame): boolean {
  return sent?.id !== undefined;
}

/** Nothing in it has the wrong type; something is not there. */
function leavesOut(params: Frame): boolean {
  if (typeof params !== 'object' || params === null || Array.isArray(params)) return false;
  const info = params.agent_info ?? {};
  if (typeof info !== 'object' || Array.isArray(info)) return false;
  const capabilities = info.capabilities ?? [];
  const texts = [params.protocol_version, params.session_id, params.agent_id, info.framework, info.version];
  return (
    Array.isArray(capabilities) &&
    capabilities.every((word: unknown) => typeof word === 'string') &&
    texts.every((text) => text == null || typeof text === 'string')
  );
}

function expectCode(came: Frame, code: number): void {
  if (came?.error?.code !== code) throw new Error(`${JSON.stringify(came)} instead of error ${code}`);
}

export function expectDecision(result: Frame, type: EventType): void {
  const family: Family = eventRow(type)?.answer ?? 'generic';
  decisionShapes[family](result);
}
