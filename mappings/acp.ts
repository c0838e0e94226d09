/**
 * Agent Client Protocol, wire version 1 ↔ canonical. Words are spelled as on the wire. The rows of the Harn profile are in
 * `acp-harn.ts`.
 */
import type { ActionKind } from '../src/model/actions.ts';
import { leaveOut } from '../src/model/events.ts';
import type { FaultKind } from '../src/model/faults.ts';
import { type AutonomyTier, EFFECTS, type Effect } from '../src/model/words.ts';
import { type FrameKind, frameTable, type Handling, type Judgement } from './frames.ts';
import { table } from './row.ts';

export const PROTOCOL = 1;

/** `facts` are the events in the log; `why` is required for every one-way row and every exception. */
export interface WireRow {
  readonly wire: string;
  readonly dir: '<->' | '->' | '<-' | 'none';
  readonly facts: readonly string[];
  readonly gate?: ActionKind;
  readonly why?: string;
}

/** A call row adds the kind of frame that carries the call, and how the relay handles that frame between an editor and its agent. */
export interface CallRow extends WireRow {
  readonly frame: FrameKind;
  readonly relay: Handling;
  readonly effect?: Effect;
}

/** Calls of a client on an agent. `->` is served at our door, `<-` is only sent by our backend. */
// biome-ignore format: one call per line reads as the page of a specification
export const CLIENT_CALLS = [
  { wire: 'initialize', frame: 'request', relay: 'pass', dir: '<->', facts: ['vendor.acp.connected'], why: 'the fact is the backend\'s: a door has no task yet that could carry one' },
  { wire: 'authenticate', frame: 'request', relay: 'pass', dir: '<->', facts: ['vendor.acp.auth'], why: 'the agent\'s own login; a caller at our door has proven itself before' },
  { wire: 'logout', frame: 'request', relay: 'pass', dir: 'none', facts: [], why: 'our door has no login, and an agent the gateway started keeps its login' },
  { wire: 'session/new', frame: 'request', relay: 'act', effect: 'none', dir: '<->', facts: ['session.created'], gate: 'session.open' },
  { wire: 'session/load', frame: 'request', relay: 'act', effect: 'none', dir: '<->', facts: [], why: 'the repeated updates were recorded when they first arrived' },
  { wire: 'session/resume', frame: 'request', relay: 'act', effect: 'none', dir: '<->', facts: [] },
  { wire: 'session/list', frame: 'request', relay: 'pass', dir: '->', facts: [], why: 'ours are listed; an agent behind us has no sessions but those we gave it' },
  { wire: 'session/close', frame: 'request', relay: 'pass', dir: '<->', facts: ['session.closed'] },
  { wire: 'session/delete', frame: 'request', relay: 'pass', dir: '->', facts: ['session.closed'], why: 'history stays in the log; the session is marked and no longer listed' },
  { wire: 'session/fork', frame: 'request', relay: 'act', effect: 'none', dir: '->', facts: ['session.thread_forked'], why: 'an agent behind us is given the forked conversation as a new session' },
  { wire: 'session/archive', frame: 'request', relay: 'pass', dir: 'none', facts: [], why: 'no such state; a list that hides without deleting is the client\'s own' },
  { wire: 'session/unarchive', frame: 'request', relay: 'pass', dir: 'none', facts: [], why: 'no such state' },
  { wire: 'session/status', frame: 'request', relay: 'pass', dir: '->', facts: [], why: 'read from the session; nothing behind us is asked' },
  { wire: 'session/set_title', frame: 'request', relay: 'pass', dir: '->', facts: ['vendor.tollbridge.resource_updated'], why: 'the summary of a session is its title' },
  { wire: 'session/prompt', frame: 'request', relay: 'act', effect: 'none', dir: '<->', facts: ['user.message', 'task.submitted', 'task.started'], gate: 'prompt' },
  { wire: 'session/cancel', frame: 'notification', relay: 'pass', dir: '<->', facts: ['user.cancel_requested'] },
  { wire: 'session/set_mode', frame: 'request', relay: 'act', dir: '<->', facts: ['vendor.tollbridge.passthrough'], gate: 'extension', why: 'at our door a mode is a persona, chosen for the tasks that follow; towards an agent it is set by configuration' },
  { wire: 'session/set_config_option', frame: 'request', relay: 'act', dir: '->', facts: ['vendor.tollbridge.passthrough'], gate: 'extension', why: 'the one option is which agent does the work' },
  { wire: 'providers/list', frame: 'request', relay: 'pass', dir: 'none', facts: [], why: 'which models an agent uses is its own configuration' },
  { wire: 'providers/set', frame: 'request', relay: 'pass', dir: 'none', facts: [], why: 'carries credentials for models we do not call' },
  { wire: 'providers/disable', frame: 'request', relay: 'pass', dir: 'none', facts: [], why: 'as providers/set' },
  { wire: 'auth/status', frame: 'request', relay: 'pass', dir: 'none', facts: [], why: 'as authenticate' },
  { wire: 'mcp/message', frame: 'notification', relay: 'pass', dir: 'none', facts: [], why: 'tools reach an agent over MCP itself, through a door of its own' },
  { wire: '$/cancel_request', frame: 'notification', relay: 'pass', dir: '<->', facts: [], why: 'on a prompt it is session/cancel, on a question it withdraws it' },
] as const satisfies readonly CallRow[];

