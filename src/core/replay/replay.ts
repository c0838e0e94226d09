/**
 * Replay: the same core, with ports that answer from the record. The recorded agent's output, the gate's decisions and the tools'
 * results are repeated, and nothing runs. An override replaces one answer and leaves a delta in the receipt; where the agent was
 * given that answer, it is run again from the record, or the replay stops at its first output afterwards.
 */

import type { CommandKind, End } from '../../model/commands.ts';
import type { CoreEvent, EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import { isTerminal } from '../../model/words.ts';
import type { AgentBackend, Committed, Draft, Row, Unit } from '../../ports/index.ts';
import { accepted, type Handlers, once, type Received } from '../context.ts';
import { whileOpen } from '../events/facts.ts';
import type { Endings } from '../tasks/end-task.ts';
import { inTask, move, ours } from '../tasks/lifecycle.ts';
import { agentActor } from '../tasks/task-run.ts';
import { freeNumber, numbered, replayTaskId, stemOf } from './ids.ts';
import { markingLog } from './marks.ts';
import { LIFECYCLE_TIMES, type ReplayRequest } from './overrides.ts';
import { isEnd, type MissingDependency, type Plan, planReplay } from './plan.ts';
import type { PortsDeps } from './ports.ts';
import { runAgain } from './rerun.ts';
import { isHidden } from './shown.ts';
import { walkRecord } from './walk.ts';

export interface ReplayDeps extends PortsDeps {
  readonly endings: Endings;
  readonly instance: string;
  readonly backends: ReadonlyMap<string, AgentBackend>;
}

export interface Replayer {
  readonly handlers: Pick<Handlers, Extract<CommandKind, 'task.replay'>>;
  idle(): Promise<void>;
}

export function createReplayer(deps: ReplayDeps): Replayer {
  const { log, access, endings } = deps;
  const running = new Set<Promise<void>>();

  return {
    async idle() {
      while (running.size > 0) await Promise.all(running);
    },
    handlers: {
      'task.replay': async (command) => {
        const { actor, body } = command;
        const source = await access.see<Task & Row>(actor, 'task', body.task_id);
        if (!isTerminal(source.status))
          throw new Fault('conflict', `task ${source.id} has not ended; it is ${source.status}`);
        const refresh = body.metadata?.allow_refresh;
        const request: ReplayRequest = {
          mode: body.mode ?? 'exact',
          override: body.override ?? {},
          checkpoint_id: body.checkpoint_id,
          checkpoint_event_id: body.checkpoint_event_id,
          reason: log.clean(body.reason),
          allowRefresh: Array.isArray(refresh) ? refresh.map(String) : [],
        };
        const plan = await planReplay(deps, source, request, (artifactId) => access.seeContent(actor, artifactId));
        const stem = stemOf(deps.hash, source.id, request, plan.checkpoint?.id, plan.applied);
        const { result, repeated } = await commitNumbered(stem, (name) => ({
          ...once(deps, command, source.workspace_id, `${source.id}/replay`),
          decide: (at) => begin(command, source, plan, name, at.now),
        }));
        const made = (result as { id: string }).id;
        const task = await access.see<Task & Row>(actor, 'task', made);
        if (!repeated) {
          const work = perform(task, source, plan).catch(async (cause) => {
            if (await hasEnded(task)) return;
            deps.logger.error({ err: cause, task: task.id }, 'a replay could not be brought to its end');
          });
          running.add(work);
          work.finally(() => running.delete(work));
        }
        return accepted('task.replay', task, repeated);
      },
    },
  };

  /** Commits under the lowest free number. When another process takes it first, the next one is tried. */
  async function commitNumbered(stem: string, unit: (name: string) => Unit): Promise<Committed> {
    for (let number = await freeNumber(deps.store, stem); ; number += 1) {
      const name = numbered(stem, number);
      const id = replayTaskId(name);
      const made = unit(name);
      try {
        return await log.commit({
          ...made,
          reads: [{ object: 'task', id }],
          decide(at) {
            if (at.get<Row>('task', id)) throw TAKEN;
            return made.decide(at);
          },
        });
      } catch (cause) {
        if (cause !== TAKEN) throw cause;
      }
    }
  }

  function begin({ actor, body }: Received<'task.replay'>, source: Task, plan: Plan, stem: string, now: string): Draft {
    const { request } = plan;
    const id = replayTaskId(stem);
    const task: Task = {
      ...source,
      id,
      created_at: now,
      updated_at: now,
      metadata: {
        ...source.metadata,
        ...body.metadata,
        replay_mode: request.mode,
        tollbridge: {
          ...(source.metadata.tollbridge as JsonObject | undefined),
          replay: { stem, root: ours(source).replay?.root ?? source.id },
        },
      },
      status: 'SUBMITTED',
      created_by: actor.id,
      parent_task_id: source.id,
      // The source may be work outside the gateway; the replay runs here, and no client can report on it.
      assigned_agent_id: source.assigned_agent_id ?? 'replay',
      receipt_id: null,
      outcome_id: null,
      started_at: null,
      completed_at: null,
      canceled_at: null,
      failure: null,
    };
    const submitted: EventDraft = {
      ...inTask(task),
      event: 'task.submitted',
      actor: actor.id,
      payload: { task: task, from: null, to: 'SUBMITTED', agent: 'replay', instance: deps.instance },
    };
    const started = move(task, 'WORKING', { now, more: { instance: deps.instance } });
    const begun: EventDraft = {
      ...inTask(task),
      event: 'replay.started',
      actor: actor.id,
      payload: {
        source_task_id: source.id,
        mode: request.mode,
        overrides: plan.applied.map(({ key }) => key),
        reason: request.reason ?? null,
        rerun: rerunner(source, plan) !== undefined,
        // For an end that comes from elsewhere: a cancel, or another process after a crash.
        claim: beginningOf(source, plan),
      },
    };
    return {
      events: [...sessionReplayed(task, request, body.metadata), submitted, ...started.events, begun],
      result: { id },
    };
  }

  /** The agent that did the work, when an override replaces its input and it can be run again. */
  function rerunner(source: Task, { reaches, request }: Plan): AgentBackend | undefined {
    const backend = deps.backends.get(source.assigned_agent_id ?? '');
    return reaches && request.mode !== 'exact' && backend?.abilities.reruns ? backend : undefined;
  }

  /** Canceled while it ran: it has its end and its receipt, and further output is dropped. */
  async function hasEnded({ id }: Task): Promise<boolean> {
    return isTerminal((await deps.store.get<Task & Row>('task', id))?.status ?? '');
  }

  async function perform(task: Task, source: Task, plan: Plan): Promise<void> {
    const claim = claimOf(source, plan);
    await endings.open(task.id);
    if (plan.missing) {
      await failFor(task, plan, claim, plan.missing);
      return;
    }
    const marked = markingLog(log, task, source, plan);
    const backend = rerunner(source, plan);
    try {
      if (backend) {
        const came = await runAgain(deps, task, source, plan, marked, backend);
        const taken = { ...claim, ...accountOf(plan, (key) => came.used.has(key)) };
        if (came.kind === 'missing') await failFor(task, plan, taken, came.missing);
        else await complete(task, source, plan, taken, came.end, came.used);
        return;
      }
      if (!(await walkRecord(deps, task, plan, marked))) {
        await stopAt(task, source, plan, claim);
        return;
      }
    } catch (cause) {
      if (await hasEnded(task)) return;
      // The error may repeat a hidden value, which must not reach the process log either.
      const err = plan.applied.some(isHidden) ? undefined : cause;
      deps.logger.error({ ...(err !== undefined && { err }), task: task.id }, 'a replay diverged from its record');
      const message = err === undefined && cause !== undefined ? DIVERGED : messageOf(cause);
      await endReplay(task, claim, { code: 'replay_diverged', message, details: {} });
      return;
    }
    await complete(task, source, plan, claim, endOf(plan.replayed));
  }

  async function complete(task: Task, source: Task, plan: Plan, claim: Claim, end: End, used?: ReadonlySet<string>) {
    const events = plan.restored.length + plan.replayed.length;
    const unused = used && plan.applied.flatMap(({ key }) => (used.has(key) ? [] : [key]));
    const payload = { source_task_id: source.id, events, ...(unused && { rerun: true, unused_overrides: unused }) };
    await log.commit(whileOpen(task, [{ ...inTask(task), event: 'replay.completed', payload }]));
    await endings.finish(task.id, end, { by: agentActor(source).id, replay: claim });
  }

  /** The recorded output no longer follows, and the agent cannot be run again. */
  async function stopAt(task: Task, source: Task, plan: Plan, claim: Claim): Promise<void> {
    const { event, index, applied, why } = plan.dependent as NonNullable<Plan['dependent']>;
    const agent = agentActor(source).id;
    const dependency = { kind: 'host', id: agent, override_key: applied.key };
    // Overrides of later events were never reached.
    const reached = { ...claim, ...accountOf(plan, (_, at) => at < event.sequence) };
    await endReplay(task, reached, {
      code: UNAVAILABLE,
      message: `${why}; ${agent} cannot be run again from the record, so what it would have said is not known`,
      details: {
        dependency,
        at: { event_id: event.id, index, event: event.event },
        mode: plan.request.mode,
        reason: 'agent_cannot_be_rerun',
      },
    });
  }

  async function failFor(
    task: Task,
    plan: Plan,
    claim: Claim,
    { kind, id, event_id, index }: MissingDependency,
  ): Promise<void> {
    await endReplay(
      task,
      { ...claim, unavailable: `${kind} ${id} is not available` },
      {
        code: UNAVAILABLE,
        message: `the replay depends on ${kind} ${id}, which the record does not have or no longer has`,
        details: { dependency: { kind, id }, at: { event_id, index }, mode: plan.request.mode },
      },
    );
  }

  async function endReplay(
    task: Task,
    claim: Claim,
    failure: { code: string; message: string; details: JsonObject },
  ): Promise<void> {
    const unavailable = claim.unavailable ?? failure.message;
    await log.commit(whileOpen(task, [{ ...inTask(task), event: 'replay.failed', payload: failure }]));
    await endings.finish(task.id, { state: 'FAILED', failure }, { by: 'bridge', replay: { ...claim, unavailable } });
  }
}

/** Thrown inside a commit, and recognised by identity. */
const TAKEN = new Fault('conflict', 'another replay has this number');
const UNAVAILABLE = 'replay_dependency_unavailable';
const DIVERGED = 'the replay came to something the record does not have';

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : asText(cause);
}

