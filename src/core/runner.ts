/**
 * Runs tasks: one at a time per session, each with its own sink, its own way to be stopped, and exactly one end.
 * Commands for a running task arrive through the log, so it does not matter which process they were given to.
 */
import type { Actor } from '../model/actions.ts';
import type { End } from '../model/commands.ts';
import type { CoreEvent, Cursor } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Artifact, Failure, Message, Session, Task, Workspace } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import { isTerminal } from '../model/words.ts';
import type { AgentBackend, Run as BackendRun, Logger, Row, Sink, Store, Work } from '../ports.ts';
import type { Acts } from './acts.ts';
import type { Endings } from './endings.ts';
import { inTask, move, ours } from './lifecycle.ts';
import { createListening } from './listening.ts';
import type { Log } from './log.ts';
import { NO_PAST, readPast } from './past.ts';
import { PERMISSION_EVENTS, type Permission, type Permit, readPermission } from './permit.ts';
import { endsTask } from './projector.ts';
import type { Lane, Run } from './rows.ts';
import { createSink, type SinkDeps } from './sink.ts';

export interface RunnerDeps extends SinkDeps {
  readonly store: Store;
  readonly log: Log;
  readonly acts: Acts;
  readonly endings: Endings;
  readonly backends: ReadonlyMap<string, AgentBackend>;
  readonly logger: Logger;
  /** This process, as runs remember it. */
  readonly instance: string;
  /** How long work may take to stop after it was told to. */
  readonly graceMs: number;
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

/** What the log may not hold: the input as it came, before anything was taken out of it. */
export interface Live {
  readonly input?: Task['input'];
  /** The commit that accepted and began it: what stands there need not be read. */
  readonly written?: readonly CoreEvent[];
  /** A question policy wants answered before the work begins. */
  readonly permit?: Permit;
}

interface Desk {
  readonly task: Task;
  readonly controller: AbortController;
  readonly ended: Promise<void>;
  run: BackendRun | undefined;
  /** Said to the agent before it could listen. */
  readonly unheard: JsonObject[];
  stopping: { by: string; reason: string; failure: Failure | undefined } | undefined;
  leaving: boolean;
}

/** Tasks of one session that this process may start when it is their turn. */
interface Queue {
  readonly tasks: Map<string, { readonly task: Task; readonly live: Live | undefined }>;
  wake(): void;
}

export function createRunner(deps: RunnerDeps): Runner {
  const { store, log, acts, endings, backends, logger, instance, graceMs } = deps;
  const desks = new Map<string, Desk>();
  const queues = new Map<string, Queue>();
  const closing = new AbortController();
  const listening = createListening(store, logger, concernsWork);

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
        const next = await untilWritten(() => takeTurn(sessionId, queue));
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
    const lane = await store.get<Lane>('lane', sessionId);
    const first = lane?.active ? undefined : queue.tasks.get(lane?.waiting[0] ?? '');
    const started = first && (await takeLane(first.task));
    // What is waiting no longer was started, here or elsewhere, or ended before it began.
    for (const id of queue.tasks.keys()) if (id === started?.id || !lane?.waiting.includes(id)) queue.tasks.delete(id);
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
        { object: 'lane', id: task.session_id },
      ],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        const lane = at.get<Lane>('lane', task.session_id);
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
    await endings.open(task.id, live?.written);
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
    await untilWritten(() =>
      endings.finish(task.id, stopping ? stopped(end, stopping.failure) : end, {
        by: stopping?.by ?? agentActor(task).id,
        ...(stopping && { reason: stopping.reason }),
        ...(stillRunning && { stillRunning }),
        onlyIf: (run) => run?.instance === instance,
      }),
    );
    controller.abort(ENDED); // whatever still listens for this task has nothing to wait for
  }

  /** A store that is down for a while must not cost a task its end; a restart would find it otherwise. */
  async function untilWritten<T>(write: () => Promise<T>): Promise<T> {
    for (let wait = 100; ; wait = Math.min(wait * 2, 5000)) {
      try {
        return await write();
      } catch (cause) {
        if (!(cause instanceof Fault && cause.kind === 'unavailable') || closing.signal.aborted) throw cause;
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  }

  async function perform(desk: Desk, resumed: boolean, live: Live | undefined): Promise<End> {
    const { task, controller } = desk;
    const actor = agentActor(task);
    const refusal = await askFirst(task, live, controller.signal);
    if (refusal) {
      const failure = { code: 'policy_violation', message: refusal, details: { begun: false } };
      return { state: 'FAILED', failure };
    }
    const backend = backends.get(task.assigned_agent_id ?? '');
    if (!backend) throw new Fault('upstream_unavailable', `no agent ${task.assigned_agent_id} is mounted`);
    const session = await store.get<Session & Row>('session', task.session_id);
    if (!session) throw new Fault('not_found', `no session ${task.session_id}`);
    const past = resumed ? await readPast(store.read({ stream: { of: 'task', id: task.id } }), actor.id) : NO_PAST;
    const sink = whileAtWork(createSink(deps, task, actor, past, controller.signal), desk);
    const workspace = await store.get<Workspace & Row>('workspace', task.workspace_id);
    const given: Work = {
      task,
      session,
      resumed,
      transcript: () => transcript(store, task.session_id),
      ...(workspace && { workspace }),
      bytes: (artifactId) => contentOf(store, task, artifactId),
      artifact: (artifactId) => artifactOf(store, task, artifactId),
      asking: () => isAsking(store, task.id),
    };
    desk.run = await backend.start(given, sink, controller.signal);
    tell(desk);
    if (controller.signal.aborted) stopRun(desk);
    return await desk.run.done;
  }

  /** Why the work may not begin, if it may not. What an earlier process was told about it is read from the log. */
  async function askFirst(task: Task, live: Live | undefined, signal: AbortSignal): Promise<string | undefined> {
    const stream = { of: 'task', id: task.id } as const;
    const permission: Permission | undefined = live
      ? live.permit && { kind: 'ask', permit: live.permit }
      : await readPermission(store.read({ stream, kinds: PERMISSION_EVENTS }));
    if (permission?.kind !== 'ask') return permission?.reason;
    const { actor, question, action } = permission.permit;
    const ruling = await acts.rule(task, action, { actor, signal, takesArguments: false, question });
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
          reason: String(event.payload.reason ?? 'canceled'),
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

/** Whoever was let go while the work goes on with someone else has nothing more to say about it. */
function whileAtWork(sink: Sink, desk: Pick<Desk, 'leaving'>): Sink {
  const present = () => {
    if (desk.leaving) throw new Fault('conflict', 'this work has been taken up by someone else');
  };
  return {
    async emit(fact) {
      present();
      await sink.emit(fact);
    },
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

/** Told apart from a stop by whoever works elsewhere: that work goes on, and is found again after the restart. */
/** Said once and to everyone: an error made anew for each task costs a look at the stack. */
const ENDED = new Fault('client_closed', 'the work has ended');
const LEAVING = new Fault('unavailable', 'the gateway is closing and comes back for this work');

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

/** What an agent may be handed to read: files of the workspace it works in, and none that are for receipts only. */
async function contentOf(store: Store, task: Task, artifactId: string): Promise<Uint8Array | undefined> {
  const artifact = await artifactOf(store, task, artifactId);
  return artifact?.sha256 ? await store.blob(artifact.sha256) : undefined;
}

async function artifactOf(store: Store, task: Task, artifactId: string): Promise<Artifact | undefined> {
  const artifact = await store.get<Artifact & Row>('artifact', artifactId);
  if (artifact?.workspace_id !== task.workspace_id || artifact.visibility === 'receipt_only') return undefined;
  return artifact;
}

async function isAsking(store: Store, taskId: string): Promise<boolean> {
  const run = await store.get<Run>('run', taskId);
  return run?.asks.some(({ state }) => state === 'open') ?? false;
}

async function* transcript(store: Store, sessionId: string): AsyncIterable<Message> {
  let after: string | undefined;
  for (;;) {
    const page = await store.list<Message & Row>({
      object: 'message',
      where: { session_id: sessionId },
      limit: 200,
      ...(after && { after }),
    });
    yield* page;
    if (page.length < 200) return;
    after = page.at(-1)?.id;
  }
}

/** What others want of running work, or do to it. */
function concernsWork(event: CoreEvent): boolean {
  return event.event === 'user.cancel_requested' || event.event === 'user.message' || endsTask(event);
}

function failed(thrown: unknown): End {
  const fault = thrown instanceof Fault ? thrown : undefined;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { state: 'FAILED', failure: { code: fault?.kind ?? 'agent_failed', message: message || 'the agent failed' } };
}
