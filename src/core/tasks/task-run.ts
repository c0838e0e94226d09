/**
 * The run of one task in this process: its agent with its own sink, its own abort signal, and exactly one end. Commands for it
 * arrive through the log, so it does not matter which process received them.
 */

import type { Actor } from '../../model/actions.ts';
import type { End } from '../../model/commands.ts';
import type { CoreEvent, Cursor } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Failure, Session, Task, Workspace } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import type { AgentBackend, Run as BackendRun, Logger, Row, Sink, Store } from '../../ports/index.ts';
import type { Acts } from '../actions/acts.ts';
import { limitFailure, type TimeLimits } from '../actions/time-limits.ts';
import { PERMISSION_EVENTS, type Permission, type Permit, readPermission } from '../approvals/permit.ts';
import type { Memories } from '../commands/memories.ts';
import type { SessionInputs } from '../commands/session-inputs.ts';
import type { Log } from '../events/log.ts';
import { sessionBegunIn } from '../events/projections/sessions.ts';
import { endsTask } from '../events/projections/tasks.ts';
import type { RunRow } from '../events/rows.ts';
import { untilWritten } from '../waiting.ts';
import type { Endings } from './end-task.ts';
import { NO_PAST, readPast } from './history.ts';
import { ours, requireRunBy, runElsewhere } from './lifecycle.ts';
import { createSink, type SinkDeps } from './sink.ts';
import { createListening } from './task-requests.ts';
import { workContext } from './work-context.ts';

export interface TaskRunsDeps extends SinkDeps {
  readonly store: Store;
  readonly acts: Acts;
  readonly endings: Endings;
  readonly backends: ReadonlyMap<string, AgentBackend>;
  readonly logger: Logger;
  readonly memories: Pick<Memories, 'memoriesFor'>;
  readonly sessionInputs: Pick<SessionInputs, 'view'>;
  /** This process, as run rows name it. */
  readonly instance: string;
  readonly isDead: (instance: string) => Promise<boolean>;
  readonly timeLimits: Pick<TimeLimits, 'begin' | 'watch' | 'end'>;
  /** How long work may take to stop after a cancel. */
  readonly graceMs: number;
}

/** Data the log may not hold: the input as received, before redaction. */
export interface Live {
  readonly input?: Task['input'];
  /** The commit that accepted and started it: its events need not be read again. */
  readonly written?: readonly CoreEvent[];
  /** A question that policy requires to be answered before the work begins. */
  readonly permit?: Permit;
  /** No time limit applied when it was accepted, a moment ago. */
  readonly untimed?: true;
}

/** A task running here, and the requests made of it since. */
export interface TaskRun {
  readonly task: Task;
  readonly controller: AbortController;
  readonly ended: Promise<void>;
  run: BackendRun | undefined;
  /** Messages to the agent from before it could receive any. */
  readonly queued: JsonObject[];
  stopping: { by: string; reason: string; failure: Failure | undefined } | undefined;
  leaving: boolean;
}

export interface TaskRuns {
  readonly runs: ReadonlyMap<string, TaskRun>;
  open(task: Task, resumed: boolean, live?: Live): TaskRun;
}

