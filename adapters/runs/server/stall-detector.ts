/**
 * Finds runs whose worker has fallen silent. A heartbeat is any sign of the worker in the task's log: a message, a call, a result,
 * a question. A run that is running, has no open question, and has given no sign for the configured time by the gateway's clock is
 * marked as stalled; where configured, a run that stays stalled is failed.
 */
import { isOver } from '../../../mappings/runs.ts';
import { type Actor, everyRow, own, type Row, type Task } from '../../../src/index.ts';
import type { RouteContext } from './call.ts';
import { mark } from './operations/run-actions.ts';
import { CLASS_LIMIT, LOST, runIdOf, runMetadataOf } from './run-metadata.ts';
import type { OpenRun } from './run-reader.ts';

/** The door itself, when it looks after its runs. */
const STALL_DETECTOR: Actor = { id: 'system:runs', kind: 'system', scopes: ['*'], door: 'runs' };

export interface StallDetector {
  /** One round; resolves when all due runs have been handled. */
  look(): Promise<void>;
  close(): Promise<void>;
}

export function createStallDetector(context: RouteContext): StallDetector {
  const { bridge, runReader, turns, deps, settings } = context;
  let round: Promise<void> | undefined;

  async function* working(): AsyncGenerator<Task> {
    const query = { object: 'task', where: { state: ['WORKING', 'AUTH_REQUIRED', 'INPUT_REQUIRED'] } };
    const all = everyRow((paging) => bridge.list<Task & Row>(STALL_DETECTOR, { ...query, ...paging }));
    for await (const task of all) if (runMetadataOf(task) !== undefined) yield task;
  }

  const silentMs = (since: string) => Date.parse(deps.clock.now()) - Date.parse(since);

  async function attend(runId: string): Promise<void> {
    const run = await runReader.open(STALL_DETECTOR, runId);
    const { status, questions, received_at, updated_at } = run.standing;
    if (isOver(status)) return;
    if (tookTooLong(run.current)) await stop(run.current, CLASS_LIMIT, 'the run took longer than its class allows');
    else if (status === 'running' && questions.length === 0 && silentMs(received_at) >= settings.stallAfterMs) {
      // Measured since it was last resumed, too: a resumed worker gets the full time.
      if (silentMs(updated_at) >= settings.stallAfterMs)
        await mark(context, STALL_DETECTOR, run.current, 'run.worker.stalled');
    } else if (status === 'stalled' && settings.giveUpMs !== undefined && silentMs(updated_at) >= settings.giveUpMs) {
      await giveUp(run);
    }
  }

  /** A run has the time of its class from its start, waiting for people included. */
  function tookTooLong(task: Task): boolean {
    const most = own(settings.classMs, runMetadataOf(task)?.run_class ?? 'default');
    return most !== undefined && typeof task.started_at === 'string' && silentMs(task.started_at) >= most;
  }

  async function giveUp({ current }: OpenRun): Promise<void> {
    await stop(current, LOST, 'the worker gave no sign for too long');
  }

  async function stop({ id }: Task, code: string, message: string): Promise<void> {
    const body = { task_id: id, failure: { code, message } };
    await bridge.submit({ kind: 'task.cancel', actor: STALL_DETECTOR, body });
  }

  async function look(): Promise<void> {
    for await (const task of working()) {
      if (context.closing.aborted) return;
      const runId = runMetadataOf(task)?.run_id ?? runIdOf(task.id);
      try {
        await turns.take(`move ${runId}`, () => attend(runId));
      } catch (thrown) {
        deps.log.warn({ err: thrown, run: runId }, 'a run could not be looked after');
      }
    }
  }

  const timer = setInterval(() => {
    round ??= look()
      .catch((cause) => deps.log.warn({ err: cause }, 'looking for stalled runs failed; it is tried again'))
      .finally(() => {
        round = undefined;
      });
  }, settings.sweepMs).unref();

  return {
    look,
    async close() {
      clearInterval(timer);
      await round;
    },
  };
}
