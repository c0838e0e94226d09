/**
 * Agent Harness Protocol 2.4 ↔ canonical. Words are spelled as on the wire. An agent asks before it acts and reports what it
 * did; the rows say how each question and report is handled here.
 */
import type { ActionKind } from '../src/model/actions.ts';
import { leaveOut } from '../src/model/events.ts';
import type { FaultKind } from '../src/model/faults.ts';
import type { EventKind } from '../src/model/payloads.ts';
import { ARTIFACT_KINDS, type Effect, TASK_STATES, VERDICTS, type Verdict } from '../src/model/words.ts';
import { type FrameRow, frameTable } from './frames.ts';
import { table } from './row.ts';

export const PROTOCOL = '2.4';
export const METHODS = ['ahp/handshake', 'ahp/event', 'ahp/query', 'ahp/batch'] as const;
export type Method = (typeof METHODS)[number];

/** The decision family that answers an event. */
export const FAMILIES = [
  'generic',
  'idle',
  'intent_detection',
  'context_perception',
  'memory_recall',
  'planning',
  'reasoning',
  'rate_limit',
  'confirmation',
] as const;
export type Family = (typeof FAMILIES)[number];

/**
 * One line per event. `answer` names the decision family the agent waits for; without it the event is a notification. `action`
 * and `effect` go to the gate, `facts` go to the log beside the decision.
 */
interface EventRow {
  readonly wire: string;
  readonly dir: '<->' | '->' | 'none';
  readonly answer?: Family;
  readonly batch?: boolean;
  /** The payload is one of the three run contracts and is validated before anything else happens. */
  readonly contract?: boolean;
  readonly action?: ActionKind;
  readonly effect?: Effect;
  readonly facts: readonly string[];
  readonly why?: string;
}

// biome-ignore format: one event per line reads as the page of a specification
export const EVENTS = [
  { wire: 'pre_action', dir: '<->', answer: 'generic', batch: true, action: 'tool', facts: ['tool.requested'], why: 'agent.tool_use is left out: it would say the same twice' },
  { wire: 'pre_prompt', dir: '<->', answer: 'generic', batch: true, action: 'prompt', effect: 'none', facts: ['user.message', 'span.started'] },
  { wire: 'post_action', dir: '<->', batch: true, facts: ['tool.completed', 'tool.failed'], why: 'agent.tool_result is left out: it would say the same twice' },
  { wire: 'post_response', dir: '<->', batch: true, facts: ['agent.message', 'span.completed', 'vendor.tollbridge.usage'] },
  { wire: 'session_start', dir: '<->', batch: true, facts: ['session.created', 'task.submitted'] },
  { wire: 'session_end', dir: '<->', batch: true, facts: ['task.completed', 'task.failed', 'session.closed'] },
  { wire: 'error', dir: '->', batch: true, facts: ['span.failed', 'tool.failed'], why: 'our failures reach a harness as run_lifecycle or post_action' },
  { wire: 'heartbeat', dir: '->', batch: true, facts: ['vendor.ahp.heartbeat'], why: 'liveness is not worth keeping more than once a minute' },
  { wire: 'success', dir: '->', batch: true, facts: ['span.completed'], why: 'says again what post_action said' },
  { wire: 'idle', dir: '<->', answer: 'idle', action: 'background', effect: 'none', facts: [], why: 'the decision in the log is the record of it' },
  { wire: 'intent_detection', dir: '->', answer: 'intent_detection', action: 'enrich', effect: 'none', facts: [], why: 'nothing of ours asks for an intent' },
  { wire: 'context_perception', dir: '<->', answer: 'context_perception', action: 'enrich', effect: 'read', facts: ['agent.memory_read'], why: 'it reads data of the gateway, so it is an enrichment that reads, not a file access' },
  { wire: 'memory_recall', dir: '<->', answer: 'memory_recall', action: 'memory.read', effect: 'read', facts: ['agent.memory_read'] },
  { wire: 'planning', dir: '<->', answer: 'planning', action: 'plan', effect: 'none', facts: ['agent.reasoning_summary'] },
  { wire: 'reasoning', dir: '->', answer: 'reasoning', action: 'reason', effect: 'none', facts: ['agent.reasoning_summary'], why: 'reasoning stays inside; only its kind and the verdict are kept, and a harness behind us is asked about its kind' },
  { wire: 'rate_limit', dir: '<->', answer: 'rate_limit', action: 'background', effect: 'none', facts: ['span.updated'] },
  { wire: 'confirmation', dir: '<->', answer: 'confirmation', action: 'elicit', effect: 'unknown', facts: ['tool.approval_required'], why: 'whatever is confirmed may change something, so without a rule a person is asked' },
  { wire: 'run_lifecycle', dir: '<->', batch: true, contract: true, facts: ['task.submitted', 'task.completed', 'task.failed', 'task.canceled', 'span.updated'] },
  { wire: 'task_list', dir: '<->', batch: true, contract: true, facts: ['vendor.tollbridge.plan'] },
  { wire: 'verification', dir: '<->', batch: true, contract: true, facts: ['span.completed', 'span.failed', 'artifact.created'] },
  { wire: 'handshake', dir: 'none', facts: [], why: 'has a method of its own' },
  { wire: 'query', dir: 'none', facts: [], why: 'has a method of its own' },
] as const satisfies readonly EventRow[];
export type EventType = (typeof EVENTS)[number]['wire'];
export const EVENT_TYPES = EVENTS.map(({ wire }) => wire) as readonly EventType[];
const BY_TYPE: ReadonlyMap<string, EventRow> = new Map(EVENTS.map((row) => [row.wire, row]));

