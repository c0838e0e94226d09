/**
 * Agent Harness v1, the runs API ↔ canonical. Words are spelled as on the wire. A run is a task as seen by a client that knows
 * only six states, three signals and one stream of events.
 */
import { leaveOut } from '../src/model/events.ts';
import type { FaultKind } from '../src/model/faults.ts';
import { TASK_STATES } from '../src/model/words.ts';
import { type RouteRow, routeTable } from './frames.ts';
import { table } from './row.ts';

export const REVISION = 'v1';

// ---- States ----

export const RUN_STATUSES = ['queued', 'running', 'stalled', 'succeeded', 'failed', 'cancelled'] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export const runState = table(TASK_STATES, [
  { wire: 'queued', core: 'SUBMITTED', dir: '<->' },
  { wire: 'running', core: 'WORKING', dir: '<->' },
  { wire: 'running', core: 'AUTH_REQUIRED', dir: '<-', why: 'waiting is no state of a run; the event says what for' },
  { wire: 'running', core: 'INPUT_REQUIRED', dir: '<-', why: 'waiting is no state of a run; the event says what for' },
  { wire: 'stalled', core: 'WORKING', dir: '->', why: 'a lost worker is no state of a task, which has not ended' },
  { wire: 'paused', core: 'WORKING', dir: '->', why: 'an older word for stalled, never sent' },
  { wire: 'succeeded', core: 'COMPLETED', dir: '<->' },
  { wire: 'failed', core: 'FAILED', dir: '<->' },
  { wire: 'cancelled', core: 'CANCELED', dir: '<->' },
]);

/** The allowed transitions. `failed` is left only by a retry, which is a new task under the same run. */
export const RUN_TRANSITIONS: Readonly<Record<RunStatus, readonly RunStatus[]>> = {
  queued: ['running', 'cancelled', 'failed'],
  running: ['succeeded', 'failed', 'stalled', 'cancelled'],
  stalled: ['running', 'failed', 'cancelled'],
  failed: ['queued'],
  succeeded: [],
  cancelled: [],
};

export function isOver(status: string): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'cancelled';
}

// ---- Events ----

interface EventRow {
  readonly wire: string;
  readonly dir: '<->' | '->' | '<-';
  /** The events in the log for it. */
  readonly facts: readonly string[];
  readonly why?: string;
}

// biome-ignore format: one event per line reads as the page of a specification
export const EVENTS = [
  { wire: 'run.created', dir: '<->', facts: ['task.submitted'] },
  { wire: 'run.worker.started', dir: '<->', facts: ['task.started'] },
  { wire: 'run.worker.succeeded', dir: '<->', facts: ['task.completed'] },
  { wire: 'run.worker.failed', dir: '<->', facts: ['task.failed'] },
  { wire: 'run.worker.stalled', dir: '<->', facts: ['vendor.tollbridge.passthrough', 'vendor.tollbridge.recovered', 'vendor.runs.stalled'], why: 'the taxonomy has no word for a lost worker' },
  { wire: 'run.worker.retry_scheduled', dir: '<->', facts: ['task.submitted'], why: 'a terminal task may not reopen: the retry is a child task under the same run' },
  { wire: 'run.cancelled', dir: '<->', facts: ['task.canceled'] },
  { wire: 'run.resumed', dir: '<->', facts: ['vendor.tollbridge.recovered', 'vendor.runs.resumed'] },
  { wire: 'run.limit_exceeded', dir: '<->', facts: ['task.failed'], why: 'said only when a quota ended the run, before the failure itself' },
  { wire: 'step.progress', dir: '<->', facts: ['vendor.tollbridge.message_delta', 'tool.requested', 'tool.completed', 'tool.failed', 'tool.denied'] },
  { wire: 'step.done', dir: '<->', facts: ['agent.message', 'span.failed'] },
  { wire: 'run.tool.invoked', dir: '<->', facts: ['tool.completed', 'tool.failed', 'tool.denied'] },
  { wire: 'run.coordination.decision', dir: '<->', facts: ['vendor.tollbridge.decided', 'agent.reasoning_summary'], why: 'outward it is what policy decided about a call; inward a remote has no policy of ours, so it is only a summary' },
  { wire: 'run.awaiting_input', dir: '<->', facts: ['vendor.tollbridge.ask_opened'] },
  { wire: 'run.signal_applied', dir: '<->', facts: ['vendor.tollbridge.ask_closed'] },
  { wire: 'run.input_received', dir: '<->', facts: ['vendor.tollbridge.ask_closed'] },
] as const satisfies readonly EventRow[];
export type RunEventType = (typeof EVENTS)[number]['wire'];

