/** Accepts new work: decided on, charged and recorded in one commit, and started in the same one when its session is free. */
import type { Action, Actor, Decision } from '../../model/actions.ts';
import type { EventDraft } from '../../model/events.ts';
import { asFault, Fault } from '../../model/faults.ts';
import {
  type MessageInput,
  MessageInput as MessageInputShape,
  type Persona,
  type Quota,
  type Session,
  type Task,
} from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { check, validator } from '../../model/validate.ts';
import type { AgentBackend, Committed, QuotaRules, ReceiptIssuer, Row, Unit } from '../../ports/index.ts';
import { mayCall, requireScope } from '../access.ts';
import type { Acts } from '../actions/acts.ts';
import { chargeEvents } from '../actions/charging.ts';
import { decidedEvent, type Gate } from '../actions/gate.ts';
import { refusal, tooMany, tooManyRequests } from '../actions/refusals.ts';
import type { TimeLimits } from '../actions/time-limits.ts';
import { permitFor } from '../approvals/permit.ts';
import { linkEvents, linkedBy } from '../commands/artifact-changes.ts';
import { requireOpened } from '../commands/asked-session.ts';
import { openBranch, seeBranch } from '../commands/branches.ts';
import {
  type Admit,
  admitted,
  freshSession,
  mayUse,
  type Served,
  servedIn,
  sessionEvent,
  unserved,
} from '../commands/session-opening.ts';
import { messageEvents, openSession } from '../commands/transcript.ts';
import { accepted, type Context, earlier, once, type Received } from '../context.ts';
import { taskAfter } from '../events/projections/tasks.ts';
import type { Tally } from '../events/rows.ts';
import { goOnWith } from '../waiting.ts';
import { callerOf, hopOf, refuseCircle } from './calling-gateway.ts';
import type { Endings } from './end-task.ts';
import { inTask, move } from './lifecycle.ts';
import { createRefused, type NewTask, newTask, switchedOff } from './new-task.ts';
import type { Runner } from './runner.ts';

export interface SubmitDeps extends Context {
  readonly gate: Gate;
  readonly admit: Admit;
  readonly acts: Acts;
  readonly runner: Runner;
  readonly endings: Endings;
  readonly quotas: QuotaRules;
  readonly timeLimits: Pick<TimeLimits, 'begin' | 'watch'>;
  /** The log redacts this value from now on. False: it cannot, because too many values are known already. */
  readonly learn: (secret: string) => boolean;
  readonly backends: ReadonlyMap<string, AgentBackend>;
  readonly defaultAgent: (actor: Actor) => string | undefined;
  /** Why this agent accepts no work; undefined when it does. */
  readonly offReason: (agent: string) => string | undefined;
  readonly instance: string;
  readonly isDead: (instance: string) => Promise<boolean>;
  /** The name by which other processes can check that this one lives; undefined while they could not. */
  readonly servedBy: () => string | undefined;
  /** The identity of this gateway to others, for work that comes back to it. */
  readonly sealer?: ReceiptIssuer['sealer'];
}

const isMessageInput = validator(MessageInputShape);

