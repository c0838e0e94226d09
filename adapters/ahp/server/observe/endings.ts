/**
 * How a supervised run ends: as it reported, after a moment for results of checks, or as left. A session ends when its top-level
 * agent says so, after its sub-agents had a moment to report their own ends.
 */
import type { Actor, Deps, End } from '../../../../src/index.ts';
import type { AhpSettings } from '../../config.ts';
import type { AhpEvent } from '../../translate.ts';
import { notSeen, stoppedWithRun } from '../open-calls.ts';
import type { Runs, SupervisedRun } from '../supervised-tasks.ts';

export interface RunEndings {
  endLater(run: SupervisedRun, end: End): Promise<void>;
  finish(run: SupervisedRun, end: End): Promise<void>;
  sessionEnd(actor: Actor, event: AhpEvent): Promise<void>;
}

export const LEFT: End = {
  state: 'FAILED',
  failure: { code: 'agent_left', message: 'the agent went away without saying how it ended' },
};

export function createEndings(runs: Runs, settings: AhpSettings, deps: Pick<Deps, 'log'>): RunEndings {
  /** Called whenever a run has reported its end, or has ended. */
  const watchers = new Set<() => void>();
  const tell = () => {
    for (const look of [...watchers]) look();
  };

  /** Checks are reported after the end, and the end seals the receipt. So the end waits a moment for them. */
  async function endLater(run: SupervisedRun, end: End): Promise<void> {
    if (run.ending) return;
    if (settings.settleMs === 0 || run.verification) return await finish(run, end);
    const timer = setTimeout(() => {
      runs
        .inOrder(run.actor, run, () => finish(run, end))
        .catch((cause) => deps.log.error({ err: cause, task: run.taskId }, 'a supervised task could not be ended'));
    }, settings.settleMs);
    run.ending = { end, timer };
    tell();
  }

  async function finish(run: SupervisedRun, end: End): Promise<void> {
    const unreported = run.open.all();
    const uncounted = run.unseen > 0 ? [`the outcome of ${run.unseen} calls before those`] : [];
    const verification = run.verification && { verification: run.verification };
    const facts = unreported.map(end.state === 'CANCELED' ? stoppedWithRun : notSeen);
    await runs.end(
      run,
      {
        ...end,
        ...(verification && { metrics: verification }),
        not_reported: [
          'the work was done by a supervised agent: only its own report is known',
          ...unreported.map(({ tool, id }) => `the outcome of ${tool} (${id})`),
          ...uncounted,
        ],
      },
      facts,
    );
    tell();
  }

  /** Resolves when each of these runs has reported its end or has ended, and at the latest after `settleMs`. */
  function allReported(open: () => readonly SupervisedRun[]): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        watchers.delete(look);
        resolve();
      };
      const look = () => {
        if (open().every(({ ending }) => ending)) done();
      };
      const timer = setTimeout(done, settings.settleMs);
      watchers.add(look);
      look();
    });
  }

  /**
   * The top-level agent has ended the session. Its sub-agents may have reported their end, or be about to: they get a moment,
   * and their reports count.
   */
  async function othersEnd(actor: Actor, { session_id, agent_id }: AhpEvent): Promise<void> {
    const others = () => runs.ofSession(actor, session_id).filter((run) => run.agent_id !== agent_id);
    await allReported(others);
    for (const run of others()) {
      await runs.inOrder(run.actor, run, async () => {
        if (run.ending) await finish(run, run.ending.end);
      });
    }
  }

  async function sessionEnd(actor: Actor, event: AhpEvent): Promise<void> {
    const mine = runs.ofSession(actor, event.session_id).filter(({ agent_id }) => agent_id === event.agent_id);
    const left = mine.length === 0 ? await runs.found(actor, event) : undefined;
    for (const run of left ? [left] : mine) await finish(run, run.ending?.end ?? endOf(run));
    if (event.depth === 0) await othersEnd(actor, event);
    const others = runs.ofSession(actor, event.session_id);
    if (event.depth === 0 || others.length === 0) await runs.closeSession(actor, event.session_id);
  }

  return { endLater, finish, sessionEnd };
}

function endOf({ failure }: SupervisedRun): End {
  return failure === undefined
    ? { state: 'COMPLETED' }
    : { state: 'FAILED', failure: { code: 'agent_failed', message: failure } };
}
