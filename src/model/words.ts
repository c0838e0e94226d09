/**
 * The words of the canonical model: closed lists, spelled as the Agents Protocol spells them. A received word that is not on its
 * list is kept as it came and is never read as success.
 */

export const PROTOCOL_VERSION = 'agents-protocol-2026-04-25';
export const RECEIPT_SCHEMA = 'receipt-2026-04-25';

export const TASK_STATES = [
  'SUBMITTED',
  'WORKING',
  'INPUT_REQUIRED',
  'AUTH_REQUIRED',
  'COMPLETED',
  'FAILED',
  'CANCELED',
] as const;
export type TaskState = (typeof TASK_STATES)[number];

/** The allowed transitions. A blocked task returns to WORKING before any state but FAILED or CANCELED. */
export const TASK_TRANSITIONS: Readonly<Record<TaskState, readonly TaskState[]>> = {
  SUBMITTED: ['WORKING', 'CANCELED', 'FAILED'],
  WORKING: ['INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'],
  INPUT_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
  AUTH_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
  COMPLETED: [],
  FAILED: [],
  CANCELED: [],
};

export type TerminalState = 'COMPLETED' | 'FAILED' | 'CANCELED';

/** Only the three known terminal states end a task; a task in an unknown state counts as running. */
export function isTerminal(state: string): state is TerminalState {
  return state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELED';
}

export function mayFollow(from: string, to: TaskState): boolean {
  const known = (TASK_STATES as readonly string[]).includes(from);
  return known && TASK_TRANSITIONS[from as TaskState].includes(to);
}

export const SESSION_STATES = ['ACTIVE', 'IDLE', 'PAUSED', 'CLOSED', 'FAILED'] as const;
export const OUTCOME_STATES = ['SUCCEEDED', 'FAILED', 'CANCELED'] as const;
export type OutcomeState = (typeof OUTCOME_STATES)[number];
export const CONNECTOR_STATES = ['ACTIVE', 'PAUSED', 'FAILED', 'DISABLED'] as const;

export const AUTONOMY_TIERS = ['shadow', 'suggest', 'act_with_approval', 'act_auto'] as const;
export type AutonomyTier = (typeof AUTONOMY_TIERS)[number];
export const RECEIPT_POLICIES = ['required', 'optional', 'disabled'] as const;
export const VISIBILITIES = ['public', 'internal', 'receipt_only'] as const;
export type Visibility = (typeof VISIBILITIES)[number];
export const ROLES = ['user', 'assistant', 'system', 'tool', 'agent'] as const;
export const BRANCH_KINDS = ['workspace', 'session', 'task', 'sandbox'] as const;
export const ARTIFACT_KINDS = [
  'file',
  'patch',
  'image',
  'log',
  'diff',
  'receipt',
  'snapshot',
  'dataset',
  'other',
] as const;
export const MEMORY_SCOPES = ['persona', 'session', 'workspace', 'tenant'] as const;
/** Every limit a quota can set. A limit by another name could not be counted, so it is rejected. */
export const QUOTA_LIMITS = [
  'tasks',
  'concurrency',
  'requests_per_minute',
  'tool_calls',
  'wall_time_ms',
  'tokens',
  'input_tokens',
  'output_tokens',
  'usd',
  'usd_micros',
] as const;
export type QuotaLimit = (typeof QUOTA_LIMITS)[number];

export const QUOTA_SCOPES = ['persona', 'workspace', 'tenant', 'organization'] as const;
export const REPLAY_MODES = ['exact', 'with_overrides', 'from_checkpoint'] as const;
export type ReplayMode = (typeof REPLAY_MODES)[number];
export const OVERRIDE_KINDS = [
  'llm_provider_response',
  'mcp_tool_return',
  'secret_value',
  'time',
  'host_fact',
  'tool_result',
  'event_payload',
  'checkpoint_value',
] as const;
export type OverrideKind = (typeof OVERRIDE_KINDS)[number];

