/**
 * A2A 1.0 ↔ canonical: states, roles, parts, stream events, operations on each binding, and errors on each binding (as of
 * 1.0.1), spelled as on the wire.
 */
import { leaveOut } from '../src/model/events.ts';
import type { FaultKind } from '../src/model/faults.ts';
import type { EventKind } from '../src/model/payloads.ts';
import { ROLES, TASK_STATES, VISIBILITIES, type Visibility } from '../src/model/words.ts';
import { frameTable } from './frames.ts';
import { table } from './row.ts';

export const PROTOCOL = '1.0';
export const ERROR_DOMAIN = 'a2a-protocol.org';
/** The error domain for reasons that the protocol does not define. */
export const OWN_DOMAIN = 'tollbridge';

export const taskState = table(TASK_STATES, [
  { wire: 'TASK_STATE_SUBMITTED', core: 'SUBMITTED', dir: '<->' },
  { wire: 'TASK_STATE_WORKING', core: 'WORKING', dir: '<->' },
  { wire: 'TASK_STATE_INPUT_REQUIRED', core: 'INPUT_REQUIRED', dir: '<->' },
  { wire: 'TASK_STATE_AUTH_REQUIRED', core: 'AUTH_REQUIRED', dir: '<->' },
  { wire: 'TASK_STATE_COMPLETED', core: 'COMPLETED', dir: '<->' },
  { wire: 'TASK_STATE_FAILED', core: 'FAILED', dir: '<->' },
  { wire: 'TASK_STATE_CANCELED', core: 'CANCELED', dir: '<->' },
  {
    wire: 'TASK_STATE_REJECTED',
    core: 'FAILED',
    dir: '->',
    why: 'there is no refused state; failure.code keeps the word, so the way back is exact',
  },
  {
    wire: 'TASK_STATE_UNSPECIFIED',
    core: 'WORKING',
    dir: '->',
    why: 'an unknown state is never success; the raw word stays in ext.a2a',
  },
]);
/** The wire state of a FAILED task that was refused before any work began. */
export const REJECTED = 'TASK_STATE_REJECTED';
/** The failure code that always means a refusal: an agent reports it itself, or it stands for a peer's REJECTED. */
export const REJECTED_CODE = 'rejected';
/** These codes are refusals when the work never began; after it began they are ordinary failures. */
export const REFUSAL_CODES: readonly string[] = ['policy_violation', 'permission_denied', 'rate_limited'];

export const role = table(ROLES, [
  { wire: 'ROLE_USER', core: 'user', dir: '<->' },
  { wire: 'ROLE_AGENT', core: 'agent', dir: '<->' },
  { wire: 'ROLE_AGENT', core: 'assistant', dir: '<-', why: 'the side that answers is the agent' },
  {
    wire: 'ROLE_UNSPECIFIED',
    core: 'system',
    dir: '<-',
    why: 'never sent: system messages stay between the gateway and its agent',
  },
  { wire: 'ROLE_UNSPECIFIED', core: 'tool', dir: '<-', why: 'never sent: agents are opaque to their peers' },
]);

/** The member of a part that names its type. */
export const PARTS = [
  { wire: 'text', core: 'text', dir: '<->' },
  { wire: 'data', core: 'json', dir: '<->' },
  { wire: 'url', core: 'file_ref', dir: '<->' },
  {
    wire: 'raw',
    core: 'artifact_ref',
    dir: '<->',
    note: 'bytes become an artifact with a hash; small ones travel inside',
  },
  { wire: 'raw', core: 'image_ref', dir: '<->', note: 'the same, for image/*' },
  { wire: null, core: 'tool_call', dir: 'none', note: 'agents are opaque; the activity extension tells of calls' },
  { wire: null, core: 'tool_result', dir: 'none', note: 'agents are opaque; the activity extension tells of results' },
] as const;

