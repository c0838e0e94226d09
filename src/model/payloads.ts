/**
 * Every event kind and the payload it carries: JSON Schema and type from one source. A kind that is not in `EVENT_PAYLOADS` does not
 * exist here; kinds of other vendors pass through `vendorEvent`. Payloads are open: members beside the named ones survive.
 */
import { CallerOfCall, Decision, EffectShape, UsageShape } from './actions.ts';
import { ASK_STATES, AskRecord } from './asks.ts';
import { CALL_OUTCOMES } from './call-outcomes.ts';
import { Artifact, Branch, Failure, Message, Outcome, Pointer, Session, Task } from './resources.ts';
import {
  Amounts,
  ClosedWord,
  Id,
  type JsonObject,
  JsonValue,
  List,
  MaybeText,
  MaybeTime,
  Nullable,
  OpenObject,
  OpenWord,
  Texts,
} from './schema.ts';
import { type Static, type TProperties, Type } from './type.ts';
import { LossShape } from './values/loss.ts';
import type { OwnEventKind, ProtocolEventKind } from './words.ts';

const { Boolean: Flag, Number: Amount, Object: Shape, Optional, String: Text } = Type;
const Reason = Optional(Text());

/** `.started`, `.input_required`, `.auth_required`, `.status_changed`. */
const Transition = {
  task: Task,
  from: MaybeText,
  to: Text(),
  reason: Reason,
  /** The process that runs the work; null for work outside the gateway. */
  instance: Optional(MaybeText),
  /** The work takes its session's lane. */
  lane: Optional(Flag()),
  ask_id: Optional(Text()),
};
const TaskMoved = Shape(Transition);
export type TransitionPayload = Static<typeof TaskMoved>;

const TaskSubmitted = Shape({
  ...Transition,
  /** Name of the backend; `none` for work outside the gateway. */
  agent: Optional(Text()),
  served: Optional(Shape({ by: Text(), away_ms: Optional(Amount()) })),
  resumes: Optional(Flag()),
  /** Quotas that count the task as concurrent work. */
  holds: Optional(Texts),
});
const TaskEnded = Shape({
  ...Transition,
  outcome: Outcome,
  /** Facts the run is known not to have reported. */
  not_reported: Optional(Texts),
  loss: Optional(List(LossShape)),
  /** Set when the work did not stop in time after a cancel. */
  still_running: Optional(Flag()),
  released: Optional(Texts),
});
export type EndPayload = Static<typeof TaskEnded>;

const ToolRequested = Shape({
  tool_call_id: Text(),
  name: Text(),
  kind: Text(),
  input: OpenObject,
  server: Optional(Text()),
  target: Optional(Text()),
  effect: Text(),
  evidence: Text(),
  definition: Optional(Text()),
  /** The other gateway's call that led to this one, as that gateway claims. */
  caller: Optional(CallerOfCall),
});
export type ToolRequestedPayload = Static<typeof ToolRequested>;

/** The arguments are in `tool.requested` when there is one, else here. */
const Decided = Shape({
  action: Shape({
    id: Text(),
    kind: Text(),
    actor: Shape({ id: Text(), kind: Text(), tenant_id: Optional(Text()), door: Optional(Text()) }),
    tool_call_id: Optional(Text()),
    tool: Optional(Text()),
    server: Optional(Text()),
    definition: Optional(Text()),
    target: Optional(Text()),
    effect: Text(),
    evidence: Text(),
    arguments: Optional(OpenObject),
    attributes: Optional(OpenObject),
    cost: Optional(Amounts),
    persona_id: Optional(Text()),
    tier: Optional(Text()),
  }),
  decision: Decision,
  loss: Optional(List(LossShape)),
});
export type DecidedPayload = Static<typeof Decided>;

const ApprovalRequired = Shape({
  ask_id: Text(),
  tool_call_id: MaybeText,
  name: Text(),
  question: Text(),
  expires_at: Text(),
});
const AskOpened = Shape({ ask: AskRecord });
export type AskOpenedPayload = Static<typeof AskOpened>;
const AskClosed = Shape({
  ask_id: Text(),
  state: ClosedWord(ASK_STATES.filter((state) => state !== 'open')),
  by: Text(),
  at: Text(),
  reason: Reason,
  answer: Optional(JsonValue),
});
export type AskClosedPayload = Static<typeof AskClosed>;
const AnswerRefused = Shape({
  ask_id: Text(),
  by: Text(),
  code: Text(),
  reason: Text(),
  rule_id: Optional(Text()),
  arguments_hash: Optional(Text()),
});