/** Calls of an agent on its client. `->` is served by our backend, `<-` is sent by our door. */
// biome-ignore format: one call per line reads as the page of a specification
export const AGENT_CALLS = [
  { wire: 'session/update', frame: 'notification', relay: 'pass', dir: '<->', facts: [], why: 'each kind of update has its own row' },
  { wire: 'session/request_permission', frame: 'request', relay: 'act', dir: '<->', facts: ['tool.requested', 'vendor.tollbridge.decided', 'tool.approval_required'], gate: 'tool' },
  { wire: 'fs/read_text_file', frame: 'request', relay: 'act', effect: 'read', dir: '->', facts: ['tool.requested', 'tool.completed'], gate: 'fs.read', why: 'held by us; no agent of another protocol asks an editor for files' },
  { wire: 'fs/write_text_file', frame: 'request', relay: 'act', effect: 'write', dir: '->', facts: ['tool.requested', 'vendor.tollbridge.side_effect', 'tool.completed'], gate: 'fs.write', why: 'held by us, as reading' },
  { wire: 'terminal/create', frame: 'request', relay: 'act', effect: 'execute', dir: '->', facts: ['tool.requested'], gate: 'terminal', why: 'held by us' },
  { wire: 'terminal/output', frame: 'request', relay: 'pass', dir: '->', facts: [], why: 'polling is not a fact' },
  { wire: 'terminal/wait_for_exit', frame: 'request', relay: 'pass', dir: '->', facts: ['tool.completed', 'tool.failed'], why: 'the end of the act that terminal/create began' },
  { wire: 'terminal/kill', frame: 'request', relay: 'pass', dir: '->', facts: [], why: 'the end it brings about is the fact' },
  { wire: 'terminal/release', frame: 'request', relay: 'pass', dir: '->', facts: [], why: 'as terminal/kill' },
  { wire: 'elicitation/create', frame: 'request', relay: 'act', effect: 'none', dir: '<->', facts: ['task.input_required', 'user.input_submitted'], gate: 'elicit' },
  { wire: 'elicitation/complete', frame: 'notification', relay: 'pass', dir: '->', facts: [], why: 'a hint; the answer to the request is what counts' },
  { wire: 'mcp/message', frame: 'request', relay: 'act', dir: 'none', facts: [], why: 'we offer agents no server over this connection' },
  { wire: 'auth/status_update', frame: 'notification', relay: 'pass', dir: 'none', facts: [], why: 'as auth/status' },
  { wire: '$/cancel_request', frame: 'notification', relay: 'pass', dir: '<->', facts: [], why: 'withdraws a question' },
] as const satisfies readonly CallRow[];

