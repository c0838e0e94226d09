/** A task at the moment it is accepted or refused, before it begins. */
import type { Task } from '../../../model/resources.ts';
import type { Opening } from '../../commands/session-opening.ts';
import type { Received } from '../../context.ts';
import { callerOf } from './calling-gateway.ts';

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
