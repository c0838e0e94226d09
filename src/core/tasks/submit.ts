/** Accepts new work: decided on, charged and recorded in one commit, and started in the same one when its session is free. */
import type { Action, Actor } from '../../model/actions.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Persona, Session, Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type { Committed, QuotaRules, ReceiptIssuer, Row, Unit } from '../../ports/index.ts';
import { requireScope } from '../access.ts';
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
  servedIn,
  sessionEvent,
  unserved,
} from '../commands/session-opening.ts';
import { openSession } from '../commands/transcript.ts';
import { accepted, type Context, earlier, once, type Received } from '../context.ts';
import { taskAfter } from '../events/projections/tasks.ts';
import type { Tally } from '../events/rows.ts';
import type { Endings } from './end-task.ts';
import { inTask, move } from './lifecycle.ts';
import type { Runner } from './runner.ts';
import { type AgentChoiceDeps, createAgentChoice, requireHeld } from './submission/agent.ts';
import { callerOf, hopOf, refuseCircle } from './submission/calling-gateway.ts';
import { createInputOpening, requireWhole, wholeInput, withInput } from './submission/input.ts';
import { type NewTask, newTask } from './submission/new-task.ts';
import { atSubmission, Exhausted, isNo, limitedCost, type No, requireRoom } from './submission/quotas.ts';
import { createRefused, switchedOff } from './submission/refused.ts';

export interface SubmitDeps extends Context, AgentChoiceDeps {
  readonly gate: Gate;
  readonly admit: Admit;
  readonly acts: Acts;
  readonly runner: Runner;
  readonly endings: Endings;
  readonly quotas: QuotaRules;
  readonly timeLimits: Pick<TimeLimits, 'begin' | 'watch'>;
  /** The log redacts this value from now on. False: it cannot, because too many values are known already. */
  readonly learn: (secret: string) => boolean;
  /** Why this agent accepts no work; undefined when it does. */
  readonly offReason: (agent: string) => string | undefined;
  readonly instance: string;
  /** The name by which other processes can check that this one lives; undefined while they could not. */
  readonly servedBy: () => string | undefined;
  /** The identity of this gateway to others, for work that comes back to it. */
  readonly sealer?: ReceiptIssuer['sealer'];
}

export function createSubmit(deps: SubmitDeps) {
  const { log, access, ids, acts, runner, gate, backends } = deps;
  const refuse = createRefused(deps);
  const opening = createInputOpening(deps);
  const { agentFor, processOf } = createAgentChoice(deps);

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
    const opened = opening(input, { task_id: id, ...home }, actor.id);
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
        const holds = requireRoom(deps.quotas, at, data.quotas, action.cost ?? {});
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
}