/** Events that the runs API does not show. */
export const NOT_RENDERED = {
  ...leaveOut(
    'another event says it: the question, the answer, or the call',
    'user.message user.input_submitted user.tool_confirmation agent.tool_use agent.tool_result agent.mcp_tool_use tool.approval_required tool.approved task.input_required task.auth_required task.status_changed vendor.tollbridge.ask_used',
  ),
  ...leaveOut('memory is read over its own endpoints', 'agent.memory_read agent.memory_write'),
  ...leaveOut(
    'files have no word here; a step names those its message refers to',
    'artifact.created artifact.updated artifact.linked artifact.redacted',
  ),
  ...leaveOut(
    'a step is rendered as its text and its tools',
    'span.started span.updated span.completed span.failed agent.reasoning_summary agent.handoff vendor.tollbridge.usage vendor.tollbridge.side_effect vendor.tollbridge.checkpoint',
  ),
  ...leaveOut(
    'runs know no branches, connectors, receipts or replays',
    'branch.created branch.updated branch.merged branch.abandoned connector.delivery_received connector.delivery_deduped connector.normalized connector.task_submitted connector.failed receipt.issued receipt.verified receipt.verification_failed replay.started replay.event_replayed replay.completed replay.failed',
  ),
  ...leaveOut(
    'not about the work of one run',
    'session.created session.closed session.message_appended session.compacted session.truncated session.thread_forked session.thread_merged session.replayed session.created session.closed session.message_appended session.compacted session.truncated session.thread_forked session.thread_merged session.replayed vendor.tollbridge.login_failed vendor.tollbridge.policy_loaded vendor.tollbridge.config_loaded vendor.tollbridge.resource_created vendor.tollbridge.resource_updated vendor.tollbridge.resource_deleted vendor.tollbridge.tree_head vendor.tollbridge.bound',
  ),
  ...leaveOut(
    'kept for auditors, who read the log',
    'vendor.tollbridge.quota_used vendor.tollbridge.quota_warned vendor.tollbridge.note vendor.tollbridge.tainted vendor.tollbridge.frame_refused vendor.tollbridge.alarm vendor.tollbridge.remote_decided vendor.tollbridge.answer_refused',
  ),
};

/** Members removed from a payload before it is shown. */
export const REDACTED_MEMBERS = ['input', 'metadata', 'attachment_refs', 'sensitivity_tags'] as const;

export const STEP_OUTCOMES = ['succeeded', 'retry_step', 'fail_run'] as const;
export const TOOL_OUTCOMES = ['succeeded', 'failed', 'timeout', 'policy_denied'] as const;
export type ToolOutcome = (typeof TOOL_OUTCOMES)[number];
export const DECISION_TYPES = ['continue', 'replan', 'stop', 'await_input'] as const;
export const INPUT_KINDS = ['approval', 'rejection', 'payload'] as const;
export type InputKind = (typeof INPUT_KINDS)[number];

/** The kind of input a waiting run needs, by the kind of question. */
export const inputKind = table(
  ['approval', 'input'],
  [
    { wire: 'approval', core: 'approval', dir: '<->' },
    { wire: 'rejection', core: 'approval', dir: '->', why: 'a yes or no either way; we only ever ask for the yes' },
    { wire: 'payload', core: 'input', dir: '<->' },
  ],
);

// ---- Signals ----

export const SIGNAL_ACTIONS = ['approve', 'reject', 'submit_input'] as const;
export type SignalAction = (typeof SIGNAL_ACTIONS)[number];

