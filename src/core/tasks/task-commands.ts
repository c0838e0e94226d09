/** Commands for tasks: submit, message, report, cancel. The runner runs them; `end-task.ts` ends them. */
import type { Actor } from '../../model/actions.ts';
import type { AskRecord } from '../../model/asks.ts';
import type { CommandKind, End, Fact } from '../../model/commands.ts';
import { type EventDraft, withMembers } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import { PermissionRule, type Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { check } from '../../model/validate.ts';
import type { Permissions, Row } from '../../ports/index.ts';
import { requireScope } from '../access.ts';
import type { Alarms } from '../actions/alarms.ts';
import { charging } from '../actions/charging.ts';
import { limitFailure } from '../actions/time-limits.ts';
import { admitAnswer, readAnswer } from '../approvals/answers.ts';
import type { Asks } from '../approvals/asks.ts';
import { grantFor } from '../approvals/grants.ts';
import { linkedBy } from '../commands/artifact-changes.ts';
import { declaredEvent } from '../commands/declared-event.ts';
import { messageEvents } from '../commands/transcript.ts';
import { accepted, type Handlers, once, orEarlier } from '../context.ts';
import { besideReceipt, factEvents, whileOpen } from '../events/facts.ts';
import type { RunRow } from '../events/rows.ts';
import { type CancelDeps, type CancelTask, createCancel, stopEvent } from './cancel.ts';
import { inTask, readsOf } from './lifecycle.ts';
import { createSubmit, type SubmitDeps } from './submit.ts';
import { agentActor } from './task-run.ts';

type Kinds = Extract<CommandKind, `task.${'submit' | 'cancel' | 'resume' | 'message' | 'report'}` | 'ask.answer'>;

export interface TaskDeps extends SubmitDeps, CancelDeps {
  readonly asks: Asks;
  readonly alarms: Alarms;
  readonly requireSound: Permissions['requireSound'] | undefined;
}

export function taskHandlers(deps: TaskDeps): Pick<Handlers, Kinds> & { cancelTask: CancelTask } {
  const { store, log, access, ids, acts, asks, endings, runner } = deps;
  const cancelTask = createCancel(deps);

  /** Reports of this work come through this process from now on. Nothing is written where they do already, or may come through any. */
  async function answerFor({ id }: Task, { served_by }: RunRow): Promise<void> {
    const instance = deps.servedBy();
    if (!instance || served_by === undefined || served_by === instance) return;
    await log.commit({
      reads: readsOf(id),
      decide(at) {
        const now = at.get<Task & Row>('task', id);
        const run = at.get<RunRow>('run', id);
        if (!now || !run || run.served_by === instance) return { events: [] };
        const payload = { instance, from: run.served_by ?? null, was: now.status };
        return { events: [{ ...inTask(now), event: 'vendor.tollbridge.recovered', payload }] };
      },
    });
  }

  /** The rule by which an approver is not asked again, recorded in one commit with the answer. */
  async function grantEvent(ask: AskRecord, actor: Actor, wanted: string): Promise<EventDraft> {
    const { requireSound, clock } = deps;
    if (!requireSound) throw new Fault('not_implemented', 'answers are not remembered here');
    const now = clock.now();
    const draft = await grantFor(ask, wanted, { actor, now, store });
    await requireSound(draft);
    const id = ids.next('permission_rule');
    const row = { ...draft, id, object: 'permission_rule', metadata: {}, created_at: now, updated_at: now };
    return declaredEvent('created', check(PermissionRule, row, 'permission_rule'), ask.workspace_id, actor.id);
  }

  return {
    cancelTask,
    'task.submit': createSubmit(deps),

    'task.cancel': async (command) => {
      const { actor, body } = command;
      const task = await access.see<Task & Row>(actor, 'task', body.task_id);
      const claim = once(deps, command, task.workspace_id, task.id);
      const reason = body.reason ?? body.failure?.message ?? 'canceled by the caller';
      const repeated = await cancelTask(task.id, actor.id, reason, claim, body.failure);
      return accepted('task.cancel', await access.see<Row>(actor, 'task', task.id), repeated);
    },

    'task.resume': async ({ actor, body }) => {
      const task = await access.see<Task & Row>(actor, 'task', body.task_id);
      const run = await store.get<RunRow>('run', task.id);
      if (run?.agent === 'none') {
        await answerFor(task, run);
        return accepted('task.resume', await access.see<Row>(actor, 'task', task.id), false);
      }
      // Another process accepted it for this one, which has its agent.
      if (task.status === 'SUBMITTED' && run?.instance === deps.instance && deps.backends.has(run.agent)) {
        runner.enqueue(task);
        return accepted('task.resume', await access.see<Row>(actor, 'task', task.id), false);
      }
      if (task.status !== 'WORKING' || !run) throw new Fault('conflict', `task ${task.id} is ${task.status}`);
      if (!deps.backends.get(run.agent)?.abilities.resume) {
        throw new Fault('not_implemented', `${run.agent} cannot go on from where it was`);
      }
      // Recovery handles the tasks of a dead process.
      if (run.instance === deps.instance) await runner.restart(task.id);
      else if (run.instance && !(await deps.isDead(run.instance))) {
        throw new Fault('conflict', `task ${task.id} is at work in another process`);
      }
      return accepted('task.resume', await access.see<Row>(actor, 'task', task.id), false);
    },

    'task.message': async (command) => {
      const { actor, body } = command;
      // A confirmation is an approval, by either command.
      if (body.kind === 'tool_confirmation') requireScope(actor, 'approvals:write');
      const task = await access.see<Task & Row>(actor, 'task', body.task_id);
      const claim = once(deps, command, task.workspace_id, `${task.id}/messages`);
      const done = async (result: Json | undefined, repeated: boolean) => {
        const message = await access.see<Row>(actor, 'message', (result as { id: string }).id);
        return accepted('task.message', message, repeated);
      };
      const say = async () => {
        const run = await store.get<RunRow>('run', task.id);
        if (!run) throw new Fault('conflict', `task ${task.id} has ended`);
        const id = ids.next('message');
        await linkedBy(deps, actor, body.message.parts);
        const events = (await messageEvents(deps, inTask(task), { ...body.message, id }, actor.id)).map((event) =>
          event.event === 'user.message' ? withMembers(event, { kind: body.kind }) : event,
        );
        if (body.kind !== 'interrupt') {
          const answer = readAnswer(body.kind, body.message, run);
          await admitAnswer(deps, actor, answer);
          const { result, repeated } = await asks.answer(actor, answer, claim, { events, result: { id } });
          return await done(result, repeated);
        }
        const unit = whileOpen(task, events);
        const { result, repeated } = await log.commit({
          ...claim,
          ...unit,
          decide: (at) => ({ ...unit.decide(at), result: { id } }),
        });
        return await done(result, repeated);
      };
      return await orEarlier(deps, claim, say, (result) => done(result, true));
    },

    'task.report': async (command) => {
      const { actor, body } = command;
      const task = await access.see<Task & Row>(actor, 'task', body.task_id);
      if (task.assigned_agent_id)
        throw new Fault('conflict', `task ${task.id} is done by ${task.assigned_agent_id} here; it reports itself`);
      const reporter = actor.kind === 'agent' ? actor : agentActor(task);
      const facts = body.facts ?? [];
      const events: EventDraft[] = [];
      for (const fact of facts) events.push(...(await factEvents(deps, task, reporter, fact, events)).events);
      const metering = await acts.metering(task, body.late ? [] : usageIn(facts));
      const unit = body.late ? besideReceipt(task, events) : charging(whileOpen(task, events), metering);
      const { repeated } = await log.commit({
        ...once(deps, command, task.workspace_id, `${task.id}/report`),
        ...unit,
        decide: (at) => ({ result: { id: task.id }, ...unit.decide(at) }),
      });
      const passed = repeated ? undefined : metering.passed?.();
      if (body.end || passed) {
        const end = {
          ...(passed ? { ...body.end, state: 'FAILED' as const, failure: limitFailure(passed) } : (body.end as End)),
          not_reported: body.end?.not_reported ?? ['work done outside: only what was reported is known'],
        };
        await endings.finish(task.id, end, { by: actor.id });
      }
      return accepted('task.report', await access.see<Row>(actor, 'task', task.id), repeated);
    },

    'ask.answer': async (command) => {
      const { actor, body } = command;
      const ask = await access.see<AskRecord & Row>(actor, 'ask', body.ask_id);
      const { value, reason, approved, failure, arguments: args } = body;
      if (failure && approved !== false) {
        throw new Fault('invalid_request', 'only a no can fail the task', { param: '/failure' });
      }
      if (body.for !== undefined && approved !== true) {
        throw new Fault('invalid_request', 'only a yes can be given for longer than once', { param: '/for' });
      }
      const answer = {
        ask_id: ask.id,
        ...(approved !== undefined && { approved }),
        ...(value !== undefined && { value }),
        ...(args && { arguments: args as JsonObject }),
        ...(reason && { reason }),
      };
      await admitAnswer(deps, actor, answer);
      // One commit denies and stops the work: an agent that sees the denial must not be able to finish first.
      const task = failure && (await access.see<Task & Row>(actor, 'task', ask.task_id));
      const stop = task && {
        events: [stopEvent(task, actor.id, reason ?? failure.message, failure)],
        result: { id: ask.id },
      };
      const grant = body.for === undefined ? undefined : await grantEvent(ask, actor, body.for);
      const beside = grant ? { events: [grant], result: { id: ask.id } } : stop;
      const claim = once(deps, command, ask.workspace_id, ask.id);
      const { record, repeated } = await asks.answer(actor, answer, claim, beside);
      return accepted('ask.answer', record as AskRecord & Row, repeated);
    },
  };
}

function usageIn(facts: readonly Fact[]): readonly JsonObject[] {
  return facts.flatMap(({ event, payload }) => (event === 'vendor.tollbridge.usage' ? [payload] : []));
}
