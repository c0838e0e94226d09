/** Work: submitted, spoken to, reported on, stopped. What runs it lives in the runner; what ends it, in endings. */
import type { Action, Actor, Decision } from '../model/actions.ts';
import type { AskRecord } from '../model/asks.ts';
import type { CommandKind, Fact } from '../model/commands.ts';
import type { EventDraft } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import {
  type MessageInput,
  MessageInput as MessageInputShape,
  type Persona,
  type Quota,
  type Session,
  type Task,
} from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { validator } from '../model/validate.ts';
import { isTerminal } from '../model/words.ts';
import type { AgentBackend, Committed, QuotaRules, Row } from '../ports.ts';
import { requireScope } from './access.ts';
import type { Acts } from './acts.ts';
import type { Asks } from './asks.ts';
import { charging } from './charging.ts';
import { accepted, type Context, earlier, type Given, type Handlers, once, orEarlier } from './context.ts';
import type { Endings } from './endings.ts';
import { decidedEvent, type Gate } from './gate.ts';
import { inTask, move } from './lifecycle.ts';
import { permitFor } from './permit.ts';
import type { Lane, Run } from './rows.ts';
import type { Ruling } from './rulings.ts';
import { agentActor, type Runner } from './runner.ts';
import { messageEvents } from './sessions.ts';
import { factEvents, whileOpen } from './sink.ts';

type Kinds = Extract<
  CommandKind,
  `task.${'submit' | 'cancel' | 'message' | 'report'}` | 'action.propose' | 'tool.call' | 'ask.answer'
>;

export interface TaskDeps extends Context {
  readonly gate: Gate;
  readonly acts: Acts;
  readonly asks: Asks;
  readonly endings: Endings;
  readonly runner: Runner;
  readonly quotas: QuotaRules;
  readonly backends: ReadonlyMap<string, AgentBackend>;
  readonly defaultAgent: string | undefined;
  readonly instance: string;
  /** True when the process a run belongs to is gone. */
  readonly isDead: (instance: string) => Promise<boolean>;
  readonly graceMs: number;
}

const isMessageInput = validator(MessageInputShape);

