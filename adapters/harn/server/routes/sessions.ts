/** Conversations: opened, written to, forked, cut back, closed. */

import { type CommandBody, everyRow, Fault, isReplay, isTerminal, type Row, type Task } from '../../../../src/index.ts';
import type { WireShape } from '../../revisions/schemas.ts';
import type { NewerWire } from '../../revisions/schemas-2026-10-11.ts';
import { toWireList, toWireSession } from '../../translate.ts';
import type { Call, RouteContext, Routes } from '../call.ts';
import { listPage, whereOf } from '../pages.ts';
import { submitTask } from './tasks.ts';

type Ids =
  | `${'list' | 'create' | 'get' | 'update' | 'close' | 'fork' | 'truncate' | 'replay'}Session${'' | 's'}`
  | `listSession${'Messages' | 'Tasks' | 'Branches'}`
  | 'appendSessionMessage'
  | 'submitSessionTask'
  | 'createSessionBranch'
  | `${'update' | 'merge' | 'abandon'}Branch`;

export function sessionRoutes(context: RouteContext): Pick<Routes, Extract<keyof Routes, Ids>> {
  const { bridge } = context;

  /** A list inside a session that is hidden is as absent as the session. */
  async function inside(call: Call, object: string, more: object = {}) {
    const session_id = call.params.session_id!;
    await requireSession(call, session_id);
    return { body: await listPage(bridge, call, { object, where: { session_id, ...more } }) };
  }

  /** Checked with the scope that the list itself needs: a caller that may read tasks may lack the scope to read sessions. */
  async function requireSession({ actor }: Call, id: string): Promise<void> {
    for await (const _ of bridge.events(
      { ...actor, scopes: [...actor.scopes, 'events:read'] },
      { stream: { of: 'session', id }, limit: 1 },
    ))
      return;
  }

  return {
    listSessions: async (call) => {
      const where = { ...whereOf(call.query, 'workspace_id'), ...stateOf(call) };
      return { body: await listPage(bridge, call, { object: 'session', where }, toWireSession) };
    },
    createSession: async (call) => {
      const { actor, once } = call;
      const wanted = await toCoreOpening(call);
      const { resource } = await bridge.submit({ kind: 'session.create', actor, ...once, body: wanted });
      return { status: 201, body: toWireSession(resource) };
    },
    getSession: async ({ actor, params }) => ({
      body: toWireSession(await bridge.view(actor, 'session', params.session_id!)),
    }),
    updateSession: async (call) => {
      const { actor, once, params } = call;
      const { model_policy, ...change } = call.body as NewerWire<'UpdateSessionRequest'>;
      if (model_policy && call.revision.modes.length > 0) await refuseModel(call);
      const wanted = { ...change, session_id: params.session_id! };
      const { resource } = await bridge.submit({ kind: 'session.update', actor, ...once, body: wanted });
      return { body: toWireSession(resource) };
    },
    closeSession: async ({ actor, once, params }) => {
      const body = { session_id: params.session_id! };
      const { resource } = await bridge.submit({ kind: 'session.close', actor, ...once, body });
      return { body: toWireSession(resource) };
    },
    forkSession: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as WireShape<'ForkSessionRequest'>), session_id: params.session_id! };
      const { resource } = await bridge.submit({ kind: 'session.fork', actor, ...once, body: wanted });
      return { status: 201, body: toWireSession(resource) };
    },
    truncateSession: async ({ actor, once, params, body }) => {
      const session_id = params.session_id!;
      const wanted = { ...(body as WireShape<'TruncateSessionRequest'>), session_id };
      const { resource, details } = await bridge.submit({ kind: 'session.truncate', actor, ...once, body: wanted });
      const counts = details;
      return { body: { object: 'session.truncate_result', session_id, ...counts, session: toWireSession(resource) } };
    },
    replaySession: async (call) => replaySession(context, call),

    listSessionMessages: (call) => inside(call, 'message'),
    appendSessionMessage: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as WireShape<'AppendMessageRequest'>), session_id: params.session_id! };
      const { resource } = await bridge.submit({ kind: 'message.append', actor, ...once, body: wanted });
      return { status: 201, body: resource };
    },
    listSessionTasks: (call) => inside(call, 'task', stateOf(call)),
    submitSessionTask: (call) =>
      submitTask(context, call, call.params.session_id!, call.body as WireShape<'SubmitSessionTaskRequest'>),
    listSessionBranches: (call) => inside(call, 'branch'),
    createSessionBranch: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as WireShape<'CreateBranchRequest'>), session_id: params.session_id! };
      const { resource } = await bridge.submit({ kind: 'branch.create', actor, ...once, body: wanted });
      return { status: 201, body: resource };
    },
    updateBranch: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as WireShape<'UpdateBranchRequest'>), branch_id: params.branch_id! };
      return { body: (await bridge.submit({ kind: 'branch.update', actor, ...once, body: wanted })).resource };
    },
    mergeBranch: ({ actor, once, params, body }) => {
      const { merged_into, metadata } = body as WireShape<'MergeBranchRequest'>;
      return endBranch(
        { actor, once },
        { branch_id: params.branch_id!, as: 'merged', ...withoutUndefined({ merged_into, metadata }) },
      );
    },
    abandonBranch: ({ actor, once, params, body }) => {
      const { metadata } = body as WireShape<'AbandonBranchRequest'>;
      return endBranch(
        { actor, once },
        { branch_id: params.branch_id!, as: 'abandoned', ...withoutUndefined({ metadata }) },
      );
    },
  };

  /** The mode as an autonomy limit. In a revision without modes these members are ignored, like other unknown ones. */
  async function toCoreOpening(call: Call): Promise<CommandBody<'session.create'>> {
    const { mode_id, model_policy, ...wanted } = call.body as NewerWire<'CreateSessionRequest'>;
    const { modes } = call.revision;
    if (model_policy && modes.length > 0) await refuseModel(call);
    const mode = modes.find(({ wire }) => wire === mode_id);
    return { ...wanted, ...(mode && { autonomy_tier: mode.core }) } as CommandBody<'session.create'>;
  }

  /** Refuses a default model, because no agent would honour it. */
  async function refuseModel({ actor }: Call): Promise<never> {
    const agents = await bridge.agents({ ...actor, scopes: ['skills:read'] });
    const names = agents.map(({ name }) => name).join(', ') || 'none is mounted';
    const why = `the agents of this gateway choose their models themselves (${names})`;
    throw new Fault('invalid_request', why, { param: '/model_policy' });
  }

  async function endBranch({ actor, once }: Pick<Call, 'actor' | 'once'>, body: CommandBody<'branch.end'>) {
    return { body: (await bridge.submit({ kind: 'branch.end', actor, ...once, body })).resource };
  }
}

/** The members that are not undefined. */
function withoutUndefined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}

export function stateOf({ query }: Pick<Call, 'query'>): { state?: string } {
  return query.status ? { state: query.status } : {};
}

/** Replays the session's ended tasks, one after the other. Replays are not replayed again. */
async function replaySession({ bridge }: RouteContext, call: Call) {
  const { actor, once, params, body } = call;
  const session_id = params.session_id!;
  const { override, metadata, ...request } = body as WireShape<'ReplaySessionRequest'>;
  await bridge.view(actor, 'session', session_id);
  const sources: (Task & Row)[] = [];
  const query = { object: 'task', where: { session_id } };
  for await (const task of everyRow((paging) => bridge.list<Task & Row>(actor, { ...query, ...paging })))
    if (!isReplay(task)) sources.push(task);
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