export function createTaskRuns(deps: TaskRunsDeps, closing: AbortSignal): TaskRuns {
  const { store, acts, endings, backends, logger, instance, graceMs } = deps;
  const runs = new Map<string, TaskRun>();
  const listening = createListening(store, logger, CONCERNS_WORK);

  function open(task: Task, resumed: boolean, live?: Live): TaskRun {
    const controller = new AbortController();
    let settle = () => {};
    const taskRun: TaskRun = {
      task: live?.input ? { ...task, input: live.input } : task,
      controller,
      ended: new Promise((resolve) => {
        settle = resolve;
      }),
      run: undefined,
      queued: [],
      stopping: undefined,
      leaving: false,
    };
    runs.set(task.id, taskRun);
    work(taskRun, resumed, live)
      .catch((cause) => logger.error({ err: cause, task: task.id }, 'a task could not be brought to its end'))
      .finally(() => {
        deps.timeLimits.end(task.id);
        runs.delete(task.id);
        settle();
      });
    return taskRun;
  }

  async function work(taskRun: TaskRun, resumed: boolean, live: Live | undefined): Promise<void> {
    const { task, controller } = taskRun;
    const opening = endings.open(task.id, live?.written);
    if (opening) await opening;
    const inbox = listen(taskRun, live?.written?.at(-1)?.id);
    let end: End;
    let stillRunning = false;
    try {
      const finished = perform(taskRun, resumed, live).then(
        (done) => ({ done }),
        (thrown) => ({ thrown }),
      );
      const stopped = whenStopped(taskRun, finished);
      const first = await Promise.race([finished, stopped]);
      stillRunning = first === 'still running';
      end = first === 'still running' ? { state: 'CANCELED' } : 'done' in first ? first.done : failed(first.thrown);
    } finally {
      inbox.close();
    }
    if (taskRun.leaving) return;
    while (!(await finish(taskRun, end, stillRunning))) taskRun.stopping = await cancelOf(task);
    controller.abort(ENDED); // listeners of this task have nothing left to wait for
  }

  /** False: another process had written a cancel first, of which this one has not heard yet. */
  async function finish({ task, stopping }: TaskRun, end: End, stillRunning: boolean): Promise<boolean> {
    let unheard = false;
    await untilWritten(
      () =>
        endings.finish(task.id, stopping ? stopped(end, stopping.failure) : end, {
          by: stopping?.by ?? agentActor(task).id,
          belongs: task,
          ...(stopping && { reason: stopping.reason }),
          ...(stillRunning ? { stillRunning } : stopping && { stopped: true }),
          onlyIf(run) {
            unheard = run?.instance === instance && run.cancel_requested && !stopping;
            return run?.instance === instance && !unheard;
          },
        }),
      closing,
    );
    return !unheard;
  }

  async function cancelOf(task: Task): Promise<TaskRun['stopping']> {
    const kinds = ['user.cancel_requested'];
    for await (const event of store.read({ stream: { of: 'task', id: task.id }, kinds })) return stoppingOf(event);
    throw new Fault('internal', `${task.id} was canceled, and its log does not say by whom`);
  }

  async function perform(taskRun: TaskRun, resumed: boolean, live: Live | undefined): Promise<End> {
    const { task, controller } = taskRun;
    const actor = agentActor(task);
    // Work accepted a moment ago states itself whether it needs an approval.
    const refusal = live && !live.permit ? undefined : await askFirst(task, live, controller.signal);
    if (refusal) {
      const failure = { code: 'policy_violation', message: refusal, details: { begun: false } };
      return { state: 'FAILED', failure };
    }
    if (live?.untimed) deps.timeLimits.watch(task);
    else {
      const over = await deps.timeLimits.begin(task);
      if (over) return { state: 'FAILED', failure: limitFailure(over) };
    }
    const backend = backends.get(task.assigned_agent_id ?? '');
    if (!backend) throw new Fault('upstream_unavailable', `no agent ${task.assigned_agent_id} is mounted`);
    const session =
      sessionBegunIn(live?.written ?? [], task.session_id) ??
      (await store.get<Session & Row>('session', task.session_id));
    if (!session) throw new Fault('not_found', `no session ${task.session_id}`);
    const past = resumed ? await readPast(store.read({ stream: { of: 'task', id: task.id } }), actor.id) : NO_PAST;
    const mine = { ...deps, log: whileRunBy(deps.log, task.id, instance), runBy: instance };
    const own = createSink(mine, task, actor, past, controller.signal);
    const sink = whileAtWork(own, taskRun);
    const workspace = await store.get<Workspace & Row>('workspace', task.workspace_id);
    const { memories, facts } = await deps.memories.memoriesFor(task, session);
    // Recorded before the agent gets them.
    for (const fact of facts) await own.emit(fact);
    const inputs = deps.sessionInputs.view(task.session_id);
    const context = { ...workContext(deps, task, { session, workspace, resumed, memories }), inputs };
    taskRun.run = await backend.start(context, sink, controller.signal);
    deliver(taskRun);
    if (controller.signal.aborted) stopRun(taskRun);
    try {
      return await taskRun.run.done;
    } finally {
      // The end of a streamed text. If the work was ended by another process, nothing more is written.
      if (!taskRun.leaving) await own.settle().catch(() => {});
    }
  }

  /** Why the work may not begin, if it may not. An answer that an earlier process got is read from the log. */
  async function askFirst(task: Task, live: Live | undefined, signal: AbortSignal): Promise<string | undefined> {
    const stream = { of: 'task', id: task.id } as const;
    const permission: Permission | undefined = live
      ? live.permit && { kind: 'ask', permit: live.permit }
      : await readPermission(store.read({ stream, kinds: PERMISSION_EVENTS }));
    if (permission?.kind !== 'ask') return permission?.reason;
    const { actor, action } = permission.permit;
    const authorization = await acts.rule(task, action, { actor, signal, takesArguments: false, runBy: instance });
    if (authorization.kind === 'go') return undefined;
    return authorization.kind === 'no' ? authorization.reason : 'nobody approved the work';
  }

  /** Resolves when canceled work has not stopped in time. */
  async function whenStopped(taskRun: TaskRun, finished: Promise<unknown>): Promise<'still running'> {
    const { signal } = taskRun.controller;
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    stopRun(taskRun);
    if (signal.reason === ENDED) return 'still running'; // the task has ended, so the result is not used
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      finished.finally(() => clearTimeout(timer));
    });
    return 'still running';
  }

  function stopRun({ run, task }: TaskRun): void {
    run?.stop?.().catch((cause) => logger.warn({ err: cause, task: task.id }, 'stopping went wrong'));
  }

  /** Passes queued messages to the agent, in order, once it can receive them. */
  function deliver({ run, queued, task }: TaskRun): void {
    if (!run) return;
    for (const message of queued.splice(0)) {
      try {
        run.steer?.(message);
      } catch (cause) {
        logger.warn({ err: cause, task: task.id }, 'an agent could not take a message');
      }
    }
  }

  /** Another process has taken the work over: it may have done so before this one did, too. */
  async function leaveWhereTaken(taskRun: TaskRun): Promise<void> {
    const run = await store.get<RunRow>('run', taskRun.task.id).catch(() => undefined);
    // Where it cannot be asked, or has ended meanwhile: nothing of this run is written any more in either case.
    if (!run || run.instance === instance) return;
    taskRun.leaving = true;
    taskRun.controller.abort(LEAVING);
  }

  function listen(taskRun: TaskRun, since: Cursor | undefined): { close(): void } {
    return listening.to(taskRun.task.id, since, (event) => {
      if (event.event === 'user.cancel_requested') {
        taskRun.stopping ??= stoppingOf(event);
        taskRun.controller.abort();
      }
      if (event.event === 'user.message' && event.payload.kind === 'interrupt') {
        taskRun.queued.push(event.payload.message as JsonObject);
        deliver(taskRun);
      }
      if (event.event === 'vendor.tollbridge.recovered' && event.payload.instance !== instance)
        void leaveWhereTaken(taskRun);
      // Another process ended it, for instance because it took this one for dead.
      if (endsTask(event)) taskRun.controller.abort();
    });
  }

  return { runs, open };
}

