/** Conversations: opened, written to, forked, cut back, closed. */
import { type CommandBody, Fault, isTerminal, type Row, type Task } from '../../../src/index.ts';
import type { Call, Desk, Routes } from '../call.ts';
import { listPage, whereOf } from '../pages.ts';
import type { Wire } from '../schemas.ts';
import { toWireList, toWireSession } from '../translate.ts';
import { submitTask } from './tasks.ts';

type Ids =
  | `${'list' | 'create' | 'get' | 'update' | 'close' | 'fork' | 'truncate' | 'replay'}Session${'' | 's'}`
  | `listSession${'Messages' | 'Tasks' | 'Branches'}`
  | 'appendSessionMessage'
  | 'submitSessionTask'
  | 'createSessionBranch';

export function sessionRoutes(desk: Desk): Pick<Routes, Extract<keyof Routes, Ids>> {
  const { bridge } = desk;

  /** A list inside a session that is hidden is as absent as the session. */
  async function inside(call: Call, object: string, more: object = {}) {
    const session_id = call.params.session_id!;
    await requireSession(call, session_id);
    return { body: await listPage(bridge, call, { object, where: { session_id, ...more } }) };
  }

  /** Seen with the scope the list itself needs: whoever may read tasks need not be allowed to read sessions. */
  async function requireSession({ actor }: Call, id: string): Promise<void> {
    for await (const _ of bridge.events(
      { ...actor, scopes: ['events:read'] },
      { stream: { of: 'session', id }, limit: 1 },
    ))
      return;
  }

  return {
    listSessions: async (call) => {
      const where = { ...whereOf(call.query, 'workspace_id'), ...stateOf(call) };
      return { body: await listPage(bridge, call, { object: 'session', where }, toWireSession) };
    },
    createSession: async ({ actor, once, body }) => {
      const wanted = body as Wire<'CreateSessionRequest'>;
      const { resource } = await bridge.submit({ kind: 'session.create', actor, ...once, body: wanted });
      return { status: 201, body: toWireSession(resource) };
    },
    getSession: async ({ actor, params }) => ({
      body: toWireSession(await bridge.view(actor, 'session', params.session_id!)),
    }),
    updateSession: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as Wire<'UpdateSessionRequest'>), session_id: params.session_id! };
      const { resource } = await bridge.submit({ kind: 'session.update', actor, ...once, body: wanted });
      return { body: toWireSession(resource) };
    },
    closeSession: async ({ actor, once, params }) => {
      const body = { session_id: params.session_id! };
      const { resource } = await bridge.submit({ kind: 'session.close', actor, ...once, body });
      return { body: toWireSession(resource) };
    },
    forkSession: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as Wire<'ForkSessionRequest'>), session_id: params.session_id! };
      const { resource } = await bridge.submit({ kind: 'session.fork', actor, ...once, body: wanted });
      return { status: 201, body: toWireSession(resource) };
    },
    truncateSession: async ({ actor, once, params, body }) => {
      const session_id = params.session_id!;
      const wanted = { ...(body as Wire<'TruncateSessionRequest'>), session_id };
      const { resource, details } = await bridge.submit({ kind: 'session.truncate', actor, ...once, body: wanted });
      const counts = details as unknown as Pick<
        Wire<'TruncateSessionResponse'>,
        'kept_turn_count' | 'removed_turn_count' | 'new_tip_turn_id'
      >;
      return { body: { object: 'session.truncate_result', session_id, ...counts, session: toWireSession(resource) } };
    },
    replaySession: async (call) => replaySession(desk, call),

    listSessionMessages: (call) => inside(call, 'message'),
    appendSessionMessage: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as Wire<'AppendMessageRequest'>), session_id: params.session_id! };
      const { resource } = await bridge.submit({ kind: 'message.append', actor, ...once, body: wanted });
      return { status: 201, body: resource };
    },
    listSessionTasks: (call) => inside(call, 'task', stateOf(call)),
    submitSessionTask: (call) =>
      submitTask(desk, call, call.params.session_id!, call.body as Wire<'SubmitSessionTaskRequest'>),
    listSessionBranches: (call) => inside(call, 'branch'),
    createSessionBranch: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as Wire<'CreateBranchRequest'>), session_id: params.session_id! };
      const { resource } = await bridge.submit({ kind: 'branch.create', actor, ...once, body: wanted });
      return { status: 201, body: resource };
    },
  };
}

export function stateOf({ query }: Pick<Call, 'query'>): { state?: string } {
  return query.status ? { state: query.status } : {};
}

/** The session's ended tasks, one after the other, each replayed as itself. Replays are not replayed again. */
async function replaySession({ bridge }: Desk, call: Call) {
  const { actor, once, params, body } = call;
  const session_id = params.session_id!;
  const { override, metadata, ...request } = body as Wire<'ReplaySessionRequest'>;
  await bridge.view(actor, 'session', session_id);
  const sources: (Task & Row)[] = [];
  let after: string | undefined;
  do {
    const page = await bridge.list<Task & Row>(actor, {
      object: 'task',
      where: { session_id },
      limit: 200,
      ...(after && { after }),
    });
    sources.push(...page.data.filter((task) => !task.metadata.replay_mode));
    after = page.next;
  } while (after);
  const running = sources.find(({ status }) => !isTerminal(status));
  if (running) throw new Fault('conflict', `task ${running.id} of this session has not ended`);

  const made: Row[] = [];
  for (const [index, source] of sources.entries()) {
    const wanted: CommandBody<'task.replay'> = {
      ...request,
      ...(override && { override }),
      task_id: source.id,
      metadata: { ...metadata, session_replay: { session_id, index, of: sources.length } },
    };
    const { resource } = await bridge.submit({ kind: 'task.replay', actor, ...once, body: wanted });
    made.push(resource);
  }
  return { status: 202, body: toWireList(made, undefined) };
}