/** From strictest to mildest: of several verdicts, the first in this list counts. */
export const VERDICTS = ['block', 'escalate', 'defer', 'modify', 'allow'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** How firmly the gateway had an action: it ran the action itself, the agent asked first, or the agent only reported it. */
export const EVIDENCE = ['held', 'asked', 'observed'] as const;
export type Evidence = (typeof EVIDENCE)[number];

/** The effect of an action outside the gateway. Anything but `none` and `read` is a side effect; so is `unknown`. */
export const EFFECTS = ['none', 'read', 'write', 'delete', 'execute', 'send', 'publish', 'pay', 'unknown'] as const;
export type Effect = (typeof EFFECTS)[number];

export function isSideEffect(effect: string): boolean {
  return effect !== 'none' && effect !== 'read';
}

/** Every event name of the protocol. Ours follow; names of other vendors pass through as they are. */
export const EVENT_KINDS = [
  'user.message',
  'user.input_submitted',
  'user.tool_confirmation',
  'user.cancel_requested',
  'agent.message',
  'agent.reasoning_summary',
  'agent.tool_use',
  'agent.tool_result',
  'agent.mcp_tool_use',
  'agent.handoff',
  'agent.memory_read',
  'agent.memory_write',
  'task.submitted',
  'task.started',
  'task.input_required',
  'task.auth_required',
  'task.completed',
  'task.failed',
  'task.canceled',
  'task.status_changed',
  'session.created',
  'session.closed',
  'session.message_appended',
  'session.compacted',
  'session.truncated',
  'session.thread_forked',
  'session.thread_merged',
  'session.replayed',
  'branch.created',
  'branch.updated',
  'branch.merged',
  'branch.abandoned',
  'artifact.created',
  'artifact.updated',
  'artifact.linked',
  'artifact.redacted',
  'span.started',
  'span.updated',
  'span.completed',
  'span.failed',
  'tool.requested',
  'tool.approval_required',
  'tool.approved',
  'tool.denied',
  'tool.completed',
  'tool.failed',
  'connector.delivery_received',
  'connector.delivery_deduped',
  'connector.normalized',
  'connector.task_submitted',
  'connector.failed',
  'receipt.issued',
  'receipt.verified',
  'receipt.verification_failed',
  'replay.started',
  'replay.event_replayed',
  'replay.completed',
  'replay.failed',
] as const;
export type ProtocolEventKind = (typeof EVENT_KINDS)[number];

/** Events the taxonomy lacks. Each line says why the event has to exist. */
export const OWN_EVENT_KINDS = {
  'vendor.tollbridge.decided': 'a policy decision and the action it is about, written before anyone acts',
  'vendor.tollbridge.ask_opened': 'a question was put to people; the task events only say that the task waits',
  'vendor.tollbridge.ask_closed': 'the question was answered, expired or withdrawn; names who decided',
  'vendor.tollbridge.answer_refused':
    'an answer by an actor that may not answer the question, such as the proposer of the act',
  'vendor.tollbridge.login_failed': 'credentials that open nothing were shown at a door; many of them share one event',
  'vendor.tollbridge.ask_used': 'an approval was spent on the one act it was given for',
  'vendor.tollbridge.message_delta': 'a piece of a message still being written',
  'vendor.tollbridge.plan': 'the plan of a task, as a full snapshot',
  'vendor.tollbridge.usage': 'tokens, money and time an agent reported',
  'vendor.tollbridge.quota_used': 'work was charged to a quota before it was done',
  'vendor.tollbridge.quota_warned': 'work went past a soft limit, which is reported and not enforced',
  'vendor.tollbridge.side_effect': 'a file written or a host contacted, as reported or seen',
  'vendor.tollbridge.checkpoint': 'a named point a replay may start from',
  'vendor.tollbridge.bound': "another wire's id now stands for one of ours",
  'vendor.tollbridge.recovered': 'a task was found without its process after a crash',
  'vendor.tollbridge.policy_loaded': 'a policy came into force, or was refused and the old one stayed',
  'vendor.tollbridge.config_loaded': 'a changed configuration came into force, or was refused and the old one stayed',
  'vendor.tollbridge.resource_created': 'a resource the taxonomy has no creation event for',
  'vendor.tollbridge.resource_updated': 'a change to a resource the taxonomy has no update event for',
  'vendor.tollbridge.resource_deleted': 'a resource was withdrawn; its history stays',
  'vendor.tollbridge.tree_head': 'a signed Merkle tree head over all receipts, or all events, so far',
  'vendor.tollbridge.passthrough': "a call in another protocol's words that we carried without modelling it",
  'vendor.tollbridge.frame_refused':
    'a tool server said something outside of any call that it may not say; many of one server share an event',
  'vendor.tollbridge.alarm': 'an act that was not let through is reported as run',
  'vendor.tollbridge.remote_decided': 'what another gateway says it decided on a call that it ran or refused itself',
  'vendor.tollbridge.tainted': 'a session has read what others wrote; names where it came from',
  'vendor.tollbridge.note': 'a note for auditors that no other event carries',
} as const;
export type OwnEventKind = keyof typeof OWN_EVENT_KINDS;
