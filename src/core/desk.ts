/**
 * One task's life in this process: its agent with its own sink, its own way to be stopped, and exactly one end.
 * Commands for it arrive through the log, so it does not matter which process they were given to.
 */

import type { Actor } from '../model/actions.ts';
import { asText } from '../model/as-text.ts';
import type { End } from '../model/commands.ts';
import type { CoreEvent, Cursor } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Failure, Session, Task, Workspace } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import type { AgentBackend, Run as BackendRun, Logger, Row, Sink, Store } from '../ports.ts';
import type { Acts } from './acts.ts';
import type { Endings } from './endings.ts';
import { givenWork } from './given.ts';
import { ours } from './lifecycle.ts';
import { createListening } from './listening.ts';
import { NO_PAST, readPast } from './past.ts';
import { PERMISSION_EVENTS, type Permission, type Permit, readPermission } from './permit.ts';
import { endsTask, sessionBegunIn } from './projector.ts';
import { createSink, type SinkDeps } from './sink.ts';
import { untilWritten } from './waiting.ts';

export interface DesksDeps extends SinkDeps {
  readonly store: Store;
  readonly acts: Acts;
  readonly endings: Endings;
  readonly backends: ReadonlyMap<string, AgentBackend>;
  readonly logger: Logger;
  /** This process, as runs remember it. */
  readonly instance: string;
  readonly isDead: (instance: string) => Promise<boolean>;
  /** How long work may take to stop after it was told to. */
  readonly graceMs: number;
}

/** What the log may not hold: the input as it came, before anything was taken out of it. */
export interface Live {
  readonly input?: Task['input'];
  /** The commit that accepted and began it: what stands there need not be read. */
  readonly written?: readonly CoreEvent[];
  /** A question policy wants answered before the work begins. */
  readonly permit?: Permit;
}

/** A task at work here, and what has been wished of it since. */
export interface Desk {
  readonly task: Task;
  readonly controller: AbortController;
  readonly ended: Promise<void>;
  run: BackendRun | undefined;
  /** Said to the agent before it could listen. */
  readonly unheard: JsonObject[];
  stopping: { by: string; reason: string; failure: Failure | undefined } | undefined;
  leaving: boolean;
}

export interface Desks {
  readonly desks: ReadonlyMap<string, Desk>;
  open(task: Task, resumed: boolean, live?: Live): Desk;
}

