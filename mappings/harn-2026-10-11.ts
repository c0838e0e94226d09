/**
 * Agents Protocol, revision `agents-protocol-2026-10-11`: the differences from `agents-protocol-2026-04-25`. Operations that
 * are not named here are the same in both; a row with the id of an older operation replaces the members of that row.
 */
import type { ActionKind } from '../src/model/actions.ts';
import type { AutonomyTier, Effect } from '../src/model/words.ts';

export const PROVIDER_CATALOG = 'https://harnlang.com/schemas/provider-catalog.v6.json';
export const PROVIDER_CATALOG_VERSION = 6;
export const PROTOCOL = 'agents-protocol-2026-10-11';

/** Only these take an idempotency key. */
export const KEYED = ['submitTask', 'submitSessionTask'] as const;
/** An idempotency key on any other operation is refused, because a client that sends one relies on it. */
export const STRAY_KEY = 'refused';
/** The HTTP status for a retry of a task that already exists. */
export const REPEATED_TASK = 200;
/** `input` to a task that expects none steers it. */
export const INPUT_STEERS = true;
/** The kind of a message that steers a running task. */
export const STEERING = 'input';
/** Whether an answer may ask to be remembered. */
export const REMEMBERS_ANSWERS = true;
/** Members of a session that the older revision does not have. */
export const SESSION_MEMBERS = ['live_clients', 'live_controller_id', 'mode_id'] as const;

/** Modes of a session: the highest autonomy its work may have. A mode narrows what personas and rules allow and never widens it. */
export const MODES = [
  { wire: 'ask', core: 'act_with_approval' },
  { wire: 'architect', core: 'suggest' },
  { wire: 'code', core: 'act_auto' },
  { wire: 'shadow', core: 'shadow' },
] as const satisfies readonly { readonly wire: string; readonly core: AutonomyTier }[];
export const REASONING_EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

/** Bodies of older operations that have another shape here. */
export const BODIES = [
  { id: 'createSession', body: 'CreateSessionRequest', why: 'a mode and a model policy may be asked for' },
  { id: 'updateSession', body: 'UpdateSessionRequest', why: 'a model policy may be asked for' },
  { id: 'appendTaskMessage', body: 'AppendTaskMessageRequest', why: 'only `input`: the others have operations' },
  { id: 'respondPermissionRequest', body: 'PermissionResponseRequest', why: 'an answer may be remembered' },
] as const;

