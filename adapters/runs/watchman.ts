/**
 * Looks for runs whose worker has fallen silent. A heartbeat is any sign of the worker in the task's log: a word, a call, a
 * result, a question. A run that works, waits for nobody, and has given no sign for the configured time by the house's clock
 * has lost it; that is written down, and where configured a run that stays silent is given up.
 */
import type { Actor, Row, Task } from '../../src/index.ts';
import type { OpenRun } from './book.ts';
import type { Desk } from './call.ts';
import { mark } from './moves.ts';
import { LOST, runIdOf, runMetadataOf } from './run-metadata.ts';

/** The door itself, when it looks after its runs. */
const WATCHMAN: Actor = { id: 'system:runs', kind: 'system', scopes: ['*'], door: 'runs' };

export interface Watchman {
  /** One round; resolves when everything that was due has been done. */
  look(): Promise<void>;
  close(): Promise<void>;
}

export function createWatchman(desk: Desk): Watchman {
  const { bridge, book, turns, deps, settings } = desk;
  let round: Promise<void> | undefined;

  async function* working(): AsyncGenerator<Task> {
    let after: string | undefined;
    do {
      const where = { state: 'WORKING' };
      const page = await bridge.list<Task & Row>(WATCHMAN, {
        object: 'task',
        where,
        limit: 200,
        ...(after && { after }),
      });
      yield* page.data.filter((task) => runMetadataOf(task) !== undefined);
      after = page.next;
    } while (after);
  }

  const silentMs = (since: string) => Date.parse(deps.clock.now()) - Date.parse(since);

  async function attend(runId: string): Promise<void> {
    const run = await book.open(WATCHMAN, runId);
    const { status, questions, heard_at, updated_at } = run.standing;
    if (status === 'running' && questions.length === 0 && silentMs(heard_at) >= settings.stallAfterMs) {
      // Since it was last taken up, too: whoever has just gone on gets its time.
      if (silentMs(updated_at) >= settings.stallAfterMs) await mark(desk, WATCHMAN, run.current, 'run.worker.stalled');
    } else if (status === 'stalled' && settings.giveUpMs !== undefined && silentMs(updated_at) >= settings.giveUpMs) {
      await giveUp(run);
    }
  }

  async function giveUp({ current }: OpenRun): Promise<void> {
    const failure = { code: LOST, message: 'the worker gave no sign for too long' };
    await bridge.submit({ kind: 'task.cancel', actor: WATCHMAN, body: { task_id: current.id, failure } });
  }

  async function look(): Promise<void> {
    for await (const task of working()) {
      if (desk.closing.aborted) return;
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
