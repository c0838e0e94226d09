/** A task as it stands in the moment it is accepted, or refused: nothing has happened to it yet. */
import type { Task } from '../model/resources.ts';
import type { Given } from './context.ts';
import type { Opening } from './opening.ts';

export interface Wanted {
  readonly command: Given<'task.submit'>;
  readonly id: string;
  readonly workspace_id: string;
  readonly session_id: string;
  /** The session begins with this task. */
  readonly opens: Opening | undefined;
  /** `none`: someone outside does it. */
  readonly agent: string;
  readonly personaId: string | null;
  readonly tier: string;
}

export function newTask(wanted: Wanted & { readonly input: Task['input']; readonly now: string }): Task {
  const { command, id, workspace_id, session_id, agent, personaId, tier, input, now } = wanted;
  const { actor, body, trace_id } = command;
  // A name of ours that nobody else can write to.
  const { tollbridge: _, ...theirs } = body.metadata ?? {};
  return {
    id,
    object: 'task',
    created_at: now,
    updated_at: now,
    metadata: {
      tollbridge: {
        tier,
        ...(actor.tenant_id && { tenant_id: actor.tenant_id }),
        ...(actor.on_behalf_of && { on_behalf_of: actor.on_behalf_of }),
        ...(trace_id && { trace_id }),
      },
      ...theirs,
    },
    workspace_id,
    session_id,
    status: 'SUBMITTED',
    input,
    created_by: actor.id,
    persona_id: personaId,
    branch_id: body.branch_id ?? null,
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