// biome-ignore format: one operation per line reads as the page of a specification
export const OPERATIONS = [
  { id: 'listSessionLiveClients', handling: 'answer', method: 'GET', path: '/v1/sessions/{session_id}/live-clients', tag: 'Sessions', scope: 'sessions:read', success: 200, result: 'LiveSessionClientList', summary: 'Clients attached to a session.', from: 'first' },
  { id: 'attachSessionClient', handling: 'act', method: 'POST', path: '/v1/sessions/{session_id}/attach', tag: 'Sessions', scope: 'sessions:read', body: 'AttachSessionClientRequest', success: 200, result: 'LiveSessionClientChange', summary: 'Attach to a live session, to watch it or to control it.', from: 'first' },
  { id: 'takeoverSessionClient', handling: 'act', method: 'POST', path: '/v1/sessions/{session_id}/takeover', tag: 'Sessions', scope: 'tasks:write', body: 'SessionClientRequest', success: 200, result: 'LiveSessionClientChange', summary: 'Become the controller of a session; the one before watches on.', from: 'first' },
  { id: 'detachSessionClient', handling: 'answer', method: 'POST', path: '/v1/sessions/{session_id}/detach', tag: 'Sessions', scope: 'sessions:read', body: 'SessionClientRequest', success: 200, result: 'LiveSessionClientChange', summary: 'Leave a live session.', from: 'first' },
  { id: 'heartbeatSessionClient', handling: 'answer', method: 'POST', path: '/v1/sessions/{session_id}/heartbeat', tag: 'Sessions', scope: 'sessions:read', body: 'SessionClientRequest', success: 200, result: 'LiveSessionClientChange', summary: 'Say that an attached client is still there.', from: 'first' },
  { id: 'updateSessionInputs', handling: 'answer', method: 'POST', path: '/v1/sessions/{session_id}/inputs', tag: 'Sessions', scope: 'sessions:write', body: 'SessionInputsCommand', success: 200, result: 'SessionInputs', summary: 'List, put, remove or synchronise the private named inputs of a session. Values are kept in memory only.', from: 'first' },

  { id: 'getProviderCatalog', handling: 'answer', method: 'GET', path: '/v1/provider-catalog', tag: 'Runtime', scope: 'skills:read', success: 200, result: 'ProviderCatalog', summary: 'Providers and models, as the mounted agents report them.', from: 'first' },

  { id: 'getPermissionPolicy', handling: 'answer', method: 'GET', path: '/v1/permissions/policy', tag: 'Permissions', scope: 'permission_policies:read', success: 200, result: 'PermissionPolicyResponse', summary: 'What is granted without a question, and the version of the rules behind it.', from: 'first' },
  { id: 'installPermissionPolicy', handling: 'answer', method: 'PUT', path: '/v1/permissions/policy', tag: 'Permissions', scope: 'permission_policies:write', body: 'PermissionPolicy', success: 200, result: 'PermissionPolicyResponse', summary: 'Replace what is granted without a question.', from: 'first' },
  { id: 'listPermissionRules', handling: 'answer', method: 'GET', path: '/v1/permissions/rules', tag: 'Permissions', scope: 'permission_rules:read', success: 200, result: 'RememberRuleList', query: ['limit', 'cursor'], summary: 'Remembered answers in force, narrowest scope first.', from: 'first' },
  { id: 'createPermissionRule', handling: 'answer', method: 'POST', path: '/v1/permissions/rules', tag: 'Permissions', scope: 'permission_rules:write', body: 'CreateRememberRule', success: 200, result: 'RememberRule', summary: 'Remember an answer to questions of a kind.', from: 'first' },
  { id: 'revokePermissionRule', handling: 'answer', method: 'DELETE', path: '/v1/permissions/rules/{rule_id}', tag: 'Permissions', scope: 'permission_rules:write', success: 204, result: null, summary: 'Forget a remembered answer; its history stays.', from: 'first' },
  { id: 'getPermissionHistory', handling: 'answer', method: 'GET', path: '/v1/permissions/history', tag: 'Permissions', scope: 'events:read', success: 200, result: 'AuditEntryList', query: ['limit', 'session_id', 'workspace_id', 'tenant_id', 'actor', 'outcome'], summary: 'What was decided, newest first.', from: 'first' },
  { id: 'checkPermission', handling: 'answer', method: 'POST', path: '/v1/permissions/check', tag: 'Permissions', scope: 'permission_rules:read', body: 'PermissionCheckRequest', success: 200, result: 'PermissionCheckResponse', summary: 'What would be decided about an act. Nothing is done or written down.', from: 'first' },
] as const;

/** Classes of acts: the action kind each one is checked as, and the argument that carries its target. */
export const ACTION_CLASSES: readonly {
  readonly wire: string;
  readonly core: ActionKind;
  readonly target: string;
  readonly effect: Effect;
}[] = [
  { wire: 'read', core: 'fs.read', target: 'path', effect: 'read' },
  { wire: 'write', core: 'fs.write', target: 'path', effect: 'write' },
  { wire: 'exec', core: 'terminal', target: 'command', effect: 'execute' },
  { wire: 'net', core: 'tool', target: 'url', effect: 'unknown' },
  { wire: 'llm', core: 'tool', target: 'model', effect: 'unknown' },
  { wire: 'custom', core: 'tool', target: 'target', effect: 'unknown' },
];

/** A gate decision, as an audit entry and as the answer to a check. */
export const DECISIONS = [
  { core: 'allow', outcome: 'granted', check: 'granted' },
  { core: 'modify', outcome: 'granted', check: 'granted' },
  { core: 'block', outcome: 'denied', check: 'denied' },
  { core: 'defer', outcome: 'denied', check: 'denied' },
  { core: 'escalate', outcome: 'escalated', check: 'suspend' },
] as const;

/** Scopes of remembered answers, narrowest first. */
export const RULE_SCOPES = ['session', 'workspace', 'user', 'always'] as const;
/** The risk of an act, by its effect. */
export const RISKS: readonly { readonly core: Effect; readonly wire: string }[] = [
  { core: 'none', wire: 'low' },
  { core: 'read', wire: 'low' },
  { core: 'write', wire: 'medium' },
  { core: 'send', wire: 'high' },
  { core: 'execute', wire: 'high' },
  { core: 'unknown', wire: 'high' },
  { core: 'delete', wire: 'critical' },
  { core: 'publish', wire: 'critical' },
  { core: 'pay', wire: 'critical' },
];