export function createSubmit(deps: SubmitDeps) {
  const { log, access, ids, acts, runner, gate, backends } = deps;
  const refuse = createRefused(deps);

  return async function submit(command: Received<'task.submit'>) {
    const { actor, body } = command;
    requireWhole(body.input);
    const { session, opens } = await sessionFor(command);
    const { parts } = body.input;
    const files = Array.isArray(parts) ? await linkedBy(deps, actor, parts) : [];
    const personaId = body.persona_id ?? session.persona_id ?? null;
    const persona = personaId ? await access.see<Persona & Row>(actor, 'persona', personaId) : undefined;
    if (body.branch_id) await seeBranch(deps, actor, body.branch_id, session.workspace_id);
    // Work in a forked session is on the fork's branch, whichever door it came through.
    const branchId = body.branch_id ?? session.branch_id ?? null;
    if (body.parent_task_id) await access.see(actor, 'task', body.parent_task_id);
    const servedBy = servedIn(session.metadata);
    const agent = agentFor(actor, body.agent, persona, servedBy);
    const elsewhere = agent === 'none' || backends.has(agent) ? undefined : await processOf(agent, servedBy);
    const sealer = body.metadata?.tollbridge === undefined ? undefined : deps.sealer?.();
    refuseCircle(callerOf(body.metadata), sealer && hopOf(sealer.key_id, agent));
    const id = ids.next('task');
    const home = { workspace_id: session.workspace_id, session_id: session.id };
    const most = session.autonomy_tier;
    const about = {
      workspace_id: session.workspace_id,
      persona_id: personaId,
      assigned_agent_id: agent,
      tenant_id: actor.tenant_id,
      most,
    };
    const data = await acts.policyData(about);
    const outside = agent === 'none';
    requireHeld(most, outside ? undefined : backends.get(agent));
    const action: Action = {
      id: ids.next('action'),
      kind: 'prompt',
      actor,
      tool: agent,
      arguments: { input: body.input },
      effect: 'none',
      evidence: 'held',
      cost: { tasks: 1, ...limitedCost(data.quotas, outside) },
      ...home,
      ...data,
    };
    const claim = once(deps, command, session.workspace_id, opens ? 'sessions/tasks' : `${session.id}/tasks`);
    if (opens) {
      const before = await admitted(deps, claim, actor, opens);
      if (before) return await again(actor, before);
    }
    const wanted: NewTask = { command, id, agent, personaId, branchId, tier: data.tier, most, opens, ...home };
    const off = deps.offReason(agent);
    const decision = off === undefined ? withInput(await gate(action)) : switchedOff(agent, off);
    const recorded = { ...action, arguments: { input_hash: deps.hash(log.clean(body.input)) } };
    if (isNo(decision)) {
      if (tooMany(decision)) return await orThrow(actor, claim, decision);
      // The quota that allowed the first request may be used up by now, not least by itself.
      const before = await earlier(deps, claim);
      return before ? await again(actor, before) : await decline(wanted, recorded, decision, claim);
    }
    const input = (decision.verdict === 'modify' ? decision.arguments?.input : body.input) as JsonObject;
    // Rules that rewrote the prompt rewrote its redacted form.
    const whole = decision.verdict === 'modify' ? undefined : wholeInput(command.unlogged, deps.learn);

    const served = deps.servedBy();
    const opened = opening(input, { task_id: id, ...home }, actor);
    const start = opened instanceof Promise ? await opened : opened;
    const accepting: Unit = {
      reads: [
        ...(opens ? [] : ['session', 'tally'].map((object) => ({ object, id: session.id }))),
        ...data.quotas.map((quota) => ({ object: 'quota', id: quota.id })),
        ...(branchId ? [{ object: 'branch', id: branchId }] : []),
      ],
      decide(at) {
        if (!opens) openSession(at, session.id);
        if (branchId) openBranch(at, branchId);
        const holds: string[] = [];
        for (const { id: quotaId } of data.quotas) {
          const current = at.get<Quota & Row>('quota', quotaId);
          const over = current && deps.quotas.refuse(current, action.cost ?? {}, at.now);
          if (over && over.verdict !== 'escalate')
            throw new Exhausted(isNo(over) ? over : { ...over, verdict: 'block' });
          if (current && Object.hasOwn(current.limits, 'concurrency')) holds.push(quotaId);
        }
        const task = newTask({ input: start.input, now: at.now, ...wanted });
        const location = inTask(task);
        const events: EventDraft[] = [
          ...(opens ? [sessionEvent('session.created', freshSession(session.id, opens, at.now), actor)] : []),
          ...start.events.map((event) => (location.trace_id ? { ...event, trace_id: location.trace_id } : event)),
          ...linkEvents(files, { object: 'task', id }, { ...location, actor: actor.id }),
          {
            event: 'task.submitted',
            actor: actor.id,
            payload: {
              task: task,
              from: null,
              to: 'SUBMITTED',
              agent,
              instance: outside ? null : (elsewhere ?? deps.instance),
              ...(outside && body.served && served && { served: { by: served, ...body.served } }),
              ...((elsewhere || deps.backends.get(agent)?.abilities.resume === false) && { resumes: false }),
              ...(holds.length > 0 && { holds }),
            },
            ...location,
            ...(command.trace_id && { trace_id: command.trace_id }),
            ...(command.idempotency && { idempotency_key: command.idempotency.key }),
            ...(command.ext && { ext: command.ext }),
            ...(command.redactions && { metadata: { redactions: command.redactions } }),
          },
          { ...decidedEvent({ task_id: id, ...recorded }, decision), ...location },
          ...chargeEvents(deps.quotas, at, task, {
            quotas: data.quotas.map((quota) => quota.id),
            amounts: (limits) => atSubmission(action.cost ?? {}, limits),
            about: { action_id: action.id },
          }),
        ];
        // A free session starts the work in the same commit: one fsync less, and no reader sees a task that only waits.
        const here = opens !== undefined || !at.get<Tally>('tally', session.id)?.lane;
        const free = outside || (here && !elsewhere);
        if (free) {
          const more = outside ? { instance: null } : { instance: deps.instance, lane: true };
          events.push(...move(task, 'WORKING', { now: at.now, more }).events);
        }
        const born = [id, ...(opens ? [session.id] : []), ...start.born];
        return { events, born, result: { id, begun: free && !outside, outside } };
      },
      ...claim,
    };
    let committed: Committed;
    try {
      committed = await log.commit(accepting);
    } catch (cause) {
      if (!(cause instanceof Exhausted)) throw cause;
      if (tooMany(cause.decision)) return await orThrow(actor, claim, cause.decision);
      return await decline(wanted, recorded, cause.decision, claim);
    }
    const { result, repeated } = committed as Committed & { result: { id: string; begun: boolean; outside: boolean } };
    // Its account is kept from the beginning: events of work outside the gateway are reported to us, and need not be read again at
    // its end.
    if (!repeated && result.outside) await deps.endings.open(result.id, committed.events);
    const timed = data.quotas.some(({ limits }) => Object.hasOwn(limits, 'wall_time_ms'));
    // The submitter may see its own work; a task built from the commit at hand need not be looked up.
    const task = taskAfter(committed.events, result.id) ?? (await access.see<Task & Row>(actor, 'task', result.id));
    if (!repeated && result.outside) {
      const over = timed ? await deps.timeLimits.begin(task) : deps.timeLimits.watch(task);
      if (over) deps.acts.limitPassed(task, over);
    }
    if (!repeated && !result.outside && !elsewhere) {
      const permit = permitFor(recorded, decision);
      const live = {
        input: { ...task.input, ...(whole ?? input) },
        ...(result.begun && { written: committed.events }),
        ...(permit && { permit }),
        ...(!timed && result.begun && { untimed: true as const }),
      };
      if (result.begun) runner.begin(task, live);
      else runner.enqueue(task, live);
    }
    return accepted('task.submit', task, repeated, { written: committed.events });
  };

  /** A repeat of an accepted command gets its result; any other request is refused without an event: a flood must not fill the log. */
  async function orThrow(actor: Actor, claim: Pick<Unit, 'idempotency'>, decision: No) {
    const before = await earlier(deps, claim);
    if (before) return await again(actor, before);
    throw tooManyRequests(decision);
  }

  /** A refusal, recorded before the caller gets it: as a task for callers that want one, as a fault for others. */
  async function decline(wanted: NewTask, action: Action, decision: No, claim: Pick<Unit, 'idempotency'>) {
    const { command, id, opens } = wanted;
    if (decision.verdict === 'block' && command.body.refusal === 'task') {
      return await refuse(wanted, { ...action, task_id: id }, decision, claim);
    }
    // The session that was to begin with it was never opened.
    const location = opens ? { resource: { object: 'workspace', id: opens.workspace_id }, session_id: null } : {};
    await log.commit({ decide: () => ({ events: [{ ...decidedEvent(action, decision), ...location }] }) });
    throw refusal(decision.verdict, decision.reason, {
      rule_id: decision.rule_id ?? null,
      code: decision.code ?? null,
      ...(decision.retry_after_ms && { retry_after_ms: decision.retry_after_ms }),
    });
  }

  /** The session of the work: an existing one, or one that begins with it. */
  async function sessionFor({ actor, body }: Received<'task.submit'>) {
    const { session_id, session: opens } = body;
    if ((session_id === undefined) === (opens === undefined)) {
      throw new Fault('invalid_request', 'task.submit: a session_id or a session to open, one of them', {
        param: '/session_id',
      });
    }
    if (session_id !== undefined) {
      const session = await access.see<Session & Row>(actor, 'session', session_id);
      requireOpened(session);
      return { session, opens: undefined };
    }
    requireScope(actor, 'sessions:write');
    const wanted = opens as NonNullable<typeof opens>;
    await mayUse(access, actor, wanted);
    const { workspace_id, persona_id = null } = wanted;
    const home = { workspace_id, persona_id, branch_id: null, autonomy_tier: undefined, metadata: {} };
    const metadata = unserved(wanted.metadata);
    return { session: { id: ids.next('session'), ...home }, opens: { ...wanted, metadata } };
  }

  async function again(actor: Actor, result: Json) {
    const { id } = result as { id: string };
    return accepted('task.submit', await access.see<Task & Row>(actor, 'task', id), true);
  }

  /** An agent that this actor may not call is as absent as one that is not mounted. */
  function agentFor(actor: Actor, wanted: string | undefined, persona?: Persona, served?: Served): string {
    const ofPersona = persona && backends.has(persona.entry_workflow) ? persona.entry_workflow : undefined;
    const named = wanted ?? ofPersona ?? served?.agent ?? deps.defaultAgent(actor);
    if (!named) throw new Fault('invalid_request', 'no agent is mounted, and the task names none', { param: '/agent' });
    if (named !== 'none' && !mayCall(actor, named)) throw absent(named);
    return named;
  }

  /** An agent behind a relay is mounted in its process only, which finds the task in the session and takes it up. */
  async function processOf(agent: string, served: Served | undefined): Promise<string> {
    if (served?.agent !== agent || (await deps.isDead(served.instance))) throw absent(agent);
    return served.instance;
  }

  /** A task whose input is a message adds it to the transcript; any other input stays with the task. */
  function opening(
    input: JsonObject,
    location: { workspace_id: string; session_id: string; task_id: string },
    actor: Actor,
  ): Opened | Promise<Opened> {
    const at = inTask({ id: location.task_id, ...location });
    if (!isMessageInput(input)) {
      requireWhole(input);
      return goOnWith(log.fit(input, { ...location, now: deps.clock.now() }), ({ value, artifacts }) => {
        const events = artifacts.map(
          (artifact): EventDraft => ({ event: 'artifact.created', payload: { artifact }, ...at }),
        );
        return { input: value as JsonObject, events, born: [] };
      });
    }
    return goOnWith(messageEvents(deps, at, input as MessageInput, actor.id), (events) => {
      const spoken = events.find(({ event }) => event === 'user.message' || event === 'agent.message')?.payload.message;
      const message = spoken as JsonObject & { id: string };
      // An id that the caller chose may be in use already.
      return { input: message, events, born: 'id' in input ? [] : [message.id] };
    });
  }
}

