/**
 * Links between the receipts of two gateways, as a receipt states them. The gateway that gave the work states the receipt it got
 * back, by id and hash; the gateway that did the work states what the caller announced about itself, because the caller's receipt
 * is sealed later. Both are claims until a verifier has both receipts: `linked.ts` compares them.
 */
import type { JsonObject } from '../../model/schema.ts';
import { type Members, membersOf, sha256, text } from './read-members.ts';

/**
 * From `task.submitted`, or from `tool.requested` with the id the call got here: what the calling gateway announced about itself.
 */
export function callerLink(stated: unknown, callId?: unknown): JsonObject | undefined {
  const caller = membersOf(stated);
  const task_id = text(caller.task_id);
  if (!task_id) return undefined;
  const [event_id, event_hash] = [text(caller.event_id), sha256(caller.event_hash)];
  const [issuer, key_id, protocol] = [text(caller.issuer), text(caller.key_id), text(caller.protocol)];
  const tool_call_id = text(caller.tool_call_id);
  const call_id = text(callId);
  return {
    ...(call_id && { call_id }),
    checked: 'claimed',
    direction: 'caller',
    ...(event_hash && { event_hash }),
    ...(event_id && { event_id }),
    ...(issuer && { issuer }),
    ...(key_id && { key_id }),
    ...(protocol && { protocol }),
    task_id,
    ...(tool_call_id && { tool_call_id }),
  };
}

/**
 * From `vendor.tollbridge.remote_decided`: the remote receipt that accounts for a single call, or the remote task when its
 * receipt is sealed later. For a call that was not answered only our own announcement is known: a verifier with both receipts
 * matches them by it.
 */
export function calleeLink(stated: unknown, callId: string): JsonObject | undefined {
  const link = membersOf(stated);
  const announced = membersOf(link.announced);
  const [event_id, event_hash] = [text(announced.event_id), sha256(announced.event_hash)];
  const [task_id, protocol] = [text(link.task_id), text(link.protocol)];
  const [issuer, key_id] = [text(link.issuer), text(link.key_id)];
  const [receipt_id, receipt_hash] = [text(link.receipt_id), sha256(link.receipt_hash)];
  if (!protocol || !(task_id || event_hash)) return undefined;
  return {
    checked: task_id ? 'claimed' : UNANSWERED,
    direction: 'callee',
    ...(event_hash && { event_hash }),
    ...(event_id && { event_id }),
    ...(issuer && { issuer }),
    ...(key_id && { key_id }),
    protocol,
    ...(receipt_hash && { receipt_hash }),
    ...(receipt_id && { receipt_id }),
    task_id: task_id ?? 'unknown',
    tool_call_id: callId,
  };
}

/** State of a link whose other end was never reported. */
export const UNANSWERED = 'unanswered';

/** From `agent.handoff`: the other gateway's receipt. Members of an earlier event stay, unless this one repeats them. */
export function handoffLink(payload: Members, before: JsonObject | undefined): JsonObject | undefined {
  const link = membersOf(payload.link);
  const task_id = text(payload.task_id);
  const protocol = text(link.protocol);
  if (!task_id || (!protocol && !before)) return before;
  const announced = membersOf(link.announced);
  const [event_id, event_hash] = [text(announced.event_id), sha256(announced.event_hash)];
  const [issuer, key_id, reason] = [text(link.issuer), text(link.key_id), text(link.reason)];
  const [receipt_id, receipt_hash] = [text(payload.receipt_id), sha256(link.receipt_hash)];
  const checked = CHECKED.find((word) => word === link.checked);
  const stated = {
    ...before,
    ...(checked && { checked }),
    direction: 'callee',
    ...(event_hash && { event_hash }),
    ...(event_id && { event_id }),
    ...(issuer && { issuer }),
    ...(key_id && { key_id }),
    ...(protocol && { protocol }),
    ...(reason && { reason }),
    ...(receipt_hash && { receipt_hash }),
    ...(receipt_id && { receipt_id }),
    task_id,
  };
  return Object.fromEntries(Object.entries(stated).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const CHECKED = ['valid', 'invalid', 'claimed'] as const;
