/** A replay that others ended early: the data for its receipt is in the event it began with. */
import type { Task } from '../../model/resources.ts';
import type { Store } from '../../ports/index.ts';
import type { EndOptions } from '../tasks/ending.ts';
import { ours } from '../tasks/lifecycle.ts';

/** Undefined for any other task. */
export async function brokenOffReplay(
  store: Pick<Store, 'read'>,
  task: Task,
): Promise<EndOptions['replay'] | undefined> {
  if (!ours(task).replay) return undefined;
  for await (const { payload } of store.read({ stream: { of: 'task', id: task.id }, kinds: ['replay.started'] })) {
    const claim = payload.claim as EndOptions['replay'] | undefined;
    // The last repeated event is unknown, so the overrides that took effect are unknown too.
    if (claim) return { ...claim, deltas: [], materials: [], unavailable: 'the replay was stopped before it ended' };
  }
  return undefined;
}
