/** Tasks: submitted, read, messaged, canceled, replayed. */
import { type Actor, type Bridge, type CommandBody, Fault, type Row, type Task } from '../../../../src/index.ts';
import type { WireShape } from '../../revisions/schemas.ts';
import type { Call, Reply, RouteContext, Routes } from '../call.ts';
import { requireScope } from '../exchange.ts';
import { listPage, whereOf } from '../pages.ts';
import { stateOf } from './sessions.ts';

type Ids = 'listTasks' | 'submitTask' | 'getTask' | 'cancelTask' | 'replayTask' | 'appendTaskMessage';

export function taskRoutes(context: RouteContext): Pick<Routes, Ids> {
  const { bridge } = context;
  return {
    listTasks: async (call) => {
      const where = { ...whereOf(call.query, 'workspace_id', 'session_id'), ...stateOf(call) };
      return { body: await listPage(bridge, call, { object: 'task', where }) };
    },
    submitTask: (call) => {
      const { session_id, ...body } = call.body as WireShape<'SubmitTaskRequest'>;
      return submitTask(context, call, session_id, body);
    },
    getTask: async ({ actor, params }) => ({ body: await bridge.view(actor, 'task', params.task_id!) }),
    cancelTask: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as WireShape<'CancelTaskRequest'>), task_id: params.task_id! };
      const { resource } = await bridge.submit({ kind: 'task.cancel', actor, ...once, body: wanted });
      return { body: resource };
    },
    replayTask: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as WireShape<'ReplayTaskRequest'>), task_id: params.task_id! };
      const { resource } = await bridge.submit({ kind: 'task.replay', actor, ...once, body: wanted });
      return { status: 202, body: resource };
    },
    appendTaskMessage: async (call) => {
      const { actor, once, params, body } = call;
      const { kind, message } = body as WireShape<'AppendTaskMessageRequest'>;
      const wanted = { kind: await meantBy(context, call, kind), message, task_id: params.task_id! };
      const { resource } = await bridge.submit({ kind: 'task.message', actor, ...once, body: wanted });
      return { status: 201, body: resource };
    },
  };
}

/** In a revision with one word for input and steering, the state of the task decides which is meant. */
async function meantBy<Kind extends string>({ bridge }: RouteContext, { revision, actor, params }: Call, kind: Kind) {
  if (kind !== 'input' || !revision.inputSteers) return kind;
  // Checked before the task is read: a caller that may not write to tasks does not learn which exist.
  requireScope(actor, 'tasks:write');
  const reader = { ...actor, scopes: [...actor.scopes, 'tasks:read'] };
  const { status } = await bridge.view<Task & Row>(reader, 'task', params.task_id!);
  return status === 'INPUT_REQUIRED' ? kind : 'interrupt';
}

/**
 * A task starts in the commit that accepts it, so the answer usually says WORKING already. Behind other tasks of its session it
 * waits for its turn; a turn that is about to come is waited for, so that a polling client does not see a quick task skip a state.
 */
export async function submitTask(
  { bridge }: RouteContext,
  { revision, actor, once }: Call,
  session_id: string,
  request: WireShape<'SubmitSessionTaskRequest'>,
): Promise<Reply> {
  const { input, persona_id, branch_id, parent_task_id, agent, metadata } = request;
  // This door has no operation to report the work of a task without an agent.
  if (agent === 'none') throw new Fault('invalid_request', 'there is no agent none', { param: '/agent' });
  const body: CommandBody<'task.submit'> = {
    session_id,
    input,
    ...(persona_id && { persona_id }),
    ...(branch_id && { branch_id }),
    ...(parent_task_id && { parent_task_id }),
    ...(agent && { agent }),
    ...(metadata && { metadata }),
  };
  const { resource, repeated } = await bridge.submit({ kind: 'task.submit', actor, ...once, body });
  const task = resource as Task & Row;
  // A repeated submission is not delayed again.
  const begins = task.status === 'SUBMITTED' && !repeated;
  return { status: repeated ? revision.repeatedTask : 202, body: begins ? await begun(bridge, task, actor) : task };
}

/** How long the answer is delayed for a turn that is about to come. */
const TURN_MS = 500;

/** The task once it has begun, or as submitted when its turn does not come in time. */
async function begun(bridge: Bridge, task: Task & Row, { scopes, sees }: Actor): Promise<Task> {
  // A caller that may submit tasks may learn that its task began, also without the scope to read the log.
  const reader: Actor = {
    id: 'system:harn',
    kind: 'system',
    scopes: ['events:read', ...scopes],
    ...(sees && { sees }),
  };
  const signal = AbortSignal.timeout(TURN_MS);
  for await (const { event, payload } of bridge.follow(reader, { stream: { of: 'task', id: task.id } }, signal)) {
    if (event === 'task.started') return payload.task as Task;
    if (event === 'task.canceled' || event === 'task.failed') break;
  }
  return task;
}
