/** The inputs a replay of this task would need, under the keys an override would name, and how faithful the replay could be. */
import type { Receipt, ReplayMaterial } from '../../model/receipt.ts';
import { commitmentOf, LOG_CONTENT, logUri } from '../merkle/event-hash.ts';
import { spellMany } from '../seal/canonical-json.ts';
import { listed } from './append-list.ts';
import { callMaterial } from './call-summaries.ts';
import type { ModelCall, TaskEvidence } from './evidence.ts';
import { type CallEvidence, callsInOrder } from './tool-calls.ts';

/** The log itself, then every recorded answer of a model or a tool. The answers are in the log; these are their hashes. */
export function replayInput(evidence: TaskEvidence, taskId: string): Receipt['replay_input'] {
  const models = listed(evidence.models);
  const calls = callsInOrder(evidence.calls);
  const materials: ReplayMaterial[] = [logMaterial(evidence, taskId)];
  for (const { material } of models) if (material) materials.push(material);
  for (const call of calls) {
    const material = callMaterial(call);
    if (material) materials.push(material);
  }
  const determinism = complete(evidence, models, calls) ? 'byte_deterministic' : 'best_effort';
  return { determinism, materials: spellMany(materials) };
}

/** The task's own events and the root over them. Without a root, because one event was missed, no coverage is claimed. */
function logMaterial({ run, sequence }: TaskEvidence, taskId: string): ReplayMaterial {
  const commitment = run && commitmentOf(run, taskId);
  const [id, kind] = [`event_log_${taskId}`, 'event_log'] as const;
  if (!commitment) return { id, kind, metadata: { task_id: taskId, through_sequence: sequence } };
  const { root, metadata } = commitment;
  return { content_type: LOG_CONTENT, id, kind, metadata, sha256: root, uri: logUri(taskId) };
}

/** True when nothing that could differ in a replay happened outside the gateway or was redacted. */
function complete(evidence: TaskEvidence, models: readonly ModelCall[], calls: readonly CallEvidence[]): boolean {
  return (
    models.length > 0 &&
    models.every(({ material }) => material !== undefined) &&
    calls.every(isExact) &&
    evidence.redactions === undefined &&
    evidence.unmodelled === 0 &&
    !evidence.interrupted
  );
}

/** The call ran through the gateway or not at all, and all its values have hashes. */
function isExact({ evidence, denied, outcome, unhashable }: CallEvidence): boolean {
  const known = denied === true || (outcome !== undefined && outcome !== 'unknown');
  return evidence === 'held' && known && !unhashable;
}
