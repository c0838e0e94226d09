/**
 * Hands work from one agent to another: as a task like any other, submitted through the bridge in the agent's own name,
 * decided, logged and receipted like any other. Decides nothing itself, and cancels the task it submitted when it is
 * stopped.
 */
import type { Actor } from '../model/actions.ts';
import type { Session, Task } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import { isTerminal } from '../model/words.ts';
import type { Bridge, Row } from '../ports/index.ts';
import { textOf } from './script.ts';

export interface Handed {
  readonly task_id: string;
  readonly receipt_id: string | undefined;
  readonly state: string;
  /** The other agent's last message. */
  readonly text: string;
}
/** `accepted` is called with the new task as soon as it exists; the promise resolves when the task has ended. */
export type HandOver = (
  to: string,
  work: string,
  from: Task,
  accepted: (taskId: string) => Promise<void>,
  signal: AbortSignal,
) => Promise<Handed>;

/** The bridge is passed as a function: agents are mounted before the runtime is open. */
export function createHandOver(bridge: () => Bridge): HandOver {
  return async (to, work, from, accepted, signal) => {
    const door = bridge();
    const actor = actorOf(from);
    const metadata = { handoff: { task_id: from.id } };
    const home = { workspace_id: from.workspace_id, persona_id: from.persona_id ?? null };
    // A session of its own: the giving session is busy until the work is back.
    const session = await door.submit({ kind: 'session.create', actor, body: { ...home, metadata } });
    const input = { role: 'user' as const, parts: [{ type: 'text', text: work, visibility: 'public' }] };
    const body = {
      session_id: (session.resource as Session & Row).id,
      agent: to,
      parent_task_id: from.id,
      input,
      metadata,
    };
    const task_id = (await door.submit({ kind: 'task.submit', actor, body })).resource.id;
    await accepted(task_id);

    let text = '';
    for await (const { event, payload } of door.follow(actor, { stream: { of: 'task', id: task_id } }, signal)) {
      if (event === 'agent.message') text = textOf(payload.message as JsonObject);
      if (event.startsWith('task.') && isTerminal(String(payload.to))) break;
    }
    if (signal.aborted) {
      const reason = 'the work it was part of was stopped';
      await door.submit({ kind: 'task.cancel', actor, body: { task_id, reason } });
    }
    const { status, receipt_id } = await door.view<Task & Row>(actor, 'task', task_id);
    return { task_id, receipt_id: receipt_id ?? undefined, state: status, text };
  };
}

/** The agent acts for its own task and sees no further than that task's workspace. */
function actorOf(task: Task): Actor {
  const { tenant_id, on_behalf_of } = (task.metadata.tollbridge ?? {}) as { tenant_id?: string; on_behalf_of?: string };
  return {
    on_behalf_of: on_behalf_of ?? task.created_by,
    id: `agent:${task.assigned_agent_id}`,
    kind: 'agent',
    scopes: ['sessions:write', 'tasks:write', 'tasks:read', 'events:read'],
    workspaces: [task.workspace_id],
    ...(tenant_id && { tenant_id }),
  };
}