/** Nothing is written for a task that another process has taken over, whether this one has heard of it yet or not. */
function whileRunBy(log: Log, taskId: string, process: string): Log {
  const run = { object: 'run', id: taskId };
  return {
    ...log,
    commit: (unit) =>
      log.commit({
        ...unit,
        reads: [...(unit.reads ?? []), run],
        decide(at) {
          const now = at.get<RunRow>('run', taskId);
          // The run of a task that has ended is gone; the unit knows what to make of that.
          if (now) requireRunBy(now, process);
          return unit.decide(at);
        },
      }),
  };
}

/** An agent that was detached while another one continues its task can no longer write to it. */
function whileAtWork(sink: Sink, taskRun: Pick<TaskRun, 'leaving'>): Sink {
  const present = () => {
    if (taskRun.leaving) throw runElsewhere();
  };
  return {
    // Not async: a text comes in many pieces, and each would wait for one more microtask.
    emit: (fact) => (taskRun.leaving ? Promise.reject(runElsewhere()) : sink.emit(fact)),
    async ask(question) {
      present();
      return await sink.ask(question);
    },
    async act(action, effect, withdrawn) {
      present();
      return await sink.act(action, effect, withdrawn);
    },
    async artifact(file) {
      present();
      return await sink.artifact(file);
    },
  };
}

function stoppingOf({ actor, payload }: CoreEvent): NonNullable<TaskRun['stopping']> {
  return {
    by: actor ?? 'unknown',
    reason: asText(payload.reason ?? 'canceled'),
    failure: payload.failure as Failure | undefined,
  };
}

function stopped(end: End, failure: Failure | undefined): End {
  return failure ? { ...end, state: 'FAILED', failure } : { ...end, state: 'CANCELED' };
}

/** One shared instance: an error created for each task costs a stack trace. */
const ENDED = new Fault('client_closed', 'the work has ended');
/** Distinguished from a cancel by agents that run elsewhere: that work goes on, and is found again after the restart. */
export const LEAVING = new Fault('unavailable', 'the gateway is closing and comes back for this work');

/** The agent as the gate sees it: it acts for the principal that gave it the task, and has no scopes of its own. */
export function agentActor(task: Pick<Task, 'assigned_agent_id' | 'metadata' | 'created_by'>): Actor {
  const { tenant_id: tenant, on_behalf_of: principal = task.created_by } = ours(task);
  return {
    id: `agent:${task.assigned_agent_id ?? 'outside'}`,
    kind: 'agent',
    scopes: [],
    ...(typeof tenant === 'string' && { tenant_id: tenant }),
    // Servers that are used with each caller's own credentials are used with those of the principal that gave the work.
    ...(typeof principal === 'string' && { on_behalf_of: principal }),
  };
}

/** Events by which others address or end running work. */
const CONCERNS_WORK = [
  'user.cancel_requested',
  'user.message',
  'vendor.tollbridge.recovered',
  'task.completed',
  'task.failed',
  'task.canceled',
];

function failed(thrown: unknown): End {
  const fault = thrown instanceof Fault ? thrown : undefined;
  const message = thrown instanceof Error ? thrown.message : asText(thrown);
  return { state: 'FAILED', failure: { code: fault?.kind ?? 'agent_failed', message: message || 'the agent failed' } };
}