/** The stream or webhook event that each event of the log becomes. Events without a row are not sent. */
export const EVENTS = [
  { core: 'task.submitted', wire: 'task' },
  { core: 'task.started', wire: 'statusUpdate' },
  { core: 'task.status_changed', wire: 'statusUpdate' },
  { core: 'task.input_required', wire: 'statusUpdate' },
  { core: 'task.auth_required', wire: 'statusUpdate' },
  { core: 'task.completed', wire: 'statusUpdate' },
  { core: 'task.failed', wire: 'statusUpdate' },
  { core: 'task.canceled', wire: 'statusUpdate' },
  { core: 'vendor.tollbridge.ask_opened', wire: 'statusUpdate' },
  { core: 'vendor.tollbridge.ask_closed', wire: 'statusUpdate' },
  { core: 'vendor.tollbridge.message_delta', wire: 'artifactUpdate' },
  { core: 'agent.message', wire: 'artifactUpdate' },
  { core: 'artifact.created', wire: 'artifactUpdate' },
] as const;

/** Requests to a remote agent that works for us, with the operation each one becomes. */
export const REMOTE_REQUESTS = [
  {
    core: 'task.submit',
    operation: 'send',
    note: 'streamed where the peer can; files inside as raw, linked ones as url',
  },
  {
    core: 'task.message',
    operation: 'send',
    note: 'on its task, while it works; kept back while it waits for an answer',
  },
  { core: 'ask.answer', operation: 'send', note: 'on its task; data where it asked with data, words otherwise' },
  { core: 'task.cancel', operation: 'cancel' },
  {
    core: 'vendor.tollbridge.recovered',
    operation: 'list',
    note: 'finds the task again, unless sending twice is safe',
  },
] as const;

/** The log entry that each message of such an agent becomes. `call`: a push notification, which only triggers a poll. */
export const REMOTE_EVENTS = [
  { wire: 'task', core: 'agent.handoff', note: 'the first time, and again with its end' },
  { wire: 'message', core: 'agent.message' },
  {
    wire: 'statusUpdate',
    core: 'agent.message',
    note: 'what it says while it works; states that ask become questions',
  },
  { wire: 'artifactUpdate', core: 'vendor.tollbridge.message_delta', note: 'text, while it is being written' },
  { wire: 'artifactUpdate', core: 'agent.message', note: 'text and data, once they are whole' },
  { wire: 'artifactUpdate', core: 'artifact.created', note: 'files' },
  { wire: 'call', core: 'connector.delivery_received' },
] as const;

/** Sent only to clients that requested the activity extension, as metadata of a status update. */
export const ACTIVITY = [
  'tool.requested',
  'tool.approved',
  'tool.denied',
  'tool.completed',
  'tool.failed',
  'vendor.tollbridge.plan',
  'vendor.tollbridge.usage',
  'vendor.tollbridge.side_effect',
  'agent.reasoning_summary',
  'agent.handoff',
] as const satisfies readonly EventKind[];

/** Never sent. */
export const NOT_SENT = {
  ...leaveOut(
    'another event of the task says it: its state, the message, or the call',
    'user.cancel_requested agent.tool_use agent.tool_result agent.mcp_tool_use tool.approval_required vendor.tollbridge.decided vendor.tollbridge.ask_used',
  ),
  ...leaveOut(
    'agents are opaque: how a task is worked on, and what the gateway notes about it, stays inside',
    'agent.memory_read agent.memory_write artifact.updated artifact.linked artifact.redacted span.started span.updated span.completed span.failed vendor.tollbridge.checkpoint vendor.tollbridge.quota_used vendor.tollbridge.quota_warned vendor.tollbridge.note vendor.tollbridge.tainted vendor.tollbridge.recovered vendor.tollbridge.passthrough vendor.tollbridge.frame_refused vendor.tollbridge.alarm vendor.tollbridge.remote_decided vendor.tollbridge.answer_refused',
  ),
  ...leaveOut(
    'not about the work of one task',
    'session.created session.closed session.message_appended session.compacted session.truncated session.thread_forked session.thread_merged session.replayed branch.created branch.updated branch.merged branch.abandoned connector.delivery_received connector.delivery_deduped connector.normalized connector.task_submitted connector.failed receipt.issued receipt.verified receipt.verification_failed replay.started replay.event_replayed replay.completed replay.failed vendor.tollbridge.login_failed vendor.tollbridge.policy_loaded vendor.tollbridge.config_loaded vendor.tollbridge.resource_created vendor.tollbridge.resource_updated vendor.tollbridge.resource_deleted vendor.tollbridge.tree_head vendor.tollbridge.bound',
  ),
};

