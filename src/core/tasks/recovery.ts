/**
 * Recovery after a crash: every task whose process is dead is brought to a legal state. Work that can continue does so, without
 * doing anything twice; other work fails and states what is unknown about it.
 */
import { type EventDraft, eventId, position } from '../../model/events.ts';
import type { Failure, Task } from '../../model/resources.ts';
import { isTerminal } from '../../model/words.ts';
import type { AgentBackend, Clock, Logger, Row, Store } from '../../ports/index.ts';
import type { TimeLimits } from '../actions/time-limits.ts';
import type { Log } from '../events/log.ts';
import type { RunRow } from '../events/rows.ts';
import type { Endings } from './end-task.ts';
import { inTask, move, readsOf } from './lifecycle.ts';
import type { Runner } from './runner.ts';

export interface RecoveryDeps {
  readonly store: Store;
  readonly log: Log;
  readonly endings: Endings;
  readonly runner: Runner;
  readonly timeLimits: Pick<TimeLimits, 'takeUp'>;
  readonly backends: ReadonlyMap<string, AgentBackend>;
  readonly clock: Clock;
  /** Ends orphans that cannot continue, of any agent, also of agents this process does not have. */
  readonly recoversOrphans: boolean;
  /** When this process started: an agent outside is given time to reconnect. */
  readonly since: number;
  readonly instance: string;
  readonly isDead: (instance: string) => Promise<boolean>;
  readonly logger: Logger;
}

export interface Recovered {
  readonly resumed: number;
  readonly started: number;
  readonly failed: number;
}

/** The result for an orphan, and how its work begins if it has any left. */
interface Found {
  readonly as: keyof Recovered;
  readonly begin?: () => void;
}

export async function recover(deps: RecoveryDeps): Promise<Recovered> {
  const { store, instance, logger } = deps;
  const isDead = onceEach(deps.isDead);
  const found: Found[] = [];
  const look = async (run: RunRow) => {
    const outside = run.agent === 'none';
    const process = outside ? run.served_by : run.instance;
    if (process === instance) return;
    // Work outside the gateway that no process answers for may be reported to any; the dead process only counted its time.
    if (outside && process === undefined) return await countOn(deps, run);
    if (typeof process === 'string' && !(await isDead(process))) return;
    try {
      const orphan = await (outside ? endOutside(deps, run) : recoverOne(deps, run));
      if (orphan) found.push(orphan);
    } catch (cause) {
      logger.error({ err: cause, task: run.id }, 'a task could not be recovered');
    }
  };
  let after: string | undefined;
  for (;;) {
    const page = await store.list<RunRow>({ object: 'run', limit: 200, ...(after && { after }) });
    // Concurrently, so that they share a commit. Begun only when all are claimed: running work would delay the rest.
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

/** The time of work outside the gateway goes on, whichever process counted it. */
async function countOn({ store, timeLimits, logger }: RecoveryDeps, run: RunRow): Promise<void> {
  try {
    const task = await store.get<Task & Row>('task', run.id);
    if (task && !isTerminal(task.status)) await timeLimits.takeUp(task);
  } catch (cause) {
    logger.error({ err: cause, task: run.id }, 'the time of a task could not be counted on');
  }
}

/** Most orphans are of one process; whether it is dead does not change during the scan. */
function onceEach(ask: (instance: string) => Promise<boolean>): (instance: string) => Promise<boolean> {
  const asked = new Map<string, Promise<boolean>>();
  return (instance) => {
    const known = asked.get(instance) ?? ask(instance);
    asked.set(instance, known);
    return known;
  };
}

async function recoverOne(deps: RecoveryDeps, run: RunRow): Promise<Found | undefined> {
  const { store, endings, runner, backends } = deps;
  const task = await store.get<Task & Row>('task', run.id);
  if (!task || isTerminal(task.status) || runner.has(task.id)) return undefined;
  const stillTheirs = (now: RunRow | undefined) => now?.instance === run.instance;
  const backend = backends.get(run.agent);
  // A process that has the agent, or that recovers all orphans, handles it. An orphan that cannot continue is ended by the first
  // process to find it.
  if (!backend && !deps.recoversOrphans && (run.resumes !== false || task.status === 'SUBMITTED')) return undefined;

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
    // The work had not begun. Only a process that has the agent may begin it; others leave it waiting.
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

/**
 * Ends work whose calls and reports came through a dead process. Recorded events are sealed as they are; a call that was allowed
 * and whose end was not observed may have run.
 */
async function endOutside(deps: RecoveryDeps, run: RunRow): Promise<Found | undefined> {
  if (run.away_ms !== undefined && !(await staysAway(deps, run.id, run.away_ms))) {
    await countOn(deps, run);
    return undefined;
  }
  const failure: Failure =
    run.away_ms === undefined
      ? { code: 'interrupted', message: 'the process that served these calls ended before they were brought to an end' }
      : { code: 'agent_left', message: 'the process it reported to ended, and the agent did not come back' };
  const end = run.cancel_requested ? ({ state: 'CANCELED' } as const) : ({ state: 'FAILED', failure } as const);
  const onlyIf = (now: RunRow | undefined) => now?.served_by === run.served_by;
  const { won } = await deps.endings.finish(run.id, end, { by: 'bridge', interrupted: true, onlyIf });
  return won ? { as: 'failed' } : undefined;
}

/** No report came for that long, and the agent has had time to reconnect since this process started. */
async function staysAway({ store, clock, since }: RecoveryDeps, taskId: string, awayMs: number): Promise<boolean> {
  const now = Date.parse(clock.now());
  if (now - since < Math.min(awayMs, COMES_BACK_MS)) return false;
  const tip = await store.tip({ of: 'task', id: taskId });
  const at = tip === undefined ? undefined : position(tip);
  if (at === undefined) return true;
  for await (const event of store.read({ stream: { of: 'all' }, ...(at > 1 && { after: eventId(at - 1) }) })) {
    return now - Date.parse(event.created_at) >= awayMs;
  }
  return true;
}
/** A live agent reconnects within this time. */
const COMES_BACK_MS = 60_000;

/** Two processes may find the same orphan; the commit gives it to one of them. */
async function takeOver({ log, instance }: RecoveryDeps, run: RunRow): Promise<boolean> {
  let mine = false;
  await log.commit({
    reads: readsOf(run.id),
    decide(at) {
      const task = at.get<Task & Row>('task', run.id);
      const now = at.get<RunRow>('run', run.id);
      mine = task !== undefined && now?.instance === run.instance && !isTerminal(task.status);
      if (!task || !mine) return { events: [] };
      const recovered: EventDraft = {
        ...inTask(task),
        event: 'vendor.tollbridge.recovered',
        payload: { instance, from: run.instance, was: task.status },
      };
      // A waiting task works again until it asks again: its question is still open.
      const back =
        task.status === 'WORKING'
          ? []
          : move(task, 'WORKING', { now: at.now, reason: 'recovered after a restart' }).events;
      return { events: [recovered, ...back] };
    },
  });
  return mine;
}