const ToolDecided = Shape({
  tool_call_id: MaybeText,
  name: Text(),
  by: Text(),
  reason: Reason,
  code: Optional(Text()),
  ask_id: Optional(Text()),
  rule_id: Optional(Text()),
  /** The arguments that will run, when a rule or the approver rewrote them. */
  input: Optional(OpenObject),
  /** For a denial: `refused`, or `canceled` when the question was withdrawn. */
  outcome: Optional(ClosedWord(CALL_OUTCOMES)),
  /** The approver who gave other arguments than the ones asked about. */
  changed_by: Optional(Text()),
});
export type ToolDecisionPayload = Static<typeof ToolDecided>;

const Link = {
  protocol: Text(),
  receipt_hash: Optional(Text()),
  issuer: Optional(Text()),
  key_id: Optional(Text()),
  /** The event we committed to when the work was forwarded, as announced to the other gateway. */
  announced: Optional(Shape({ event_id: Text(), event_hash: Text() })),
};
/** Names the other gateway's task that accounts for the call, and its receipt. Unknown for a call that was not answered. */
const CallLinked = Shape({ ...Link, task_id: Optional(Text()), receipt_id: Optional(Text()) });
export type CallLink = Static<typeof CallLinked>;
/** Links our receipt to the receipt of the gateway that did the work. */
const HandoffLinked = Shape({
  ...Link,
  /** `valid`: the receipt was fetched and verified when the work ended. `claimed`: this gateway has not seen it. */
  checked: Optional(ClosedWord(['valid', 'invalid', 'claimed'])),
  /** The first error found in it. */
  reason: Reason,
});
export type HandoffLink = Static<typeof HandoffLinked>;

/**
 * Another gateway decided on a call that it ran or refused itself. It is that gateway's claim: it allows nothing here, and a receipt
 * states it as claimed.
 */
const RemoteDecided = Shape({
  tool_call_id: Text(),
  name: Text(),
  /** The name of that gateway in our configuration. */
  remote: Text(),
  /** `unknown`: it received the call and did not answer. */
  verdict: ClosedWord(['approved', 'denied', 'unknown']),
  /** The rule engine or the approver there. */
  by: Optional(Text()),
  reason: Reason,
  code: Optional(Text()),
  rule_id: Optional(Text()),
  /** The question put to approvers there, when there was one. */
  ask_id: Optional(Text()),
  /** The answer to that question was given here and sent there. */
  relayed: Optional(Flag()),
  at: Optional(Text()),
  /** The arguments that run there, when they are not the requested ones; or only their hash, when only that is known. */
  input: Optional(OpenObject),
  input_hash: Optional(Text()),
  /** Hash of the arguments requested there, where the arguments themselves were not disclosed. */
  requested_input_hash: Optional(Text()),
  /** Hash of the result, where only a summary of it was disclosed. */
  output_hash: Optional(Text()),
  /** Links the call to its counterpart at the other gateway, where a single call was forwarded and not a task. */
  link: Optional(CallLinked),
});
export type RemoteDecidedPayload = Static<typeof RemoteDecided>;

const ToolEnded = Shape({
  tool_call_id: Text(),
  name: Text(),
  status: ClosedWord(['ok', 'error']),
  output: Optional(JsonValue),
  error: Optional(Text()),
  /**
   * `outcome_unknown`, `deadline_exceeded`: the call may have run; it will not be tried again. `canceled`: stopped before a result
   * came.
   */
  code: Optional(Text()),
  /** Derived by core from the other members and from the decision on the call. Absent in logs older than this member. */
  outcome: Optional(ClosedWord(CALL_OUTCOMES)),
  /** The decision on the call was written in the same commit, so after the call: it had no effect by trusted definition. */
  one_commit: Optional(Flag()),
  loss: Optional(List(LossShape)),
});
export type ToolEndedPayload = Static<typeof ToolEnded>;

