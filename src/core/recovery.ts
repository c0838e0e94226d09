/**
 * After a crash: every task whose process is gone is brought to a legal state. Work that can go on goes on, without
 * doing anything twice; work that cannot has failed and says what is unknown about it.
 */
import type { Task } from '../model/resources.ts';
import { isTerminal } from '../model/words.ts';
import type { AgentBackend, Logger, Row, Store } from '../ports.ts';
import type { Endings } from './endings.ts';
import { inTask, move } from './lifecycle.ts';
import type { Log } from './log.ts';
import type { Run } from './rows.ts';
import type { Runner } from './runner.ts';

export interface RecoveryDeps {
  readonly store: Store;
  readonly log: Log;
  readonly endings: Endings;
  readonly runner: Runner;
  readonly backends: ReadonlyMap<string, AgentBackend>;
  /** Ends what nobody can go on with, whoever's agent it was. */
  readonly keeper: boolean;
  readonly instance: string;
  readonly isDead: (instance: string) => Promise<boolean>;
  readonly logger: Logger;
}

export interface Recovered {
  readonly resumed: number;
  readonly started: number;
  readonly failed: number;
}

/** What became of an orphan, and how its work begins if it has any left. */
interface Found {
  readonly as: keyof Recovered;
  readonly begin?: () => void;
}

export async function recover(deps: RecoveryDeps): Promise<Recovered> {
  const { store, instance, logger } = deps;
  const isDead = onceEach(deps.isDead);
  const found: Found[] = [];
  const look = async (run: Run) => {
    if (run.agent === 'none' || run.instance === instance) return;
    if (run.instance !== null && !(await isDead(run.instance))) return;
    try {
      const orphan = await recoverOne(deps, run);
      if (orphan) found.push(orphan);
    } catch (cause) {
      logger.error({ err: cause, task: run.id }, 'a task could not be recovered');
    }
  };
  let after: string | undefined;
  for (;;) {
    const page = await store.list<Run>({ object: 'run', limit: 200, ...(after && { after }) });
    // Together, so that they share a commit. Begun only when all are claimed: work that goes on would hold up the rest.
    await Promise.all(page.map(look));
    if (page.length < 200) break;
    after = page.at(-1)?.id;
  }
  const counts = { resumed: 0, started: 0, failed: 0 };
  for (const { as, begin } of found) {
    counts[as] += 1;
    begin?.();
  }
  return counts;
}

/** Most orphans are of one process; whether it is dead does not change while we look. */
function onceEach(ask: (instance: string) => Promise<boolean>): (instance: string) => Promise<boolean> {
  const asked = new Map<string, Promise<boolean>>();
  return (instance) => {
    const known = asked.get(instance) ?? ask(instance);
    asked.set(instance, known);
    return known;
  };
}

async function recoverOne(deps: RecoveryDeps, run: Run): Promise<Found | undefined> {
  const { store, endings, runner, backends } = deps;
  const task = await store.get<Task & Row>('task', run.id);
  if (!task || isTerminal(task.status) || runner.has(task.id)) return undefined;
  const stillTheirs = (now: Run | undefined) => now?.instance === run.instance;
  const backend = backends.get(run.agent);
  if (!backend && !deps.keeper) return undefined; // whoever has the agent, or keeps the house, looks after it

  if (run.cancel_requested) {
    const reason = 'canceled before the restart';
    await endings.finish(
      task.id,
      { state: 'CANCELED' },
      { by: 'bridge', reason, interrupted: true, onlyIf: stillTheirs },
    );
    return { as: 'failed' };
  }
  if (task.status === 'SUBMITTED') {
    // Nobody had begun. Only a process that has the agent may; the others leave it waiting.
    return backend && { as: 'started', begin: () => runner.enqueue(task) };
  }
  if (backend?.abilities.resume && (await takeOver(deps, run))) {
    const taken = (await store.get<Task & Row>('task', run.id)) as Task;
    return { as: 'resumed', begin: () => runner.resume(taken) };
  }
  const failure = {
    code: 'interrupted',
    message: `the process that ran ${run.agent} ended before the work did, and this agent cannot go on from where it was`,
  };
  const { won } = await endings.finish(
    task.id,
    { state: 'FAILED', failure },
    { by: 'bridge', interrupted: true, onlyIf: stillTheirs },
  );
  return won ? { as: 'failed' } : undefined;
}

/** Two processes may find the same orphan; the commit lets one of them have it. */
async function takeOver({ log, instance }: RecoveryDeps, run: Run): Promise<boolean> {
  let mine = false;
  await log.commit({
    reads: [
      { object: 'task', id: run.id },
      { object: 'run', id: run.id },
    ],
    decide(at) {
      const task = at.get<Task & Row>('task', run.id);
      const now = at.get<Run>('run', run.id);
      mine = task !== undefined && now?.instance === run.instance && !isTerminal(task.status);
      if (!task || !mine) return { events: [] };
      const recovered = {
        ...inTask(task),
        event: 'vendor.tollbridge.recovered',
        payload: { instance, from: run.instance, was: task.status },
      };
      // A task that waited for someone is working again until it asks again: its question is still open.
      const back =
        task.status === 'WORKING'
          ? []
          : move(task, 'WORKING', { now: at.now, reason: 'recovered after a restart' }).events;
      return { events: [recovered, ...back] };
    },
  });
  return mine;
}