export function eventRow(type: EventType): EventRow {
  return BY_TYPE.get(type) as EventRow;
}

/**
 * How each frame is handled. An agent sends four methods; `ahp/event` is judged by the event it carries, because the event
 * decides whether the agent waits for an answer. The harness sends only responses.
 */
export const frames = frameTable([
  { method: 'ahp/handshake', from: 'agent', frame: 'request', handling: 'answer' },
  { method: 'ahp/query', from: 'agent', frame: 'request', handling: 'act' },
  { method: 'ahp/batch', from: 'agent', frame: 'request', handling: 'act' },
  ...EVENTS.flatMap((row: EventRow): FrameRow<'agent' | 'harness'>[] => {
    const method = `ahp/event ${row.wire}`;
    if (row.dir === 'none') {
      const why = `Event type ${row.wire} has a method of its own: ahp/${row.wire}`;
      return [
        { method, from: 'agent', frame: 'request', handling: 'refuse', why },
        { method, from: 'agent', frame: 'notification', handling: 'refuse', why },
      ];
    }
    return row.answer
      ? [{ method, from: 'agent', frame: 'request', handling: 'act', ...(row.effect && { effect: row.effect }) }]
      : [{ method, from: 'agent', frame: 'notification', handling: 'pass' }];
  }),
]);

/** Peers up to 2.2 send these as notifications, later ones as questions; a notification of this kind has no consequence. */
export const NOTICES_BEFORE_2_4: readonly string[] = ['idle', 'rate_limit'];

/** The capabilities we declare: every event we decide or record, and the two methods beside them. */
export const CAPABILITIES: readonly string[] = [
  ...EVENTS.filter(({ dir }) => dir !== 'none').map(({ wire }) => wire),
  'query',
  'batch',
];

/** The five generic decisions are our five verdicts. */
export const decision = table(VERDICTS, [
  { wire: 'allow', core: 'allow', dir: '<->' },
  { wire: 'block', core: 'block', dir: '<->' },
  { wire: 'modify', core: 'modify', dir: '<->' },
  { wire: 'defer', core: 'defer', dir: '<->' },
  { wire: 'escalate', core: 'escalate', dir: '<->' },
]);

