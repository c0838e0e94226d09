/** What a replay of this task would need, by the keys an override would name, and how faithful it could be. */
import type { Receipt, ReplayMaterial } from '../model/receipt.ts';
import { callMaterial } from './call-telling.ts';
import { spellMany } from './canonical-json.ts';
import type { Evidence, ModelCall } from './evidence.ts';
import { listed } from './pile.ts';
import { type CallEvidence, callsInOrder } from './tool-calls.ts';

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
  for (const { material } of models) if (material) materials.push(material);
  for (const call of calls) {
    const material = callMaterial(call);
    if (material) materials.push(material);
  }
  const determinism = complete(evidence, models, calls) ? 'byte_deterministic' : 'best_effort';
  return { determinism, materials: spellMany(materials) };
}

/** Nothing that could differ next time happened out of our sight or was taken out of the record. */
function complete(evidence: Evidence, models: readonly ModelCall[], calls: readonly CallEvidence[]): boolean {
  return (
    models.length > 0 &&
    models.every(({ material }) => material !== undefined) &&
    calls.every(isExact) &&
    evidence.redactions === undefined &&
    evidence.unmodelled === 0 &&
    !evidence.interrupted
  );
}

/** It ran through us or not at all, and everything in it can be told from anything else. */
function isExact({ evidence, denied, status, unhashable }: CallEvidence): boolean {
  return evidence === 'held' && (denied === true || status !== undefined) && !unhashable;
}
