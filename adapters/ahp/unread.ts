/**
 * A question too long or too deep to be read still has someone waiting for its answer, and some agents take silence for a
 * yes. Clients write who asks what at the beginning, and that is enough to refuse it. Pure.
 */
import { type EventType, eventRow } from '../../mappings/ahp.ts';
import type { JsonObject } from '../../src/index.ts';
import { failed, toWireRefusal } from './translate.ts';

const QUESTION =
  /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,\s*"method"\s*:\s*"ahp\/event"/;
const TYPE = /"event_type"\s*:\s*"(\w+)"/;

/** The refusal for a question that begins like this; nothing for what asks nothing. */
export function refuseUnread(head: string, why: string): JsonObject | undefined {
  const spelled = QUESTION.exec(head)?.[1];
  if (spelled === undefined) return undefined;
  const type = TYPE.exec(head)?.[1];
  const family = type === undefined ? 'generic' : eventRow(type as EventType)?.answer;
  if (!family) return undefined;
  return { jsonrpc: '2.0', id: JSON.parse(spelled) as string | number, result: toWireRefusal(family, failed(why)) };
}