/** The end of a question, as the signal that would have caused it. Other ends have no signal. */
export const signalOf: Readonly<Record<string, SignalAction | undefined>> = {
  approved: 'approve',
  denied: 'reject',
  answered: 'submit_input',
};

// ---- Create ----

export const ROUTING_HINTS = ['skip_planning', 'require_planning'] as const;
export const RUN_CLASSES = ['default', 'short', 'long'] as const;
export const CLASSIFICATIONS = ['pii', 'financial', 'health', 'credential', 'proprietary'] as const;
export type Classification = (typeof CLASSIFICATIONS)[number];
export const REDACTIONS = ['mask', 'drop'] as const;
/** UTF-8 of the compact JSON of `input` and `metadata` together. */
export const INPUT_LIMIT = 262_144;
export const PREVIEW_LENGTH = 240;
export const MOST_HIGHLIGHTS = 10;
export const SUMMARY_VERSION = '1';
/** A key that contains one of these, ignoring case, dashes and underscores, is taken to hold something sensitive. */
export const SENSITIVE_WORDS = [
  'password',
  'passwd',
  'secret',
  'token',
  'ssn',
  'credit',
  'apikey',
  'privatekey',
  'credential',
] as const;

/** The classification assumed for an untagged sensitive key. */
export function assumedClass(key: string): Classification {
  const word = plainKey(key);
  if (word.includes('ssn')) return 'pii';
  return word.includes('credit') ? 'financial' : 'credential';
}

export function plainKey(key: string): string {
  return key.toLowerCase().replace(/[_-]/g, '');
}

export function isSensitiveKey(key: string): boolean {
  const word = plainKey(key);
  return SENSITIVE_WORDS.some((promise) => word.includes(promise));
}

/** Members of `input` that hold the user's text, in order of preference. */
export const SAID_MEMBERS = ['user_query', 'query', 'prompt', 'message', 'question', 'text', 'task', 'goal'] as const;

// ---- Refusals ----

export interface ReasonRow {
  readonly code: string;
  readonly status: number;
  readonly error: string;
}

// biome-ignore format: one code per line reads as the page of a specification
export const REASONS = [
  { code: 'IDEMPOTENCY_KEY_REQUIRED', status: 400, error: 'bad_request' },
  { code: 'INPUT_PAYLOAD_INVALID', status: 400, error: 'bad_request' },
  { code: 'INPUT_PAYLOAD_TOO_LARGE', status: 400, error: 'bad_request' },
  { code: 'INPUT_SENSITIVITY_TAG_REQUIRED', status: 400, error: 'bad_request' },
  { code: 'INPUT_SENSITIVITY_TAG_INVALID_PATH', status: 400, error: 'bad_request' },
  { code: 'INPUT_SENSITIVITY_TAG_INVALID_CLASSIFICATION', status: 400, error: 'bad_request' },
  { code: 'INPUT_SENSITIVITY_TAG_DUPLICATE_PATH', status: 400, error: 'bad_request' },
  { code: 'INPUT_PLAN_INVALID', status: 400, error: 'bad_request' },
  { code: 'SIGNAL_PAYLOAD_INVALID', status: 400, error: 'bad_request' },
  { code: 'EVENTS_QUERY_PARAMS_INVALID', status: 400, error: 'bad_request' },
  { code: 'MEMORY_QUERY_PARAMS_INVALID', status: 400, error: 'bad_request' },
  { code: 'USAGE_QUERY_PARAMS_INVALID', status: 400, error: 'bad_request' },
  { code: 'REQUEST_INVALID', status: 400, error: 'bad_request' },
  { code: 'AUTH_HEADER_MISSING', status: 401, error: 'unauthorized' },
  { code: 'AUTH_HEADER_MALFORMED', status: 401, error: 'unauthorized' },
  { code: 'AUTH_KEY_INVALID', status: 401, error: 'unauthorized' },
  { code: 'AUTH_KEY_REVOKED', status: 401, error: 'unauthorized' },
  { code: 'AUTH_FORBIDDEN', status: 403, error: 'forbidden' },
  { code: 'POLICY_DENIED', status: 403, error: 'forbidden' },
  { code: 'RUN_NOT_FOUND', status: 404, error: 'not_found' },
  { code: 'RUN_EVENTS_EXPIRED', status: 404, error: 'not_found' },
  { code: 'MEMORY_ITEM_NOT_FOUND', status: 404, error: 'not_found' },
  { code: 'ENDPOINT_NOT_FOUND', status: 404, error: 'not_found' },
  { code: 'RUN_INVALID_STATE_TRANSITION', status: 409, error: 'conflict' },
  { code: 'RUN_NOT_AWAITING_INPUT', status: 409, error: 'conflict' },
  { code: 'IDEMPOTENCY_KEY_REUSED', status: 409, error: 'conflict' },
  { code: 'RATE_LIMITED', status: 429, error: 'rate_limited' },
  { code: 'SIGNAL_SERVICE_UNAVAILABLE', status: 500, error: 'internal_error' },
  { code: 'INTERNAL_ERROR', status: 500, error: 'internal_error' },
] as const satisfies readonly ReasonRow[];
export type ReasonCode = (typeof REASONS)[number]['code'];