/** The decisions beside `allow` and `block`. An agent that does not obey one of them receives `block` instead. */
export const SOFT_WORDS = ['modify', 'defer', 'escalate'] as const satisfies readonly Verdict[];
export type SoftWord = (typeof SOFT_WORDS)[number];

/**
 * How known agents treat a soft decision, by the framework they name in their handshake. Other agents are assumed to obey only
 * `allow` and `block`. The configuration says which soft decisions count at all; a row here only removes some, because an
 * agent's claim about its framework proves nothing.
 */
export const agentProfiles: readonly {
  readonly framework: string;
  readonly honours: readonly SoftWord[];
  readonly why: string;
}[] = [
  {
    framework: 'a3s-ahp',
    honours: [],
    why: 'a3s-code 2.4: runs what was answered escalate, defer or modify; stops for block alone',
  },
  { framework: 'tollbridge', honours: SOFT_WORDS, why: 'this gateway in front of another one: takes all five words' },
];

/** The words of each family for a verdict. `failed`: no decision was reached, which every family reports as a refusal. */
export const spoken = {
  generic: { allow: 'allow', modify: 'modify', block: 'block', defer: 'defer', escalate: 'escalate', failed: 'block' },
  idle: { allow: 'allow', modify: 'allow', block: 'defer', defer: 'defer', escalate: 'defer', failed: 'defer' },
  intent_detection: {
    allow: 'allow',
    modify: 'block',
    block: 'block',
    defer: 'block',
    escalate: 'block',
    failed: 'block',
  },
  context_perception: {
    allow: 'allow',
    modify: 'refine',
    block: 'block',
    defer: 'block',
    escalate: 'block',
    failed: 'block',
  },
  memory_recall: {
    allow: 'allow',
    modify: 'allow',
    block: 'block',
    defer: 'block',
    escalate: 'block',
    failed: 'block',
  },
  planning: { allow: 'allow', modify: 'modify', block: 'block', defer: 'block', escalate: 'block', failed: 'block' },
  reasoning: { allow: 'allow', modify: 'allow', block: 'block', defer: 'block', escalate: 'block', failed: 'block' },
  rate_limit: { allow: 'retry', modify: 'retry', block: 'skip', defer: 'retry', escalate: 'queue', failed: 'skip' },
  confirmation: {
    allow: 'approve',
    modify: 'reject',
    block: 'reject',
    defer: 'escalate',
    escalate: 'escalate',
    failed: 'reject',
  },
} as const satisfies Record<Family, Record<Verdict | 'failed', string>>;

/** The verdict for each word of an outside harness. A word without a row is not a decision and therefore a block. */
export const verdictOf = {
  generic: { allow: 'allow', block: 'block', modify: 'modify', defer: 'defer', escalate: 'escalate' },
  idle: { allow: 'allow', defer: 'defer' },
  intent_detection: { allow: 'allow', block: 'allow' },
  context_perception: { allow: 'allow', block: 'block', refine: 'allow' },
  memory_recall: { allow: 'allow', block: 'block' },
  planning: { allow: 'allow', block: 'block', modify: 'modify' },
  reasoning: { allow: 'allow', block: 'block' },
  rate_limit: { retry: 'defer', queue: 'defer', skip: 'block' },
  confirmation: { approve: 'allow', reject: 'block', escalate: 'escalate' },
} as const satisfies Record<Family, Readonly<Record<string, Verdict>>>;

