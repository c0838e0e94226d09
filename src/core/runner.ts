/**
 * Which tasks run here, and when: one at a time per session, in the order they were accepted, whoever accepted them.
 * What happens to a task once it runs is its desk's affair.
 */
import type { Failure, Task } from '../model/resources.ts';
import { isTerminal } from '../model/words.ts';
import type { Row } from '../ports.ts';
import { createDesks, type DesksDeps, LEAVING, type Live } from './desk.ts';
import { inTask, move } from './lifecycle.ts';
import type { Log } from './log.ts';
import { endsTask } from './projector.ts';
import type { Tally } from './rows.ts';
import { untilWritten } from './waiting.ts';

export interface RunnerDeps extends DesksDeps {
  readonly log: Log;
}

export interface Runner {
  /** For work with the session's lane already taken in the commit that accepted it. */
  begin(task: Task, live?: Live): void;
  /** For work that has to wait its turn. */
  enqueue(task: Task, live?: Live): void;
  /** Goes on with work whose process died. */
  resume(task: Task): void;
  /** Stops work in this process; resolves when it has ended. False when it is not here. */
  stop(taskId: string, by: string, reason: string, failure?: Failure): Promise<boolean>;
  /** Lets go of whoever does this task and starts it again from what the log holds. False when it is not here. */
  restart(taskId: string): Promise<boolean>;
  has(taskId: string): boolean;
  /** Waits until nothing runs here any more; work that can be resumed is left for the next start. */
  close(): Promise<void>;
  idle(): Promise<void>;
}

/** Tasks of one session that this process may start when it is their turn. */
interface Queue {
  readonly tasks: Map<string, { readonly task: Task; readonly live: Live | undefined }>;
  wake(): void;
}

export function createRunner(deps: RunnerDeps): Runner {
  const { store, log, backends, logger, instance } = deps;
  const queues = new Map<string, Queue>();
  const closing = new AbortController();
  const { desks, open } = createDesks(deps, closing.signal);

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

  /** Starts queued tasks of a session one after the other, in the order they were accepted, whoever accepted them. */
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

  /** Starts the session's next task if it is one of ours; otherwise waits until that may have changed. */
  async function takeTurn(
    sessionId: string,
    queue: Queue,
  ): Promise<{ task: Task; live: Live | undefined } | undefined> {
    const stream = { of: 'session', id: sessionId } as const;
    const woken = new AbortController();
    queue.wake = () => woken.abort();
    const after = await store.tip(stream);
    // Whoever comes while we look or take the lane is not in the lane that was looked at, and has not left it either.
    const here = [...queue.tasks.keys()];
    const lane = (await store.get<Tally>('tally', sessionId))?.lane;
    const first = lane?.active ? undefined : queue.tasks.get(lane?.waiting[0] ?? '');
    const started = first && (await takeLane(first.task));
    // What is waiting no longer was started, here or elsewhere, or ended before it began.
    for (const id of here) if (id === started?.id || !lane?.waiting.includes(id)) queue.tasks.delete(id);
    if (first && started) return { task: started, live: first.live };
    if (queue.tasks.size === 0) return undefined;
    const over = AbortSignal.any([closing.signal, woken.signal]);
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

  /** The task, if there is still something to go on with; the log says that it was taken up again. */
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
    has: (taskId) => desks.has(taskId),

    async stop(taskId, by, reason, failure) {
      const desk = desks.get(taskId);
      if (!desk) return false;
      desk.stopping ??= { by, reason, failure };
      desk.controller.abort();
      await desk.ended;
      return true;
    },

    async restart(taskId) {
      const desk = desks.get(taskId);
      if (!desk || desk.stopping || desk.leaving) return false;
      desk.leaving = true;
      desk.controller.abort(LEAVING);
      await desk.ended;
      const again = await takeUp(taskId);
      if (again) open(again, true);
      return again !== undefined;
    },

    async close() {
      closing.abort();
      for (const desk of desks.values()) {
        const backend = backends.get(desk.task.assigned_agent_id ?? '');
        desk.leaving = backend?.abilities.resume === true;
        if (!desk.leaving) desk.stopping ??= { by: 'bridge', reason: 'the gateway was shut down', failure: undefined };
        desk.controller.abort(desk.leaving ? LEAVING : undefined);
      }
      await Promise.all([...desks.values()].map(({ ended }) => ended));
    },

    async idle() {
      while (desks.size > 0 || queues.size > 0) {
        await Promise.all([...desks.values()].map(({ ended }) => ended));
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}
