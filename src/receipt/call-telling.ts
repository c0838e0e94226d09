/** Tool calls as a receipt tells them: what was decided, how firmly we had them, how they ended or that they had not. */
import type { Receipt, ReplayMaterial } from '../model/receipt.ts';
import type { JsonObject } from '../model/schema.ts';
import type { CallEvidence } from './tool-calls.ts';

export type ToldCall = Receipt['side_effects']['tool_calls'][number];
type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** What a call without an answer is doing. Undefined: it has one, or never got leave to run. */
export function doing(call: CallEvidence): string | undefined {
  if (call.status || call.denied || call.verdict === 'block') return undefined;
  if (call.verdict === 'defer') return 'deferred';
  if (call.verdict !== 'escalate' || call.begun) return 'running';
  // Ruled on: `denied` is then there, and false.
  return call.denied === undefined ? 'waiting_for_approval' : 'approved_but_not_begun';
}

/** It ran, or may have: what a budget of calls is spent on. */
export function wasSpent(call: CallEvidence): boolean {
  return call.status === 'succeeded' || call.status === 'failed' || (call.stopped_while ?? doing(call)) === 'running';
}

/** Members are set in canonical order throughout, which is what makes sealing cheap. */
export function toldCall(call: CallEvidence): ToldCall {
  const told: Writable<Partial<ToldCall>> = { call_id: call.call_id };
  const input = call.executed_hash ?? call.requested_hash;
  if (input) told.input_hash = input;
  told.metadata = detailsOf(call);
  if (call.output_hash) told.output_hash = call.output_hash;
  told.status = call.status ?? 'canceled';
  told.tool = call.tool;
  return told as ToldCall;
}

function detailsOf(call: CallEvidence): JsonObject {
  const told: Writable<JsonObject> = {};
  if (call.ask_id) told.ask_id = call.ask_id;
  if (call.code) told.code = call.code;
  if (call.denied) told.denied = true;
  if (call.effect) told.effect = call.effect;
  if (call.engine) told.engine = call.engine;
  told.evidence = call.evidence;
  if (call.policy_version) told.policy_version = call.policy_version;
  if (call.denied && call.status === 'succeeded') told.ran_though_denied = true;
  if (call.ran_without) told.ran_without = call.ran_without;
  if (call.executed_hash && call.requested_hash && call.executed_hash !== call.requested_hash) {
    told.requested_input_hash = call.requested_hash;
  }
  if (call.rule_id) told.rule_id = call.rule_id;
  if (call.server) told.server = call.server;
  const stopped = call.stopped_while ?? doing(call);
  if (stopped) told.stopped_while = stopped;
  if (call.unhashable) told.unhashable = true;
  if (call.verdict) told.verdict = call.verdict;
  if (call.would_be) told.would_be = call.would_be;
  return told;
}

/** The answer a replay would give instead of calling again, under the key an override would name. */
export function callMaterial(call: CallEvidence): ReplayMaterial | undefined {
  if (!call.output_hash) return undefined;
  const key = call.server ? `mcp:${call.server}:${call.call_id}` : `host:${call.tool}:${call.call_id}`;
  return {
    id: key,
    kind: call.server ? 'mcp_tool_return' : 'host_fact',
    metadata: call.output_event_id ? { event_id: call.output_event_id, override_key: key } : { override_key: key },
    sha256: call.output_hash,
  };
}
