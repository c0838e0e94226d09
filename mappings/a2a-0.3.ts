/**
 * A2A 0.3 ↔ canonical: the older spelling of the words in `a2a.ts`. Clients of this revision send no version header, have no
 * list of tasks, and mark a part with `kind` where 1.0 uses the name of the member.
 */
import { ROLES, TASK_STATES } from '../src/model/words.ts';
import { frameTable } from './frames.ts';
import { table } from './row.ts';

export const PROTOCOL = '0.3';

export const taskState = table(TASK_STATES, [
  { wire: 'submitted', core: 'SUBMITTED', dir: '<->' },
  { wire: 'working', core: 'WORKING', dir: '<->' },
  { wire: 'input-required', core: 'INPUT_REQUIRED', dir: '<->' },
  { wire: 'auth-required', core: 'AUTH_REQUIRED', dir: '<->' },
  { wire: 'completed', core: 'COMPLETED', dir: '<->' },
  { wire: 'failed', core: 'FAILED', dir: '<->' },
  { wire: 'canceled', core: 'CANCELED', dir: '<->' },
  { wire: 'cancelled', core: 'CANCELED', dir: '->', why: 'an older adapter in the field spells it so' },
  { wire: 'rejected', core: 'FAILED', dir: '->', why: 'there is no refused state; failure.code keeps the word' },
  { wire: 'unknown', core: 'WORKING', dir: '->', why: 'an unknown state is never success' },
]);

export const role = table(ROLES, [
  { wire: 'user', core: 'user', dir: '<->' },
  { wire: 'agent', core: 'agent', dir: '<->' },
  { wire: 'agent', core: 'assistant', dir: '<-', why: 'the side that answers is the agent' },
  {
    wire: 'agent',
    core: 'system',
    dir: '<-',
    why: 'never sent: system messages stay between the gateway and its agent',
  },
  { wire: 'agent', core: 'tool', dir: '<-', why: 'never sent: agents are opaque to their peers' },
]);

/** The `kind` of a part, and the member of 1.0 that replaced it. */
export const PARTS = [
  { wire: 'text', v1: 'text' },
  { wire: 'data', v1: 'data' },
  { wire: 'file', v1: 'raw' },
  { wire: 'file', v1: 'url' },
] as const;

/** The `kind` of a stream event, and its member in 1.0. */
export const EVENTS = [
  { wire: 'task', v1: 'task' },
  { wire: 'message', v1: 'message' },
  { wire: 'status-update', v1: 'statusUpdate' },
  { wire: 'artifact-update', v1: 'artifactUpdate' },
] as const;

/** Each method, with the id of its operation in the table of 1.0. `list` is missing: 0.3 has no list of tasks. */
export const OPERATIONS = [
  { id: 'send', rpc: 'message/send', path: '/v1/message:send' },
  { id: 'stream', rpc: 'message/stream', path: '/v1/message:stream' },
  { id: 'get', rpc: 'tasks/get', path: '/v1/tasks/{id}' },
  { id: 'cancel', rpc: 'tasks/cancel', path: '/v1/tasks/{id}:cancel' },
  { id: 'subscribe', rpc: 'tasks/resubscribe', path: '/v1/tasks/{id}:subscribe' },
  { id: 'createPush', rpc: 'tasks/pushNotificationConfig/set', path: '/v1/tasks/{id}/pushNotificationConfigs' },
  { id: 'getPush', rpc: 'tasks/pushNotificationConfig/get', path: '/v1/tasks/{id}/pushNotificationConfigs/{configId}' },
  { id: 'listPush', rpc: 'tasks/pushNotificationConfig/list', path: '/v1/tasks/{id}/pushNotificationConfigs' },
  {
    id: 'deletePush',
    rpc: 'tasks/pushNotificationConfig/delete',
    path: '/v1/tasks/{id}/pushNotificationConfigs/{configId}',
  },
  { id: 'card', rpc: 'agent/getAuthenticatedExtendedCard', path: '/v1/card' },
] as const;

/** As in 1.0: only the client sends requests, and there are no other frames. */
export const frames = frameTable(
  OPERATIONS.map(({ id, rpc }) => ({
    method: rpc,
    from: 'client' as const,
    frame: 'request' as const,
    handling: id === 'send' || id === 'stream' ? ('act' as const) : ('answer' as const),
  })),
);
