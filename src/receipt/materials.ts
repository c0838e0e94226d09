/** What a replay of this task would need, by the keys an override would name, and how faithful it could be. */
import type { Receipt, ReplayMaterial } from '../model/receipt.ts';
import type { Evidence, ModelCall } from './evidence.ts';
import { listed } from './pile.ts';
import { callsInOrder, type SettledCall } from './tool-calls.ts';

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
  for (const { material } of [...models, ...calls]) if (material) materials.push(material);
  return { determinism: complete(evidence, models, calls) ? 'byte_deterministic' : 'best_effort', materials };
}

/** Nothing that could differ next time happened out of our sight or was taken out of the record. */
function complete(evidence: Evidence, models: readonly ModelCall[], calls: readonly SettledCall[]): boolean {
  return (
    models.length > 0 &&
    models.every(({ material }) => material !== undefined) &&
    calls.every(({ exact }) => exact) &&
    evidence.redactions === undefined &&
    evidence.unmodelled === 0 &&
    !evidence.interrupted
  );
}
