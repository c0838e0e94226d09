/** Tool calls as a receipt states them: the decision, the strength of evidence, and the outcome or that there was none. */
import { type CallOutcome, outcomeOfEnd } from '../../model/call-outcomes.ts';
import type { Receipt, ReplayMaterial } from '../../model/receipt.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { CallEvidence } from './tool-calls.ts';

export type CallSummary = Receipt['side_effects']['tool_calls'][number];
type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** The state of a call without an answer. Undefined: it has an answer, or was never permitted to run. */
export function doing(call: CallEvidence): string | undefined {
  if (call.outcome || call.denied || call.verdict === 'block') return undefined;
  if (call.verdict === 'defer') return 'deferred';
  if (call.verdict !== 'escalate' || call.begun) return 'running';
  // When a decision was made, `denied` is set, and false here.
  return call.denied === undefined ? 'waiting_for_approval' : 'approved_but_not_begun';
}

/** The call ran, or may have: it counts against a budget of calls. */
export function wasSpent(call: CallEvidence): boolean {
  const { outcome } = call;
  if (outcome === 'succeeded' || outcome === 'failed' || outcome === 'unknown') return true;
  return (call.stopped_while ?? doing(call)) === 'running';
}

/** The outcome of a call that was not let through, whatever its agent reports. */
export function refusedAs(call: CallEvidence): CallOutcome | undefined {
  if (!call.denied && call.verdict !== 'block') return undefined;
  return outcomeOfEnd('tool.denied', call);
}

/**
 * The outcome as far as the log knows. A call that was let through and has no end may have run; one that was not let through
 * never did.
 */
function outcomeOf(call: CallEvidence): CallOutcome {
  return call.outcome ?? refusedAs(call) ?? (doing(call) === 'running' ? 'unknown' : 'canceled');
}

/**
 * The schema has three words for five outcomes. A reader who knows only those must not mistake a call that may have run for one
 * that did not: `canceled` never ran or was stopped, `failed` was not seen to succeed and may have had effects.
 */
const STATUS: Readonly<Record<CallOutcome, CallSummary['status']>> = {
  succeeded: 'succeeded',
  failed: 'failed',
  refused: 'canceled',
  canceled: 'canceled',
  unknown: 'failed',
};

/** Members are set in canonical order throughout, which keeps sealing cheap. */
export function summaryOfCall(call: CallEvidence): CallSummary {
  const summary: Writable<Partial<CallSummary>> = { call_id: call.call_id };
  const input = call.executed_hash ?? call.requested_hash;
  if (input) summary.input_hash = input;
  const outcome = outcomeOf(call);
  summary.metadata = detailsOf(call, outcome);
  if (call.output_hash) summary.output_hash = call.output_hash;
  summary.status = STATUS[outcome];
  summary.tool = call.tool;
  return summary as CallSummary;
}

function detailsOf(call: CallEvidence, outcome: CallOutcome): JsonObject {
  const summary: Writable<JsonObject> = {};
  if (call.also_reported) summary.also_reported = call.also_reported;
  if (call.one_commit) summary.one_commit = true;
  if (call.ask_id) summary.ask_id = call.ask_id;
  if (call.changed_by) summary.changed_by = call.changed_by;
  if (call.code) summary.code = call.code;
  if (call.denied) summary.denied = true;
  if (call.effect) summary.effect = call.effect;
  if (call.engine) summary.engine = call.engine;
  summary.evidence = call.evidence;
  summary.outcome = outcome;
  if (outcome === 'unknown' || outcome === 'refused') {
    summary.outcome_reason = (call.reason ?? NOT_SAID[outcome]).slice(0, LONGEST_REASON);
  }
  if (call.policy_version) summary.policy_version = call.policy_version;
  if (call.denied && call.outcome === 'succeeded') summary.ran_though_denied = true;
  if (call.ran_without) summary.ran_without = call.ran_without;
  if (call.remote) summary.remote = call.remote;
  if (call.executed_hash && call.requested_hash && call.executed_hash !== call.requested_hash) {
    summary.requested_input_hash = call.requested_hash;
  }
  if (call.rule_id) summary.rule_id = call.rule_id;
  if (call.server) summary.server = call.server;
  const stopped = call.stopped_while ?? doing(call);
  if (stopped) summary.stopped_while = stopped;
  if (call.unhashable) summary.unhashable = true;
  if (call.verdict) summary.verdict = call.verdict;
  if (call.would_be) summary.would_be = call.would_be;
  return summary;
}

const LONGEST_REASON = 500;
const NOT_SAID = {
  unknown: 'it was let through and not seen to end',
  refused: 'it was not let through',
} as const;

/** The answer a replay would use instead of calling again, under the key an override would name. */
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