const Alarm = Shape({
  alarm: ClosedWord(['ran_though_refused']),
  tool_call_id: Text(),
  name: Text(),
  /** The state of the act when it was reported as run. */
  state: ClosedWord(['refused', 'deferred', 'waiting_for_approval', 'approved_but_not_begun', 'rewritten']),
  /** The call that was not allowed, where the same act is reported under another id. */
  refused_call_id: Optional(Text()),
  /** The evidence for the act: the agent asked and did not obey, or it only reported. */
  evidence: Text(),
  /** The reported fact that shows it ran. */
  reported: Text(),
  message: Text(),
  rule_id: Optional(Text()),
  ask_id: Optional(Text()),
  engine: Optional(Text()),
  code: Optional(Text()),
});
export type AlarmPayload = Static<typeof Alarm>;

const Handoff = Shape({
  target_agent: Text(),
  task_id: Text(),
  status: ClosedWord(['accepted', 'rejected', 'failed', 'completed']),
  receipt_id: Optional(Text()),
  link: Optional(HandoffLinked),
});
/** Of a model call, `span.kind` is `llm`. */
const Span = Shape({
  span: Shape({ id: Optional(Text()), kind: Optional(Text()), call_id: Optional(Text()) }),
  model: Optional(Shape({ provider: Optional(Text()), model: Optional(Text()), version: Optional(Text()) })),
  response: Optional(JsonValue),
});
const Said = Shape({ message: Message });
export type MessagePayload = Static<typeof Said>;
const Delta = Shape({ message_id: Text(), role: Text(), text: Text() });
export type DeltaPayload = Static<typeof Delta>;
const SessionCarried = Shape({ session: Session });
export type SessionPayload = Static<typeof SessionCarried>;
const BranchCarried = Shape({ branch: Branch });
const Thread = Shape({
  session_id: Text(),
  branch_id: MaybeText,
  at_event_id: Optional(MaybeText),
  messages: Amount(),
});
/** `after_end`: the task's receipt was sealed without it. */
const ArtifactCarried = Shape({ artifact: Artifact, after_end: Optional(Flag()) });
export type ArtifactPayload = Static<typeof ArtifactCarried>;
const ToolUsed = Shape({ tool_call_id: Text(), name: Text(), input: OpenObject });
const MemoryTouched = Shape({
  memory_id: Text(),
  scope: Text(),
  owner_id: Text(),
  content_hash: Text(),
  as_of: Optional(Text()),
  query: Optional(Text()),
  tool_call_id: Optional(Text()),
});
export type MemoryPayload = Static<typeof MemoryTouched>;
const ResourceCarried = Shape({ resource: OpenObject });
const Delivery = <P extends TProperties>(more: P) => Shape({ delivery_id: Text(), event_kind: Text(), ...more });
const ReceiptChecked = Shape({ valid: Flag(), checked_at: Text() });
const QuotaUsed = Shape({
  quota_id: Text(),
  amounts: Amounts,
  usage: Amounts,
  reset_at: Optional(MaybeTime),
  minute_ends_at: Optional(Text()),
  /** The time up to which the charge has paid for its task. */
  timed_until: Optional(Text()),
});
/** `from`: the process or the gateway that had the work before. */
const Recovered = Shape({ instance: MaybeText, from: Optional(MaybeText), was: Optional(Text()) });
const ConfigLoaded = Shape({
  outcome: ClosedWord(['loaded', 'refused']),
  /** Paths that differ now: `agents.far`, `personas.careful`, `retention`. */
  changed: Texts,
  /** Sections that differ in the file and are not in force yet. */
  waits_for_restart: Texts,
  error: MaybeText,
});
export type ConfigLoadedPayload = Static<typeof ConfigLoaded>;

