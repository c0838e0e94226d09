/**
 * Payloads of the events core writes. The protocol leaves payloads open; these types are our promises about ours. Readers treat
 * every member as possibly absent: a log may hold events from elsewhere.
 */
import type { CallerOfCall, Decision, SideEffect, Usage } from './actions.ts';
import type { AskRecord, AskState } from './asks.ts';
import type { CallOutcome } from './call-outcomes.ts';
import type { Artifact, Message, Outcome, Session, Task } from './resources.ts';
import type { Json, JsonObject } from './schema.ts';

/** `task.submitted`, `.started`, `.input_required`, `.auth_required`, `.status_changed`. */
export interface TransitionPayload {
  readonly task: Task;
  readonly from: string | null;
  readonly to: string;
  readonly reason?: string;
}
/** `task.completed`, `.failed`, `.canceled`. */
export interface EndPayload extends TransitionPayload {
  readonly outcome: Outcome;
  /** Facts the run is known not to have reported. */
  readonly not_reported?: readonly string[];
  /** Set when the work did not stop in time after a cancel. */
  readonly still_running?: boolean;
}
/** `tool.requested` */
export interface ToolRequestedPayload {
  readonly tool_call_id: string;
  readonly name: string;
  readonly kind: string;
  readonly input: JsonObject;
  readonly server?: string;
  readonly target?: string;
  readonly effect: string;
  readonly evidence: string;
  readonly definition?: string;
  /** The other gateway's call that led to this one, as that gateway claims. */
  readonly caller?: CallerOfCall;
}
/** `vendor.tollbridge.decided`. The arguments are in `tool.requested` when there is one, else here. */
export interface DecidedPayload {
  readonly action: {
    readonly id: string;
    readonly kind: string;
    readonly actor: { readonly id: string; readonly kind: string; readonly tenant_id?: string; readonly door?: string };
    readonly tool_call_id?: string;
    readonly tool?: string;
    readonly server?: string;
    readonly definition?: string;
    readonly target?: string;
    readonly effect: string;
    readonly evidence: string;
    readonly arguments?: JsonObject;
    readonly attributes?: JsonObject;
    readonly cost?: Readonly<Record<string, number>>;
    readonly persona_id?: string;
    readonly tier?: string;
  };
  readonly decision: Decision;
}
/** `tool.approval_required` */
export interface ApprovalRequiredPayload {
  readonly ask_id: string;
  readonly tool_call_id: string | null;
  readonly name: string;
  readonly question: string;
  readonly expires_at: string;
}
export interface AskOpenedPayload {
  readonly ask: AskRecord;
}
export interface AskClosedPayload {
  readonly ask_id: string;
  readonly state: Exclude<AskState, 'open'>;
  readonly by: string;
  readonly at: string;
  readonly reason?: string;
  readonly answer?: Json;
}
/** `tool.approved`, `tool.denied` */
export interface ToolDecisionPayload {
  readonly tool_call_id: string | null;
  readonly name: string;
  readonly by: string;
  readonly reason?: string;
  readonly code?: string;
  readonly ask_id?: string;
  readonly rule_id?: string;
  /** The arguments that will run, when a rule or the approver rewrote them. */
  readonly input?: JsonObject;
  /** For a denial: `refused`, or `canceled` when the question was withdrawn. */
  readonly outcome?: CallOutcome;
  /** The approver who gave other arguments than the ones asked about. */
  readonly changed_by?: string;
}
/**
 * `vendor.tollbridge.remote_decided`: another gateway decided on a call that it ran or refused itself. It is that gateway's claim:
 * it allows nothing here, and a receipt states it as claimed.
 */
