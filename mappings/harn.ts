/**
 * Agents Protocol v1 (`agents-protocol-2026-04-25`) ↔ canonical. The canonical words are this protocol's own, so this file
 * mostly lists what the protocol adds to them: statuses, codes, scopes and operations.
 */

import { ASK_STATES } from '../src/model/asks.ts';
import type { FaultKind } from '../src/model/faults.ts';
import { type FrameRow, frameTable, type RouteRow, routeTable } from './frames.ts';
import { table } from './row.ts';

export const PROTOCOL = 'agents-protocol-2026-04-25';
export const VERSION_HEADER = 'harn-agents-protocol-version';
export const PROTOCOL_FAMILY = 'harn_agents_protocol';
export const RECEIPT_JSON = 'application/vnd.harn.receipt+json';

export interface HarnFault {
  readonly status: number;
  readonly code: string;
  readonly type: string;
}

export const faults = {
  invalid_request: { status: 400, code: 'invalid_request', type: 'request_error' },
  invalid_state_transition: { status: 400, code: 'invalid_state_transition', type: 'request_error' },
  unauthenticated: { status: 401, code: 'unauthenticated', type: 'auth_error' },
  permission_denied: { status: 403, code: 'permission_denied', type: 'permission_error' },
  not_found: { status: 404, code: 'resource_not_found', type: 'not_found_error' },
  conflict: { status: 409, code: 'conflict', type: 'conflict_error' },
  idempotency_key_reused: { status: 409, code: 'idempotency_key_reused', type: 'conflict_error' },
  cursor_expired: { status: 410, code: 'cursor_expired', type: 'request_error' },
  payload_too_large: { status: 413, code: 'payload_too_large', type: 'request_error' },
  policy_violation: { status: 422, code: 'policy_violation', type: 'permission_error' },
  locked: { status: 423, code: 'resource_locked', type: 'conflict_error' },
  unsupported_version: { status: 426, code: 'unsupported_protocol_version', type: 'request_error' },
  rate_limited: { status: 429, code: 'rate_limited', type: 'rate_limit_error' },
  client_closed: { status: 499, code: 'client_closed_request', type: 'request_error' },
  internal: { status: 500, code: 'internal_error', type: 'server_error' },
  not_implemented: { status: 501, code: 'not_implemented', type: 'server_error' },
  upstream_unavailable: { status: 502, code: 'upstream_unavailable', type: 'upstream_error' },
  unavailable: { status: 503, code: 'service_unavailable', type: 'server_error' },
  deadline_exceeded: { status: 504, code: 'deadline_exceeded', type: 'upstream_error' },
} as const satisfies Record<FaultKind, HarnFault>;

/** An idempotency key on an operation that takes none is ignored. */
export const STRAY_KEY = 'ignored';
/** The HTTP status for a retry of a task that already exists: the same as the first time. */
export const REPEATED_TASK = 202;
/** Steering a task has its own message kind: `interrupt`. */
export const INPUT_STEERS = false;
/** The kind of a message that steers a running task. */
export const STEERING = 'interrupt';
/** Whether an answer may ask to be remembered. */
export const REMEMBERS_ANSWERS = false;
/** Members of a session beyond those of the model. */
export const SESSION_MEMBERS = [] as const;
/** Modes a session may be opened in: none. */
export const MODES = [] as const;

/** A question to people is a permission request here, which has three states. */
export const permissionStatus = table(ASK_STATES, [
  { wire: 'pending', core: 'open', dir: '<->' },
  { wire: 'approved', core: 'approved', dir: '<->' },
  { wire: 'denied', core: 'denied', dir: '<->' },
  { wire: 'approved', core: 'answered', dir: '<-', why: 'a value was given; `response.state` keeps our word' },
  { wire: 'denied', core: 'expired', dir: '<-', why: 'no answer is a no; `response.state` keeps our word' },
  { wire: 'denied', core: 'canceled', dir: '<-', why: 'withdrawn is a no; `response.state` keeps our word' },
]);

/** The words of a response for yes and no. */
export const OUTCOMES = ['approved', 'approve', 'selected', 'denied', 'deny', 'rejected'] as const;
export const approvedBy: Readonly<Record<(typeof OUTCOMES)[number], boolean>> = {
  approved: true,
  approve: true,
  selected: true,
  denied: false,
  deny: false,
  rejected: false,
};

