/**
 * An agent still waits for the answer to a question that is too long, too deep or too damaged to be read, and some agents take
 * silence for a yes. Clients write the id and the method at the beginning, which is enough to refuse it. Pure.
 */
import { type EventType, eventRow } from '../../../mappings/ahp.ts';
import { isObject, type JsonObject } from '../../../src/index.ts';
import { failed, toWireRefusal } from '../translate.ts';

/** The envelope members of a question, in any order, before its parameters. */
const OPENING = /^\s*\{\s*((?:"(?:jsonrpc|id|method)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?\d+)\s*,\s*)+)/;
const TYPE = /"event_type"\s*:\s*"(\w+)"/;

/** The refusal for a question that begins like this; undefined for a message that is not a question. */
export function refuseUnread(head: string, why: string): JsonObject | undefined {
  const members = OPENING.exec(head)?.[1]?.trimEnd().slice(0, -1);
  const { jsonrpc, id, method } = members === undefined ? {} : (parsed(`{${members}}`) as JsonObject);
  if (jsonrpc !== '2.0' || (typeof id !== 'string' && typeof id !== 'number')) return undefined;
  return method === 'ahp/event' ? refusal(id, TYPE.exec(head)?.[1], why) : error(id, method, why);
}

/**
 * The same for a text that parses but is too deep or too large, or holds values that cannot be recorded: a lone surrogate, a
 * number out of range.
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

/** Only events can be answered by a decision; any other request with an id gets an error. */
function error(id: string | number, method: unknown, why: string): JsonObject | undefined {
  if (typeof method !== 'string') return undefined;
  return { jsonrpc: '2.0', id, error: { code: -32600, message: `Invalid request: ${why}` } };
}

function refusal(id: string | number, type: string | undefined, why: string): JsonObject | undefined {
  const family = type === undefined ? 'generic' : eventRow(type as EventType)?.answer;
  return family ? { jsonrpc: '2.0', id, result: toWireRefusal(family, failed(why)) } : undefined;
}
