/** A task at the moment it is accepted or refused, before it begins; and the record of one that is refused. */
import type { Action, Decision } from '../../model/actions.ts';
import type { End } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import type { DecidedPayload } from '../../model/payloads.ts';
import type { Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { Accepted, Row, Unit } from '../../ports/index.ts';
import { decidedEvent } from '../actions/gate.ts';
import { freshSession, type Opening, sessionEvent } from '../commands/session-opening.ts';
import { openSession } from '../commands/transcript.ts';
import { accepted, type Context, type Received } from '../context.ts';
import { callerOf } from './calling-gateway.ts';
import type { Endings } from './end-task.ts';
import { inTask } from './lifecycle.ts';

export interface NewTask {
  readonly command: Received<'task.submit'>;
  readonly id: string;
  readonly workspace_id: string;
  readonly session_id: string;
  /** The session begins with this task. */
  readonly opens: Opening | undefined;
  /** `none`: done outside the gateway. */
  readonly agent: string;
  readonly personaId: string | null;
  readonly branchId: string | null;
  readonly tier: string;
  /** The highest tier its session allows. */
  readonly most: string | undefined;
}

export function newTask(wanted: NewTask & { readonly input: Task['input']; readonly now: string }): Task {
  const { command, id, workspace_id, session_id, agent, personaId, branchId, tier, most, input, now } = wanted;
  const { actor, body, trace_id, tracestate, trace_flags } = command;
  // Metadata under our own name cannot be written by clients.
  const { tollbridge: _, ...theirs } = body.metadata ?? {};
  const caller = callerOf(body.metadata);
  return {
    id,
    object: 'task',
    created_at: now,
    updated_at: now,
    metadata: {
      tollbridge: {
        tier,
        ...(most && { most }),
        ...(actor.tenant_id && { tenant_id: actor.tenant_id }),
        ...(actor.on_behalf_of && { on_behalf_of: actor.on_behalf_of }),
        ...(trace_id && { trace_id }),
        ...(trace_id && tracestate && { tracestate }),
        ...(trace_id && trace_flags && { trace_flags }),
        ...(caller && { caller: caller }),
        ...(body.unanswered === 'fail' && { unanswered: 'fail' }),
      },
      ...theirs,
    },
    workspace_id,
    session_id,
    status: 'SUBMITTED',
    input,
    created_by: actor.id,
    persona_id: personaId,
    branch_id: branchId,
    parent_task_id: body.parent_task_id ?? null,
    assigned_agent_id: agent === 'none' ? null : agent,
    receipt_id: null,
    outcome_id: null,
    quota_id: null,
    started_at: null,
    completed_at: null,
    canceled_at: null,
    failure: null,
  };
}

export interface RefusedDeps extends Context {
  readonly endings: Endings;
  readonly instance: string;
}

/**
 * Records work that policy forbids, for callers whose protocol has a word for it: a task that ended before it began, with the
 * decision, the reason and a receipt. Only a hash of the input is stored and it enters no transcript: forbidden input must not
 * reach an agent with the session's next task.
 */
export function createRefused({ log, access, endings, instance }: RefusedDeps) {
  return async function refuse(
    wanted: NewTask,
    action: Action,
    decision: Decision,
    claim: Pick<Unit, 'idempotency'>,
  ): Promise<Accepted<'task.submit'>> {
    const { command, id, agent, session_id, opens } = wanted;
    const { actor, idempotency, ext } = command;
    const { result, repeated, events } = await log.commit({
      ...claim,
      reads: opens ? [] : [{ object: 'session', id: session_id }],
      decide(at) {
        if (!opens) openSession(at, session_id);
        const session = opens ? [sessionEvent('session.created', freshSession(session_id, opens, at.now), actor)] : [];
        const task = newTask({ ...wanted, input: action.arguments as JsonObject, now: at.now });
        const location = inTask(task);
        const payload = { task: task, from: null, to: 'SUBMITTED', agent, instance };
        const submitted: EventDraft = {
          ...location,
          event: 'task.submitted',
          actor: actor.id,
          payload,
          ...(idempotency && { idempotency_key: idempotency.key }),
          ...(ext && { ext }),
        };
        // If this process dies before the end is written, the process that recovers the task finds the refusal and ends it.
        return { events: [...session, submitted, { ...decidedEvent(action, decision), ...location }], result: { id } };
      },
    });
    const made = (result as { id: string }).id;
    if (!repeated) {
      await endings.open(made, events);
      await endings.finish(made, refusedEnd(decision), { by: 'bridge', reason: decision.reason });
    }
    return accepted('task.submit', await access.see<Task & Row>(actor, 'task', made), repeated);
  };
}

export function switchedOff(agent: string, why: string): Decision {
  const reason = `agent ${agent} is switched off: ${why}`;
  return { verdict: 'block', reason, code: 'agent_off', engine: 'bridge' };
}

/** The end of a task that policy forbids and that never began. */
export function refusedEnd({ reason: message, rule_id, code }: Decision): End {
  const details = { begun: false, rule_id: rule_id ?? null, code: code ?? null };
  return { state: 'FAILED', failure: { code: 'policy_violation', message, details } };
}

/**
 * Ends a task that waits in the queue of its session: its prompt was decided on before the agent was switched off, so the second
 * decision about the same act is written first, and then the end with it.
 */
export async function refuseQueued(
  { store, log, ids, endings }: Pick<Context, 'store' | 'log' | 'ids'> & { readonly endings: Endings },
  task: Task,
  why: string,
): Promise<void> {
  const decision = switchedOff(task.assigned_agent_id ?? '', why);
  const kinds = ['vendor.tollbridge.decided'] as const;
  let action: DecidedPayload['action'] | undefined;
  for await (const { payload } of store.read({ stream: { of: 'task', id: task.id }, kinds: [...kinds] })) {
    ({ action } = payload as unknown as DecidedPayload);
    break;
  }
  const id = ids.next('action');
  let waited = false;
  await log.commit({
    reads: [{ object: 'task', id: task.id }],
    decide(at) {
      const now = at.get<Task & Row>('task', task.id);
      waited = now?.status === 'SUBMITTED';
      if (!now || !waited || !action) return { events: [] };
      const payload: DecidedPayload = { action: { ...action, id }, decision };
      return { events: [{ ...inTask(now), event: 'vendor.tollbridge.decided', actor: now.created_by, payload }] };
    },
  });
  if (waited) await endings.finish(task.id, refusedEnd(decision), { by: 'bridge', reason: decision.reason });
}
