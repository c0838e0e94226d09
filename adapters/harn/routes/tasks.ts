/** Work: given, looked at, spoken to, stopped, lived through again. */
import { type CommandBody, Fault } from '../../../src/index.ts';
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

/** Work starts in the commit that accepts it, so the answer usually says WORKING already. */
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
  const { resource } = await bridge.submit({ kind: 'task.submit', actor, ...once, body });
  return { status: 202, body: resource };
}
