/**
 * Agents Protocol v1 (`agents-protocol-2026-04-25`) ↔ canonical. The canonical words are this protocol's own, so most of
 * this page is what the protocol adds round them: statuses, codes, scopes and the list of operations.
 */

import { ASK_STATES } from '../src/model/asks.ts';
import type { FaultKind } from '../src/model/faults.ts';
import { type FrameRow, frameTable } from './frames.ts';
import { table } from './row.ts';

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

/** A question to people is a permission request here, and that knows three states. */
export const permissionStatus = table(ASK_STATES, [
  { wire: 'pending', core: 'open', dir: '<->' },
  { wire: 'approved', core: 'approved', dir: '<->' },
  { wire: 'denied', core: 'denied', dir: '<->' },
  { wire: 'approved', core: 'answered', dir: '<-', why: 'a value was given; `response.state` keeps our word' },
  { wire: 'denied', core: 'expired', dir: '<-', why: 'no answer is a no; `response.state` keeps our word' },
  { wire: 'denied', core: 'canceled', dir: '<-', why: 'withdrawn is a no; `response.state` keeps our word' },
]);

/** The words a response may use for yes and no. */
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
 * One line per operation. `scope` is what the caller must hold (null: anyone), `body` and `result` are schema names,
 * `query` the parameters it takes. `key` accepts an idempotency key. `from` is the document that has it.
 */