/**
 * Calls outside the first version: from the second version, from earlier ones, and from vendors whose programs use them. A
 * request without a row is an act of unknown effect.
 */
// biome-ignore format: one call per line reads as the page of a specification
const FURTHER_CALLS = [
  { method: 'auth/login', from: 'editor', frame: 'request', handling: 'pass', why: 'version 2: the agent\'s own login' },
  { method: 'auth/logout', from: 'editor', frame: 'request', handling: 'pass', why: 'version 2, as auth/login' },
  { method: 'tool_call/cancel', from: 'editor', frame: 'request', handling: 'pass', why: 'version 2: stopping needs no leave' },
  { method: 'terminal/cancel', from: 'editor', frame: 'request', handling: 'pass', why: 'version 2: stopping needs no leave' },
  { method: 'session/set_model', from: 'editor', frame: 'request', handling: 'pass', why: 'removed from the schema, still sent by editors; which model answers is the person\'s choice' },
  { method: '_session/steering', from: 'editor', frame: 'request', handling: 'pass', why: 'claude-agent-acp: words for a turn that runs' },
  { method: '_session/steering', from: 'editor', frame: 'notification', handling: 'pass', why: 'claude-agent-acp: words for a turn that runs' },
  { method: '_session/goal', from: 'editor', frame: 'request', handling: 'pass', why: 'claude-agent-acp: what the session is about' },
  { method: '_session/goal', from: 'editor', frame: 'notification', handling: 'pass', why: 'claude-agent-acp: what the session is about' },
  { method: '_session/list/subscribe', from: 'editor', frame: 'request', handling: 'pass', why: 'claude-agent-acp: subscribes to changes of a list' },
  { method: '_harn/providerCatalog', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: reads which models there are' },
  { method: 'harn.hitl.respond', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: the person\'s answer to a question of the agent' },
  { method: 'harn.session_view.query', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: reads a session' },
  { method: 'session/input', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: words for a turn that runs' },
  { method: 'session/inputs', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: private values for the session; passed on to the agent, and never written to the log' },
  { method: 'session/inject', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: words for a turn that runs' },
  { method: 'session/remind', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: words for a turn that runs' },
  { method: 'session/truncate', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: takes turns off a conversation' },
  { method: 'session/rollback', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn, as session/truncate' },
  { method: 'session/redo', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn, as session/truncate' },
  { method: 'user_message', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: an older name of session/input' },
  { method: 'agent/user_message', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: an older name of session/input' },
  { method: 'agent/resume', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: lets a turn that waits go on' },
  { method: 'workflow/query', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: reads a workflow' },
  { method: 'harn.workflow.query', from: 'editor', frame: 'request', handling: 'pass', why: 'Harn: reads a workflow' },
  { method: 'host/capabilities', from: 'agent', frame: 'request', handling: 'pass', why: 'Harn: asks what the editor offers, at the start of each prompt' },
  { method: 'host/tools/list', from: 'agent', frame: 'request', handling: 'pass', why: 'Harn: reads which tools the editor has' },
  { method: 'tool_search/query', from: 'agent', frame: 'request', handling: 'pass', why: 'Harn: chooses among tools it names itself' },
  { method: 'skills/list', from: 'agent', frame: 'request', handling: 'pass', why: 'Harn: reads which skills there are' },
  { method: 'skills/fetch', from: 'agent', frame: 'request', handling: 'act', effect: 'read', why: 'Harn: reads a file of the editor\'s' },
  { method: 'skill/match', from: 'agent', frame: 'request', handling: 'pass', why: 'Harn: chooses among skills it names itself' },
  { method: 'host/call', from: 'agent', frame: 'request', handling: 'act', why: 'Harn: the editor runs whatever is named' },
  { method: 'builtin_call', from: 'agent', frame: 'request', handling: 'act', why: 'Harn, as host/call' },
  { method: 'agent/idle', from: 'agent', frame: 'notification', handling: 'pass', why: 'Harn: it waits for work' },
  { method: 'harn.hitl.requested', from: 'agent', frame: 'notification', handling: 'pass', why: 'Harn: a question to people, which is opened as one of ours; the answer is a call' },
  { method: 'proxy/initialize', from: 'editor', frame: 'request', handling: 'refuse', why: 'a chain of proxies is not spoken here' },
  { method: 'proxy/successor', from: 'editor', frame: 'request', handling: 'refuse', why: 'proxy/successor wraps another call, which would not be judged' },
  { method: 'proxy/successor', from: 'editor', frame: 'notification', handling: 'refuse', why: 'proxy/successor wraps another call, which would not be judged' },
  { method: 'proxy/successor', from: 'agent', frame: 'request', handling: 'refuse', why: 'proxy/successor wraps another call, which would not be judged' },
  { method: 'proxy/successor', from: 'agent', frame: 'notification', handling: 'refuse', why: 'proxy/successor wraps another call, which would not be judged' },
  { method: '_*', from: 'editor', frame: 'notification', handling: 'pass', why: 'the protocol leaves names that begin with an underscore to vendors' },
  { method: '_*', from: 'agent', frame: 'notification', handling: 'pass', why: 'the protocol leaves names that begin with an underscore to vendors' },
] as const satisfies readonly CallFrame[];

export interface CallFrame {
  readonly method: string;
  readonly from: 'editor' | 'agent';
  readonly frame: FrameKind;
  readonly handling: Handling;
  readonly effect?: Effect;
  readonly why?: string;
}

function framed(rows: readonly CallRow[], from: CallFrame['from']): CallFrame[] {
  return rows.map(({ wire, frame, relay, effect, why }) => ({
    method: wire,
    from,
    frame,
    handling: relay,
    ...(effect && { effect }),
    ...(why && { why }),
  }));
}

/** How the relay handles every frame between an editor and its agent, by sender and kind of frame. */
export const FRAMES = frameTable<CallFrame>([
  ...framed(CLIENT_CALLS, 'editor'),
  ...framed(AGENT_CALLS, 'agent'),
  ...FURTHER_CALLS,
]);

const PLAIN_METHODS: ReadonlyMap<string, string> = new Map(
  FRAMES.rows.filter(({ method }) => !method.endsWith('*')).map(({ method }) => [plainMethod(method), method]),
);

/** The method name as a reader would take it that ignores case, spaces and marks. */
function plainMethod(method: string): string {
  return method
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^a-z0-9$_./]/g, '')
    .replace(/^[/.]+|[/.]+$/g, '')
    .replace(/\/+/g, '/');
}

/** The table's handling of a frame. A name that is almost a known one is refused and not treated as unknown. */
export function judgeFrame(from: CallFrame['from'], frame: FrameKind, method: string): Judgement<CallFrame> {
  const judged = FRAMES.judge(from, frame, method);
  if (judged.handling === 'refuse' || (judged.row && !judged.row.method.endsWith('*'))) return judged;
  const like = PLAIN_METHODS.get(plainMethod(method));
  if (!like) return judged;
  return { handling: 'refuse', reason: `${JSON.stringify(method.slice(0, 80))} resembles ${like} and is not it` };
}

/** Updates an agent sends while it works. */
// biome-ignore format: one update per line reads as the page of a specification
export const UPDATES = [
  { wire: 'agent_message_chunk', dir: '<->', facts: ['vendor.tollbridge.message_delta', 'agent.message'] },
  { wire: 'agent_thought_chunk', dir: '<->', facts: ['vendor.acp.thought', 'agent.reasoning_summary'], why: 'words of a thought are for editors alone; a summary is published where the configuration says so' },
  { wire: 'user_message_chunk', dir: '<-', facts: ['user.message'], why: 'what people said we know from their own doors' },
  { wire: 'tool_call', dir: '<->', facts: ['agent.tool_use', 'tool.requested'] },
  { wire: 'tool_call_update', dir: '<->', facts: ['span.updated', 'tool.completed', 'tool.failed', 'vendor.tollbridge.side_effect'] },
  { wire: 'plan', dir: '<->', facts: ['vendor.tollbridge.plan'] },
  { wire: 'plan_update', dir: '->', facts: ['vendor.tollbridge.plan'], why: 'only lists are plans here; the first version of the wire knows one plan' },
  { wire: 'plan_removed', dir: '->', facts: ['vendor.tollbridge.plan'], why: 'an empty plan' },
  { wire: 'available_commands_update', dir: '->', facts: ['vendor.acp.commands'], why: 'rendered from the update as received; no other protocol has commands' },
  { wire: 'current_mode_update', dir: '<->', facts: ['vendor.acp.config_changed'], why: 'towards editors: the persona that was chosen' },
  { wire: 'config_option_update', dir: '<->', facts: ['vendor.acp.config_changed'], why: 'towards editors: which agent does the work' },
  { wire: 'session_info_update', dir: '<->', facts: ['vendor.acp.session_info'], why: 'towards editors: the summary of the session' },
  { wire: 'usage_update', dir: '->', facts: ['span.updated', 'vendor.tollbridge.usage'], why: 'the context is shown as it came; what a task used is summed at its end' },
  { wire: 'notice', dir: '<->', facts: ['vendor.acp.notice'], why: 'towards editors that take them: notes of the bridge' },
  { wire: 'compaction_update', dir: '<->', facts: ['vendor.acp.compaction'], why: 'session.compacted is the bridge\'s own word and cannot be reported by an agent' },
  { wire: 'compaction_summary_chunk', dir: '->', facts: ['vendor.acp.compaction'], why: 'as compaction_update' },
  { wire: 'subagent_update', dir: '->', facts: ['span.started', 'span.updated', 'span.completed'], why: 'a report of a task does not create one here' },
  { wire: 'session_message', dir: '->', facts: ['vendor.acp.session_message'], why: 'messages here have no addressee' },
  { wire: 'session_message_chunk', dir: '->', facts: ['vendor.acp.session_message'], why: 'as session_message' },
] as const satisfies readonly WireRow[];
export type UpdateKind = (typeof UPDATES)[number]['wire'];
/** Events that have no update of their own. */
export const NOT_UPDATED = {
  ...leaveOut(
    'the answer to the prompt, the dialog of a question, or the update of the call says it',
    'user.input_submitted user.tool_confirmation user.cancel_requested agent.tool_result tool.approval_required task.submitted task.started task.input_required task.auth_required task.status_changed vendor.tollbridge.ask_used',
  ),
  ...leaveOut(
    'rendered only where the agent sent an update for it, which is passed on as it came',
    'agent.memory_read agent.memory_write artifact.updated artifact.linked artifact.redacted span.started span.completed span.failed vendor.tollbridge.usage vendor.tollbridge.side_effect vendor.tollbridge.checkpoint',
  ),
  ...leaveOut(
    'kept for auditors, who read the log',
    'vendor.tollbridge.quota_used vendor.tollbridge.quota_warned vendor.tollbridge.tainted vendor.tollbridge.recovered vendor.tollbridge.passthrough vendor.tollbridge.frame_refused vendor.tollbridge.alarm vendor.tollbridge.remote_decided vendor.tollbridge.answer_refused',
  ),
  ...leaveOut(
    'not about the work of one task',
    'session.created session.closed session.message_appended session.truncated session.thread_forked session.thread_merged session.replayed branch.created branch.updated branch.merged branch.abandoned connector.delivery_received connector.delivery_deduped connector.normalized connector.task_submitted connector.failed receipt.issued receipt.verified receipt.verification_failed replay.started replay.event_replayed replay.completed replay.failed vendor.tollbridge.login_failed vendor.tollbridge.policy_loaded vendor.tollbridge.config_loaded vendor.tollbridge.resource_created vendor.tollbridge.resource_deleted vendor.tollbridge.tree_head vendor.tollbridge.bound',
  ),
};

/** The event name for an update without a row: it is kept whole and not interpreted. */
export const UNKNOWN_UPDATE = 'vendor.acp.update';

/** The ends of a turn, as finely as the wire distinguishes them. */
export const TURN_ENDS = ['completed', 'out_of_tokens', 'out_of_requests', 'refused', 'canceled'] as const;
export type TurnEnd = (typeof TURN_ENDS)[number];
export const stopReason = table(TURN_ENDS, [
  { wire: 'end_turn', core: 'completed', dir: '<->' },
  { wire: 'completed', core: 'completed', dir: '->', why: 'older Harn agents say it' },
  { wire: 'max_tokens', core: 'out_of_tokens', dir: '<->' },
  { wire: 'max_turn_requests', core: 'out_of_requests', dir: '<->' },
  { wire: 'refusal', core: 'refused', dir: '<->' },
  { wire: 'cancelled', core: 'canceled', dir: '<->' },
]);

/** The effect of each kind of tool. */
export const toolKind = table(EFFECTS, [
  { wire: 'think', core: 'none', dir: '<->' },
  { wire: 'read', core: 'read', dir: '<->' },
  { wire: 'search', core: 'read', dir: '->', why: 'looking is reading' },
  { wire: 'edit', core: 'write', dir: '<->' },
  { wire: 'move', core: 'write', dir: '->', why: 'no effect of its own; the file operation says rename' },
  { wire: 'delete', core: 'delete', dir: '<->' },
  { wire: 'execute', core: 'execute', dir: '<->' },
  { wire: 'fetch', core: 'send', dir: '->', why: 'a request leaves this machine, whatever it returns' },
  { wire: 'switch_mode', core: 'unknown', dir: '->', why: 'decides what will be asked about, which no effect says' },
  { wire: 'other', core: 'unknown', dir: '<->' },
  { wire: 'other', core: 'send', dir: '<-', why: 'mail is not a fetch' },
  { wire: 'other', core: 'publish', dir: '<-', why: 'no kind for it' },
  { wire: 'other', core: 'pay', dir: '<-', why: 'no kind for it' },
]);

/** Kinds of acts whose wire word is more specific than their effect. */
export const ACT_KINDS: Readonly<Partial<Record<ActionKind, string>>> = {
  'fs.read': 'read',
  'fs.write': 'edit',
  terminal: 'execute',
};

export const TOOL_STATES = ['waiting', 'running', 'ok', 'error'] as const;
export const toolStatus = table(TOOL_STATES, [
  { wire: 'pending', core: 'waiting', dir: '<->' },
  { wire: 'in_progress', core: 'running', dir: '<->' },
  { wire: 'completed', core: 'ok', dir: '<->' },
  { wire: 'failed', core: 'error', dir: '<->' },
  {
    wire: 'cancelled',
    core: 'error',
    dir: '->',
    why: 'from a later version of the wire; the word is kept as the reason',
  },
  { wire: 'paused', core: 'running', dir: '->', why: 'from a later version of the wire; it has not ended' },
]);

export const PLAN_STATES = ['pending', 'in_progress', 'completed'] as const;
export const planStatus = table(PLAN_STATES, [
  { wire: 'pending', core: 'pending', dir: '<->' },
  { wire: 'in_progress', core: 'in_progress', dir: '<->' },
  { wire: 'completed', core: 'completed', dir: '<->' },
  { wire: 'cancelled', core: 'completed', dir: '->', why: 'from a later version of the wire; over is over' },
]);

/** The option kinds for each answer, best first. Only a person may choose an option that lasts. */
export const OPTIONS = {
  approved: ['allow_once'],
  denied: ['reject_once', 'reject_always'],
} as const;
export const STANDING_GRANT = 'allow_always';

/**
 * Agents that pass the text of an error response to a permission request on to their model, by their own names without a scope.
 * Every other agent tells its model only that the user refused, or ends the turn on an error.
 */
export const PASSES_ERRORS_ON: ReadonlySet<string> = new Set(['claude-agent-acp', 'gemini-cli', 'qwen-code']);

/** Modes that decide whether an agent asks at all, where the names are known. */
export const MODE_TIERS: Readonly<Record<string, AutonomyTier>> = {
  plan: 'suggest',
  'read-only': 'suggest',
  dontAsk: 'suggest',
  default: 'act_with_approval',
  ask: 'act_with_approval',
  build: 'act_with_approval',
  'workspace-write': 'act_with_approval',
  autoEdit: 'act_with_approval',
  'auto-edit': 'act_with_approval',
  acceptEdits: 'act_with_approval',
  yolo: 'act_auto',
  bypassPermissions: 'act_auto',
  'agent-full-access': 'act_auto',
  auto: 'act_auto',
  agent: 'act_auto',
};

/** Content blocks of messages. A block without a row is kept whole and read only by this protocol. */
// biome-ignore format: one block per line reads as the page of a specification
export const BLOCKS = [
  { wire: 'text', dir: '<->', part: 'text' },
  { wire: 'resource_link', dir: '<->', part: 'file_ref' },
  { wire: 'resource', dir: '<->', part: 'text', why: 'text of a resource is text that says where it is from, so that every agent can read it; the log keeps what is long as an artifact' },
  { wire: 'resource', dir: '<->', part: 'artifact_ref', why: 'bytes of a resource, and our artifacts when they are short texts' },
  { wire: 'image', dir: '<->', part: 'image_ref' },
  { wire: 'audio', dir: '->', part: 'artifact_ref', why: 'no part for sound; goes out as a link' },
  { wire: 'text', dir: '<-', part: 'json', why: 'no block for data; shown as it is written' },
] as const;

/** Our failures and the client's mistakes never share a code; a denial by policy has a third. */
export const POLICY_BLOCK = 1403;
export const faults = {
  invalid_request: { code: -32602, word: 'invalid_request' },
  invalid_state_transition: { code: -32600, word: 'conflict' },
  unauthenticated: { code: -32000, word: 'unauthenticated' },
  permission_denied: { code: POLICY_BLOCK, word: 'permission_denied' },
  not_found: { code: -32002, word: 'resource_not_found' },
  conflict: { code: -32600, word: 'conflict' },
  idempotency_key_reused: { code: -32600, word: 'idempotency_key_reused' },
  cursor_expired: { code: -32602, word: 'cursor_expired' },
  payload_too_large: { code: -32602, word: 'payload_too_large' },
  policy_violation: { code: POLICY_BLOCK, word: 'policy_violation' },
  locked: { code: -32600, word: 'resource_locked' },
  unsupported_version: { code: -32022, word: 'unsupported_protocol_version' },
  rate_limited: { code: 1429, word: 'rate_limited' },
  client_closed: { code: -32800, word: 'request_cancelled' },
  internal: { code: -32603, word: 'internal_error' },
  upstream_unavailable: { code: -32603, word: 'upstream_unavailable' },
  unavailable: { code: -32603, word: 'service_unavailable' },
  deadline_exceeded: { code: -32603, word: 'deadline_exceeded' },
  not_implemented: { code: -32601, word: 'not_implemented' },
} as const satisfies Record<FaultKind, { readonly code: number; readonly word: string }>;

/** The failure code for each error of an agent. Codes without a row are `upstream_error`. */
export const AGENT_ERRORS: Readonly<Record<number, string>> = {
  [-32000]: 'upstream_auth',
  [-32602]: 'runtime_error',
  [-32022]: 'unsupported_protocol_version',
  [POLICY_BLOCK]: 'policy_violation',
};
export const REQUEST_CANCELLED = -32800;
export const AUTH_REQUIRED = -32000;

export function effectOf(kind: string | undefined): Effect {
  return (kind !== undefined && toolKind.toCore(kind)) || 'unknown';
}