/** The values of the visibility extension for a part or a whole message; any other value is refused. */
export const VISIBILITY: readonly Visibility[] = VISIBILITIES;

export const EXTENSIONS = {
  record: 'urn:tollbridge:a2a:record:v1',
  asks: 'urn:tollbridge:a2a:asks:v1',
  activity: 'urn:tollbridge:a2a:activity:v1',
  resume: 'urn:tollbridge:a2a:resume:v1',
  once: 'urn:tollbridge:a2a:once:v1',
  visibility: 'urn:tollbridge:a2a:visibility:v1',
  pieces: 'urn:tollbridge:a2a:pieces:v1',
  textAnswers: 'urn:tollbridge:a2a:text-answers:v1',
} as const;

export interface Operation {
  readonly id: string;
  readonly rpc: string;
  readonly verbs: readonly ('GET' | 'POST' | 'DELETE')[];
  /** Below the interface URL; `{id}` and `{configId}` are taken from the path. */
  readonly path: string;
  readonly streams?: boolean;
}

// biome-ignore format: one operation per line reads as the page of a specification
export const OPERATIONS = [
  { id: 'send', rpc: 'SendMessage', verbs: ['POST'], path: '/message:send' },
  { id: 'stream', rpc: 'SendStreamingMessage', verbs: ['POST'], path: '/message:stream', streams: true },
  { id: 'get', rpc: 'GetTask', verbs: ['GET'], path: '/tasks/{id}' },
  { id: 'list', rpc: 'ListTasks', verbs: ['GET'], path: '/tasks' },
  { id: 'cancel', rpc: 'CancelTask', verbs: ['POST'], path: '/tasks/{id}:cancel' },
  { id: 'subscribe', rpc: 'SubscribeToTask', verbs: ['POST', 'GET'], path: '/tasks/{id}:subscribe', streams: true },
  { id: 'createPush', rpc: 'CreateTaskPushNotificationConfig', verbs: ['POST'], path: '/tasks/{id}/pushNotificationConfigs' },
  { id: 'getPush', rpc: 'GetTaskPushNotificationConfig', verbs: ['GET'], path: '/tasks/{id}/pushNotificationConfigs/{configId}' },
  { id: 'listPush', rpc: 'ListTaskPushNotificationConfigs', verbs: ['GET'], path: '/tasks/{id}/pushNotificationConfigs' },
  { id: 'deletePush', rpc: 'DeleteTaskPushNotificationConfig', verbs: ['DELETE'], path: '/tasks/{id}/pushNotificationConfigs/{configId}' },
  { id: 'card', rpc: 'GetExtendedAgentCard', verbs: ['GET'], path: '/extendedAgentCard' },
] as const satisfies readonly Operation[];
export type OperationId = (typeof OPERATIONS)[number]['id'];

/** Every method of the JSON-RPC binding is a request of the client; the protocol has no notifications and no batches. */
export const frames = frameTable(
  OPERATIONS.map(({ id, rpc }) => ({
    method: rpc,
    from: 'client' as const,
    frame: 'request' as const,
    handling: id === 'send' || id === 'stream' ? ('act' as const) : ('answer' as const),
  })),
);

/** An error on each binding. `grpc` is the status by name. */
interface WireError {
  readonly rpc: number;
  readonly http: number;
  readonly grpc: string;
  readonly domain: string;
}

