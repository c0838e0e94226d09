/**
 * The Harn profile of the Agent Client Protocol, extensions v1: the members Harn agents add under `_meta.harn`, and the
 * canonical words for them. A client that has not declared the profile gets a standard form, or nothing.
 */
import type { Effect } from '../src/model/words.ts';

export const CONTRACT = 'https://harnlang.com/spec/harn-extensions/v1';
export const SCHEMA = 'agentclientprotocol/agent-client-protocol schema v0.12.2';
export const AGENT_EVENT_SCHEMA = 'https://harnlang.com/spec/harn-extensions/agent-event/v1';
export const CATALOG_SCHEMA = 'https://harnlang.com/schemas/provider-catalog.v2.json';
export const CATALOG_VERSION = 2;

export const AGENT_EVENT = '_harn/agentEvent';
export const PROVIDER_CATALOG = '_harn/providerCatalog';
export const HITL_RESPOND = 'harn.hitl.respond';
/** How agents of the first revision ask; later ones send an update with the same id as well. */
export const HITL_REQUESTED = 'harn.hitl.requested';

/**
 * One line per kind of update. `fields` are its members under `_meta.harn`; older agents put the same members at the root of
 * the update. `plain` is the form for a client without the profile.
 */
export interface HarnRow {
  readonly wire: string;
  readonly dir: '<->' | '->';
  readonly facts: readonly string[];
  readonly fields: readonly string[];
  readonly plain: 'notice' | 'tool_call' | 'question' | 'message' | 'compaction_update' | 'plan' | 'nothing';
  /** Not in the first list that agents advertise. */
  readonly later?: boolean;
  readonly why?: string;
}

// biome-ignore format: one update per line reads as the page of a specification
export const HARN_UPDATES = [
  { wire: 'fs_watch', dir: '<->', facts: ['vendor.harn.fs_watch'], fields: ['subscriptionId', 'events'], plain: 'nothing' },
  { wire: 'handoff', dir: '<->', facts: ['agent.handoff'], fields: ['handoffId', 'artifactId', 'handoff'], plain: 'tool_call' },
  { wire: 'hitl_request', dir: '<->', facts: ['task.input_required', 'tool.approval_required'], fields: ['requestId', 'kind', 'payload'], plain: 'question', why: 'becomes a question of ours; a client that has no forms is asked for values this way' },
  { wire: 'hitl_resolved', dir: '<->', facts: ['vendor.harn.hitl_resolved'], fields: ['requestId', 'kind', 'outcome'], plain: 'nothing' },
  { wire: 'log', dir: '<->', facts: ['vendor.harn.log'], fields: ['level', 'message', 'fields'], plain: 'nothing' },
  { wire: 'progress', dir: '<->', facts: ['span.updated'], fields: ['phase', 'message', 'progress', 'total', 'data'], plain: 'notice' },
  { wire: 'skill_activated', dir: '<->', facts: ['vendor.harn.skill_activated'], fields: ['skillName', 'iteration', 'reason'], plain: 'nothing' },
  { wire: 'skill_deactivated', dir: '<->', facts: ['vendor.harn.skill_deactivated'], fields: ['skillName', 'iteration'], plain: 'nothing' },
  { wire: 'skill_narrow', dir: '<->', facts: ['vendor.harn.skill_narrow'], fields: ['reason', 'removedTools', 'remainingTools', 'policy', 'removedToolDetails', 'keptToolDetails'], plain: 'nothing' },
  { wire: 'skill_scope_tools', dir: '<->', facts: ['vendor.harn.skill_scope_tools'], fields: ['skillName', 'allowedTools'], plain: 'nothing' },
  { wire: 'tool_search_query', dir: '<->', facts: ['vendor.harn.tool_search_query'], fields: ['toolUseId', 'name', 'query', 'strategy', 'mode'], plain: 'tool_call' },
  { wire: 'tool_search_result', dir: '<->', facts: ['vendor.harn.tool_search_result'], fields: ['toolUseId', 'promoted', 'strategy', 'mode'], plain: 'tool_call' },
  { wire: 'transcript_compacted', dir: '<->', facts: ['vendor.harn.transcript_compacted'], fields: ['mode', 'reason', 'strategy', 'archivedMessages', 'estimatedTokensBefore', 'estimatedTokensAfter', 'snapshotAssetId', 'instructionMode', 'instructionSource', 'compactionPolicy'], plain: 'compaction_update', why: 'session.compacted is the bridge\'s own word and cannot be reported by an agent' },
  { wire: 'transcript_projected', dir: '<->', facts: ['vendor.harn.transcript_projected'], fields: ['policy', 'reason', 'prefixHash', 'keptCount', 'droppedCount', 'providerSafetyBlocked', 'redactedCount', 'reclaimedTokens', 'rootsConsulted', 'redactionPointers'], plain: 'nothing' },
  { wire: 'worker_update', dir: '<->', facts: ['span.started', 'span.updated', 'span.completed', 'span.failed'], fields: ['workerId', 'workerName', 'workerTask', 'workerMode', 'event', 'status', 'terminal', 'metadata', 'audit'], plain: 'tool_call' },
  { wire: 'artifact', dir: '<->', facts: ['artifact.created'], fields: ['artifactId', 'kind', 'title', 'mimeType', 'spec', 'fallback', 'sizeBytes', 'provenance', 'metadata'], plain: 'message', later: true },
  { wire: 'reminder_emitted', dir: '<->', facts: ['vendor.harn.reminder_emitted'], fields: ['reminder'], plain: 'nothing', later: true },
  { wire: 'stance_transition', dir: '<->', facts: ['vendor.harn.stance_transition'], fields: ['phase', 'escapeTool', 'allowedTools', 'justification', 'consent', 'reason'], plain: 'nothing', later: true },
  { wire: 'session_truncated', dir: '->', facts: ['vendor.harn.session_truncated'], fields: ['keptTurnCount', 'removedTurnCount', 'newTipTurnId', 'reason'], plain: 'nothing', later: true, why: 'ours is sent as session_info_update' },
  { wire: 'live_session_client', dir: '->', facts: ['vendor.harn.live_session_client'], fields: [], plain: 'nothing', later: true, why: 'who else watches an agent elsewhere is not for our clients' },
] as const satisfies readonly HarnRow[];
export type HarnKind = (typeof HARN_UPDATES)[number]['wire'];