export function taskHandlers(deps: TaskDeps): Pick<Handlers, Kinds> & { cancelTask: CancelTask } {
  const { store, log, access, ids, acts, asks, endings, runner, gate, backends } = deps;

  async function submit(command: Given<'task.submit'>) {
    const { actor, body } = command;
    const session = await access.see<Session & Row>(actor, 'session', body.session_id);
    const personaId = body.persona_id ?? session.persona_id ?? null;
    const persona = personaId ? await access.see<Persona & Row>(actor, 'persona', personaId) : undefined;
    for (const [object, id] of [
      ['branch', body.branch_id],
      ['task', body.parent_task_id],
    ] as const) {
      if (id) await access.see(actor, object, id);
    }
    const agent = agentFor(body.agent, persona);
    const id = ids.next('task');
    const home = { workspace_id: session.workspace_id, session_id: session.id };
    const data = await acts.policyData({ workspace_id: session.workspace_id, persona_id: personaId });
    const action: Action = {
      id: ids.next('action'),
      kind: 'prompt',
      actor,
      ...home,
      tool: agent,
      arguments: { input: body.input },
      effect: 'none',
      evidence: 'held',
      cost: { tasks: 1 },
      ...data,
    };
    const decision = await gate(action);
    const recorded = { ...action, arguments: { input_hash: deps.hash(log.clean(body.input)) } };
    const claim = once(deps, command, session.workspace_id, `${session.id}/tasks`);
    if (decision.verdict === 'block' || decision.verdict === 'defer') {
      // What let the first one in may be used up by now, not least by itself.
      const before = (await earlier(deps, claim)) as { id: string } | undefined;
      if (before) return accepted('task.submit', await access.see<Task & Row>(actor, 'task', before.id), true);
      await log.commit({ decide: () => ({ events: [decidedEvent(recorded, decision)] }) });
      throw refusal(decision.verdict, decision.reason, {
        rule_id: decision.rule_id ?? null,
        code: decision.code ?? null,
        ...(decision.retry_after_ms && { retry_after_ms: decision.retry_after_ms }),
      });
    }
    const given = (decision.verdict === 'modify' ? decision.arguments?.input : body.input) as JsonObject | undefined;
    if (!given) throw refusal('block', `${decision.reason} (the rule rewrites the prompt but gives no input)`, {});

    const outside = agent === 'none';
    const said = await opening(given, { ...home, task_id: id }, actor);
    const committed = await log.commit({
      ...claim,
      reads: [
        { object: 'session', id: session.id },
        { object: 'lane', id: session.id },
        ...data.quotas.map((quota) => ({ object: 'quota', id: quota.id })),
      ],
      decide(at) {
        const now = at.get<Session & Row>('session', session.id);
        if (!now || now.state === 'CLOSED' || now.state === 'FAILED') {
          throw new Fault('conflict', `session ${session.id} is closed`);
        }
        const charges = data.quotas.flatMap((quota) => {
          const current = at.get<Quota & Row>('quota', quota.id);
          if (!current) return [];
          const over = deps.quotas.refuse(current, action.cost ?? {}, at.now);
          if (over && over.verdict !== 'escalate')
            throw refusal(over.verdict === 'defer' ? 'defer' : 'block', over.reason, {
              code: over.code ?? 'quota_exhausted',
              quota_id: quota.id,
            });
          const { usage, reset_at } = deps.quotas.charge(current, action.cost ?? {}, at.now);
          return [{ quota_id: quota.id, amounts: action.cost ?? {}, usage, reset_at, action_id: action.id }];
        });
        const task: Task = {
          id,
          object: 'task',
          created_at: at.now,
          updated_at: at.now,
          metadata: {
            ...body.metadata,
            tollbridge: { tier: data.tier, ...(actor.tenant_id && { tenant_id: actor.tenant_id }) },
          },
          ...home,
          status: 'SUBMITTED',
          input: said.input,
          created_by: actor.id,
          persona_id: personaId,
          branch_id: body.branch_id ?? null,
          parent_task_id: body.parent_task_id ?? null,
          assigned_agent_id: outside ? null : agent,
          receipt_id: null,
          outcome_id: null,
          quota_id: null,
          started_at: null,
          completed_at: null,
          canceled_at: null,
          failure: null,
        };
        const place = inTask(task);
        const events: EventDraft[] = [
          ...said.events,
          {
            ...place,
            event: 'task.submitted',
            actor: actor.id,
            payload: {
              task: task as unknown as Json,
              from: null,
              to: 'SUBMITTED',
              agent,
              instance: outside ? null : deps.instance,
            },
            ...(command.trace_id && { trace_id: command.trace_id }),
            ...(command.idempotency && { idempotency_key: command.idempotency.key }),
            ...(command.ext && { ext: command.ext }),
          },
          decidedEvent({ ...recorded, task_id: id }, decision),
          ...charges.map((payload) => ({
            ...place,
            event: 'vendor.tollbridge.quota_used',
            payload: payload as unknown as JsonObject,
          })),
        ];
        // A free session starts the work in the same commit: one fsync less, and nobody sees a task that only waits.
        const free = outside || !at.get<Lane>('lane', session.id);
        if (free) {
          const more = outside ? { instance: null } : { instance: deps.instance, lane: true };
          events.push(...move(task, 'WORKING', { now: at.now, more }).events);
        }
        return { events, result: { id, begun: free && !outside, outside } };
      },
    });
    const { result, repeated } = committed as Committed & { result: { id: string; begun: boolean; outside: boolean } };
    const task = await access.see<Task & Row>(actor, 'task', result.id);
    if (!repeated && !result.outside) {
      const permit = permitFor(recorded, decision);
      const live = {
        input: { ...task.input, ...given },
        ...(permit && { permit }),
      };
      if (result.begun) runner.begin(task, live);
      else runner.enqueue(task, live);
    }
    return accepted('task.submit', task, repeated);
  }

  function agentFor(wanted: string | undefined, persona: Persona | undefined): string {
    const named =
      wanted ?? (persona && backends.has(persona.entry_workflow) ? persona.entry_workflow : deps.defaultAgent);
    if (!named) throw new Fault('invalid_request', 'no agent is mounted, and the task names none', { param: '/agent' });
    if (named !== 'none' && !backends.has(named)) {
      throw new Fault('invalid_request', `no agent ${named} is mounted`, { param: '/agent' });
    }
    return named;
  }

  /** A task that opens with a message puts it in the transcript; any other input stays with the task. */
  async function opening(
    input: JsonObject,
    place: { workspace_id: string; session_id: string; task_id: string },
    actor: Actor,
  ) {
    if (!isMessageInput(input)) {
      const fitted = await log.fit(input, { ...place, now: deps.clock.now() });
      const events = fitted.artifacts.map(
        (artifact): EventDraft => ({
          ...inTask({ id: place.task_id, ...place }),
          event: 'artifact.created',
          payload: { artifact: artifact as unknown as Json },
        }),
      );
      return { input: fitted.value as JsonObject, events };
    }
    const at = { ...inTask({ id: place.task_id, ...place }) };
    const events = await messageEvents(deps, at, input as MessageInput, actor.id);
    const message = events.find(({ event }) => event === 'user.message' || event === 'agent.message')?.payload.message;
    return { input: message as JsonObject, events };
  }

  const cancelTask: CancelTask = async (taskId, by, reason, idempotency = {}) => {
    let known: Task | undefined;
    let run: Run | undefined;
    const { repeated } = await log.commit({
      ...idempotency,
      reads: [
        { object: 'task', id: taskId },
        { object: 'run', id: taskId },
      ],
      decide(at) {
        known = at.get<Task & Row>('task', taskId);
        run = at.get<Run>('run', taskId);
        if (!known) throw new Fault('not_found', `no task ${taskId}`);
        if (known.status === 'CANCELED') return { events: [], result: { id: taskId } };
        if (isTerminal(known.status)) throw new Fault('conflict', `task ${taskId} already ended as ${known.status}`);
        if (run?.cancel_requested) return { events: [], result: { id: taskId } };
        return {
          events: [{ ...inTask(known), event: 'user.cancel_requested', actor: by, payload: { reason } }],
          result: { id: taskId },
        };
      },
    });
    if (repeated) {
      known = await store.get<Task & Row>('task', taskId);
      run = await store.get<Run>('run', taskId);
    }
    if (known && isTerminal(known.status)) return repeated;
    if (await runner.stop(taskId, by, reason)) return repeated;

    // Queued, done by someone outside, or left by a process that is gone: nobody else will end it.
    const elsewhere =
      known?.status !== 'SUBMITTED' &&
      run?.instance &&
      run.instance !== deps.instance &&
      !(await deps.isDead(run.instance));
    if (elsewhere && (await endsWithin(taskId, deps.graceMs * 2))) return repeated;
    await endings.finish(taskId, { state: 'CANCELED' }, { by, reason, ...(elsewhere && { stillRunning: true }) });
    return repeated;
  };

  async function endsWithin(taskId: string, ms: number): Promise<boolean> {
    const signal = AbortSignal.timeout(ms);
    for await (const event of store.follow({ stream: { of: 'task', id: taskId } }, signal)) {
      if (event.event === 'task.completed' || event.event === 'task.failed' || event.event === 'task.canceled')
        return true;
    }
    return false;
  }

  return {
    cancelTask,
    'task.submit': submit,

    'task.cancel': async (command) => {
      const { actor, body } = command;
      const task = await access.see<Task & Row>(actor, 'task', body.task_id);
      const claim = once(deps, command, task.workspace_id, task.id);
      const repeated = await cancelTask(task.id, actor.id, body.reason ?? 'canceled by the caller', claim);
      return accepted('task.cancel', await access.see<Row>(actor, 'task', task.id), repeated);
    },

    'task.message': async (command) => {
      const { actor, body } = command;
      // A confirmation is an approval, whichever way it comes in.
      if (body.kind === 'tool_confirmation') requireScope(actor, 'approvals:write');
      const task = await access.see<Task & Row>(actor, 'task', body.task_id);
      const claim = once(deps, command, task.workspace_id, `${task.id}/messages`);
      const done = async (result: Json | undefined, repeated: boolean) => {
        const message = await access.see<Row>(actor, 'message', (result as { id: string }).id);
        return accepted('task.message', message, repeated);
      };
      const say = async () => {
        const run = await store.get<Run>('run', task.id);
        if (!run) throw new Fault('conflict', `task ${task.id} has ended`);
        const id = ids.next('message');
        const events = (await messageEvents(deps, inTask(task), { ...body.message, id }, actor.id)).map((event) =>
          event.event === 'user.message' ? { ...event, payload: { ...event.payload, kind: body.kind } } : event,
        );
        if (body.kind !== 'interrupt') {
          const answer = readAnswer(body.kind, body.message, run);
          await admitAnswer(actor, answer);
          const { result, repeated } = await asks.answer(actor, answer, claim, { events, result: { id } });
          return await done(result, repeated);
        }
        const unit = whileOpen(task, () => events);
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
      for (const fact of facts) events.push(...(await factEvents(deps, task, reporter, fact)).events);
      const unit = charging(
        whileOpen(task, () => events),
        await acts.metering(task, usageIn(facts)),
      );
      const { repeated } = await log.commit({
        ...once(deps, command, task.workspace_id, `${task.id}/report`),
        ...unit,
        decide: (at) => ({ ...unit.decide(at), result: { id: task.id } }),
      });
      if (body.end) {
        const end = {
          ...body.end,
          not_reported: body.end.not_reported ?? ['work done outside: only what was reported is known'],
        };
        await endings.finish(task.id, end, { by: actor.id });
      }
      return accepted('task.report', await access.see<Row>(actor, 'task', task.id), repeated);
    },

    'action.propose': async (command) => {
      const { actor, body } = command;
      const task = await access.see<Task & Row>(actor, 'task', body.task_id);
      // Whoever proposes runs it: we were asked at best, whatever the proposal says.
      const evidence = body.action.evidence === 'observed' ? 'observed' : 'asked';
      const ruling = await acts.rule(
        task,
        { ...body.action, evidence },
        {
          actor,
          signal: NEVER,
          takesArguments: true,
          ...(body.wait_ms !== undefined && { waitMs: body.wait_ms }),
          ...(command.ext && { ext: command.ext }),
        },
      );
      const now = await access.see<Row>(actor, 'task', task.id);
      const more = {
        decision: asTold(ruling),
        ...('answer' in ruling && ruling.answer && { answer: ruling.answer }),
        ...(ruling.kind === 'open' && { details: { ask_id: ruling.ask_id } }),
      };
      return accepted('action.propose', now, false, more);
    },

    'tool.call': async (command) => {
      const { actor, body } = command;
      const task = await access.see<Task & Row>(actor, 'task', body.task_id);
      const claim = once(deps, command, task.workspace_id, `${task.id}/tools`);
      // The key names the call, so that a retry is the same call and finds its result instead of acting again.
      const keyed = claim.idempotency && `call_${claim.idempotency.scope.slice(7, 39)}`;
      const callId = body.action.tool_call_id ?? keyed;
      const { repeated } = keyed
        ? await log.commit({ ...claim, decide: () => ({ events: [], result: { id: task.id } }) })
        : { repeated: false };
      const act = await acts.perform(
        task,
        { ...body.action, ...(callId && { tool_call_id: callId }) },
        { actor, signal: NEVER, takesArguments: true, ...(command.ext && { ext: command.ext }) },
      );
      return accepted('tool.call', await access.see<Row>(actor, 'task', task.id), repeated, {
        act,
        ...(act.kind === 'refused' && { decision: act.decision }),
      });
    },

    'ask.answer': async (command) => {
      const { actor, body } = command;
      const ask = await access.see<AskRecord & Row>(actor, 'ask', body.ask_id);
      const { value, reason, approved } = body;
      const answer = {
        ask_id: ask.id,
        ...(approved !== undefined && { approved }),
        ...(value !== undefined && { value }),
        ...(reason && { reason }),
      };
      await admitAnswer(actor, answer);
      const { record, repeated } = await asks.answer(actor, answer, once(deps, command, ask.workspace_id, ask.id));
      return accepted('ask.answer', record as AskRecord & Row, repeated);
    },
  };

  /**
   * Policy has a word in who may answer what. Only a no counts: a rule that asks about a tool, or rewrites its arguments,
   * has been obeyed by raising the question, and would otherwise keep everyone from answering it.
   */
  async function admitAnswer(actor: Actor, { ask_id, approved }: { ask_id: string; approved?: boolean }) {
    const ask = await access.see<AskRecord & Row>(actor, 'ask', ask_id);
    const about: Action = {
      id: ids.next('action'),
      kind: 'answer',
      actor,
      workspace_id: ask.workspace_id,
      session_id: ask.session_id,
      task_id: ask.task_id,
      tool: String(ask.action.tool ?? ask.kind),
      arguments: { approved: approved ?? null },
      effect: 'none',
      evidence: 'held',
    };
    const decision = await gate(about);
    if (decision.verdict !== 'block' && decision.verdict !== 'defer') return;
    await log.commit({ decide: () => ({ events: [decidedEvent(about, decision)] }) });
    const why = `${actor.id} may not answer this: ${decision.reason}`;
    throw decision.verdict === 'defer' ? refusal('defer', why, {}) : new Fault('permission_denied', why);
  }
}

export type CancelTask = (
  taskId: string,
  by: string,
  reason: string,
  idempotency?: ReturnType<typeof once>,
) => Promise<boolean>;

const NEVER = new AbortController().signal;

/** A ruling as someone hears it who can only be told yes, no, or do this instead. */
function asTold(ruling: Ruling): Decision {
  const { decision } = ruling;
  if (ruling.kind === 'open' || decision.verdict === 'defer') return decision;
  if (ruling.kind === 'no') return { ...decision, verdict: 'block', reason: ruling.reason };
  // Approved as rewritten is approved in no other form.
  if (decision.arguments) return { ...decision, verdict: 'modify', arguments: ruling.action.arguments };
  return decision.verdict === 'escalate' ? { ...decision, verdict: 'allow' } : decision;
}

function usageIn(facts: readonly Fact[]): readonly JsonObject[] {
  return facts.flatMap(({ event, payload }) => (event === 'vendor.tollbridge.usage' ? [payload] : []));
}

/** Refusals of new work are faults of the caller's protocol: nothing was started that could carry a decision. */
function refusal(verdict: 'block' | 'defer', reason: string, details: JsonObject): Fault {
  return new Fault(verdict === 'defer' ? 'rate_limited' : 'policy_violation', reason, { details });
}

/** A message that answers: a json part that says so, or the text itself when a value is wanted. */
function readAnswer(kind: 'input' | 'tool_confirmation', message: MessageInput, run: Run) {
  const wanted = kind === 'input' ? 'input' : 'approval';
  const open = run.asks.filter((ask) => ask.state === 'open' && ask.kind === wanted);
  const json = message.parts.find((part) => part.type === 'json') as { value?: Json } | undefined;
  const value = json?.value as JsonObject | undefined;
  const named = typeof value === 'object' && value !== null ? (value.request_id ?? value.ask_id) : undefined;
  const ask = named ? open.find(({ id }) => id === named) : open.length === 1 ? open[0] : undefined;
  if (!ask) {
    throw new Fault(
      'conflict',
      open.length === 0
        ? `the task is not waiting for ${wanted}`
        : `several questions are open; name one as request_id`,
    );
  }
  if (kind === 'input') {
    const text = message.parts
      .flatMap((part) => ('text' in part && typeof part.text === 'string' ? [part.text] : []))
      .join('\n');
    return {
      ask_id: ask.id,
      value: named ? (value?.answer ?? value?.value ?? null) : json ? (json.value ?? null) : text,
    };
  }
  if (typeof value?.approved !== 'boolean') {
    throw new Fault('invalid_request', 'a confirmation needs a json part with approved: true or false', {
      param: '/message/parts',
    });
  }
  return {
    ask_id: ask.id,
    approved: value.approved,
    ...(typeof value.reason === 'string' && { reason: value.reason }),
  };
}