export const runStatus = table(TASK_STATES, [
  { wire: 'created', core: 'SUBMITTED', dir: '<->' },
  { wire: 'planning', core: 'WORKING', dir: '->', why: 'a phase of working; the word is kept as the phase' },
  { wire: 'executing', core: 'WORKING', dir: '<->' },
  { wire: 'verifying', core: 'WORKING', dir: '->', why: 'a phase of working; the word is kept as the phase' },
  { wire: 'executing', core: 'INPUT_REQUIRED', dir: '<-', why: 'no word for waiting; metadata says what for' },
  { wire: 'executing', core: 'AUTH_REQUIRED', dir: '<-', why: 'no word for waiting; metadata says what for' },
  { wire: 'completed', core: 'COMPLETED', dir: '<->' },
  { wire: 'failed', core: 'FAILED', dir: '<->' },
  { wire: 'cancelled', core: 'CANCELED', dir: '<->' },
]);
export const RUN_STATES = [
  'created',
  'planning',
  'executing',
  'verifying',
  'completed',
  'failed',
  'cancelled',
] as const;

/** States of plan items. Our plans have three; any other is shown as completed, with its own word in front. */
export const PLAN_STATES = ['pending', 'in_progress', 'completed'] as const;
export const planStatus = table(PLAN_STATES, [
  { wire: 'pending', core: 'pending', dir: '<->' },
  { wire: 'in_progress', core: 'in_progress', dir: '<->' },
  { wire: 'completed', core: 'completed', dir: '<->' },
  { wire: 'failed', core: 'completed', dir: '->', why: 'over; the entry opens with the real word and keeps it' },
  { wire: 'skipped', core: 'completed', dir: '->', why: 'over; the entry opens with the real word and keeps it' },
  { wire: 'cancelled', core: 'completed', dir: '->', why: 'over; the entry opens with the real word and keeps it' },
]);
export const TASK_ITEM_STATES = ['pending', 'in_progress', 'completed', 'failed', 'skipped', 'cancelled'] as const;

export const VERIFICATION_STATES = ['pending', 'running', 'passed', 'failed', 'skipped', 'needs_review'] as const;
/** The event for each state of a check. A check that has not ended produces no event. */
export const checkEvent: Readonly<Partial<Record<(typeof VERIFICATION_STATES)[number], EventKind>>> = {
  passed: 'span.completed',
  skipped: 'span.completed',
  needs_review: 'span.completed',
  failed: 'span.failed',
};

/** Our artifact kinds are kept; any other word becomes `other`, and the word is kept beside it. */
export function artifactKind(kind: string | undefined): (typeof ARTIFACT_KINDS)[number] {
  return (ARTIFACT_KINDS as readonly string[]).includes(kind ?? '')
    ? (kind as (typeof ARTIFACT_KINDS)[number])
    : 'other';
}

export const WORDS = {
  intent: ['recognize', 'understand', 'locate', 'retrieve', 'explore', 'reason', 'validate', 'compare', 'track'],
  domain: [
    'coding',
    'writing',
    'data_analysis',
    'research',
    'project_management',
    'conversation',
    'operations',
    'security',
    'general',
  ],
  modality: ['text', 'code', 'structured_data', 'table', 'chart', 'image', 'audio', 'video', 'any'],
  urgency: ['critical', 'high', 'normal', 'low'],
  freshness: ['realtime', 'recent', 'static'],
  strategy: ['none', 'step_by_step', 'tree_of_thoughts', 'graph_planning'],
  reasoning: ['chain_of_thought', 'tree_of_thoughts', 're_act', 'reflexion'],
  limit: ['llm_token_limit', 'llm_request_limit', 'api_request_limit', 'tool_execution_limit'],
  confirmation: ['safety_confirm', 'user_confirm', 'cost_confirm'],
} as const;

/** The names a quota may use for a limit that an agent reports. */
export const limitNames: Readonly<Record<string, readonly string[]>> = {
  llm_token_limit: ['tokens', 'input_tokens', 'output_tokens'],
  llm_request_limit: ['llm_requests'],
  api_request_limit: ['api_requests'],
  tool_execution_limit: ['tool_calls'],
};

/**
 * Effects of the tools of well-known agents, by tool name. Other tools are `unknown`, which counts as a side effect; the
 * configuration may be more specific.
 */