export interface Operation {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly tag: string;
  readonly scope: string | null;
  readonly success: number;
  readonly result: string | null;
  readonly summary: string;
  readonly body?: string;
  readonly bodyOptional?: boolean;
  readonly query?: readonly QueryName[];
  readonly key?: boolean;
  /** Answers without the version header. */
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
  | 'path';

const PAGE = ['limit', 'cursor'] as const;
const RANGE = ['limit', 'after_event_id', 'cursor'] as const;
const RESUME = ['last_event_id'] as const;

// biome-ignore format: one operation per line reads as the page of a specification
export const OPERATIONS = [
  { id: 'getProtocolDiscovery', method: 'GET', path: '/v1', tag: 'Discovery', scope: null, unversioned: true, success: 200, result: 'Discovery', summary: 'Supported versions and capabilities.', from: 'first' },
  { id: 'getAgentCard', method: 'GET', path: '/v1/agent-card', tag: 'Discovery', scope: null, unversioned: true, success: 200, result: 'HarnAgentCard', summary: 'The signed card of this gateway.', from: 'first' },

  { id: 'listPersonas', method: 'GET', path: '/v1/personas', tag: 'Personas', scope: 'personas:read', success: 200, result: 'PersonaList', query: PAGE, summary: 'Personas the caller may see.', from: 'first' },
  { id: 'createPersona', method: 'POST', path: '/v1/personas', tag: 'Personas', scope: 'personas:write', body: 'CreatePersonaRequest', key: true, success: 201, result: 'Persona', summary: 'Declare a persona.', from: 'first' },
  { id: 'getPersona', method: 'GET', path: '/v1/personas/{persona_id}', tag: 'Personas', scope: 'personas:read', success: 200, result: 'Persona', summary: 'One persona.', from: 'first' },
  { id: 'updatePersona', method: 'PATCH', path: '/v1/personas/{persona_id}', tag: 'Personas', scope: 'personas:write', body: 'UpdatePersonaRequest', key: true, success: 200, result: 'Persona', summary: 'Change a persona.', from: 'first' },

  { id: 'listWorkspaces', method: 'GET', path: '/v1/workspaces', tag: 'Workspaces', scope: 'workspaces:read', success: 200, result: 'WorkspaceList', query: PAGE, summary: 'Workspaces the caller may see.', from: 'first' },
  { id: 'createWorkspace', method: 'POST', path: '/v1/workspaces', tag: 'Workspaces', scope: 'workspaces:write', body: 'CreateWorkspaceRequest', key: true, success: 201, result: 'Workspace', summary: 'Declare a workspace.', from: 'first' },
  { id: 'getWorkspace', method: 'GET', path: '/v1/workspaces/{workspace_id}', tag: 'Workspaces', scope: 'workspaces:read', success: 200, result: 'Workspace', summary: 'One workspace.', from: 'first' },
  { id: 'updateWorkspace', method: 'PATCH', path: '/v1/workspaces/{workspace_id}', tag: 'Workspaces', scope: 'workspaces:write', body: 'UpdateWorkspaceRequest', key: true, success: 200, result: 'Workspace', summary: 'Change a workspace.', from: 'first' },
  { id: 'readWorkspaceFile', method: 'GET', path: '/v1/workspaces/{workspace_id}/files', tag: 'Workspaces', scope: 'tasks:write', query: ['path'], success: 200, result: 'WorkspaceFileOrListing', summary: 'Read a file of a local workspace, or list a directory.', from: 'later' },
  { id: 'writeWorkspaceFile', method: 'PUT', path: '/v1/workspaces/{workspace_id}/files', tag: 'Workspaces', scope: 'tasks:write', query: ['path'], body: 'WriteWorkspaceFileRequest', key: true, success: 200, result: 'WorkspaceFile', summary: 'Write a file of a local workspace.', from: 'later' },

  { id: 'listSessions', method: 'GET', path: '/v1/sessions', tag: 'Sessions', scope: 'sessions:read', success: 200, result: 'SessionList', query: [...PAGE, 'workspace_id', 'status'], summary: 'Sessions the caller may see.', from: 'first' },
  { id: 'createSession', method: 'POST', path: '/v1/sessions', tag: 'Sessions', scope: 'sessions:write', body: 'CreateSessionRequest', key: true, success: 201, result: 'Session', summary: 'Open a session.', from: 'first' },
  { id: 'getSession', method: 'GET', path: '/v1/sessions/{session_id}', tag: 'Sessions', scope: 'sessions:read', success: 200, result: 'Session', summary: 'One session.', from: 'first' },
  { id: 'updateSession', method: 'PATCH', path: '/v1/sessions/{session_id}', tag: 'Sessions', scope: 'sessions:write', body: 'UpdateSessionRequest', key: true, success: 200, result: 'Session', summary: 'Change summary or metadata.', from: 'first' },
  { id: 'closeSession', method: 'POST', path: '/v1/sessions/{session_id}/close', tag: 'Sessions', scope: 'sessions:write', key: true, success: 200, result: 'Session', summary: 'Close a session; what runs in it is canceled.', from: 'first' },
  { id: 'forkSession', method: 'POST', path: '/v1/sessions/{session_id}/fork', tag: 'Sessions', scope: 'sessions:write', body: 'ForkSessionRequest', bodyOptional: true, key: true, success: 201, result: 'Session', summary: 'Copy the transcript, up to an event, into a new session.', from: 'first' },
  { id: 'truncateSession', method: 'POST', path: '/v1/sessions/{session_id}/truncate', tag: 'Sessions', scope: 'sessions:write', body: 'TruncateSessionRequest', key: true, success: 200, result: 'TruncateSessionResponse', summary: 'Keep the first turns of the transcript and drop the rest.', from: 'later' },
  { id: 'replaySession', method: 'POST', path: '/v1/sessions/{session_id}/replay', tag: 'Sessions', scope: 'tasks:write', body: 'ReplaySessionRequest', bodyOptional: true, key: true, success: 202, result: 'TaskList', summary: 'Replay the ended tasks of a session in order.', from: 'narrative' },
  { id: 'listSessionMessages', method: 'GET', path: '/v1/sessions/{session_id}/messages', tag: 'Sessions', scope: 'sessions:read', success: 200, result: 'MessageList', query: PAGE, summary: 'The transcript, oldest first.', from: 'first' },
  { id: 'appendSessionMessage', method: 'POST', path: '/v1/sessions/{session_id}/messages', tag: 'Sessions', scope: 'sessions:write', body: 'AppendMessageRequest', key: true, success: 201, result: 'Message', summary: 'Add to the transcript without starting work.', from: 'first' },
  { id: 'listSessionTasks', method: 'GET', path: '/v1/sessions/{session_id}/tasks', tag: 'Sessions', scope: 'tasks:read', success: 200, result: 'TaskList', query: [...PAGE, 'status'], summary: 'Tasks of a session.', from: 'first' },
  { id: 'submitSessionTask', method: 'POST', path: '/v1/sessions/{session_id}/tasks', tag: 'Sessions', scope: 'tasks:write', body: 'SubmitSessionTaskRequest', key: true, success: 202, result: 'Task', summary: 'Give the session work.', from: 'first' },
  { id: 'listSessionBranches', method: 'GET', path: '/v1/sessions/{session_id}/branches', tag: 'Sessions', scope: 'sessions:read', success: 200, result: 'BranchList', query: PAGE, summary: 'Branches of a session.', from: 'first' },
  { id: 'createSessionBranch', method: 'POST', path: '/v1/sessions/{session_id}/branches', tag: 'Sessions', scope: 'sessions:write', body: 'CreateBranchRequest', key: true, success: 201, result: 'Branch', summary: 'Open a branch.', from: 'first' },
  { id: 'listSessionEvents', method: 'GET', path: '/v1/sessions/{session_id}/events', tag: 'Sessions', scope: 'events:read', success: 200, result: 'EventList', query: RANGE, summary: 'Events of a session, oldest first.', from: 'first' },
  { id: 'streamSessionEvents', method: 'GET', path: '/v1/sessions/{session_id}/events/stream', tag: 'Sessions', scope: 'events:read', success: 200, result: 'EventStream', query: RESUME, summary: 'Follow a session; also a WebSocket.', from: 'first' },

  { id: 'listTasks', method: 'GET', path: '/v1/tasks', tag: 'Tasks', scope: 'tasks:read', success: 200, result: 'TaskList', query: [...PAGE, 'workspace_id', 'session_id', 'status'], summary: 'Tasks the caller may see.', from: 'first' },
  { id: 'submitTask', method: 'POST', path: '/v1/tasks', tag: 'Tasks', scope: 'tasks:write', body: 'SubmitTaskRequest', key: true, success: 202, result: 'Task', summary: 'Give a session work.', from: 'first' },
  { id: 'getTask', method: 'GET', path: '/v1/tasks/{task_id}', tag: 'Tasks', scope: 'tasks:read', success: 200, result: 'Task', summary: 'One task.', from: 'first' },
  { id: 'cancelTask', method: 'POST', path: '/v1/tasks/{task_id}/cancel', tag: 'Tasks', scope: 'tasks:write', body: 'CancelTaskRequest', bodyOptional: true, key: true, success: 200, result: 'Task', summary: 'Stop a task.', from: 'first' },
  { id: 'replayTask', method: 'POST', path: '/v1/tasks/{task_id}/replay', tag: 'Tasks', scope: 'tasks:write', body: 'ReplayTaskRequest', bodyOptional: true, key: true, success: 202, result: 'Task', summary: 'Live through an ended task again, from its record.', from: 'first' },
  { id: 'appendTaskMessage', method: 'POST', path: '/v1/tasks/{task_id}/messages', tag: 'Tasks', scope: 'tasks:write', body: 'AppendTaskMessageRequest', key: true, success: 201, result: 'Message', summary: 'Answer, steer or confirm a running task.', from: 'first' },
  { id: 'listTaskEvents', method: 'GET', path: '/v1/tasks/{task_id}/events', tag: 'Tasks', scope: 'events:read', success: 200, result: 'EventList', query: RANGE, summary: 'Events of a task, oldest first.', from: 'first' },
  { id: 'streamTaskEvents', method: 'GET', path: '/v1/tasks/{task_id}/stream', tag: 'Tasks', scope: 'events:read', success: 200, result: 'EventStream', query: RESUME, summary: 'Follow a task to its end; also a WebSocket.', from: 'first' },
  { id: 'listTaskReceipts', method: 'GET', path: '/v1/tasks/{task_id}/receipts', tag: 'Tasks', scope: 'receipts:read', success: 200, result: 'ReceiptList', query: PAGE, summary: 'Receipts of a task.', from: 'first' },
  { id: 'listTaskPermissionRequests', method: 'GET', path: '/v1/tasks/{task_id}/permission-requests', tag: 'Permissions', scope: 'tasks:read', success: 200, result: 'PermissionRequestList', query: [...PAGE, 'status'], summary: 'Questions a task put to people.', from: 'later' },

  { id: 'listPermissionRequests', method: 'GET', path: '/v1/permission-requests', tag: 'Permissions', scope: 'tasks:read', success: 200, result: 'PermissionRequestList', query: [...PAGE, 'workspace_id', 'session_id', 'task_id', 'status'], summary: 'Questions put to people, open and settled.', from: 'later' },
  { id: 'getPermissionRequest', method: 'GET', path: '/v1/permission-requests/{request_id}', tag: 'Permissions', scope: 'tasks:read', success: 200, result: 'PermissionRequest', summary: 'One question.', from: 'ours' },
  { id: 'respondPermissionRequest', method: 'POST', path: '/v1/permission-requests/{request_id}/respond', tag: 'Permissions', scope: 'approvals:write', body: 'PermissionResponseRequest', key: true, success: 200, result: 'PermissionRequest', summary: 'Answer a question. The first answer wins.', from: 'later' },

  { id: 'getBranch', method: 'GET', path: '/v1/branches/{branch_id}', tag: 'Branches', scope: 'sessions:read', success: 200, result: 'Branch', summary: 'One branch.', from: 'first' },
  { id: 'getMessage', method: 'GET', path: '/v1/messages/{message_id}', tag: 'Messages', scope: 'sessions:read', success: 200, result: 'Message', summary: 'One message.', from: 'first' },

  { id: 'listArtifacts', method: 'GET', path: '/v1/artifacts', tag: 'Artifacts', scope: 'artifacts:read', success: 200, result: 'ArtifactList', query: [...PAGE, 'workspace_id', 'session_id', 'task_id'], summary: 'Artifacts the caller may see.', from: 'first' },
  { id: 'registerArtifact', method: 'POST', path: '/v1/artifacts', tag: 'Artifacts', scope: 'artifacts:write', body: 'RegisterArtifactRequest', key: true, success: 201, result: 'Artifact', summary: 'Register an artifact by reference and hash.', from: 'first' },
  { id: 'getArtifact', method: 'GET', path: '/v1/artifacts/{artifact_id}', tag: 'Artifacts', scope: 'artifacts:read', success: 200, result: 'Artifact', summary: 'One artifact.', from: 'first' },
  { id: 'downloadArtifactContent', method: 'GET', path: '/v1/artifacts/{artifact_id}/content', tag: 'Artifacts', scope: 'artifacts:read', success: 200, result: 'Bytes', summary: 'The bytes of an artifact, whole or a range.', from: 'first' },
  { id: 'uploadArtifactContent', method: 'PUT', path: '/v1/artifacts/{artifact_id}/content', tag: 'Artifacts', scope: 'artifacts:write', body: 'Bytes', key: true, success: 200, result: 'Artifact', summary: 'Give a registered artifact its bytes.', from: 'narrative' },

  { id: 'listEvents', method: 'GET', path: '/v1/events', tag: 'Events', scope: 'events:read', success: 200, result: 'EventList', query: [...RANGE, 'workspace_id', 'session_id', 'task_id'], summary: 'Events the caller may see, oldest first.', from: 'first' },
  { id: 'streamEvents', method: 'GET', path: '/v1/events/stream', tag: 'Events', scope: 'events:read', success: 200, result: 'EventStream', query: [...RESUME, 'workspace_id', 'session_id', 'task_id'], summary: 'Follow everything the caller may see, from now on.', from: 'first' },
  { id: 'getEvent', method: 'GET', path: '/v1/events/{event_id}', tag: 'Events', scope: 'events:read', success: 200, result: 'Event', summary: 'One event.', from: 'first' },

  { id: 'listReceipts', method: 'GET', path: '/v1/receipts', tag: 'Receipts', scope: 'receipts:read', success: 200, result: 'ReceiptList', query: [...PAGE, 'workspace_id', 'task_id'], summary: 'Receipts the caller may see, in order of issue.', from: 'ours' },
  { id: 'getReceiptBatch', method: 'GET', path: '/v1/receipts/batches/{batch_id}', tag: 'Receipts', scope: 'receipts:read', success: 200, result: 'ReceiptBatch', summary: 'A run of receipt hashes of one workspace and the root over them.', from: 'narrative' },
  { id: 'getReceipt', method: 'GET', path: '/v1/receipts/{receipt_id}', tag: 'Receipts', scope: 'receipts:read', success: 200, result: 'Receipt', summary: 'One receipt; the bare document by content negotiation.', from: 'first' },
  { id: 'verifyReceipt', method: 'POST', path: '/v1/receipts/{receipt_id}/verify', tag: 'Receipts', scope: 'receipts:read', body: 'VerifyReceiptRequest', bodyOptional: true, key: true, success: 200, result: 'ReceiptVerification', summary: 'Recompute everything about a receipt from what is stored.', from: 'first' },

  { id: 'listMemories', method: 'GET', path: '/v1/memories', tag: 'Memories', scope: 'memories:read', success: 200, result: 'MemoryList', query: [...PAGE, 'workspace_id', 'session_id'], summary: 'Memories the caller may see.', from: 'first' },
  { id: 'createMemory', method: 'POST', path: '/v1/memories', tag: 'Memories', scope: 'memories:write', body: 'CreateMemoryRequest', key: true, success: 201, result: 'Memory', summary: 'Write a memory.', from: 'first' },
  { id: 'getMemory', method: 'GET', path: '/v1/memories/{memory_id}', tag: 'Memories', scope: 'memories:read', success: 200, result: 'Memory', summary: 'One memory.', from: 'first' },
  { id: 'deleteMemory', method: 'DELETE', path: '/v1/memories/{memory_id}', tag: 'Memories', scope: 'memories:write', key: true, success: 204, result: null, summary: 'Withdraw a memory; its history stays.', from: 'first' },

  { id: 'listVaults', method: 'GET', path: '/v1/vaults', tag: 'Vaults', scope: 'vaults:read', success: 200, result: 'VaultList', query: [...PAGE, 'workspace_id'], summary: 'Vaults the caller may see. Never their values.', from: 'first' },
  { id: 'createVault', method: 'POST', path: '/v1/vaults', tag: 'Vaults', scope: 'vaults:write', body: 'CreateVaultRequest', key: true, success: 201, result: 'Vault', summary: 'Declare a vault.', from: 'first' },
  { id: 'getVault', method: 'GET', path: '/v1/vaults/{vault_id}', tag: 'Vaults', scope: 'vaults:read', success: 200, result: 'Vault', summary: 'One vault. Never its values.', from: 'first' },

  { id: 'listConnectors', method: 'GET', path: '/v1/connectors', tag: 'Connectors', scope: 'connectors:read', success: 200, result: 'ConnectorList', query: [...PAGE, 'workspace_id'], summary: 'Connectors the caller may see.', from: 'first' },
  { id: 'createConnector', method: 'POST', path: '/v1/connectors', tag: 'Connectors', scope: 'connectors:write', body: 'CreateConnectorRequest', key: true, success: 201, result: 'Connector', summary: 'Declare a connector.', from: 'ours' },
  { id: 'getConnector', method: 'GET', path: '/v1/connectors/{connector_id}', tag: 'Connectors', scope: 'connectors:read', success: 200, result: 'Connector', summary: 'One connector.', from: 'first' },
  { id: 'deliverToConnector', method: 'POST', path: '/v1/connectors/{connector_id}/deliveries', tag: 'Connectors', scope: null, unversioned: true, body: 'Bytes', success: 202, result: 'Task', summary: 'A signed webhook delivery; each becomes one task.', from: 'narrative' },

  { id: 'listSkills', method: 'GET', path: '/v1/skills', tag: 'Skills', scope: 'skills:read', success: 200, result: 'SkillList', query: PAGE, summary: 'Skills the caller may see.', from: 'first' },
  { id: 'createSkill', method: 'POST', path: '/v1/skills', tag: 'Skills', scope: 'skills:write', body: 'CreateSkillRequest', key: true, success: 201, result: 'Skill', summary: 'Declare a skill.', from: 'ours' },
  { id: 'getSkill', method: 'GET', path: '/v1/skills/{skill_id}', tag: 'Skills', scope: 'skills:read', success: 200, result: 'Skill', summary: 'One skill.', from: 'first' },
  { id: 'listTools', method: 'GET', path: '/v1/tools', tag: 'Tools', scope: 'skills:read', success: 200, result: 'ToolList', query: PAGE, summary: 'Tools mounted behind the gateway.', from: 'later' },
  { id: 'getTool', method: 'GET', path: '/v1/tools/{tool_id}', tag: 'Tools', scope: 'skills:read', success: 200, result: 'Tool', summary: 'One tool.', from: 'later' },

  { id: 'listOutcomes', method: 'GET', path: '/v1/outcomes', tag: 'Outcomes', scope: 'tasks:read', success: 200, result: 'OutcomeList', query: [...PAGE, 'task_id'], summary: 'Outcomes the caller may see.', from: 'first' },
  { id: 'getOutcome', method: 'GET', path: '/v1/outcomes/{outcome_id}', tag: 'Outcomes', scope: 'tasks:read', success: 200, result: 'Outcome', summary: 'One outcome.', from: 'first' },

  { id: 'listQuotas', method: 'GET', path: '/v1/quotas', tag: 'Quotas', scope: 'quotas:read', success: 200, result: 'QuotaList', query: PAGE, summary: 'Quotas the caller may see.', from: 'first' },
  { id: 'createQuota', method: 'POST', path: '/v1/quotas', tag: 'Quotas', scope: 'quotas:write', body: 'CreateQuotaRequest', key: true, success: 201, result: 'Quota', summary: 'Declare a quota.', from: 'ours' },
  { id: 'getQuota', method: 'GET', path: '/v1/quotas/{quota_id}', tag: 'Quotas', scope: 'quotas:read', success: 200, result: 'Quota', summary: 'One quota.', from: 'first' },

  { id: 'getRuntime', method: 'GET', path: '/v1/runtime', tag: 'Runtime', scope: 'tasks:read', success: 200, result: 'RuntimeMetadata', summary: 'What serves this API.', from: 'later' },
  { id: 'listCapabilities', method: 'GET', path: '/v1/capabilities', tag: 'Runtime', scope: 'tasks:read', success: 200, result: 'CapabilitySummary', summary: 'What this API can do.', from: 'later' },

  { id: 'getHealth', method: 'GET', path: '/health', tag: 'Runtime', scope: null, unversioned: true, success: 200, result: 'Health', summary: 'Well or not.', from: 'later' },
  { id: 'getHealthLive', method: 'GET', path: '/health/live', tag: 'Runtime', scope: null, unversioned: true, success: 200, result: 'Health', summary: 'The process answers.', from: 'ours' },
  { id: 'getHealthReady', method: 'GET', path: '/health/ready', tag: 'Runtime', scope: null, unversioned: true, success: 200, result: 'Health', summary: 'Work is accepted; 503 when it is not.', from: 'ours' },
  { id: 'getHealthDeps', method: 'GET', path: '/health/deps', tag: 'Runtime', scope: 'tasks:read', unversioned: true, success: 200, result: 'HealthDetails', summary: 'What the gateway depends on, and how each is.', from: 'ours' },
  { id: 'getVersion', method: 'GET', path: '/version', tag: 'Runtime', scope: null, unversioned: true, success: 200, result: 'RuntimeVersion', summary: 'Versions.', from: 'later' },
  { id: 'getMetrics', method: 'GET', path: '/metrics', tag: 'Runtime', scope: 'metrics:read', unversioned: true, success: 200, result: 'Text', summary: 'Counters for Prometheus.', from: 'ours' },
  { id: 'getOpenApiDocument', method: 'GET', path: '/openapi.json', tag: 'Discovery', scope: null, unversioned: true, success: 200, result: 'OpenApi', summary: 'This document.', from: 'later' },
  { id: 'getDocs', method: 'GET', path: '/docs', tag: 'Discovery', scope: null, unversioned: true, success: 200, result: 'Html', summary: 'This document, for people.', from: 'ours' },
  { id: 'getReceiptKeys', method: 'GET', path: '/.well-known/harn-receipt-keys.json', tag: 'Receipts', scope: null, unversioned: true, success: 200, result: 'Jwks', summary: 'The public keys receipts are signed with.', from: 'narrative' },
] as const satisfies readonly Operation[];

export type OperationId = (typeof OPERATIONS)[number]['id'];

// ---- Frames of a socket ----

/** A frame of the client that is the twin of an operation: which, and the id in that operation's path. */
export interface SocketRow extends FrameRow<'client' | 'gateway'> {
  readonly operation?: OperationId;
  readonly of?: 'session_id' | 'task_id' | 'request_id';
}

const told = (method: string): SocketRow[] => [
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

/** A frame with an id is a request. What is only about the connection may have one; a command has to. */
export const frames = frameTable<SocketRow>([
  ...told('ping'),
  ...told('pong'),
  ...told('ack'),
  ...told('resume'),
  { method: 'tools.offer', from: 'client', frame: 'request', handling: 'answer' },
  command('message.append', 'appendSessionMessage', 'session_id'),
  command('task.submit', 'submitSessionTask', 'session_id'),
  command('task.cancel', 'cancelTask', 'task_id'),
  command('task.message', 'appendTaskMessage', 'task_id'),
  command('session.truncate', 'truncateSession', 'session_id'),
  command('response', 'respondPermissionRequest', 'request_id'),
  ...['ready', 'event', 'caught_up', 'result', 'error', 'request', 'request.withdrawn'].map(said),
]);