/** A session's tier below act_auto cannot be enforced on an agent that acts by itself and only reports. */
function requireHeld(most: string | undefined, backend: AgentBackend | undefined): void {
  if (!backend || most === undefined || most === 'act_auto' || most === 'act_with_approval') return;
  if (backend.abilities.evidence !== 'observed') return;
  const why = `agent ${backend.name} acts by itself and reports what it did, so its session cannot be limited to ${most}`;
  throw new Fault('policy_violation', why, { details: { agent: backend.name, autonomy_tier: most } });
}

/** Input that has parts is meant as a message and must be a valid one. As plain data, the visibility of its parts would be ignored. */
function requireWhole(input: JsonObject): void {
  const parts = Array.isArray(input.parts) ? (input.parts as readonly (JsonObject | null)[]) : [];
  const means = ('role' in input && 'parts' in input) || parts.some((part) => typeof part?.type === 'string');
  if (!means) return;
  try {
    check(MessageInputShape, input, 'input');
  } catch (thrown) {
    const { message, param = '' } = asFault(thrown);
    throw new Fault('invalid_request', message, { param: `/input${param === '/' ? '' : param}` });
  }
}

/** The input of a task as it is in the task and in the log. */
interface Opened {
  readonly input: JsonObject;
  readonly events: readonly EventDraft[];
  readonly born: readonly string[];
}

