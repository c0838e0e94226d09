/** New work: decided on, charged and accepted in one commit, and begun in the same one when its session is free. */
import type { Action, Actor, Decision } from '../model/actions.ts';
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
import type { AgentBackend, Committed, QuotaRules, Row, Unit } from '../ports.ts';
import { requireScope } from './access.ts';
import type { Acts } from './acts.ts';
import { accepted, type Context, earlier, type Given, once } from './context.ts';
import type { Endings } from './endings.ts';
import { decidedEvent, type Gate } from './gate.ts';
import { inTask, move } from './lifecycle.ts';
import { newTask, type Wanted } from './new-task.ts';
import { type Admit, admitted, freshSession, mayUse, sessionEvent } from './opening.ts';
import { permitFor } from './permit.ts';
import { taskAfter } from './projector.ts';
import { createRefused } from './refused.ts';
import type { Tally } from './rows.ts';
import type { Runner } from './runner.ts';
import { messageEvents, openSession } from './transcript.ts';
import { goOnWith } from './waiting.ts';

export interface SubmitDeps extends Context {
  readonly gate: Gate;
  readonly admit: Admit;
  readonly acts: Acts;
  readonly runner: Runner;
  readonly endings: Endings;
  readonly quotas: QuotaRules;
  readonly backends: ReadonlyMap<string, AgentBackend>;
  readonly defaultAgent: string | undefined;
  readonly instance: string;
}

const isMessageInput = validator(MessageInputShape);

