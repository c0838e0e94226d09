/**
 * Replay: this same core, with ports that answer from the record. The recorded agent says what it said, the recorded
 * gate decides what it decided, the recorded tools return what they returned and do nothing. An override replaces one
 * answer and leaves a delta in the receipt.
 */
import { asText } from '../model/as-text.ts';
import type { CommandKind } from '../model/commands.ts';
import type { CoreEvent, EventDraft } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Task } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { isTerminal } from '../model/words.ts';
import type { Row } from '../ports.ts';
import { accepted, type Handlers, once } from './context.ts';
import { agentActor } from './desk.ts';
import type { Endings } from './endings.ts';
import { inTask, move, ours } from './lifecycle.ts';
import { markingLog } from './replay-marks.ts';
import { type Plan, planReplay, type ReplayRequest } from './replay-plan.ts';
import { liveThrough, type WalkDeps } from './replay-walk.ts';
import { whileOpen } from './sink.ts';

export interface ReplayDeps extends WalkDeps {
  readonly endings: Endings;
  readonly instance: string;
}

export interface Replayer {
  readonly handlers: Pick<Handlers, Extract<CommandKind, 'task.replay'>>;
  idle(): Promise<void>;
}

export function createReplayer(deps: ReplayDeps): Replayer {
  const { log, access, ids, endings } = deps;
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
        const id = ids.next('task');
        const { result, repeated } = await log.commit({
          ...once(deps, command, source.workspace_id, `${source.id}/replay`),
          decide(at) {
            const task: Task = {
              ...source,
              id,
              created_at: at.now,
              updated_at: at.now,
              metadata: {
                ...source.metadata,
                ...body.metadata,
                replay_mode: request.mode,
                tollbridge: source.metadata.tollbridge ?? {},
              },
              status: 'SUBMITTED',
              created_by: actor.id,
              parent_task_id: source.id,
              // Someone outside did the work then; now it is done here, and nobody can report on it.
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
              payload: {
                task: task as unknown as Json,
                from: null,
                to: 'SUBMITTED',
                agent: 'replay',
                instance: deps.instance,
              },
            };
            const started = move(task, 'WORKING', { now: at.now, more: { instance: deps.instance } });
            const begun: EventDraft = {
              ...inTask(task),
              event: 'replay.started',
              actor: actor.id,
              payload: {
                source_task_id: source.id,
                mode: request.mode,
                overrides: Object.keys(request.override),
                reason: request.reason ?? null,
              },
            };
            return {
              events: [...sessionReplayed(task, request, body.metadata), submitted, ...started.events, begun],
              result: { id },
            };
          },
        });
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

  /** Canceled while it ran: it has its end and its receipt, and what it still had to say is not wanted. */
  async function hasEnded({ id }: Task): Promise<boolean> {
    return isTerminal((await deps.store.get<Task & Row>('task', id))?.status ?? '');
  }

  async function perform(task: Task, source: Task, plan: Plan): Promise<void> {
    const claim = {
      source_task_id: source.id,
      mode: plan.request.mode,
      source_hash: plan.source_hash,
      deltas: plan.applied.map(({ delta }) => delta),
      materials: plan.applied.flatMap(({ material }) => (material ? [material] : [])),
      times: timesOf(source, plan),
      tiers: tiersOf(source, plan),
      ...(plan.request.allowRefresh.length > 0 && { refreshed: true }),
    };
    await endings.open(task.id);
    if (plan.missing) {
      await fail(task, plan, claim);
      return;
    }
    try {
      await liveThrough(deps, task, plan, markingLog(log, task, source, plan));
    } catch (cause) {
      if (await hasEnded(task)) return;
      deps.logger.error({ err: cause, task: task.id }, 'a replay diverged from its record');
      const message = cause instanceof Error ? cause.message : asText(cause);
      await endReplay(task, claim, { code: 'replay_diverged', message, details: {} });
      return;
    }
    const events = plan.restored.length + plan.lived.length;
    await log.commit(whileOpen(task, () => [outcome(task, 'replay.completed', { source_task_id: source.id, events })]));
    const end = endOf(plan.lived);
    await endings.finish(task.id, end, { by: agentActor(source).id, replay: claim });
  }

  async function fail(task: Task, plan: Plan, claim: Claim): Promise<void> {
    const { kind, id, event_id, index } = plan.missing as NonNullable<Plan['missing']>;
    await endReplay(
      task,
      { ...claim, unavailable: `${kind} ${id} is no longer available` },
      {
        code: 'replay_dependency_unavailable',
        message: `the record depends on ${kind} ${id}, which is no longer available`,
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
    await log.commit(whileOpen(task, () => [outcome(task, 'replay.failed', failure as unknown as JsonObject)]));
    await endings.finish(task.id, { state: 'FAILED', failure }, { by: 'bridge', replay: { ...claim, unavailable } });
  }
}

type Claim = Parameters<Endings['finish']>[2]['replay'] & object;

function outcome(task: Task, event: string, payload: JsonObject): EventDraft {
  return { ...inTask(task), event, payload };
}

function endOf(events: readonly CoreEvent[]) {
  const last = events.findLast(
    ({ event }) => event === 'task.completed' || event === 'task.failed' || event === 'task.canceled',
  );
  const task = last?.payload.task as unknown as Task | undefined;
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
  const last = plan.lived.findLast(({ event }) => /^task\.(completed|failed|canceled)$/.test(event));
  return {
    created_at: pinned('created_at') ?? source.created_at,
    started_at: pinned('started_at') ?? source.started_at ?? source.created_at,
    completed_at: pinned('completed_at') ?? last?.created_at ?? source.updated_at,
  };
}

/** How far the agent was trusted then; how far its persona is trusted now is no part of the record. */
function tiersOf(source: Task, plan: Plan): { start: string; end: string } {
  const told = [...plan.restored, ...plan.lived].flatMap(({ event, payload }) => {
    const tier = event === 'vendor.tollbridge.decided' && (payload.action as JsonObject | undefined)?.tier;
    return typeof tier === 'string' ? [tier] : [];
  });
  const start = ours(source).tier ?? told[0] ?? 'act_auto';
  return { start, end: told.at(-1) ?? start };
}
