/** What a replay of this task would need, by the keys an override would name, and how faithful it could be. */
import type { Receipt, ReplayMaterial } from '../model/receipt.ts';
import { callsInOrder } from './build-calls.ts';
import type { Evidence, ModelCall } from './evidence.ts';
import { listed } from './pile.ts';
import type { CallEvidence } from './tool-calls.ts';

/** The log itself, then every recorded answer of a model or a tool. Answers stand in the log; here are their hashes. */
export function replayInput(evidence: Evidence, taskId: string): Receipt['replay_input'] {
  const models = listed(evidence.models);
  const calls = callsInOrder(evidence.calls);
  const materials: ReplayMaterial[] = [
    {
      id: `event_log_${taskId}`,
      kind: 'event_log',
      metadata: { task_id: taskId, through_sequence: evidence.sequence },
    },
  ];
  for (const call of models) if (call.response_hash) materials.push(modelMaterial(call, call.response_hash));
  for (const call of calls) if (call.output_hash) materials.push(callMaterial(call, call.output_hash));
  return { determinism: complete(evidence, models, calls) ? 'byte_deterministic' : 'best_effort', materials };
}

/** Nothing that could differ next time happened out of our sight or was taken out of the record. */
function complete(evidence: Evidence, models: readonly ModelCall[], calls: readonly CallEvidence[]): boolean {
  return (
    models.length > 0 &&
    models.every((call) => call.response_hash !== undefined) &&
    calls.every((call) => call.evidence === 'held' && call.status !== undefined && !call.unhashable) &&
    evidence.redactions === undefined &&
    evidence.unmodelled === 0 &&
    !evidence.interrupted
  );
}

function modelMaterial(call: ModelCall, sha256: string): ReplayMaterial {
  const key = `llm:${call.call_id}`;
  return {
    id: key,
    kind: 'llm_provider_response',
    metadata: { event_id: call.event_id, override_key: key },
    sha256,
  };
}

function callMaterial(call: CallEvidence, sha256: string): ReplayMaterial {
  const key = call.server ? `mcp:${call.server}:${call.call_id}` : `host:${call.tool}:${call.call_id}`;
  return {
    id: key,
    kind: call.server ? 'mcp_tool_return' : 'host_fact',
    metadata: { ...(call.output_event_id && { event_id: call.output_event_id }), override_key: key },
    sha256,
  };
}
