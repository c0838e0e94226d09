/**
 * Schedules tasks in this process: one at a time per session, in the order of acceptance, whichever process accepted them. A
 * running task is handled by its task run.
 */

import type { Failure, Task } from '../../model/resources.ts';
import { anySignal } from '../../model/values/signals.ts';
import { isTerminal } from '../../model/words.ts';
import type { Ids, Row } from '../../ports/index.ts';
import type { Log } from '../events/log.ts';
import { endsTask } from '../events/projections/tasks.ts';
import type { Tally } from '../events/rows.ts';
import { untilWritten } from '../waiting.ts';
import { inTask, move } from './lifecycle.ts';
import { refuseQueued } from './submission/refused.ts';
import { createTaskRuns, LEAVING, type Live, type TaskRunsDeps } from './task-run.ts';

export interface RunnerDeps extends TaskRunsDeps {
  readonly log: Log;
  readonly ids: Ids;
  /** Why this agent accepts no work; undefined when it does. */
  readonly offReason: (agent: string) => string | undefined;
}

export interface Runner {
  /** For work whose commit already took the session's lane. */
  begin(task: Task, live?: Live): void;
  /** For work that has to wait for the lane. */
  enqueue(task: Task, live?: Live): void;
  /** Continues work whose process died. */
  resume(task: Task): void;
  /** Stops work in this process; resolves when it has ended. False when it is not here. */
  stop(taskId: string, by: string, reason: string, failure?: Failure): Promise<boolean>;
  /** Detaches the agent of this task and starts it again from the log. False when it is not here. */
  restart(taskId: string): Promise<boolean>;
  has(taskId: string): boolean;
  /** Waits until no task runs here; work that can be resumed is left for the next start. */
  close(): Promise<void>;
  idle(): Promise<void>;
}

/** Tasks of one session that this process may start when their turn comes. */
interface Queue {
  readonly tasks: Map<string, { readonly task: Task; readonly live: Live | undefined }>;
  wake(): void;
}

export function createRunner(deps: RunnerDeps): Runner {
  const { store, log, backends, logger, instance } = deps;
  const queues = new Map<string, Queue>();
  const closing = new AbortController();
  const { runs, open } = createTaskRuns(deps, closing.signal);

  function begin(task: Task, live?: Live): void {
    open(task, false, live);
  }

  function enqueue(task: Task, live?: Live): void {
    const queue = queues.get(task.session_id);
    if (queue) {
      if (!queue.tasks.has(task.id)) queue.tasks.set(task.id, { task, live });
      queue.wake();
      return;
    }
    const fresh: Queue = { tasks: new Map([[task.id, { task, live }]]), wake() {} };
    queues.set(task.session_id, fresh);
    pump(task.session_id, fresh).catch((cause) => logger.error({ err: cause }, 'a session queue stopped'));
  }

  /** Starts a session's queued tasks one after the other, in the order of acceptance, whichever process accepted them. */
  async function pump(sessionId: string, queue: Queue): Promise<void> {
    try {
      while (queue.tasks.size > 0 && !closing.signal.aborted) {
        const next = await untilWritten(() => takeTurn(sessionId, queue), closing.signal);
        if (next) await open(next.task, false, next.live).ended;
      }
    } finally {
      queues.delete(sessionId);
    }
  }

  /** Starts the session's next task if it is queued here; otherwise waits until that may have changed. */
  async function takeTurn(
    sessionId: string,
    queue: Queue,
  ): Promise<{ task: Task; live: Live | undefined } | undefined> {
    const stream = { of: 'session', id: sessionId } as const;
    const woken = new AbortController();
    queue.wake = () => woken.abort();
    const after = await store.tip(stream);
    // Tasks queued while the lane is being read or taken are not in the lane that was read, but have not left it either.
    const here = [...queue.tasks.keys()];
    const lane = (await store.get<Tally>('tally', sessionId))?.lane;
    const first = lane?.active ? undefined : queue.tasks.get(lane?.waiting[0] ?? '');
    const off = first && deps.offReason(first.task.assigned_agent_id ?? '');
    if (first && off !== undefined) {
      await refuseQueued(deps, first.task, off);
      queue.tasks.delete(first.task.id);
      return undefined;
    }
    const started = first && (await takeLane(first.task));
    // A task that no longer waits was started, here or elsewhere, or ended before it began.
    for (const id of here) if (id === started?.id || !lane?.waiting.includes(id)) queue.tasks.delete(id);
    if (first && started) return { task: started, live: first.live };
    if (queue.tasks.size === 0) return undefined;
    const over = anySignal([closing.signal, woken.signal]);
    for await (const event of store.follow({ stream, ...(after && { after }) }, over)) if (endsTask(event)) break;
    return undefined;
  }

  /** Two processes may hold the same task; the commit lets one of them start it. */
  async function takeLane(task: Task): Promise<Task | undefined> {
    let started: Task | undefined;
    await log.commit({
      reads: [
        { object: 'task', id: task.id },
        { object: 'tally', id: task.session_id },
      ],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        const lane = at.get<Tally>('tally', task.session_id)?.lane;
        started = undefined;
        if (now?.status !== 'SUBMITTED' || lane?.active || lane?.waiting[0] !== task.id) return { events: [] };
        const step = move(now, 'WORKING', { now: at.now, more: { instance, lane: true } });
        started = step.task;
        return { events: step.events };
      },
    });
    return started;
  }

  /** The task, if it has not ended; the log records that it was resumed. */
  async function takeUp(taskId: string): Promise<Task | undefined> {
    let task: Task | undefined;
    await log.commit({
      reads: [{ object: 'task', id: taskId }],
      decide(at) {
        const now = at.get<Task & Row>('task', taskId);
        task = now && !isTerminal(now.status) && !closing.signal.aborted ? now : undefined;
        if (!task) return { events: [] };
        const payload = { instance, from: instance, was: task.status };
        return { events: [{ ...inTask(task), event: 'vendor.tollbridge.recovered', payload }] };
      },
    });
    return task;
  }

  return {
    begin,
    enqueue,
    resume: (task) => {
      open(task, true);
    },
    has: (taskId) => runs.has(taskId),

    async stop(taskId, by, reason, failure) {
      const run = runs.get(taskId);
      if (!run) return false;
      run.stopping ??= { by, reason, failure };
      run.controller.abort();
      await run.ended;
      return true;
    },

    async restart(taskId) {
      const run = runs.get(taskId);
      if (!run || run.stopping || run.leaving) return false;
      run.leaving = true;
      run.controller.abort(LEAVING);
      await run.ended;
      const again = await takeUp(taskId);
      if (again) open(again, true);
      return again !== undefined;
    },

    async close() {
      closing.abort();
      for (const run of runs.values()) {
        const backend = backends.get(run.task.assigned_agent_id ?? '');
        run.leaving = backend?.abilities.resume === true;
        if (!run.leaving) run.stopping ??= { by: 'bridge', reason: 'the gateway was shut down', failure: undefined };
        run.controller.abort(run.leaving ? LEAVING : undefined);
      }
      await Promise.all([...runs.values()].map(({ ended }) => ended));
    },

    async idle() {
      while (runs.size > 0 || queues.size > 0) {
        await Promise.all([...runs.values()].map(({ ended }) => ended));
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}
