/** Checks one task's events in the log against the root its receipt was sealed over. Reads no event of another task. */
import { position } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Receipt } from '../../model/receipt.ts';
import type { Store } from '../../ports/index.ts';
import { count as countIn, membersOf, text } from '../build/read-members.ts';
import { createRun, extendRun, rootOfRun } from '../merkle/event-hash.ts';
import { commitmentIn } from './events.ts';

/**
 * `pruned`: retention removed some of them, so the root cannot be recomputed. `absent`: the receipt commits to no event of this
 * log.
 */
export type TaskEventsState = 'ok' | 'mismatch' | 'pruned' | 'absent';

export async function checkTaskEvents(
  store: Pick<Store, 'read' | 'firstMissing'>,
  receipt: Pick<Receipt, 'replay_input' | 'subject'>,
): Promise<TaskEventsState> {
  const stated = commitmentIn(receipt);
  const members = membersOf(stated?.metadata);
  const [task, last, count] = [text(members.task_id), text(members.last_event_id), countIn(members.count)];
  if (!stated?.sha256 || !task || !count || last === undefined || position(last) === undefined) return 'absent';
  const stream = { of: 'resource', object: 'task', id: task } as const;
  if (await store.firstMissing(stream)) return 'pruned';
  const run = createRun();
  try {
    // One more event than the receipt commits to is enough to detect surplus events.
    for await (const event of store.read({ stream, upTo: last, limit: count + 1 })) extendRun(run, event);
  } catch (thrown) {
    // Retention ran between the check and the read.
    if (thrown instanceof Fault && thrown.kind === 'cursor_expired') return 'pruned';
    // A body in the log is no longer JSON.
    if (thrown instanceof SyntaxError) return 'mismatch';
    throw thrown;
  }
  // A replay commits to the events of its source, which may have happened in another log.
  if (run.count === 0 && receipt.subject.object === 'replay_segment') return 'absent';
  return run.count === count && run.last === last && rootOfRun(run.frontier) === stated.sha256 ? 'ok' : 'mismatch';
}