/** One row per kind. A new kind compiles when the tables of every reader (projector, receipts, doors, CLI) have a row for it too. */
export const EVENT_PAYLOADS = {
  'user.message': Said,
  'user.input_submitted': Shape({ ask_id: Text(), value: JsonValue }),
  'user.tool_confirmation': Shape({
    ask_id: Text(),
    tool_call_id: MaybeText,
    approved: Flag(),
    reason: MaybeText,
  }),
  'user.cancel_requested': Shape({ reason: Text(), failure: Optional(Failure) }),
  'agent.message': Said,
  'agent.reasoning_summary': Shape({ text: Optional(JsonValue), message_id: Optional(Text()) }),
  'agent.tool_use': ToolUsed,
  'agent.tool_result': Shape({
    tool_call_id: Text(),
    name: Text(),
    status: OpenWord(['ok', 'error']),
    error: Optional(Text()),
  }),
  'agent.mcp_tool_use': ToolUsed,
  'agent.handoff': Handoff,
  'agent.memory_read': MemoryTouched,
  'agent.memory_write': MemoryTouched,
  'task.submitted': TaskSubmitted,
  'task.started': TaskMoved,
  'task.input_required': TaskMoved,
  'task.auth_required': TaskMoved,
  'task.completed': TaskEnded,
  'task.failed': TaskEnded,
  'task.canceled': TaskEnded,
  'task.status_changed': TaskMoved,
  'session.created': SessionCarried,
  'session.closed': SessionCarried,
  'session.message_appended': Shape({ message_id: Text(), role: Text() }),
  'session.compacted': Shape({ summary: Text(), through_message_id: Text() }),
  'session.truncated': Shape({
    kept_turn_count: Amount(),
    removed_turn_count: Amount(),
    new_tip_turn_id: MaybeText,
    removed: Texts,
    reason: MaybeText,
  }),
  'session.thread_forked': Thread,
  'session.thread_merged': Thread,
  'session.replayed': Shape({ mode: Text(), tasks: JsonValue, reason: MaybeText }),
  'branch.created': BranchCarried,
  'branch.updated': BranchCarried,
  'branch.merged': BranchCarried,
  'branch.abandoned': BranchCarried,
  'artifact.created': ArtifactCarried,
  'artifact.updated': ArtifactCarried,
  /** Linked by a message: the id alone. */
  'artifact.linked': Shape({ artifact: Optional(Artifact), artifact_id: Optional(Text()), to: Pointer }),
  'artifact.redacted': Shape({ artifact: Artifact, reason: MaybeText }),
  'span.started': Span,
  'span.updated': Span,
  'span.completed': Span,
  'span.failed': Span,
  'tool.requested': ToolRequested,
  'tool.approval_required': ApprovalRequired,
  'tool.approved': ToolDecided,
  'tool.denied': ToolDecided,
  'tool.completed': ToolEnded,
  'tool.failed': ToolEnded,
  'connector.delivery_received': Delivery({ payload_hash: Text(), wanted: Flag() }),
  'connector.delivery_deduped': Delivery({}),
  'connector.normalized': Delivery({ session_id: Text() }),
  'connector.task_submitted': Delivery({ task_id: Text() }),
  'connector.failed': Delivery({ code: Text(), reason: Text() }),
  'receipt.issued': Shape({ receipt_id: Text(), subject: Pointer }),
  'receipt.verified': ReceiptChecked,
  'receipt.verification_failed': ReceiptChecked,
  'replay.started': Shape({
    source_task_id: Text(),
    mode: Text(),
    overrides: Texts,
    reason: MaybeText,
    rerun: Flag(),
    /** For an end that comes from elsewhere: a cancel, or another process after a crash. */
    claim: Optional(OpenObject),
  }),
  'replay.event_replayed': Shape({
    original: Shape({ id: Id, event: Text() }),
    restored: Optional(Amount()),
    through: Optional(Text()),
  }),
  'replay.completed': Shape({ source_task_id: Text(), events: Amount() }),
  'replay.failed': Shape({ message: Text() }),

  'vendor.tollbridge.decided': Decided,
  'vendor.tollbridge.ask_opened': AskOpened,
  'vendor.tollbridge.ask_closed': AskClosed,
  'vendor.tollbridge.answer_refused': AnswerRefused,
  'vendor.tollbridge.login_failed': Shape({
    doors: Texts,
    /** Null for a note about several addresses. */
    address: MaybeText,
    key_ids: Texts,
    attempts: Amount(),
  }),
  'vendor.tollbridge.ask_used': Shape({ ask_id: Text(), at: Text() }),
  'vendor.tollbridge.message_delta': Delta,
  'vendor.tollbridge.plan': Shape({ entries: JsonValue }),
  'vendor.tollbridge.usage': UsageShape,
  'vendor.tollbridge.quota_used': QuotaUsed,
  'vendor.tollbridge.quota_warned': Shape({
    quota_id: Text(),
    limit: Text(),
    allowed: Nullable(Amount()),
    used: Nullable(Amount()),
  }),
  'vendor.tollbridge.side_effect': EffectShape,
  'vendor.tollbridge.checkpoint': Shape({ checkpoint_id: Text(), value: Optional(JsonValue) }),
  'vendor.tollbridge.bound': Shape({ protocol: Text(), scope: Text(), wire_id: Text(), to: Pointer }),
  'vendor.tollbridge.recovered': Recovered,
  'vendor.tollbridge.policy_loaded': Shape({
    outcome: ClosedWord(['loaded', 'refused']),
    /** Undefined when there has never been one. */
    version: Optional(Type.Unsafe<string | undefined>({ type: 'string' })),
    rules: Amount(),
    refused: Optional(Text()),
    errors: List(
      Shape({
        file: Text(),
        rule: Optional(Text()),
        line: Optional(Amount()),
        column: Optional(Amount()),
        message: Text(),
      }),
    ),
  }),
  'vendor.tollbridge.config_loaded': ConfigLoaded,
  'vendor.tollbridge.resource_created': ResourceCarried,
  'vendor.tollbridge.resource_updated': ResourceCarried,
  'vendor.tollbridge.resource_deleted': Shape({ id: Text(), object: Text(), tenant_id: Optional(Text()) }),
  'vendor.tollbridge.tree_head': Shape({ head: OpenObject }),
  'vendor.tollbridge.passthrough': Shape({ protocol: Text(), method: Text(), params_hash: Optional(Text()) }),
  'vendor.tollbridge.frame_refused': Shape({ protocol: Text(), method: Text(), reason: Text(), count: Amount() }),
  'vendor.tollbridge.alarm': Alarm,
  'vendor.tollbridge.remote_decided': RemoteDecided,
  'vendor.tollbridge.tainted': Shape({
    server: Text(),
    what: Text(),
    target: Optional(Text()),
    tool_call_id: Optional(Text()),
  }),
  'vendor.tollbridge.note': OpenObject,
} as const satisfies Record<ProtocolEventKind | OwnEventKind, object>;

