/**
 * A remote gateway's decisions on calls, read from events of the Agents Protocol and recorded as the remote's claims.
 * The same for every protocol that can carry those events.
 */

import type { Fact } from '../../model/commands.ts';
import type { RemoteDecidedPayload } from '../../model/payloads.ts';
import type { JsonObject } from '../../model/schema.ts';
import { isObject } from '../../model/values/is-object.ts';

export type RemoteDecision = Omit<RemoteDecidedPayload, 'remote' | 'relayed'>;

/** Longest text kept of a reason. */
const MOST = 2_000;

/** `tool.approved` or `tool.denied` of a remote; undefined when it does not name the call. */
export function toRemoteDecision(event: string, payload: JsonObject, at?: string): RemoteDecision | undefined {
  const tool_call_id = textOf(payload.tool_call_id);
  if (!tool_call_id || !(event === 'tool.approved' || event === 'tool.denied')) return undefined;
  const [by, reason, code] = [textOf(payload.by), textOf(payload.reason), textOf(payload.code)];
  const [rule_id, ask_id] = [textOf(payload.rule_id), textOf(payload.ask_id)];
  const { input } = payload;
  return {
    tool_call_id,
    name: textOf(payload.name) ?? 'unknown',
    verdict: event === 'tool.denied' ? 'denied' : 'approved',
    ...(by && { by }),
    ...(reason && { reason }),
    ...(code && { code }),
    ...(rule_id && { rule_id }),
    ...(ask_id && { ask_id }),
    ...(at && { at }),
    ...(isObject(input) && { input }),
  };
}

/**
 * The facts that follow from the decision. `relayed`: the answer was given here and sent there. A call the remote
 * refused is over: the remote reports nothing more about it, and followers of the work here would wait for its end.
 */
export function remoteDecided(remote: string, decision: RemoteDecision, relayed: boolean, ext?: JsonObject): Fact[] {
  const { tool_call_id, name, verdict, reason, code } = decision;
  const decided: RemoteDecidedPayload = { ...decision, remote, ...(relayed && { relayed }) };
  const about: Fact = { event: 'vendor.tollbridge.remote_decided', payload: decided };
  const error = `${remote} refused the call: ${reason ?? code ?? 'it does not say why'}`;
  const over = { tool_call_id, name, status: 'error', error, code: code ?? 'refused' };
  if (verdict === 'approved' || relayed) return [about];
  return [about, { event: 'tool.failed', payload: over, ...(ext && { ext }) }];
}

/** `tool.requested` of a remote: observed, not held. Absent arguments are unknown, and not known to be empty. */
export function observedRequest(payload: JsonObject): JsonObject | undefined {
  const tool_call_id = textOf(payload.tool_call_id);
  if (!tool_call_id) return undefined;
  const { input, server, target } = payload;
  return {
    tool_call_id,
    name: textOf(payload.name) ?? 'unknown',
    kind: textOf(payload.kind) ?? 'tool',
    ...(isObject(input) && { input }),
    effect: textOf(payload.effect) ?? 'unknown',
    evidence: 'observed',
    ...(typeof server === 'string' && { server }),
    ...(typeof target === 'string' && { target }),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, MOST) : undefined;
}
