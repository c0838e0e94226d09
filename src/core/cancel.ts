/** Work that is to stop, wherever it runs: asked for in the log, waited for, and ended by us when nobody else will. */
import type { End } from '../model/commands.ts';
import type { EventDraft } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Failure, Task } from '../model/resources.ts';
import type { Json } from '../model/schema.ts';
import { isTerminal } from '../model/words.ts';
import type { Row } from '../ports.ts';
import type { Asks } from './asks.ts';
import type { Context, once } from './context.ts';
import type { Endings } from './endings.ts';
import { inTask } from './lifecycle.ts';
import type { Run } from './rows.ts';
import type { Runner } from './runner.ts';

/** True when an earlier command with the same key had asked for it. */
export type CancelTask = (
  taskId: string,
  by: string,
  reason: string,
  idempotency?: ReturnType<typeof once>,
  /** Why it has failed, when that is why it is stopped. */
  failure?: Failure,
) => Promise<boolean>;

/** Says that work is to stop; whoever does it hears so through the log. */
export function stopEvent(task: Task, by: string, reason: string, failure?: Failure): EventDraft {
  const payload = { reason, ...(failure && { failure: failure as unknown as Json }) };
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
    let run: Run | undefined;
    const { repeated } = await log.commit({
      ...idempotency,
      reads: [
        { object: 'task', id: taskId },
        { object: 'run', id: taskId },
      ],
      decide(at) {
        known = at.get<Task & Row>('task', taskId);
        run = at.get<Run>('run', taskId);
        if (!known) throw new Fault('not_found', `no task ${taskId}`);
        if (known.status === 'CANCELED') return { events: [], result: { id: taskId } };
        if (isTerminal(known.status)) throw new Fault('conflict', `task ${taskId} already ended as ${known.status}`);
        if (run?.cancel_requested) return { events: [], result: { id: taskId } };
        return {
          // What it asked is nobody's question any more, however long it takes to stop.
          events: [
            stopEvent(known, by, reason, failure),
            ...asks.withdraw(known, run, at.now, 'the work was told to stop'),
          ],
          result: { id: taskId },
        };
      },
    });
    if (repeated) {
      known = await store.get<Task & Row>('task', taskId);
      run = await store.get<Run>('run', taskId);
    }
    if (known && isTerminal(known.status)) return repeated;
    if (await runner.stop(taskId, by, reason, failure)) return repeated;

    // Queued, done by someone outside, or left by a process that is gone: nobody else will end it.
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