function claimOf(source: Task, plan: Plan): Claim {
  return { ...beginningOf(source, plan), ...accountOf(plan, () => true) };
}

/** The claim's members that are certain before anything has been replayed. */
function beginningOf(source: Task, plan: Plan): Omit<Claim, 'deltas' | 'materials'> {
  return {
    source_task_id: source.id,
    mode: plan.request.mode,
    source_hash: plan.source_hash,
    times: timesOf(source, plan),
    tiers: tiersOf(source, plan),
    ...(plan.request.allowRefresh.length > 0 && { refreshed: true }),
  };
}

/** The receipt's account of overrides: only of those that took effect. */
function accountOf(plan: Plan, tookEffect: (key: string, sequence: number) => boolean) {
  const taken = plan.applied.filter(({ key, dependency }) => {
    const sequence = LIFECYCLE_TIMES.has(key) ? 0 : (dependency.event?.sequence ?? 0);
    return tookEffect(key, sequence);
  });
  return {
    deltas: taken.map(({ delta }) => delta),
    materials: taken.flatMap(({ material }) => (material ? [material] : [])),
  };
}

type Claim = Parameters<Endings['finish']>[2]['replay'] & object;

function endOf(events: readonly CoreEvent[]) {
  const last = events.findLast(({ event }) => isEnd(event));
  const task = last?.payload.task as Task | undefined;
  const summary = (last?.payload.outcome as JsonObject | undefined)?.summary;
  const state = task?.status === 'COMPLETED' || task?.status === 'CANCELED' ? task.status : ('FAILED' as const);
  return {
    state,
    ...(typeof summary === 'string' && { summary }),
    ...(task?.failure && { failure: task.failure }),
  } as Parameters<Endings['finish']>[1];
}