export function createDesks(deps: DesksDeps, closing: AbortSignal): Desks {
  const { store, acts, endings, backends, logger, instance, graceMs } = deps;
  const desks = new Map<string, Desk>();
  const listening = createListening(store, logger, CONCERNS_WORK);

  function open(task: Task, resumed: boolean, live?: Live): Desk {
    const controller = new AbortController();
    let settle = () => {};
    const desk: Desk = {
      task: live?.input ? { ...task, input: live.input } : task,
      controller,
      ended: new Promise((resolve) => {
        settle = resolve;
      }),
      run: undefined,
      unheard: [],
      stopping: undefined,
      leaving: false,
    };
    desks.set(task.id, desk);
    work(desk, resumed, live)
      .catch((cause) => logger.error({ err: cause, task: task.id }, 'a task could not be brought to its end'))
      .finally(() => {
        desks.delete(task.id);
        settle();
      });
    return desk;
  }

  async function work(desk: Desk, resumed: boolean, live: Live | undefined): Promise<void> {
    const { task, controller } = desk;
    const opening = endings.open(task.id, live?.written);
    if (opening) await opening;
    const inbox = listen(desk, live?.written?.at(-1)?.id);
    let end: End;
    let stillRunning = false;
    try {
      const finished = perform(desk, resumed, live).then(
        (done) => ({ done }),
        (thrown) => ({ thrown }),
      );
      const stopped = whenStopped(desk, finished);
      const first = await Promise.race([finished, stopped]);
      stillRunning = first === 'still running';
      end = first === 'still running' ? { state: 'CANCELED' } : 'done' in first ? first.done : failed(first.thrown);
    } finally {
      inbox.close();
    }
    if (desk.leaving) return;
    const { stopping } = desk;
    await untilWritten(
      () =>
        endings.finish(task.id, stopping ? stopped(end, stopping.failure) : end, {
          by: stopping?.by ?? agentActor(task).id,
          belongs: task,
          ...(stopping && { reason: stopping.reason }),
          ...(stillRunning && { stillRunning }),
          onlyIf: (run) => run?.instance === instance,
        }),
      closing,
    );
    controller.abort(ENDED); // whatever still listens for this task has nothing to wait for
  }

  async function perform(desk: Desk, resumed: boolean, live: Live | undefined): Promise<End> {
    const { task, controller } = desk;
    const actor = agentActor(task);
    // Work that has just been accepted says itself whether there is anything to ask.
    const refusal = live && !live.permit ? undefined : await askFirst(task, live, controller.signal);
    if (refusal) {
      const failure = { code: 'policy_violation', message: refusal, details: { begun: false } };
      return { state: 'FAILED', failure };
    }
    const backend = backends.get(task.assigned_agent_id ?? '');
    if (!backend) throw new Fault('upstream_unavailable', `no agent ${task.assigned_agent_id} is mounted`);
    const session =
      sessionBegunIn(live?.written ?? [], task.session_id) ??
      (await store.get<Session & Row>('session', task.session_id));
    if (!session) throw new Fault('not_found', `no session ${task.session_id}`);
    const past = resumed ? await readPast(store.read({ stream: { of: 'task', id: task.id } }), actor.id) : NO_PAST;
    const own = createSink(deps, task, actor, past, controller.signal);
    const sink = whileAtWork(own, desk);
    const workspace = await store.get<Workspace & Row>('workspace', task.workspace_id);
    const given = givenWork(deps, task, { session, workspace, resumed });
    desk.run = await backend.start(given, sink, controller.signal);
    tell(desk);
    if (controller.signal.aborted) stopRun(desk);
    try {
      return await desk.run.done;
    } finally {
      // The end of a text that nothing follows. Whoever ended the work first has had the last word.
      if (!desk.leaving) await own.settle().catch(() => {});
    }
  }

  /** Why the work may not begin, if it may not. What an earlier process was told about it is read from the log. */
  async function askFirst(task: Task, live: Live | undefined, signal: AbortSignal): Promise<string | undefined> {
    const stream = { of: 'task', id: task.id } as const;
    const permission: Permission | undefined = live
      ? live.permit && { kind: 'ask', permit: live.permit }
      : await readPermission(store.read({ stream, kinds: PERMISSION_EVENTS }));
    if (permission?.kind !== 'ask') return permission?.reason;
    const { actor, action } = permission.permit;
    const ruling = await acts.rule(task, action, { actor, signal, takesArguments: false });
    if (ruling.kind === 'go') return undefined;
    return ruling.kind === 'no' ? ruling.reason : 'nobody approved the work';
  }

  /** Resolves when work that was told to stop has not stopped in time. */
  async function whenStopped(desk: Desk, finished: Promise<unknown>): Promise<'still running'> {
    const { signal } = desk.controller;
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    stopRun(desk);
    if (signal.reason === ENDED) return 'still running'; // nobody waits for that any more
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      finished.finally(() => clearTimeout(timer));
    });
    return 'still running';
  }

  function stopRun({ run, task }: Desk): void {
    run?.stop?.().catch((cause) => logger.warn({ err: cause, task: task.id }, 'stopping went wrong'));
  }

  /** Hands on what was said to the agent, in order, once it is there to hear it. */
  function tell({ run, unheard, task }: Desk): void {
    if (!run) return;
    for (const message of unheard.splice(0)) {
      try {
        run.steer?.(message);
      } catch (cause) {
        logger.warn({ err: cause, task: task.id }, 'an agent could not take a message');
      }
    }
  }

  function listen(desk: Desk, since: Cursor | undefined): { close(): void } {
    return listening.to(desk.task.id, since, (event) => {
      if (event.event === 'user.cancel_requested') {
        desk.stopping ??= {
          by: event.actor ?? 'unknown',
          reason: asText(event.payload.reason ?? 'canceled'),
          failure: event.payload.failure as Failure | undefined,
        };
        desk.controller.abort();
      }
      if (event.event === 'user.message' && event.payload.kind === 'interrupt') {
        desk.unheard.push(event.payload.message as JsonObject);
        tell(desk);
      }
      // Someone else ended it, for instance because they took us for dead.
      if (endsTask(event)) desk.controller.abort();
    });
  }

  return { desks, open };
}

/** Whoever was let go while the work goes on with someone else has nothing more to say about it. */
function whileAtWork(sink: Sink, desk: Pick<Desk, 'leaving'>): Sink {
  const over = () => new Fault('conflict', 'this work has been taken up by someone else');
  const present = () => {
    if (desk.leaving) throw over();
  };
  return {
    // Waits for nothing itself: a text comes in many pieces, and each would wait once more.
    emit: (fact) => (desk.leaving ? Promise.reject(over()) : sink.emit(fact)),
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

function stopped(end: End, failure: Failure | undefined): End {
  return failure ? { ...end, state: 'FAILED', failure } : { ...end, state: 'CANCELED' };
}

/** Said once and to everyone: an error made anew for each task costs a look at the stack. */
const ENDED = new Fault('client_closed', 'the work has ended');
/** Told apart from a stop by whoever works elsewhere: that work goes on, and is found again after the restart. */
export const LEAVING = new Fault('unavailable', 'the gateway is closing and comes back for this work');

/** The agent as the gate sees it: it acts for whoever gave it the task, and has no scopes of its own. */
export function agentActor(task: Pick<Task, 'assigned_agent_id' | 'metadata'>): Actor {
  const tenant = ours(task).tenant_id;
  return {
    id: `agent:${task.assigned_agent_id ?? 'outside'}`,
    kind: 'agent',
    scopes: [],
    ...(typeof tenant === 'string' && { tenant_id: tenant }),
  };
}

/** What others want of running work, or do to it. */
const CONCERNS_WORK = ['user.cancel_requested', 'user.message', 'task.completed', 'task.failed', 'task.canceled'];

function failed(thrown: unknown): End {
  const fault = thrown instanceof Fault ? thrown : undefined;
  const message = thrown instanceof Error ? thrown.message : asText(thrown);
  return { state: 'FAILED', failure: { code: fault?.kind ?? 'agent_failed', message: message || 'the agent failed' } };
}