export function createSubmit(deps: SubmitDeps) {
  const { log, access, ids, acts, runner, gate, backends } = deps;
  const refuse = createRefused(deps);

  return async function submit(command: Given<'task.submit'>) {
    const { actor, body } = command;
    const { session, opens } = await sessionFor(command);
    const personaId = body.persona_id ?? session.persona_id ?? null;
    const persona = personaId ? await access.see<Persona & Row>(actor, 'persona', personaId) : undefined;
    if (body.branch_id) await access.see(actor, 'branch', body.branch_id);
    if (body.parent_task_id) await access.see(actor, 'task', body.parent_task_id);
    const agent = agentFor(body.agent, persona);
    const id = ids.next('task');
    const home = { workspace_id: session.workspace_id, session_id: session.id };
    const data = await acts.policyData({ workspace_id: session.workspace_id, persona_id: personaId });
    const action: Action = {
      id: ids.next('action'),
      kind: 'prompt',
      actor,
      tool: agent,
      arguments: { input: body.input },
      effect: 'none',
      evidence: 'held',
      cost: { tasks: 1 },
      ...home,
      ...data,
    };
    const claim = once(deps, command, session.workspace_id, opens ? 'sessions/tasks' : `${session.id}/tasks`);
    if (opens) {
      const before = await admitted(deps, claim, actor, opens);
      if (before) return await again(actor, before);
    }
    const wanted: Wanted = { command, id, agent, personaId, tier: data.tier, opens, ...home };
    const decision = withInput(await gate(action));
    const recorded = { ...action, arguments: { input_hash: deps.hash(log.clean(body.input)) } };
    if (isNo(decision)) {
      // What let the first one in may be used up by now, not least by itself.
      const before = await earlier(deps, claim);
      return before ? await again(actor, before) : await decline(wanted, recorded, decision, claim);
    }
    const given = (decision.verdict === 'modify' ? decision.arguments?.input : body.input) as JsonObject;

    const outside = agent === 'none';
    const opened = opening(given, { task_id: id, ...home }, actor);
    const said = opened instanceof Promise ? await opened : opened;
    const accepting: Unit = {
      reads: [
        ...(opens ? [] : ['session', 'tally'].map((object) => ({ object, id: session.id }))),
        ...data.quotas.map((quota) => ({ object: 'quota', id: quota.id })),
      ],
      decide(at) {
        if (!opens) openSession(at, session.id);
        const charges = data.quotas.flatMap((quota) => {
          const current = at.get<Quota & Row>('quota', quota.id);
          if (!current) return [];
          const over = deps.quotas.refuse(current, action.cost ?? {}, at.now);
          if (over && over.verdict !== 'escalate')
            throw new Exhausted(isNo(over) ? over : { ...over, verdict: 'block' });
          const { usage, reset_at } = deps.quotas.charge(current, action.cost ?? {}, at.now);
          return [{ quota_id: quota.id, amounts: action.cost ?? {}, usage, reset_at, action_id: action.id }];
        });
        const task = newTask({ input: said.input, now: at.now, ...wanted });
        const place = inTask(task);
        const events: EventDraft[] = [
          ...(opens ? [sessionEvent('session.created', freshSession(session.id, opens, at.now), actor)] : []),
          ...said.events.map((event) => (place.trace_id ? { ...event, trace_id: place.trace_id } : event)),
          {
            event: 'task.submitted',
            actor: actor.id,
            payload: {
              task: task as unknown as Json,
              from: null,
              to: 'SUBMITTED',
              agent,
              instance: outside ? null : deps.instance,
            },
            ...place,
            ...(command.trace_id && { trace_id: command.trace_id }),
            ...(command.idempotency && { idempotency_key: command.idempotency.key }),
            ...(command.ext && { ext: command.ext }),
            ...(command.redactions && { metadata: { redactions: command.redactions as unknown as Json } }),
          },
          { ...decidedEvent({ task_id: id, ...recorded }, decision), ...place },
          ...charges.map((payload) => ({
            event: 'vendor.tollbridge.quota_used',
            payload: payload as unknown as JsonObject,
            ...place,
          })),
        ];
        // A free session starts the work in the same commit: one fsync less, and nobody sees a task that only waits.
        const free = outside || opens !== undefined || !at.get<Tally>('tally', session.id)?.lane;
        if (free) {
          const more = outside ? { instance: null } : { instance: deps.instance, lane: true };
          events.push(...move(task, 'WORKING', { now: at.now, more }).events);
        }
        const born = [id, ...(opens ? [session.id] : []), ...said.born];
        return { events, born, result: { id, begun: free && !outside, outside } };
      },
      ...claim,
    };
    let committed: Committed;
    try {
      committed = await log.commit(accepting);
    } catch (cause) {
      if (cause instanceof Exhausted) return await decline(wanted, recorded, cause.decision, claim);
      throw cause;
    }
    const { result, repeated } = committed as Committed & { result: { id: string; begun: boolean; outside: boolean } };
    // Its account is kept from the beginning: what is done outside is told to us, and need not be read again at its end.
    if (!repeated && result.outside) await deps.endings.open(result.id, committed.events);
    // Whoever gave the work sees it; what a commit that is at hand has made of it need not be looked up.
    const task = taskAfter(committed.events, result.id) ?? (await access.see<Task & Row>(actor, 'task', result.id));
    if (!repeated && !result.outside) {
      const permit = permitFor(recorded, decision);
      const live = {
        input: { ...task.input, ...given },
        ...(result.begun && { written: committed.events }),
        ...(permit && { permit }),
      };
      if (result.begun) runner.begin(task, live);
      else runner.enqueue(task, live);
    }
    return accepted('task.submit', task, repeated, { written: committed.events });
  };

  /** A no, on record before anyone hears it: as a task of its own for whoever wants one, as a fault for everybody else. */
  async function decline(wanted: Wanted, action: Action, decision: No, claim: Pick<Unit, 'idempotency'>) {
    const { command, id, opens } = wanted;
    if (decision.verdict === 'block' && command.body.refusal === 'task') {
      return await refuse(wanted, { ...action, task_id: id }, decision, claim);
    }
    // A session that was to begin with it never did.
    const place = opens ? { resource: { object: 'workspace', id: opens.workspace_id }, session_id: null } : {};
    await log.commit({ decide: () => ({ events: [{ ...decidedEvent(action, decision), ...place }] }) });
    throw refusal(decision.verdict, decision.reason, {
      rule_id: decision.rule_id ?? null,
      code: decision.code ?? null,
      ...(decision.retry_after_ms && { retry_after_ms: decision.retry_after_ms }),
    });
  }

  /** Where the work belongs: a conversation that is there, or one that begins with it. */
  async function sessionFor({ actor, body }: Given<'task.submit'>) {
    const { session_id, session: opens } = body;
    if ((session_id === undefined) === (opens === undefined)) {
      throw new Fault('invalid_request', 'task.submit: a session_id or a session to open, one of them', {
        param: '/session_id',
      });
    }
    if (session_id !== undefined) {
      return { session: await access.see<Session & Row>(actor, 'session', session_id), opens: undefined };
    }
    requireScope(actor, 'sessions:write');
    const wanted = opens as NonNullable<typeof opens>;
    await mayUse(access, actor, wanted);
    const { workspace_id, persona_id = null } = wanted;
    return { session: { id: ids.next('session'), workspace_id, persona_id }, opens: wanted };
  }

  async function again(actor: Actor, result: Json) {
    const { id } = result as { id: string };
    return accepted('task.submit', await access.see<Task & Row>(actor, 'task', id), true);
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
  function opening(
    input: JsonObject,
    place: { workspace_id: string; session_id: string; task_id: string },
    actor: Actor,
  ): Opened | Promise<Opened> {
    const at = inTask({ id: place.task_id, ...place });
    if (!isMessageInput(input)) {
      return goOnWith(log.fit(input, { ...place, now: deps.clock.now() }), ({ value, artifacts }) => {
        const events = artifacts.map((artifact) => ({
          event: 'artifact.created',
          payload: { artifact: artifact as unknown as Json },
          ...at,
        }));
        return { input: value as JsonObject, events, born: [] };
      });
    }
    return goOnWith(messageEvents(deps, at, input as MessageInput, actor.id), (events) => {
      const spoken = events.find(({ event }) => event === 'user.message' || event === 'agent.message')?.payload.message;
      const message = spoken as JsonObject & { id: string };
      // A name the caller gave may have been given before.
      return { input: message, events, born: 'id' in input ? [] : [message.id] };
    });
  }
}

/** What a task begins with, as it stands in it and in the log. */
interface Opened {
  readonly input: JsonObject;
  readonly events: readonly EventDraft[];
  readonly born: readonly string[];
}

type No = Decision & { readonly verdict: 'block' | 'defer' };
function isNo(decision: Decision): decision is No {
  return decision.verdict === 'block' || decision.verdict === 'defer';
}

/** A quota had room when it was looked at and has none in the commit that would use it. Nothing is written by that commit. */
class Exhausted extends Fault {
  readonly decision: No;

  constructor(decision: No) {
    super('policy_violation', decision.reason);
    this.decision = decision;
  }
}

/** A rule that rewrites a prompt into nothing has not said what may be done instead: that is a no. */
function withInput(decision: Decision): Decision {
  if (decision.verdict !== 'modify' || decision.arguments?.input) return decision;
  const reason = `${decision.reason} (the rule rewrites the prompt but gives no input)`;
  return { ...decision, verdict: 'block', reason };
}

/** Refusals of new work are faults of the caller's protocol, unless it asked for a task that says so. */
export function refusal(verdict: 'block' | 'defer', reason: string, details: JsonObject): Fault {
  return new Fault(verdict === 'defer' ? 'rate_limited' : 'policy_violation', reason, { details });
}