const BY_CODE: ReadonlyMap<string, ReasonRow> = new Map(REASONS.map((row) => [row.code, row]));

export function reasonRow(code: ReasonCode): ReasonRow {
  return BY_CODE.get(code) as ReasonRow;
}

/** The reason code for each fault, when no closer one is known. */
export const FAULTS: Readonly<Record<FaultKind, ReasonCode>> = {
  invalid_request: 'REQUEST_INVALID',
  invalid_state_transition: 'RUN_INVALID_STATE_TRANSITION',
  unauthenticated: 'AUTH_KEY_INVALID',
  permission_denied: 'AUTH_FORBIDDEN',
  not_found: 'RUN_NOT_FOUND',
  conflict: 'RUN_INVALID_STATE_TRANSITION',
  idempotency_key_reused: 'IDEMPOTENCY_KEY_REUSED',
  cursor_expired: 'RUN_EVENTS_EXPIRED',
  payload_too_large: 'INPUT_PAYLOAD_TOO_LARGE',
  policy_violation: 'POLICY_DENIED',
  locked: 'RUN_INVALID_STATE_TRANSITION',
  unsupported_version: 'REQUEST_INVALID',
  rate_limited: 'RATE_LIMITED',
  client_closed: 'REQUEST_INVALID',
  internal: 'INTERNAL_ERROR',
  upstream_unavailable: 'INTERNAL_ERROR',
  unavailable: 'INTERNAL_ERROR',
  deadline_exceeded: 'INTERNAL_ERROR',
  not_implemented: 'INTERNAL_ERROR',
};

// ---- Operations ----

export interface Operation extends RouteRow {
  readonly method: 'GET' | 'POST';
  readonly auth: boolean;
  readonly summary: string;
  readonly query?: readonly string[];
  /** Reason codes beyond those every authenticated operation may answer with. */
  readonly refuses: readonly ReasonCode[];
}

const CREATE_REFUSES = REASONS.flatMap(({ code }) =>
  /^(IDEMPOTENCY_|INPUT_|POLICY_)/.test(code) ? [code] : [],
) as readonly ReasonCode[];
const ONE_RUN = ['RUN_NOT_FOUND'] as const;
const MOVES = ['RUN_NOT_FOUND', 'RUN_INVALID_STATE_TRANSITION'] as const;
const MEMORY_QUERY = ['workspace_id', 'subject_id', 'status', 'include_harness'] as const;

