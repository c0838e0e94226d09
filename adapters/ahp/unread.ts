/**
 * A question too long, too deep or too damaged to be read still has someone waiting for its answer, and some agents take
 * silence for a yes. Clients write who asks what at the beginning, and that is enough to refuse it. Pure.
 */
import { type EventType, eventRow } from '../../mappings/ahp.ts';
import type { JsonObject } from '../../src/index.ts';
import { isObject } from './decode.ts';
import { failed, toWireRefusal } from './translate.ts';

/** What a question says of itself, in any order, before what it is about. */
const OPENING = /^\s*\{\s*((?:"(?:jsonrpc|id|method)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?\d+)\s*,\s*)+)/;
const TYPE = /"event_type"\s*:\s*"(\w+)"/;

/** The refusal for a question that begins like this; nothing for what asks nothing. */
export function refuseUnread(head: string, why: string): JsonObject | undefined {
  const members = OPENING.exec(head)?.[1]?.trimEnd().slice(0, -1);
  const { jsonrpc, id, method } = members === undefined ? {} : (parsed(`{${members}}`) as JsonObject);
  if (jsonrpc !== '2.0' || (typeof id !== 'string' && typeof id !== 'number')) return undefined;
  return method === 'ahp/event' ? refusal(id, TYPE.exec(head)?.[1], why) : error(id, method, why);
}

/**
 * The same for one that parses and is too deep or too much, or holds what cannot be written down: half of a character, a
 * number without a value.
 */
export function refuseDamaged(text: string, why: string): JsonObject | undefined {
  const message = parsed(text);
  if (!isObject(message)) return undefined;
  const { id, method, params } = message;
  if (typeof id !== 'string' && !Number.isInteger(id)) return undefined;
  if (method !== 'ahp/event') return error(id as string | number, method, why);
  if (!isObject(params)) return undefined;
  const { event_type } = params;
  return refusal(id as string | number, typeof event_type === 'string' ? event_type : undefined, why);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** Beside events there is nothing a decision could answer; but an agent that gave it an id waits. */
function error(id: string | number, method: unknown, why: string): JsonObject | undefined {
  if (typeof method !== 'string') return undefined;
  return { jsonrpc: '2.0', id, error: { code: -32600, message: `Invalid request: ${why}` } };
}

function refusal(id: string | number, type: string | undefined, why: string): JsonObject | undefined {
  const family = type === undefined ? 'generic' : eventRow(type as EventType)?.answer;
  return family ? { jsonrpc: '2.0', id, result: toWireRefusal(family, failed(why)) } : undefined;
}