// biome-ignore format: one error per line reads as the page of a specification
export const ERRORS = {
  TASK_NOT_FOUND: { rpc: -32001, http: 404, grpc: 'NOT_FOUND', domain: ERROR_DOMAIN },
  TASK_NOT_CANCELABLE: { rpc: -32002, http: 400, grpc: 'FAILED_PRECONDITION', domain: ERROR_DOMAIN },
  PUSH_NOTIFICATION_NOT_SUPPORTED: { rpc: -32003, http: 400, grpc: 'FAILED_PRECONDITION', domain: ERROR_DOMAIN },
  UNSUPPORTED_OPERATION: { rpc: -32004, http: 400, grpc: 'FAILED_PRECONDITION', domain: ERROR_DOMAIN },
  CONTENT_TYPE_NOT_SUPPORTED: { rpc: -32005, http: 400, grpc: 'INVALID_ARGUMENT', domain: ERROR_DOMAIN },
  INVALID_AGENT_RESPONSE: { rpc: -32006, http: 500, grpc: 'INTERNAL', domain: ERROR_DOMAIN },
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: { rpc: -32007, http: 400, grpc: 'FAILED_PRECONDITION', domain: ERROR_DOMAIN },
  EXTENSION_SUPPORT_REQUIRED: { rpc: -32008, http: 400, grpc: 'FAILED_PRECONDITION', domain: ERROR_DOMAIN },
  VERSION_NOT_SUPPORTED: { rpc: -32009, http: 400, grpc: 'FAILED_PRECONDITION', domain: ERROR_DOMAIN },
  INVALID_PARAMS: { rpc: -32602, http: 400, grpc: 'INVALID_ARGUMENT', domain: ERROR_DOMAIN },
  PARSE_ERROR: { rpc: -32700, http: 400, grpc: 'INVALID_ARGUMENT', domain: OWN_DOMAIN },
  INVALID_REQUEST: { rpc: -32600, http: 400, grpc: 'INVALID_ARGUMENT', domain: OWN_DOMAIN },
  METHOD_NOT_FOUND: { rpc: -32601, http: 404, grpc: 'UNIMPLEMENTED', domain: OWN_DOMAIN },
  INTERNAL: { rpc: -32603, http: 500, grpc: 'INTERNAL', domain: OWN_DOMAIN },
  UNAUTHENTICATED: { rpc: -32600, http: 401, grpc: 'UNAUTHENTICATED', domain: OWN_DOMAIN },
  PERMISSION_DENIED: { rpc: -32600, http: 403, grpc: 'PERMISSION_DENIED', domain: OWN_DOMAIN },
  POLICY_VIOLATION: { rpc: -32600, http: 403, grpc: 'PERMISSION_DENIED', domain: OWN_DOMAIN },
  CONFLICT: { rpc: -32602, http: 409, grpc: 'ABORTED', domain: OWN_DOMAIN },
  IDEMPOTENCY_KEY_REUSED: { rpc: -32602, http: 409, grpc: 'ALREADY_EXISTS', domain: OWN_DOMAIN },
  CURSOR_EXPIRED: { rpc: -32602, http: 400, grpc: 'OUT_OF_RANGE', domain: OWN_DOMAIN },
  PAYLOAD_TOO_LARGE: { rpc: -32600, http: 413, grpc: 'RESOURCE_EXHAUSTED', domain: OWN_DOMAIN },
  RATE_LIMITED: { rpc: -32603, http: 429, grpc: 'RESOURCE_EXHAUSTED', domain: OWN_DOMAIN },
  UNAVAILABLE: { rpc: -32603, http: 503, grpc: 'UNAVAILABLE', domain: OWN_DOMAIN },
  DEADLINE_EXCEEDED: { rpc: -32603, http: 504, grpc: 'DEADLINE_EXCEEDED', domain: OWN_DOMAIN },
} as const satisfies Record<string, WireError>;
export type Reason = keyof typeof ERRORS;

/** For calls that produce no task; failed work is a task state instead. */
export const faults = {
  invalid_request: 'INVALID_PARAMS',
  invalid_state_transition: 'UNSUPPORTED_OPERATION',
  unauthenticated: 'UNAUTHENTICATED',
  permission_denied: 'PERMISSION_DENIED',
  not_found: 'TASK_NOT_FOUND',
  conflict: 'CONFLICT',
  idempotency_key_reused: 'IDEMPOTENCY_KEY_REUSED',
  cursor_expired: 'CURSOR_EXPIRED',
  payload_too_large: 'PAYLOAD_TOO_LARGE',
  policy_violation: 'POLICY_VIOLATION',
  locked: 'CONFLICT',
  unsupported_version: 'VERSION_NOT_SUPPORTED',
  rate_limited: 'RATE_LIMITED',
  client_closed: 'UNAVAILABLE',
  internal: 'INTERNAL',
  upstream_unavailable: 'UNAVAILABLE',
  unavailable: 'UNAVAILABLE',
  deadline_exceeded: 'DEADLINE_EXCEEDED',
  not_implemented: 'UNSUPPORTED_OPERATION',
} as const satisfies Record<FaultKind, Reason>;
