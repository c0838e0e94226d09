/**
 * What the events core writes carry. The protocol leaves payloads open; these are our promises about ours.
 * Readers treat every member as possibly absent: a log may hold events from elsewhere.
 */
import type { Decision, SideEffect, Usage } from './actions.ts';
import type { AskRecord, AskState } from './asks.ts';
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
  /** What the run is known not to have told us. */
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
}
/** `vendor.tollbridge.decided`. The arguments stand in `tool.requested` when there is one, else here. */
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
export interface ToolRulingPayload {
  readonly tool_call_id: string | null;
  readonly name: string;
  readonly by: string;
  readonly reason?: string;
  readonly code?: string;
  readonly ask_id?: string;
  readonly rule_id?: string;
  /** The arguments that will run, when a rule rewrote them. */
  readonly input?: JsonObject;
}
/** `tool.completed`, `tool.failed` */
export interface ToolEndedPayload {
  readonly tool_call_id: string;
  readonly name: string;
  readonly status: 'ok' | 'error';
  readonly output?: Json;
  readonly error?: string;
  /** `outcome_unknown`: it may have happened; it will not be tried again. `canceled`: stopped before an answer came. */
  readonly code?: string;
}
/** `vendor.tollbridge.alarm` */
export interface AlarmPayload {
  readonly alarm: 'ran_though_refused';
  readonly tool_call_id: string;
  readonly name: string;
  /** Where the act stood when it was reported as run. */
  readonly state: 'refused' | 'deferred' | 'waiting_for_approval' | 'approved_but_not_begun' | 'rewritten';
  /** The call that was not let through, where the same act is reported under another id. */
  readonly refused_call_id?: string;
  /** How firmly the act was had: an agent that asked and did not obey, or one that only told. */
  readonly evidence: string;
  /** The fact that says it ran. */
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
/** Left on an event's metadata when something was taken out of its payload before it was written. */
export interface RedactionMark {
  readonly field: string;
  readonly reason: string;
}