/** The input as the agent gets it, once the log redacts everything it may not hold. */
function wholeInput(unlogged: Received<'task.submit'>['unlogged'], learn: SubmitDeps['learn']): JsonObject | undefined {
  return unlogged?.secrets.every((secret) => learn(secret)) ? unlogged.input : undefined;
}

/** The cost of a task under the given limits. Time is charged while the work runs; here some must be left. */
function limitedCost(quotas: readonly Quota[], outside: boolean): Record<string, number> {
  const names = ['concurrency', 'wall_time_ms', ...(outside ? [] : ['requests_per_minute'])];
  const limits = (name: string) => quotas.some((quota) => Object.hasOwn(quota.limits, name));
  return Object.fromEntries(names.filter(limits).map((name) => [name, 1]));
}

/** The charge for accepting a task, in the names of each quota's limits; time is charged later. */
function atSubmission(cost: Readonly<Record<string, number>>, limits: Readonly<Record<string, number>>) {
  const charged = (name: string) =>
    name === 'tasks' || ((name === 'concurrency' || name === 'requests_per_minute') && Object.hasOwn(limits, name));
  return Object.fromEntries(Object.entries(cost).filter(([name]) => charged(name)));
}

type No = Decision & { readonly verdict: 'block' | 'defer' };
function isNo(decision: Decision): decision is No {
  return decision.verdict === 'block' || decision.verdict === 'defer';
}

/** A quota had room when it was read and has none in the commit that would use it. That commit writes nothing. */
class Exhausted extends Fault {
  readonly decision: No;

  constructor(decision: No) {
    super('policy_violation', decision.reason);
    this.decision = decision;
  }
}

/** A person switched this agent off; rules are not asked, because none of them could say yes. */
/** A rule that rewrites a prompt into nothing names no alternative input: that is a refusal. */
function withInput(decision: Decision): Decision {
  if (decision.verdict !== 'modify' || decision.arguments?.input) return decision;
  const reason = `${decision.reason} (the rule rewrites the prompt but gives no input)`;
  return { ...decision, verdict: 'block', reason };
}

function absent(agent: string): Fault {
  return new Fault('invalid_request', `no agent ${agent} is mounted`, { param: '/agent' });
}