/**
 * One line per operation. `scope` is the scope the caller must hold (null: none), `body` and `result` are schema names, `query`
 * the parameters it takes. `key` accepts an idempotency key. `from` is the document that defines it.
 */
export interface Operation extends RouteRow {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly tag: string;
  readonly scope: string | null;
  readonly success: number;
  readonly result: string | null;
  readonly summary: string;
  readonly body?: string;
  readonly bodyOptional?: boolean;
  readonly query?: readonly QueryName[];
  readonly key?: boolean;
  /** The status when an earlier request with the same key created the result, where it differs. */
  readonly repeated?: number;
  /** The response has no version header. */
  readonly unversioned?: boolean;
  readonly from: 'first' | 'later' | 'narrative' | 'ours';
}

export type QueryName =
  | 'limit'
  | 'cursor'
  | 'after_event_id'
  | 'last_event_id'
  | 'workspace_id'
  | 'session_id'
  | 'task_id'
  | 'status'
  | 'path'
  | 'tenant_id'
  | 'actor'
  | 'outcome';

const PAGE = ['limit', 'cursor'] as const;
const RANGE = ['limit', 'after_event_id', 'cursor'] as const;
const RESUME = ['last_event_id'] as const;

// biome-ignore format: one operation per line reads as the page of a specification
export const OPERATIONS = [
  { id: 'getProtocolDiscovery', handling: 'answer', method: 'GET', path: '/v1', tag: 'Discovery', scope: null, unversioned: true, success: 200, result: 'Discovery', summary: 'Supported versions and capabilities.', from: 'first' },
  { id: 'getAgentCard', handling: 'answer', method: 'GET', path: '/v1/agent-card', tag: 'Discovery', scope: null, unversioned: true, success: 200, result: 'HarnAgentCard', summary: 'The signed card of this gateway.', from: 'first' },

  { id: 'listPersonas', handling: 'answer', method: 'GET', path: '/v1/personas', tag: 'Personas', scope: 'personas:read', success: 200, result: 'PersonaList', query: PAGE, summary: 'Personas the caller may see.', from: 'first' },
  { id: 'createPersona', handling: 'answer', method: 'POST', path: '/v1/personas', tag: 'Personas', scope: 'personas:write', body: 'CreatePersonaRequest', key: true, success: 201, result: 'Persona', summary: 'Declare a persona.', from: 'first' },
  { id: 'getPersona', handling: 'answer', method: 'GET', path: '/v1/personas/{persona_id}', tag: 'Personas', scope: 'personas:read', success: 200, result: 'Persona', summary: 'One persona.', from: 'first' },
  { id: 'updatePersona', handling: 'answer', method: 'PATCH', path: '/v1/personas/{persona_id}', tag: 'Personas', scope: 'personas:write', body: 'UpdatePersonaRequest', key: true, success: 200, result: 'Persona', summary: 'Change a persona.', from: 'first' },

  { id: 'listWorkspaces', handling: 'answer', method: 'GET', path: '/v1/workspaces', tag: 'Workspaces', scope: 'workspaces:read', success: 200, result: 'WorkspaceList', query: PAGE, summary: 'Workspaces the caller may see.', from: 'first' },
  { id: 'createWorkspace', handling: 'answer', method: 'POST', path: '/v1/workspaces', tag: 'Workspaces', scope: 'workspaces:write', body: 'CreateWorkspaceRequest', key: true, success: 201, result: 'Workspace', summary: 'Declare a workspace.', from: 'first' },
  { id: 'getWorkspace', handling: 'answer', method: 'GET', path: '/v1/workspaces/{workspace_id}', tag: 'Workspaces', scope: 'workspaces:read', success: 200, result: 'Workspace', summary: 'One workspace.', from: 'first' },
  { id: 'updateWorkspace', handling: 'answer', method: 'PATCH', path: '/v1/workspaces/{workspace_id}', tag: 'Workspaces', scope: 'workspaces:write', body: 'UpdateWorkspaceRequest', key: true, success: 200, result: 'Workspace', summary: 'Change a workspace.', from: 'first' },
  { id: 'readWorkspaceFile', handling: 'act', method: 'GET', path: '/v1/workspaces/{workspace_id}/files', tag: 'Workspaces', scope: 'tasks:write', query: ['path'], success: 200, result: 'WorkspaceFileOrListing', summary: 'Read a file of a local workspace, or list a directory.', from: 'later' },
  { id: 'writeWorkspaceFile', handling: 'act', method: 'PUT', path: '/v1/workspaces/{workspace_id}/files', tag: 'Workspaces', scope: 'tasks:write', query: ['path'], body: 'WriteWorkspaceFileRequest', key: true, success: 200, result: 'WorkspaceFile', summary: 'Write a file of a local workspace.', from: 'later' },

  { id: 'listSessions', handling: 'answer', method: 'GET', path: '/v1/sessions', tag: 'Sessions', scope: 'sessions:read', success: 200, result: 'SessionList', query: [...PAGE, 'workspace_id', 'status'], summary: 'Sessions the caller may see.', from: 'first' },
  { id: 'createSession', handling: 'act', method: 'POST', path: '/v1/sessions', tag: 'Sessions', scope: 'sessions:write', body: 'CreateSessionRequest', key: true, success: 201, result: 'Session', summary: 'Open a session.', from: 'first' },
  { id: 'getSession', handling: 'answer', method: 'GET', path: '/v1/sessions/{session_id}', tag: 'Sessions', scope: 'sessions:read', success: 200, result: 'Session', summary: 'One session.', from: 'first' },
  { id: 'updateSession', handling: 'answer', method: 'PATCH', path: '/v1/sessions/{session_id}', tag: 'Sessions', scope: 'sessions:write', body: 'UpdateSessionRequest', key: true, success: 200, result: 'Session', summary: 'Change summary or metadata.', from: 'first' },
  { id: 'closeSession', handling: 'answer', method: 'POST', path: '/v1/sessions/{session_id}/close', tag: 'Sessions', scope: 'sessions:write', key: true, success: 200, result: 'Session', summary: 'Close a session; what runs in it is canceled.', from: 'first' },
  { id: 'forkSession', handling: 'answer', method: 'POST', path: '/v1/sessions/{session_id}/fork', tag: 'Sessions', scope: 'sessions:write', body: 'ForkSessionRequest', bodyOptional: true, key: true, success: 201, result: 'Session', summary: 'Copy the transcript, up to an event, into a new session.', from: 'first' },
  { id: 'truncateSession', handling: 'answer', method: 'POST', path: '/v1/sessions/{session_id}/truncate', tag: 'Sessions', scope: 'sessions:write', body: 'TruncateSessionRequest', key: true, success: 200, result: 'TruncateSessionResponse', summary: 'Keep the first turns of the transcript and drop the rest.', from: 'later' },
  { id: 'replaySession', handling: 'answer', method: 'POST', path: '/v1/sessions/{session_id}/replay', tag: 'Sessions', scope: 'tasks:write', body: 'ReplaySessionRequest', bodyOptional: true, key: true, success: 202, result: 'TaskList', summary: 'Replay the ended tasks of a session in order.', from: 'narrative' },
  { id: 'listSessionMessages', handling: 'answer', method: 'GET', path: '/v1/sessions/{session_id}/messages', tag: 'Sessions', scope: 'sessions:read', success: 200, result: 'MessageList', query: PAGE, summary: 'The transcript, oldest first.', from: 'first' },
  { id: 'appendSessionMessage', handling: 'answer', method: 'POST', path: '/v1/sessions/{session_id}/messages', tag: 'Sessions', scope: 'sessions:write', body: 'AppendMessageRequest', key: true, success: 201, result: 'Message', summary: 'Add to the transcript without starting work.', from: 'first' },
  { id: 'listSessionTasks', handling: 'answer', method: 'GET', path: '/v1/sessions/{session_id}/tasks', tag: 'Sessions', scope: 'tasks:read', success: 200, result: 'TaskList', query: [...PAGE, 'status'], summary: 'Tasks of a session.', from: 'first' },
  { id: 'submitSessionTask', handling: 'act', method: 'POST', path: '/v1/sessions/{session_id}/tasks', tag: 'Sessions', scope: 'tasks:write', body: 'SubmitSessionTaskRequest', key: true, success: 202, result: 'Task', summary: 'Give the session work.', from: 'first' },
  { id: 'listSessionBranches', handling: 'answer', method: 'GET', path: '/v1/sessions/{session_id}/branches', tag: 'Sessions', scope: 'sessions:read', success: 200, result: 'BranchList', query: PAGE, summary: 'Branches of a session.', from: 'first' },
  { id: 'createSessionBranch', handling: 'answer', method: 'POST', path: '/v1/sessions/{session_id}/branches', tag: 'Sessions', scope: 'sessions:write', body: 'CreateBranchRequest', key: true, success: 201, result: 'Branch', summary: 'Open a branch.', from: 'first' },
  { id: 'listSessionEvents', handling: 'answer', method: 'GET', path: '/v1/sessions/{session_id}/events', tag: 'Sessions', scope: 'events:read', success: 200, result: 'EventList', query: RANGE, summary: 'Events of a session, oldest first.', from: 'first' },
  { id: 'streamSessionEvents', handling: 'answer', method: 'GET', path: '/v1/sessions/{session_id}/events/stream', tag: 'Sessions', scope: 'events:read', success: 200, result: 'EventStream', query: RESUME, summary: 'Follow a session; also a WebSocket.', from: 'first' },

  { id: 'listTasks', handling: 'answer', method: 'GET', path: '/v1/tasks', tag: 'Tasks', scope: 'tasks:read', success: 200, result: 'TaskList', query: [...PAGE, 'workspace_id', 'session_id', 'status'], summary: 'Tasks the caller may see.', from: 'first' },
  { id: 'submitTask', handling: 'act', method: 'POST', path: '/v1/tasks', tag: 'Tasks', scope: 'tasks:write', body: 'SubmitTaskRequest', key: true, success: 202, result: 'Task', summary: 'Give a session work.', from: 'first' },
  { id: 'getTask', handling: 'answer', method: 'GET', path: '/v1/tasks/{task_id}', tag: 'Tasks', scope: 'tasks:read', success: 200, result: 'Task', summary: 'One task.', from: 'first' },
  { id: 'cancelTask', handling: 'pass', method: 'POST', path: '/v1/tasks/{task_id}/cancel', tag: 'Tasks', scope: 'tasks:write', body: 'CancelTaskRequest', bodyOptional: true, key: true, success: 200, result: 'Task', summary: 'Stop a task.', from: 'first' },
  { id: 'replayTask', handling: 'answer', method: 'POST', path: '/v1/tasks/{task_id}/replay', tag: 'Tasks', scope: 'tasks:write', body: 'ReplayTaskRequest', bodyOptional: true, key: true, success: 202, result: 'Task', summary: 'Live through an ended task again, from its record.', from: 'first' },
  { id: 'appendTaskMessage', handling: 'pass', method: 'POST', path: '/v1/tasks/{task_id}/messages', tag: 'Tasks', scope: 'tasks:write', body: 'AppendTaskMessageRequest', key: true, success: 201, result: 'Message', summary: 'Answer, steer or confirm a running task.', from: 'first' },
  { id: 'listTaskEvents', handling: 'answer', method: 'GET', path: '/v1/tasks/{task_id}/events', tag: 'Tasks', scope: 'events:read', success: 200, result: 'EventList', query: RANGE, summary: 'Events of a task, oldest first.', from: 'first' },
  { id: 'streamTaskEvents', handling: 'answer', method: 'GET', path: '/v1/tasks/{task_id}/stream', tag: 'Tasks', scope: 'events:read', success: 200, result: 'EventStream', query: RESUME, summary: 'Follow a task to its end; also a WebSocket.', from: 'first' },
  { id: 'listTaskReceipts', handling: 'answer', method: 'GET', path: '/v1/tasks/{task_id}/receipts', tag: 'Tasks', scope: 'receipts:read', success: 200, result: 'ReceiptList', query: PAGE, summary: 'Receipts of a task.', from: 'first' },
  { id: 'listTaskPermissionRequests', handling: 'answer', method: 'GET', path: '/v1/tasks/{task_id}/permission-requests', tag: 'Permissions', scope: 'tasks:read', success: 200, result: 'PermissionRequestList', query: [...PAGE, 'status'], summary: 'Questions a task put to people.', from: 'later' },

  { id: 'listPermissionRequests', handling: 'answer', method: 'GET', path: '/v1/permission-requests', tag: 'Permissions', scope: 'tasks:read', success: 200, result: 'PermissionRequestList', query: [...PAGE, 'workspace_id', 'session_id', 'task_id', 'status'], summary: 'Questions put to people, open and settled.', from: 'later' },
  { id: 'getPermissionRequest', handling: 'answer', method: 'GET', path: '/v1/permission-requests/{request_id}', tag: 'Permissions', scope: 'tasks:read', success: 200, result: 'PermissionRequest', summary: 'One question.', from: 'ours' },
  { id: 'respondPermissionRequest', handling: 'answer', method: 'POST', path: '/v1/permission-requests/{request_id}/respond', tag: 'Permissions', scope: 'approvals:write', body: 'PermissionResponseRequest', key: true, success: 200, result: 'PermissionRequest', summary: 'Answer a question. The first answer wins.', from: 'later' },

  { id: 'getBranch', handling: 'answer', method: 'GET', path: '/v1/branches/{branch_id}', tag: 'Branches', scope: 'sessions:read', success: 200, result: 'Branch', summary: 'One branch.', from: 'first' },
  { id: 'updateBranch', handling: 'answer', method: 'PATCH', path: '/v1/branches/{branch_id}', tag: 'Branches', scope: 'sessions:write', body: 'UpdateBranchRequest', key: true, success: 200, result: 'Branch', summary: 'Change what a branch says of itself.', from: 'ours' },
  { id: 'mergeBranch', handling: 'answer', method: 'POST', path: '/v1/branches/{branch_id}/merge', tag: 'Branches', scope: 'sessions:write', body: 'MergeBranchRequest', bodyOptional: true, key: true, success: 200, result: 'Branch', summary: 'Merge a branch; what a fork said comes into the session it left.', from: 'ours' },
  { id: 'abandonBranch', handling: 'answer', method: 'POST', path: '/v1/branches/{branch_id}/abandon', tag: 'Branches', scope: 'sessions:write', body: 'AbandonBranchRequest', bodyOptional: true, key: true, success: 200, result: 'Branch', summary: 'Give a branch up.', from: 'ours' },
  { id: 'getMessage', handling: 'answer', method: 'GET', path: '/v1/messages/{message_id}', tag: 'Messages', scope: 'sessions:read', success: 200, result: 'Message', summary: 'One message.', from: 'first' },

  { id: 'listArtifacts', handling: 'answer', method: 'GET', path: '/v1/artifacts', tag: 'Artifacts', scope: 'artifacts:read', success: 200, result: 'ArtifactList', query: [...PAGE, 'workspace_id', 'session_id', 'task_id'], summary: 'Artifacts the caller may see.', from: 'first' },
  { id: 'registerArtifact', handling: 'answer', method: 'POST', path: '/v1/artifacts', tag: 'Artifacts', scope: 'artifacts:write', body: 'RegisterArtifactRequest', key: true, success: 201, result: 'Artifact', summary: 'Register an artifact by reference and hash.', from: 'first' },
  { id: 'getArtifact', handling: 'answer', method: 'GET', path: '/v1/artifacts/{artifact_id}', tag: 'Artifacts', scope: 'artifacts:read', success: 200, result: 'Artifact', summary: 'One artifact.', from: 'first' },
  { id: 'downloadArtifactContent', handling: 'answer', method: 'GET', path: '/v1/artifacts/{artifact_id}/content', tag: 'Artifacts', scope: 'artifacts:read', success: 200, result: 'Bytes', summary: 'The bytes of an artifact, whole or a range.', from: 'first' },
  { id: 'uploadArtifactContent', handling: 'answer', method: 'PUT', path: '/v1/artifacts/{artifact_id}/content', tag: 'Artifacts', scope: 'artifacts:write', body: 'Bytes', key: true, success: 200, result: 'Artifact', summary: 'Give a registered artifact its bytes.', from: 'narrative' },
  { id: 'linkArtifact', handling: 'answer', method: 'POST', path: '/v1/artifacts/{artifact_id}/link', tag: 'Artifacts', scope: 'artifacts:write', body: 'LinkArtifactRequest', key: true, success: 200, result: 'Artifact', summary: 'Say what refers to an artifact.', from: 'ours' },
  { id: 'redactArtifact', handling: 'answer', method: 'POST', path: '/v1/artifacts/{artifact_id}/redact', tag: 'Artifacts', scope: 'artifacts:write', body: 'RedactArtifactRequest', bodyOptional: true, key: true, success: 200, result: 'Artifact', summary: 'Withdraw what an artifact holds; its hash stays.', from: 'ours' },

  { id: 'listEvents', handling: 'answer', method: 'GET', path: '/v1/events', tag: 'Events', scope: 'events:read', success: 200, result: 'EventList', query: [...RANGE, 'workspace_id', 'session_id', 'task_id'], summary: 'Events the caller may see, oldest first.', from: 'first' },
  { id: 'streamEvents', handling: 'answer', method: 'GET', path: '/v1/events/stream', tag: 'Events', scope: 'events:read', success: 200, result: 'EventStream', query: [...RESUME, 'workspace_id', 'session_id', 'task_id'], summary: 'Follow everything the caller may see, from now on.', from: 'first' },
  { id: 'getEvent', handling: 'answer', method: 'GET', path: '/v1/events/{event_id}', tag: 'Events', scope: 'events:read', success: 200, result: 'Event', summary: 'One event.', from: 'first' },

  { id: 'listReceipts', handling: 'answer', method: 'GET', path: '/v1/receipts', tag: 'Receipts', scope: 'receipts:read', success: 200, result: 'ReceiptList', query: [...PAGE, 'workspace_id', 'task_id'], summary: 'Receipts the caller may see, in order of issue.', from: 'ours' },
  { id: 'getReceiptBatch', handling: 'answer', method: 'GET', path: '/v1/receipts/batches/{batch_id}', tag: 'Receipts', scope: 'receipts:read', success: 200, result: 'ReceiptBatch', summary: 'A run of receipt hashes of one workspace and the root over them.', from: 'narrative' },
  { id: 'getReceipt', handling: 'answer', method: 'GET', path: '/v1/receipts/{receipt_id}', tag: 'Receipts', scope: 'receipts:read', success: 200, result: 'Receipt', summary: 'One receipt; the bare document by content negotiation.', from: 'first' },
  { id: 'verifyReceipt', handling: 'answer', method: 'POST', path: '/v1/receipts/{receipt_id}/verify', tag: 'Receipts', scope: 'receipts:read', body: 'VerifyReceiptRequest', bodyOptional: true, key: true, success: 200, result: 'ReceiptVerification', summary: 'Recompute everything about a receipt from what is stored.', from: 'first' },

  { id: 'listMemories', handling: 'answer', method: 'GET', path: '/v1/memories', tag: 'Memories', scope: 'memories:read', success: 200, result: 'MemoryList', query: [...PAGE, 'workspace_id', 'session_id'], summary: 'Memories the caller may see.', from: 'first' },
  { id: 'createMemory', handling: 'answer', method: 'POST', path: '/v1/memories', tag: 'Memories', scope: 'memories:write', body: 'CreateMemoryRequest', key: true, success: 201, result: 'Memory', summary: 'Write a memory.', from: 'first' },
  { id: 'getMemory', handling: 'answer', method: 'GET', path: '/v1/memories/{memory_id}', tag: 'Memories', scope: 'memories:read', success: 200, result: 'Memory', summary: 'One memory.', from: 'first' },
  { id: 'deleteMemory', handling: 'answer', method: 'DELETE', path: '/v1/memories/{memory_id}', tag: 'Memories', scope: 'memories:write', key: true, success: 204, result: null, summary: 'Withdraw a memory; its history stays.', from: 'first' },

  { id: 'listVaults', handling: 'answer', method: 'GET', path: '/v1/vaults', tag: 'Vaults', scope: 'vaults:read', success: 200, result: 'VaultList', query: [...PAGE, 'workspace_id'], summary: 'Vaults the caller may see. Never their values.', from: 'first' },
  { id: 'createVault', handling: 'answer', method: 'POST', path: '/v1/vaults', tag: 'Vaults', scope: 'vaults:write', body: 'CreateVaultRequest', key: true, success: 201, result: 'Vault', summary: 'Declare a vault.', from: 'first' },
  { id: 'getVault', handling: 'answer', method: 'GET', path: '/v1/vaults/{vault_id}', tag: 'Vaults', scope: 'vaults:read', success: 200, result: 'Vault', summary: 'One vault. Never its values.', from: 'first' },

  { id: 'listConnectors', handling: 'answer', method: 'GET', path: '/v1/connectors', tag: 'Connectors', scope: 'connectors:read', success: 200, result: 'ConnectorList', query: [...PAGE, 'workspace_id'], summary: 'Connectors the caller may see.', from: 'first' },
  { id: 'createConnector', handling: 'answer', method: 'POST', path: '/v1/connectors', tag: 'Connectors', scope: 'connectors:write', body: 'CreateConnectorRequest', key: true, success: 201, result: 'Connector', summary: 'Declare a connector.', from: 'ours' },
  { id: 'getConnector', handling: 'answer', method: 'GET', path: '/v1/connectors/{connector_id}', tag: 'Connectors', scope: 'connectors:read', success: 200, result: 'Connector', summary: 'One connector.', from: 'first' },
  { id: 'deliverToConnector', handling: 'act', method: 'POST', path: '/v1/connectors/{connector_id}/deliveries', tag: 'Connectors', scope: null, unversioned: true, body: 'Bytes', success: 202, result: 'Task', summary: 'A signed webhook delivery; each becomes one task.', from: 'narrative' },

  { id: 'listSkills', handling: 'answer', method: 'GET', path: '/v1/skills', tag: 'Skills', scope: 'skills:read', success: 200, result: 'SkillList', query: PAGE, summary: 'Skills the caller may see.', from: 'first' },
  { id: 'createSkill', handling: 'answer', method: 'POST', path: '/v1/skills', tag: 'Skills', scope: 'skills:write', body: 'CreateSkillRequest', key: true, success: 201, result: 'Skill', summary: 'Declare a skill.', from: 'ours' },
  { id: 'getSkill', handling: 'answer', method: 'GET', path: '/v1/skills/{skill_id}', tag: 'Skills', scope: 'skills:read', success: 200, result: 'Skill', summary: 'One skill.', from: 'first' },
  { id: 'listTools', handling: 'answer', method: 'GET', path: '/v1/tools', tag: 'Tools', scope: 'skills:read', success: 200, result: 'ToolList', query: PAGE, summary: 'Tools mounted behind the gateway.', from: 'later' },
  { id: 'getTool', handling: 'answer', method: 'GET', path: '/v1/tools/{tool_id}', tag: 'Tools', scope: 'skills:read', success: 200, result: 'Tool', summary: 'One tool.', from: 'later' },

  { id: 'listOutcomes', handling: 'answer', method: 'GET', path: '/v1/outcomes', tag: 'Outcomes', scope: 'tasks:read', success: 200, result: 'OutcomeList', query: [...PAGE, 'task_id'], summary: 'Outcomes the caller may see.', from: 'first' },
  { id: 'getOutcome', handling: 'answer', method: 'GET', path: '/v1/outcomes/{outcome_id}', tag: 'Outcomes', scope: 'tasks:read', success: 200, result: 'Outcome', summary: 'One outcome.', from: 'first' },

  { id: 'listQuotas', handling: 'answer', method: 'GET', path: '/v1/quotas', tag: 'Quotas', scope: 'quotas:read', success: 200, result: 'QuotaList', query: PAGE, summary: 'Quotas the caller may see.', from: 'first' },
  { id: 'createQuota', handling: 'answer', method: 'POST', path: '/v1/quotas', tag: 'Quotas', scope: 'quotas:write', body: 'CreateQuotaRequest', key: true, success: 201, result: 'Quota', summary: 'Declare a quota.', from: 'ours' },
  { id: 'getQuota', handling: 'answer', method: 'GET', path: '/v1/quotas/{quota_id}', tag: 'Quotas', scope: 'quotas:read', success: 200, result: 'Quota', summary: 'One quota.', from: 'first' },

  { id: 'getRuntime', handling: 'answer', method: 'GET', path: '/v1/runtime', tag: 'Runtime', scope: 'tasks:read', success: 200, result: 'RuntimeMetadata', summary: 'What serves this API.', from: 'later' },
  { id: 'listCapabilities', handling: 'answer', method: 'GET', path: '/v1/capabilities', tag: 'Runtime', scope: 'tasks:read', success: 200, result: 'CapabilitySummary', summary: 'What this API can do.', from: 'later' },

  { id: 'getHealth', handling: 'answer', method: 'GET', path: '/health', tag: 'Runtime', scope: null, unversioned: true, success: 200, result: 'Health', summary: 'Well or not.', from: 'later' },
  { id: 'getHealthLive', handling: 'answer', method: 'GET', path: '/health/live', tag: 'Runtime', scope: null, unversioned: true, success: 200, result: 'Health', summary: 'The process answers.', from: 'ours' },
  { id: 'getHealthReady', handling: 'answer', method: 'GET', path: '/health/ready', tag: 'Runtime', scope: null, unversioned: true, success: 200, result: 'Health', summary: 'Work is accepted; 503 when it is not.', from: 'ours' },
  { id: 'getHealthDeps', handling: 'answer', method: 'GET', path: '/health/deps', tag: 'Runtime', scope: 'tasks:read', unversioned: true, success: 200, result: 'HealthDetails', summary: 'What the gateway depends on, and how each is.', from: 'ours' },
  { id: 'getVersion', handling: 'answer', method: 'GET', path: '/version', tag: 'Runtime', scope: null, unversioned: true, success: 200, result: 'RuntimeVersion', summary: 'Versions.', from: 'later' },
  { id: 'getMetrics', handling: 'answer', method: 'GET', path: '/metrics', tag: 'Runtime', scope: 'metrics:read', unversioned: true, success: 200, result: 'Text', summary: 'Counters for Prometheus.', from: 'ours' },
  { id: 'getOpenApiDocument', handling: 'answer', method: 'GET', path: '/openapi.json', tag: 'Discovery', scope: null, unversioned: true, success: 200, result: 'OpenApi', summary: 'This document.', from: 'later' },
  { id: 'getDocs', handling: 'answer', method: 'GET', path: '/docs', tag: 'Discovery', scope: null, unversioned: true, success: 200, result: 'Html', summary: 'This document, for people.', from: 'ours' },
  { id: 'getReceiptSchema', handling: 'answer', method: 'GET', path: '/schemas/receipt-2026-04-25.schema.json', tag: 'Receipts', scope: null, unversioned: true, success: 200, result: 'JsonSchema', summary: 'The JSON Schema of the receipt document.', from: 'narrative' },
  { id: 'getReceiptKeys', handling: 'answer', method: 'GET', path: '/.well-known/harn-receipt-keys.json', tag: 'Receipts', scope: null, unversioned: true, success: 200, result: 'Jwks', summary: 'The public keys receipts are signed with.', from: 'narrative' },
] as const satisfies readonly Operation[];

