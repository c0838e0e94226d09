/** Branches of a session's work: opened beside it, and merged or given up once. */
import type { CommandKind } from '../model/commands.ts';
import type { EventDraft } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Branch, Session } from '../model/resources.ts';
import type { Json } from '../model/schema.ts';
import type { Row } from '../ports.ts';
import { accepted, type Context, type Handlers, once } from './context.ts';
import { openSession } from './transcript.ts';

export function branchHandlers(deps: Context): Pick<Handlers, Extract<CommandKind, `branch.${string}`>> {
  const { log, access, ids } = deps;

  return {
    'branch.create': async (command) => {
      const { actor, body } = command;
      const session = await access.see<Session & Row>(actor, 'session', body.session_id);
      if (body.parent_branch_id) await access.see(actor, 'branch', body.parent_branch_id);
      if (body.task_id) await access.see(actor, 'task', body.task_id);
      const id = ids.next('branch');
      const { result, repeated } = await log.commit({
        ...once(deps, command, session.workspace_id, `${session.id}/branches`),
        reads: [{ object: 'session', id: session.id }],
        decide(at) {
          openSession(at, session.id);
          const branch: Branch = {
            id,
            object: 'branch',
            created_at: at.now,
            updated_at: at.now,
            metadata: body.metadata ?? {},
            workspace_id: session.workspace_id,
            kind: body.kind,
            base_ref: body.base_ref,
            parent_branch_id: body.parent_branch_id ?? null,
            session_id: session.id,
            task_id: body.task_id ?? null,
            created_by: actor.id,
            merged_into: null,
          };
          return { events: [branchEvent('branch.created', branch, actor.id)], result: { id } };
        },
      });
      const made = (result as { id: string }).id;
      return accepted('branch.create', await access.see<Row>(actor, 'branch', made), repeated);
    },

    'branch.end': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Branch & Row>(actor, 'branch', body.branch_id);
      const { repeated } = await log.commit({
        ...once(deps, command, before.workspace_id, before.id),
        reads: [{ object: 'branch', id: before.id }],
        decide(at) {
          const branch = at.get<Branch & Row>('branch', before.id) as Branch;
          if (branch.metadata.ended_as) {
            throw new Fault('conflict', `branch ${branch.id} was already ${branch.metadata.ended_as}`);
          }
          const next: Branch = {
            ...branch,
            metadata: { ...branch.metadata, ...body.metadata, ended_as: body.as },
            ...(body.as === 'merged' && { merged_into: body.merged_into ?? branch.base_ref }),
          };
          return { events: [branchEvent(`branch.${body.as}`, next, actor.id)], result: { id: branch.id } };
        },
      });
      return accepted('branch.end', await access.see<Row>(actor, 'branch', before.id), repeated);
    },
  };
}

function branchEvent(event: string, branch: Branch, actor: string): EventDraft {
  return {
    event,
    resource: { object: 'branch', id: branch.id },
    workspace_id: branch.workspace_id,
    session_id: branch.session_id ?? null,
    actor,
    payload: { branch: branch as unknown as Json },
  };
}