// biome-ignore format: one operation per line reads as the page of a specification
export const OPERATIONS = [
  { id: 'createRun', handling: 'act', method: 'POST', path: '/v1/runs', auth: true, refuses: CREATE_REFUSES, summary: 'Starts a run, or finds the one this key has started.' },
  { id: 'getRun', handling: 'answer', method: 'GET', path: '/v1/runs/{id}', auth: true, refuses: ONE_RUN, summary: 'A run as it stands.' },
  { id: 'cancelRun', handling: 'pass', method: 'POST', path: '/v1/runs/{id}/cancel', auth: true, refuses: MOVES, summary: 'Stops a run that has not ended.' },
  { id: 'retryRun', handling: 'act', method: 'POST', path: '/v1/runs/{id}/retry', auth: true, refuses: MOVES, summary: 'Tries a failed run again.' },
  { id: 'resumeRun', handling: 'pass', method: 'POST', path: '/v1/runs/{id}/resume', auth: true, refuses: MOVES, summary: 'Goes on with a stalled run.' },
  { id: 'signalRun', handling: 'pass', method: 'POST', path: '/v1/runs/{id}/signal', auth: true, refuses: ['SIGNAL_PAYLOAD_INVALID', 'RUN_NOT_FOUND', 'RUN_NOT_AWAITING_INPUT', 'IDEMPOTENCY_KEY_REUSED', 'SIGNAL_SERVICE_UNAVAILABLE'], summary: 'Answers the oldest question of a run.' },
  { id: 'listRunEvents', handling: 'answer', method: 'GET', path: '/v1/runs/{id}/events', auth: true, query: ['cursor', 'limit'], refuses: ['EVENTS_QUERY_PARAMS_INVALID', 'RUN_NOT_FOUND', 'RUN_EVENTS_EXPIRED'], summary: 'Events after a cursor.' },
  { id: 'streamRunEvents', handling: 'answer', method: 'GET', path: '/v1/runs/{id}/events/stream', auth: true, query: ['cursor'], refuses: ['EVENTS_QUERY_PARAMS_INVALID', 'RUN_NOT_FOUND', 'RUN_EVENTS_EXPIRED'], summary: 'The same as they happen.' },
  { id: 'exportMemory', handling: 'answer', method: 'GET', path: '/v1/memory/export', auth: true, query: MEMORY_QUERY, refuses: ['MEMORY_QUERY_PARAMS_INVALID'], summary: 'Memory as a tree of markdown files.' },
  { id: 'listMemoryItems', handling: 'answer', method: 'GET', path: '/v1/memory/items', auth: true, query: [...MEMORY_QUERY, 'limit', 'offset'], refuses: ['MEMORY_QUERY_PARAMS_INVALID'], summary: 'Memory, item by item.' },
  { id: 'getMemoryItem', handling: 'answer', method: 'GET', path: '/v1/memory/items/{id}', auth: true, query: ['include_embedding'], refuses: ['MEMORY_QUERY_PARAMS_INVALID', 'MEMORY_ITEM_NOT_FOUND'], summary: 'One item of memory.' },
  { id: 'getUsage', handling: 'answer', method: 'GET', path: '/v1/usage', auth: true, query: ['workspace_id', 'subject_id', 'event_type', 'start', 'end', 'granularity'], refuses: ['USAGE_QUERY_PARAMS_INVALID'], summary: 'What runs have used, by period.' },
  { id: 'getHealthLive', handling: 'answer', method: 'GET', path: '/health/live', auth: false, refuses: [], summary: 'The process runs.' },
  { id: 'getHealthReady', handling: 'answer', method: 'GET', path: '/health/ready', auth: false, refuses: [], summary: 'It can serve.' },
  { id: 'getHealthDeps', handling: 'answer', method: 'GET', path: '/health/deps', auth: false, refuses: [], summary: 'What it depends on.' },
  { id: 'getOpenApi', handling: 'answer', method: 'GET', path: '/openapi.json', auth: false, refuses: [], summary: 'This page, for machines.' },
] as const satisfies readonly Operation[];
export type OperationId = (typeof OPERATIONS)[number]['id'];

/** The handling of each request; a request without a row is not served. */
export const routes = routeTable<Operation & { readonly id: OperationId }>(OPERATIONS);

export const USAGE_EVENTS = ['run.created', 'task.completed', 'tool.invoked', 'tokens.consumed'] as const;
export type UsageEvent = (typeof USAGE_EVENTS)[number];
export const GRANULARITIES = ['hour', 'day', 'month'] as const;
export type Granularity = (typeof GRANULARITIES)[number];