export type OperationId = (typeof OPERATIONS)[number]['id'];

/** The handling of each request; a request without a row is not served. */
export const routes = routeTable<Operation & { readonly id: OperationId }>(OPERATIONS);

// ---- Frames of a socket ----

/** A client frame that corresponds to an operation: which one, and the id in that operation's path. */
export interface SocketRow extends FrameRow<'client' | 'gateway'> {
  readonly operation?: OperationId;
  readonly of?: 'session_id' | 'task_id' | 'request_id';
}

const notices = (method: string): SocketRow[] => [
  { method, from: 'client', frame: 'notification', handling: 'answer' },
  { method, from: 'client', frame: 'request', handling: 'answer' },
];
const command = (method: string, operation: OperationId, of: NonNullable<SocketRow['of']>): SocketRow => ({
  method,
  from: 'client',
  frame: 'request',
  handling: 'act',
  operation,
  of,
});
const said = (method: string): SocketRow => ({ method, from: 'gateway', frame: 'notification', handling: 'pass' });

/** A frame with an id is a request. A frame about the connection may have an id; a command must have one. */
export const frames = frameTable<SocketRow>([
  ...notices('ping'),
  ...notices('pong'),
  ...notices('ack'),
  ...notices('resume'),
  { method: 'tools.offer', from: 'client', frame: 'request', handling: 'answer' },
  command('message.append', 'appendSessionMessage', 'session_id'),
  command('task.submit', 'submitSessionTask', 'session_id'),
  command('task.cancel', 'cancelTask', 'task_id'),
  command('task.message', 'appendTaskMessage', 'task_id'),
  command('session.truncate', 'truncateSession', 'session_id'),
  command('response', 'respondPermissionRequest', 'request_id'),
  ...['ready', 'event', 'caught_up', 'result', 'error', 'request', 'request.withdrawn'].map(said),
]);
