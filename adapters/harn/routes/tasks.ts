/** Work: given, looked at, spoken to, stopped, lived through again. */
import { type Actor, type Bridge, type CommandBody, Fault, type Row, type Task } from '../../../src/index.ts';
import type { Call, Desk, Reply, Routes } from '../call.ts';
import { listPage, whereOf } from '../pages.ts';
import type { Wire } from '../schemas.ts';
import { toCoreInput } from '../translate.ts';
import { stateOf } from './sessions.ts';

type Ids = 'listTasks' | 'submitTask' | 'getTask' | 'cancelTask' | 'replayTask' | 'appendTaskMessage';

export function taskRoutes(desk: Desk): Pick<Routes, Ids> {
  const { bridge } = desk;
  return {
    listTasks: async (call) => {
      const where = { ...whereOf(call.query, 'workspace_id', 'session_id'), ...stateOf(call) };
      return { body: await listPage(bridge, call, { object: 'task', where }) };
    },
    submitTask: (call) => {
      const { session_id, ...body } = call.body as Wire<'SubmitTaskRequest'>;
      return submitTask(desk, call, session_id, body);
    },
    getTask: async ({ actor, params }) => ({ body: await bridge.view(actor, 'task', params.task_id!) }),
    cancelTask: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as Wire<'CancelTaskRequest'>), task_id: params.task_id! };
      const { resource } = await bridge.submit({ kind: 'task.cancel', actor, ...once, body: wanted });
      return { body: resource };
    },
    replayTask: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as Wire<'ReplayTaskRequest'>), task_id: params.task_id! };
      const { resource } = await bridge.submit({ kind: 'task.replay', actor, ...once, body: wanted });
      return { status: 202, body: resource };
    },
    appendTaskMessage: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as Wire<'AppendTaskMessageRequest'>), task_id: params.task_id! };
      const { resource } = await bridge.submit({ kind: 'task.message', actor, ...once, body: wanted });
      return { status: 201, body: resource };
    },
  };
}

/**
 * Work starts in the commit that accepts it, so the answer usually says WORKING already. Behind other work of its session
 * it waits its turn; a turn that comes at once is waited for, so that whoever polls does not see a quick task skip a state.
 */
export async function submitTask(
  { bridge }: Desk,
  { actor, once }: Call,
  session_id: string,
  request: Wire<'SubmitSessionTaskRequest'>,
): Promise<Reply> {
  const { input, persona_id, branch_id, parent_task_id, agent, metadata } = request;
  // Nobody could report what such a task did: this door has no words for it.
  if (agent === 'none') throw new Fault('invalid_request', 'there is no agent none', { param: '/agent' });
  const body: CommandBody<'task.submit'> = {
    session_id,
    input: toCoreInput(input),
    ...(persona_id && { persona_id }),
    ...(branch_id && { branch_id }),
    ...(parent_task_id && { parent_task_id }),
    ...(agent && { agent }),
    ...(metadata && { metadata }),
  };
  const { resource, repeated } = await bridge.submit({ kind: 'task.submit', actor, ...once, body });
  const task = resource as unknown as Task & Row;
  // Whoever asks again has been kept waiting once.
  return { status: 202, body: task.status === 'SUBMITTED' && !repeated ? await begun(bridge, task) : task };
}

/** How long the answer is held back for a turn that is about to come. */
const TURN_MS = 500;

/** The task as it began, or as it was given when its turn does not come. */
async function begun(bridge: Bridge, task: Task & Row): Promise<Task> {
  // Whoever may give work may be told that it began, also without being allowed to read the log.
  const reader: Actor = { id: 'system:harn', kind: 'system', scopes: ['*'] };
  const signal = AbortSignal.timeout(TURN_MS);
  for await (const { event, payload } of bridge.follow(reader, { stream: { of: 'task', id: task.id } }, signal)) {
    if (event === 'task.started') return payload.task as unknown as Task;
    if (event === 'task.canceled' || event === 'task.failed') break;
  }
  return task;
}