export const toolEffects: Readonly<Record<string, Effect>> = {
  read: 'read',
  read_file: 'read',
  grep: 'read',
  glob: 'read',
  ls: 'read',
  list_directory: 'read',
  search_files: 'read',
  codesearch: 'read',
  write: 'write',
  write_file: 'write',
  edit: 'write',
  edit_file: 'write',
  patch: 'write',
  bash: 'execute',
  shell: 'execute',
  execute: 'execute',
  web_fetch: 'send',
  web_search: 'send',
};

/** First words of a prompt that show its intent. For any other word the agent decides. */
export const intentWords: Readonly<Record<string, string>> = {
  where: 'locate',
  find: 'locate',
  locate: 'locate',
  explain: 'understand',
  how: 'understand',
  what: 'understand',
  why: 'reason',
  show: 'retrieve',
  list: 'retrieve',
  get: 'retrieve',
  explore: 'explore',
  browse: 'explore',
  check: 'validate',
  verify: 'validate',
  test: 'validate',
  compare: 'compare',
  track: 'track',
  watch: 'track',
};

/** Only for messages that no decision could answer. */
export const faults = {
  invalid_request: -32602,
  invalid_state_transition: -32603,
  unauthenticated: -32000,
  permission_denied: -32000,
  not_found: -32603,
  conflict: -32603,
  idempotency_key_reused: -32603,
  cursor_expired: -32603,
  payload_too_large: -32602,
  policy_violation: -32000,
  locked: -32603,
  unsupported_version: -32000,
  rate_limited: -32603,
  client_closed: -32603,
  internal: -32603,
  upstream_unavailable: -32603,
  unavailable: -32603,
  deadline_exceeded: -32603,
  not_implemented: -32601,
} as const satisfies Record<FaultKind, number>;

/** Events that a harness is not notified of. */
export const NOT_NOTIFIED = {
  ...leaveOut(
    'a harness is asked about an act before it runs, and learns its result from post_action',
    'tool.requested tool.approval_required tool.approved tool.denied agent.tool_use agent.tool_result agent.mcp_tool_use vendor.tollbridge.decided vendor.tollbridge.ask_opened vendor.tollbridge.ask_closed vendor.tollbridge.ask_used vendor.tollbridge.answer_refused vendor.tollbridge.side_effect vendor.tollbridge.alarm vendor.tollbridge.remote_decided',
  ),
  ...leaveOut(
    'only whole messages of the agent are sent',
    'user.message user.input_submitted user.tool_confirmation user.cancel_requested agent.reasoning_summary vendor.tollbridge.message_delta',
  ),
  ...leaveOut(
    'AHP has no event for it',
    'agent.handoff agent.memory_read agent.memory_write session.message_appended session.compacted session.truncated session.thread_forked session.thread_merged session.replayed branch.created branch.updated branch.merged branch.abandoned artifact.created artifact.updated artifact.linked artifact.redacted span.started span.updated span.completed span.failed vendor.tollbridge.usage vendor.tollbridge.quota_used vendor.tollbridge.quota_warned vendor.tollbridge.checkpoint vendor.tollbridge.note vendor.tollbridge.tainted vendor.tollbridge.recovered vendor.tollbridge.passthrough vendor.tollbridge.frame_refused',
  ),
  ...leaveOut(
    'not about the work of one agent',
    'connector.delivery_received connector.delivery_deduped connector.normalized connector.task_submitted connector.failed receipt.issued receipt.verified receipt.verification_failed replay.started replay.event_replayed replay.completed replay.failed vendor.tollbridge.login_failed vendor.tollbridge.policy_loaded vendor.tollbridge.config_loaded vendor.tollbridge.resource_created vendor.tollbridge.resource_updated vendor.tollbridge.resource_deleted vendor.tollbridge.tree_head vendor.tollbridge.bound',
  ),
};
