/** Tool calls as a receipt tells them: what was decided, how firmly we had them, how they ended or that they had not. */
import type { Receipt } from '../model/receipt.ts';
import type { JsonObject } from '../model/schema.ts';
import { listed } from './pile.ts';
import { type CallEvidence, type Calls, doing } from './tool-calls.ts';

type ToolCall = Receipt['side_effects']['tool_calls'][number];
type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** In the order the calls were first mentioned. */
export function callsInOrder(calls: Calls): readonly CallEvidence[] {
  const all = listed(calls.settled);
  for (const call of calls.open.values()) all.push(call);
  return all.sort((a, b) => a.order - b.order);
}

/** Members are set in canonical order throughout, which is what makes sealing cheap. */
export function toolCall(call: CallEvidence): ToolCall {
  const told: Writable<Partial<ToolCall>> = { call_id: call.call_id };
  const input = call.executed_hash ?? call.requested_hash;
  if (input) told.input_hash = input;
  told.metadata = detailsOf(call);
  if (call.output_hash) told.output_hash = call.output_hash;
  told.status = call.status ?? 'canceled';
  told.tool = call.tool;
  return told as ToolCall;
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

/** It ran, or may have: what a budget of calls is spent on. */
export function wasSpent(call: CallEvidence): boolean {
  return call.status === 'succeeded' || call.status === 'failed' || (call.stopped_while ?? doing(call)) === 'running';
}
