/** Branches of a session's work: opened beside it or by a fork, changed, and merged or abandoned once. */
import type { Actor } from '../../model/actions.ts';
import type { CommandKind } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Branch, Message, Session } from '../../model/resources.ts';
import type { At, Row } from '../../ports/index.ts';
import { accepted, type Context, type Handlers, once } from '../context.ts';
import type { Tally } from '../events/rows.ts';
import { allMessages, openSession, sessionLocation, transcriptEvents } from './transcript.ts';

export function branchHandlers(deps: Context): Pick<Handlers, Extract<CommandKind, `branch.${string}`>> {
  const { log, access, ids } = deps;

  /** The fork on this branch, if there is one, and the session it was forked from. */
  async function threadOf(actor: Actor, branch: Branch): Promise<{ fork: Session; into: Session } | undefined> {
    const id = forkOn(branch);
    const fork = id ? await access.see<Session & Row>(actor, 'session', id) : undefined;
    if (!fork?.parent_session_id || fork.branch_id !== branch.id) return undefined;
    return { fork, into: await access.see<Session & Row>(actor, 'session', fork.parent_session_id) };
  }

  /** Copies the fork's messages, in order, into the session it was forked from; each copy names its original. */
  function mergedThread(at: At, actor: Actor, branch: Branch, { fork, into }: Thread, messages: readonly Message[]) {
    const tally = at.get<Tally>('tally', fork.id);
    if ((tally?.open_tasks ?? 0) > 0) throw new Fault('conflict', `session ${fork.id} still has work under way`);
    if ((tally?.messages ?? 0) !== messages.length) throw new Moved(fork.id);
    openSession(at, into.id);
    const location = sessionLocation(into.id, into.workspace_id);
    const own = messages.filter(({ metadata }) => metadata.copied_from === undefined);
    const copies = own.flatMap((message) => {
      const metadata = { ...message.metadata, merged_from: message.id };
      const copy: Message = { ...message, id: ids.next('message'), session_id: into.id, task_id: null, metadata };
      return transcriptEvents(location, copy, actor.id);
    });
    const merged: EventDraft = {
      ...location,
      event: 'session.thread_merged',
      actor: actor.id,
      payload: { session_id: fork.id, branch_id: branch.id, messages: own.length },
    };
    return [...copies, merged];
  }

  return {
    'branch.create': async (command) => {
      const { actor, body } = command;
      const session = await access.see<Session & Row>(actor, 'session', body.session_id);
      if (body.parent_branch_id) await seeBranch(deps, actor, body.parent_branch_id, session.workspace_id);
      if (body.task_id) await access.see(actor, 'task', body.task_id);
      const id = ids.next('branch');
      const { result, repeated } = await log.commit({
        ...once(deps, command, session.workspace_id, `${session.id}/branches`),
        reads: [{ object: 'session', id: session.id }],
        decide(at) {
          openSession(at, session.id);
          const branch = newBranch({
            ...body,
            id,
            now: at.now,
            created_by: actor.id,
            workspace_id: session.workspace_id,
          });
          return { events: [branchEvent('branch.created', branch, actor.id)], result: { id } };
        },
      });
      const made = (result as { id: string }).id;
      return accepted('branch.create', await access.see<Row>(actor, 'branch', made), repeated);
    },

    'branch.update': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Branch & Row>(actor, 'branch', body.branch_id);
      const { repeated } = await log.commit({
        ...once(deps, command, before.workspace_id, before.id),
        reads: [{ object: 'branch', id: before.id }],
        decide(at) {
          const branch = openBranch(at, before.id);
          const { forked_session_id: _, ended_as: _e, ...theirs } = body.metadata ?? {};
          const next: Branch = {
            ...branch,
            ...(body.base_ref !== undefined && { base_ref: body.base_ref }),
            ...(body.worktree_uri !== undefined && { worktree_uri: body.worktree_uri }),
            metadata: { ...branch.metadata, ...theirs },
          };
          return { events: [branchEvent('branch.updated', next, actor.id)], result: { id: branch.id } };
        },
      });
      return accepted('branch.update', await access.see<Row>(actor, 'branch', before.id), repeated);
    },

    'branch.end': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Branch & Row>(actor, 'branch', body.branch_id);
      for (;;) {
        const thread = body.as === 'merged' ? await threadOf(actor, before) : undefined;
        const messages = thread ? await allMessages(deps, thread.fork.id) : [];
        const sessions = thread
          ? [
              { object: 'tally', id: thread.fork.id },
              { object: 'session', id: thread.into.id },
            ]
          : [];
        try {
          const { repeated } = await log.commit({
            ...once(deps, command, before.workspace_id, before.id),
            reads: [{ object: 'branch', id: before.id }, ...sessions],
            decide(at) {
              const branch = openBranch(at, before.id);
              const merged_into = body.merged_into ?? (thread ? thread.into.id : branch.base_ref);
              const next: Branch = {
                ...branch,
                metadata: { ...branch.metadata, ...body.metadata, ended_as: body.as },
                ...(body.as === 'merged' && { merged_into }),
              };
              const merged = thread ? mergedThread(at, actor, branch, thread, messages) : [];
              const events = [...merged, branchEvent(`branch.${body.as}`, next, actor.id)];
              return { events, result: { id: branch.id } };
            },
          });
          return accepted('branch.end', await access.see<Row>(actor, 'branch', before.id), repeated);
        } catch (cause) {
          if (!(cause instanceof Moved)) throw cause;
        }
      }
    },
  };
}