/** The first task of a session that is replayed as a whole announces it. */
function sessionReplayed(task: Task, { mode, reason }: ReplayRequest, metadata: JsonObject = {}): EventDraft[] {
  const part = metadata.session_replay as JsonObject | undefined;
  if (part?.index !== 0) return [];
  return [
    {
      event: 'session.replayed',
      resource: { object: 'session', id: task.session_id },
      workspace_id: task.workspace_id,
      session_id: task.session_id,
      actor: task.created_by,
      payload: { mode, tasks: part.of ?? null, reason: reason ?? null },
    },
  ];
}

/** Lifecycle times as recorded, with `time:` overrides applied. */
function timesOf(source: Task, plan: Plan): { created_at: string; started_at: string; completed_at: string } {
  const pinned = (label: string) =>
    plan.applied.find(({ key }) => key === `time:${label}`)?.value as string | undefined;
  const last = plan.replayed.findLast(({ event }) => isEnd(event));
  return {
    created_at: pinned('created_at') ?? source.created_at,
    started_at: pinned('started_at') ?? source.started_at ?? source.created_at,
    completed_at: pinned('completed_at') ?? last?.created_at ?? source.updated_at,
  };
}

/** The agent's tiers at the time; its persona's current tier is no part of the record. */
function tiersOf(source: Task, plan: Plan): { start: string; end: string } {
  const tiers = [...plan.restored, ...plan.replayed].flatMap(({ event, payload }) => {
    const tier = event === 'vendor.tollbridge.decided' && (payload.action as JsonObject | undefined)?.tier;
    return typeof tier === 'string' ? [tier] : [];
  });
  const start = ours(source).tier ?? tiers[0] ?? 'act_auto';
  return { start, end: tiers.at(-1) ?? start };
}