export interface RemoteDecidedPayload {
  readonly tool_call_id: string;
  readonly name: string;
  /** The name of that gateway in our configuration. */
  readonly remote: string;
  /** `unknown`: it received the call and did not answer. */
  readonly verdict: 'approved' | 'denied' | 'unknown';
  /** The rule engine or the approver there. */
  readonly by?: string;
  readonly reason?: string;
  readonly code?: string;
  readonly rule_id?: string;
  /** The question put to approvers there, when there was one. */
  readonly ask_id?: string;
  /** The answer to that question was given here and sent there. */
  readonly relayed?: boolean;
  readonly at?: string;
  /** The arguments that run there, when they are not the requested ones; or only their hash, when only that is known. */
  readonly input?: JsonObject;
  readonly input_hash?: string;
  /** Hash of the arguments requested there, where the arguments themselves were not disclosed. */
  readonly requested_input_hash?: string;
  /** Hash of the result, where only a summary of it was disclosed. */
  readonly output_hash?: string;
  /** Links the call to its counterpart at the other gateway, where a single call was forwarded and not a task. */
  readonly link?: CallLink;
}
export interface CallLink extends Pick<HandoffLink, 'protocol' | 'receipt_hash' | 'issuer' | 'key_id' | 'announced'> {
  /** The other gateway's task that accounts for the call, and its receipt. Unknown for a call that was not answered. */
  readonly task_id?: string;
  readonly receipt_id?: string;
}
/** `tool.completed`, `tool.failed` */
export interface ToolEndedPayload {
  readonly tool_call_id: string;
  readonly name: string;
  readonly status: 'ok' | 'error';
  readonly output?: Json;
  readonly error?: string;
  /**
   * `outcome_unknown`, `deadline_exceeded`: the call may have run; it will not be tried again. `canceled`: stopped before a result
   * came.
   */
  readonly code?: string;
  /** Derived by core from the other members and from the decision on the call. Absent in logs older than this member. */
  readonly outcome?: CallOutcome;
}
/** `vendor.tollbridge.alarm` */
export interface AlarmPayload {
  readonly alarm: 'ran_though_refused';
  readonly tool_call_id: string;
  readonly name: string;
  /** The state of the act when it was reported as run. */
  readonly state: 'refused' | 'deferred' | 'waiting_for_approval' | 'approved_but_not_begun' | 'rewritten';
  /** The call that was not allowed, where the same act is reported under another id. */
  readonly refused_call_id?: string;
  /** The evidence for the act: the agent asked and did not obey, or it only reported. */
  readonly evidence: string;
  /** The reported fact that shows it ran. */
  readonly reported: string;
  readonly message: string;
  readonly rule_id?: string;
  readonly ask_id?: string;
  readonly engine?: string;
  readonly code?: string;
}
/** `artifact.created` */
export interface ArtifactPayload {
  readonly artifact: Artifact;
}
/** `vendor.tollbridge.side_effect` */
export type SideEffectPayload = SideEffect & { readonly tool_call_id?: string; readonly evidence: string };
/** `vendor.tollbridge.usage` */
export type UsagePayload = Usage & { readonly call_id?: string };
/** `agent.handoff` */
export interface HandoffPayload {
  readonly target_agent: string;
  readonly task_id: string;
  readonly status: 'accepted' | 'rejected' | 'failed' | 'completed';
  readonly receipt_id?: string;
  readonly link?: HandoffLink;
}
/** Links our receipt to the receipt of the gateway that did the work. */
export interface HandoffLink {
  readonly protocol: string;
  readonly receipt_hash?: string;
  readonly issuer?: string;
  readonly key_id?: string;
  /** `valid`: the receipt was fetched and verified when the work ended. `claimed`: this gateway has not seen it. */
  readonly checked?: 'valid' | 'invalid' | 'claimed';
  /** The first error found in it. */
  readonly reason?: string;
  /** The event we committed to when the work was forwarded, as announced to the other gateway. */
  readonly announced?: { readonly event_id: string; readonly event_hash: string };
}
/** `span.completed` of a model call. */
export interface ModelSpanPayload {
  readonly span: { readonly id: string; readonly kind: 'llm'; readonly call_id: string };
  readonly model?: { readonly provider: string; readonly model: string; readonly version?: string };
  readonly response?: Json;
}
/** `user.message`, `agent.message` */
export interface MessagePayload {
  readonly message: Message;
}
/** `vendor.tollbridge.message_delta` */
export interface DeltaPayload {
  readonly message_id: string;
  readonly role: string;
  readonly text: string;
}
export interface SessionPayload {
  readonly session: Session;
}
/** Recorded in an event's metadata when a value was removed from its payload before it was written. */
export interface RedactionMark {
  readonly field: string;
  readonly reason: string;
}