const BY_KIND: ReadonlyMap<string, HarnRow> = new Map(HARN_UPDATES.map((row) => [row.wire, row]));

export function harnRow(kind: string): HarnRow | undefined {
  return BY_KIND.get(kind);
}

/** The kinds we advertise: those that go both ways, and `transcript_projected`, which the specification omits from its own list. */
export const ADVERTISED: readonly string[] = HARN_UPDATES.filter(({ dir }) => dir === '<->')
  .map(({ wire }) => wire as string)
  .sort();

/** Members under `_meta.harn` that describe the life of a tool call. */
export const TOOL_FIELDS = [
  'audit',
  'durationMs',
  'error',
  'errorCategory',
  'executionDurationMs',
  'executor',
  'parsing',
  'rawInputPartial',
] as const;
export const LATER_TOOL_FIELDS = ['changedPaths', 'data', 'mutationStatus'] as const;
export const CONTENT_FIELDS = ['visible_delta', 'visible_text'] as const;

/** The failure category for a denied tool; every other category is kept as received. */
export const DENIED_CATEGORY = 'permission_denied';
export const CANCELLED_CATEGORY = 'cancelled';

/** Events of a worker. Agents use both spellings. */
export const WORKER_EVENTS = {
  WorkerSpawned: { status: 'running', fact: 'span.started' },
  WorkerProgressed: { status: 'progressed', fact: 'span.updated' },
  WorkerWaitingForInput: { status: 'awaiting_input', fact: 'span.updated' },
  WorkerCompleted: { status: 'completed', fact: 'span.completed' },
  WorkerFailed: { status: 'failed', fact: 'span.failed' },
  WorkerCancelled: { status: 'cancelled', fact: 'span.failed' },
} as const;
export type WorkerEvent = keyof typeof WORKER_EVENTS;

/** Questions to people, by the kind of answer: a value, or a yes or no. */
export const HITL_KINDS: Readonly<Record<string, 'input' | 'approval'>> = {
  question: 'input',
  approval: 'approval',
  dual_control: 'approval',
  escalation: 'approval',
};

/** Progress that is only a message; a list of steps is a plan, which the protocol itself defines. */
export const NARRATION = 'narration';

/** The calls of an agent to its host, and their effects. The effect of a command is that of running it. */
export const HOST_CALL = 'host/call';
export const HOST_OPERATIONS: Readonly<Record<string, Effect>> = {
  'process.exec': 'execute',
  'process.list_shells': 'read',
  'process.get_default_shell': 'read',
  'process.set_default_shell': 'write',
  'process.shell_invocation': 'read',
};

/** As the profile advertises them: operations by capability. */
export const HOST_CAPABILITIES = {
  process: Object.keys(HOST_OPERATIONS).map((name) => name.slice('process.'.length)),
};
