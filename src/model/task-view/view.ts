/**
 * A task as any wire can show it: its state, its messages as far as they are written, its calls, its open questions, its
 * artifacts, its usage, its end and what is known to be missing. Canonical words only; each adapter renders it in its own.
 */
import type { Usage } from '../actions.ts';
import type { AskRecord } from '../asks.ts';
import type { CallOutcome } from '../call-outcomes.ts';
import type { Cursor } from '../events.ts';
import type { Artifact, Message, Outcome, Part, Task } from '../resources.ts';
import type { Json, JsonObject } from '../schema.ts';
import type { Loss } from '../values/loss.ts';

export interface MessageView {
  readonly id: string;
  readonly role: string;
  /** The text that arrived in pieces. */
  written: string;
  /** The message once it is whole; it counts, whatever the pieces were. */
  message: Message | undefined;
}

/** `waiting`: for an approver. `running`: a call that the gateway holds was let through. An ended call has its outcome. */
export type CallStatus = 'requested' | 'waiting' | 'running' | CallOutcome;

export interface CallView {
  readonly id: string;
  name: string;
  server: string | undefined;
  status: CallStatus;
  /** The arguments that run, or would run. */
  arguments: Json | undefined;
  /** The arguments that were requested, where a rule or an approver changed them. */
  requested: Json | undefined;
  /** `held`, `asked` or `observed`; once held, always held. */
  evidence: string | undefined;
  /** The members of the decision that let the call through, or of the last one that did. */
  decision: JsonObject | undefined;
  /** The events that opened the call, let it run and ended it: a renderer compares them with the event it has at hand. */
  readonly openedBy: Cursor;
  startedBy: Cursor | undefined;
  endedBy: Cursor | undefined;
  readonly openedAt: string;
  /** When it was let through by an approver or by a rule that rewrote it; before that, when it was opened. */
  since: string;
  /** The result, or the reason why there is none. */
  output: Json | undefined;
  error: string | undefined;
  code: string | undefined;
}

/**
 * `all`: for the account of a whole task. `open`: for a reader that renders each event as it comes; with the next event a
 * whole message goes, and a call that has ended keeps its end and loses its arguments and result. Otherwise a follower of
 * long work would hold everything that was ever said in it.
 */
export type Kept = 'all' | 'open';

export interface TaskView {
  readonly kept: Kept;
  /** As of its last transition; undefined before it was submitted. */
  task: Task | undefined;
  /** The last event folded. */
  cursor: Cursor | undefined;
  /** In the order in which they were begun. */
  readonly messages: Map<string, MessageView>;
  /** The last message of the agent that is begun and not whole. */
  writing: MessageView | undefined;
  readonly calls: Map<string, CallView>;
  /** Open questions, oldest first. */
  readonly questions: Map<string, AskRecord>;
  readonly artifacts: Map<string, Artifact>;
  plan: Json | undefined;
  /** Sums of what was reported; an absent member was never reported. */
  usage: Pick<Usage, 'usd_micros' | 'input_tokens' | 'output_tokens'>;
  outcome: Outcome | undefined;
  /** What the account of this task is known to lack, and the event that says so. */
  readonly loss: (Loss & { readonly event: Cursor })[];
  /** The message that the last event made whole, or the call that it ended. */
  finished: MessageView | CallView | undefined;
}

export function emptyTaskView(kept: Kept = 'all'): TaskView {
  return {
    kept,
    task: undefined,
    cursor: undefined,
    messages: new Map(),
    writing: undefined,
    calls: new Map(),
    questions: new Map(),
    artifacts: new Map(),
    plan: undefined,
    usage: {},
    outcome: undefined,
    loss: [],
    finished: undefined,
  };
}

/** The task needs an answer before it continues. */
export function isWaiting({ task, questions }: TaskView): boolean {
  return (task?.status === 'AUTH_REQUIRED' || task?.status === 'INPUT_REQUIRED') && questions.size > 0;
}

/** Messages of the agent, whole or as far as they are written. */
export function answersOf({ messages }: TaskView): readonly MessageView[] {
  return [...messages.values()].filter(({ role }) => role !== 'user' && role !== 'system' && role !== 'tool');
}

/** The parts of a message; of one still being written, its text so far. */
export function partsOf({ message, written }: MessageView): readonly Part[] {
  return message?.parts ?? [{ type: 'text', text: written, visibility: 'public' }];
}