interface Thread {
  readonly fork: Session;
  readonly into: Session;
}

/** A message was added to the fork between reading and writing. */
class Moved extends Fault {
  constructor(sessionId: string) {
    super('conflict', `session ${sessionId} changed meanwhile`);
  }
}

/** A branch this actor may see, in that workspace. A branch of another workspace is reported as absent. */
export async function seeBranch(
  { access }: Pick<Context, 'access'>,
  actor: Actor,
  id: string,
  workspaceId: string,
): Promise<Branch & Row> {
  const branch = await access.see<Branch & Row>(actor, 'branch', id);
  if (branch.workspace_id !== workspaceId) throw new Fault('not_found', `no branch ${id}`);
  return branch;
}

/** The branch, if it is still open for work. */
export function openBranch(at: Pick<At, 'get'>, id: string): Branch {
  const branch = at.get<Branch & Row>('branch', id);
  if (!branch) throw new Fault('not_found', `no branch ${id}`);
  const { ended_as } = branch.metadata;
  if (ended_as) throw new Fault('conflict', `branch ${branch.id} was already ${ended_as}`);
  return branch;
}

export function newBranch(
  draft: Pick<Branch, 'id' | 'kind' | 'base_ref' | 'workspace_id' | 'session_id' | 'parent_branch_id' | 'task_id'> & {
    readonly now: string;
    readonly created_by: string;
    readonly metadata?: Branch['metadata'] | undefined;
  },
): Branch {
  const { forked_session_id: _, ended_as: _e, ...metadata } = draft.metadata ?? {};
  return {
    id: draft.id,
    object: 'branch',
    created_at: draft.now,
    updated_at: draft.now,
    metadata,
    workspace_id: draft.workspace_id,
    kind: draft.kind,
    base_ref: draft.base_ref,
    parent_branch_id: draft.parent_branch_id ?? null,
    session_id: draft.session_id ?? null,
    task_id: draft.task_id ?? null,
    created_by: draft.created_by,
    merged_into: null,
  };
}

/** The session that was forked onto a branch. A branch made for a fork belongs to that session itself. */
export function forkOn({ metadata, session_id }: Branch): string | null {
  return typeof metadata.forked_session_id === 'string' ? metadata.forked_session_id : (session_id ?? null);
}

type BranchEventKind = 'branch.created' | 'branch.updated' | 'branch.merged' | 'branch.abandoned';

export function branchEvent(event: BranchEventKind, branch: Branch, actor: string): EventDraft {
  return {
    event,
    resource: { object: 'branch', id: branch.id },
    workspace_id: branch.workspace_id,
    session_id: branch.session_id ?? null,
    actor,
    payload: { branch: branch },
  };
}