export type EventPayloads = { [K in keyof typeof EVENT_PAYLOADS]: Static<(typeof EVENT_PAYLOADS)[K]> };
export type EventKind = keyof EventPayloads;

/** Recorded in an event's metadata when a value was removed from its payload before it was written. */
export type RedactionMark = { readonly field: string; readonly reason: string };

/**
 * Kinds that an agent or a client may report. Core writes such a fact as it was reported, so any member of its payload may be
 * missing.
 */
export const REPORTABLE_KINDS = [
  'user.message',
  'agent.message',
  'agent.reasoning_summary',
  'agent.tool_use',
  'agent.tool_result',
  'agent.mcp_tool_use',
  'agent.handoff',
  'agent.memory_read',
  'agent.memory_write',
  'artifact.created',
  'artifact.updated',
  'artifact.linked',
  'artifact.redacted',
  'span.started',
  'span.updated',
  'span.completed',
  'span.failed',
  'tool.requested',
  'tool.completed',
  'tool.failed',
  'connector.delivery_received',
  'connector.delivery_deduped',
  'connector.normalized',
  'connector.task_submitted',
  'connector.failed',
  'vendor.tollbridge.message_delta',
  'vendor.tollbridge.plan',
  'vendor.tollbridge.usage',
  'vendor.tollbridge.side_effect',
  'vendor.tollbridge.checkpoint',
  'vendor.tollbridge.note',
  'vendor.tollbridge.remote_decided',
] as const satisfies readonly EventKind[];
export type ReportableKind = (typeof REPORTABLE_KINDS)[number];

/** The payload as a reader of the log finds it. */
export type PayloadOf<K extends EventKind> = (K extends ReportableKind ? Partial<EventPayloads[K]> : EventPayloads[K]) &
  JsonObject;
