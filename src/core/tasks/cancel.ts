/** Cancels work, wherever it runs: requested in the log, awaited, and ended here when no other process will. */
import type { End } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Failure, Task } from '../../model/resources.ts';
import { isTerminal } from '../../model/words.ts';
import type { Row } from '../../ports/index.ts';
import type { Asks } from '../approvals/asks.ts';
import type { Context, once } from '../context.ts';
import type { RunRow } from '../events/rows.ts';
import type { Endings } from './end-task.ts';
import { inTask, readsOf } from './lifecycle.ts';
import type { Runner } from './runner.ts';

/** True when an earlier command with the same key had requested it. */
export type CancelTask = (
  taskId: string,
  by: string,
  reason: string,
  idempotency?: ReturnType<typeof once>,
  /** The failure that is the reason for the cancel, if there is one. */
  failure?: Failure,
) => Promise<boolean>;

/** The event that requests a stop; the process that runs the task reads it from the log. */
export function stopEvent(task: Task, by: string, reason: string, failure?: Failure): EventDraft {
  const payload = { reason, ...(failure && { failure: failure }) };
  return { ...inTask(task), event: 'user.cancel_requested', actor: by, payload };
}

export interface CancelDeps extends Context {
  readonly asks: Pick<Asks, 'withdraw'>;
  readonly endings: Endings;
  readonly runner: Runner;
  readonly instance: string;
  /** True when the process a run belongs to is gone. */
  readonly isDead: (instance: string) => Promise<boolean>;
  readonly graceMs: number;
}

export function createCancel(deps: CancelDeps): CancelTask {
  const { store, log, asks, endings, runner } = deps;

  async function endsWithin(taskId: string, ms: number): Promise<boolean> {
    const signal = AbortSignal.timeout(ms);
    for await (const event of store.follow({ stream: { of: 'task', id: taskId } }, signal)) {
      if (event.event === 'task.completed' || event.event === 'task.failed' || event.event === 'task.canceled')
        return true;
    }
    return false;
  }

  return async (taskId, by, reason, idempotency = {}, failure) => {
    let known: Task | undefined;
    let run: RunRow | undefined;
    const { repeated } = await log.commit({
      ...idempotency,
      reads: readsOf(taskId),
      decide(at) {
        known = at.get<Task & Row>('task', taskId);
        run = at.get<RunRow>('run', taskId);
        if (!known) throw new Fault('not_found', `no task ${taskId}`);
        if (known.status === 'CANCELED') return { events: [], result: { id: taskId } };
        if (isTerminal(known.status)) throw new Fault('conflict', `task ${taskId} already ended as ${known.status}`);
        if (run?.cancel_requested) return { events: [], result: { id: taskId } };
        return {
          // Its questions are withdrawn at once, however long the agent takes to stop.
          events: [
            stopEvent(known, by, reason, failure),
            ...asks.withdraw(known, run, at.now, 'the work was canceled'),
          ],
          result: { id: taskId },
        };
      },
    });
    if (repeated) {
      known = await store.get<Task & Row>('task', taskId);
      run = await store.get<RunRow>('run', taskId);
    }
    if (known && isTerminal(known.status)) return repeated;
    if (await runner.stop(taskId, by, reason, failure)) return repeated;

    // Queued, done outside the gateway, or left by a dead process: no other process will end it.
    const elsewhere =
      known?.status !== 'SUBMITTED' &&
      run?.instance &&
      run.instance !== deps.instance &&
      !(await deps.isDead(run.instance));
    if (elsewhere && (await endsWithin(taskId, deps.graceMs * 2))) return repeated;
    const end: End = failure ? { state: 'FAILED', failure } : { state: 'CANCELED' };
    await endings.finish(taskId, end, { by, reason, ...(elsewhere && { stillRunning: true }) });
    return repeated;
  };
}
