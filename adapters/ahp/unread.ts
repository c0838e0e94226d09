/**
 * A question too long, too deep or too damaged to be read still has someone waiting for its answer, and some agents take
 * silence for a yes. Clients write who asks what at the beginning, and that is enough to refuse it. Pure.
 */
import { type EventType, eventRow } from '../../mappings/ahp.ts';
import type { JsonObject } from '../../src/index.ts';
import { isObject } from './decode.ts';
import { failed, toWireRefusal } from './translate.ts';

const QUESTION =
  /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,\s*"method"\s*:\s*"ahp\/event"/;
const TYPE = /"event_type"\s*:\s*"(\w+)"/;

/** The refusal for a question that begins like this; nothing for what asks nothing. */
export function refuseUnread(head: string, why: string): JsonObject | undefined {
  const spelled = QUESTION.exec(head)?.[1];
  if (spelled === undefined) return undefined;
  return refusal(JSON.parse(spelled) as string | number, TYPE.exec(head)?.[1], why);
}

/** The same for one that parses and holds what cannot be written down: half of a character, a number without a value. */
export function refuseDamaged(text: string, why: string): JsonObject | undefined {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(message) || message.method !== 'ahp/event' || !isObject(message.params)) return undefined;
  const { id, params } = message;
  if (typeof id !== 'string' && !Number.isInteger(id)) return undefined;
  const { event_type } = params;
  return refusal(id as string | number, typeof event_type === 'string' ? event_type : undefined, why);
}

function refusal(id: string | number, type: string | undefined, why: string): JsonObject | undefined {
  const family = type === undefined ? 'generic' : eventRow(type as EventType)?.answer;
  return family ? { jsonrpc: '2.0', id, result: toWireRefusal(family, failed(why)) } : undefined;
}
