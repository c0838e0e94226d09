/**
 * Folds a task's events, in the order of the log, into its view. Deterministic, and touches nothing but the view, which it
 * updates in place and returns: a copy of its maps would make each event cost as much as all the events before it.
 */

import type { AskRecord } from '../asks.ts';
import type { CoreEvent } from '../events.ts';
import type { Artifact, Message, Outcome, Task } from '../resources.ts';
import type { JsonObject } from '../schema.ts';
import { asText } from '../values/as-text.ts';
import { isObject } from '../values/is-object.ts';
import { lossIn } from '../values/loss.ts';
import { own } from '../values/own.ts';
import type { OwnEventKind, ProtocolEventKind } from '../words.ts';
import { callApproved, callAsked, callDecided, callEnded, callRequested } from './calls.ts';
import type { CallView, MessageView, TaskView } from './view.ts';

/** How one kind of event changes the view. Members of a payload may be absent: a log may hold events from elsewhere. */
type Reducer = (view: TaskView, payload: JsonObject, event: CoreEvent) => void;

/** The event changes nothing that a wire shows of the state of a task. */
const unchanged: Reducer = () => {};

/** An object in a payload has the shape that its kind gives it: it was checked before it was written. */
function objectIn<T>(payload: JsonObject, name: string): T | undefined {
  const value = own(payload, name);
  return isObject(value) ? (value as unknown as T) : undefined;
}

const transition: Reducer = (view, payload) => {
  view.task = objectIn<Task>(payload, 'task') ?? view.task;
};

const end: Reducer = (view, payload, event) => {
  transition(view, payload, event);
  view.outcome = objectIn<Outcome>(payload, 'outcome') ?? view.outcome;
};

const whole: Reducer = (view, payload) => {
  const message = objectIn<Message>(payload, 'message');
  if (!message) return;
  const { id, role } = message;
  const said = view.messages.get(id) ?? { id, role, written: '', message };
  said.message = message;
  view.messages.set(id, said);
  view.finished = said;
  if (view.writing?.id === message.id) view.writing = undefined;
};

const piece: Reducer = (view, { message_id, role, text }) => {
  const id = asText(message_id);
  let message = view.messages.get(id);
  if (!message) {
    message = { id, role: asText(role ?? 'assistant'), written: '', message: undefined } satisfies MessageView;
    view.messages.set(id, message);
  }
  if (typeof text === 'string') message.written += text;
  if (!message.message) view.writing = message;
};

const asked: Reducer = (view, payload) => {
  const ask = objectIn<AskRecord>(payload, 'ask');
  if (ask) view.questions.set(asText(ask.id), ask);
};

const closed: Reducer = (view, { ask_id }) => {
  view.questions.delete(asText(ask_id));
};

const artifact: Reducer = (view, payload) => {
  const artifact = objectIn<Artifact>(payload, 'artifact');
  if (artifact) view.artifacts.set(asText(artifact.id), artifact);
};

const planned: Reducer = (view, { entries }) => {
  view.plan = entries;
};

const used: Reducer = (view, payload) => {
  const sums = { ...view.usage };
  for (const name of ['usd_micros', 'input_tokens', 'output_tokens'] as const) {
    const amount = payload[name];
    if (typeof amount === 'number') sums[name] = (sums[name] ?? 0) + amount;
  }
  view.usage = sums;
};

/** The process that was writing is gone; its half message stays, and nobody writes it on. */
const recovered: Reducer = (view) => {
  view.writing = undefined;
};

/** Every kind the model has: a new one does not compile until it is said here what it changes. */
const REDUCERS: Readonly<Record<ProtocolEventKind | OwnEventKind, Reducer>> = {
  'user.message': whole,
  'user.input_submitted': unchanged,
  'user.tool_confirmation': unchanged,
  'user.cancel_requested': unchanged,
  'agent.message': whole,
  'agent.reasoning_summary': unchanged,
  'agent.tool_use': callRequested,
  'agent.tool_result': unchanged,
  'agent.mcp_tool_use': callRequested,
  'agent.handoff': unchanged,
  'agent.memory_read': unchanged,
  'agent.memory_write': unchanged,
  'task.submitted': transition,
  'task.started': transition,
  'task.input_required': transition,
  'task.auth_required': transition,
  'task.completed': end,
  'task.failed': end,
  'task.canceled': end,
  'task.status_changed': transition,
  'session.created': unchanged,
  'session.closed': unchanged,
  'session.message_appended': unchanged,
  'session.compacted': unchanged,
  'session.truncated': unchanged,
  'session.thread_forked': unchanged,
  'session.thread_merged': unchanged,
  'session.replayed': unchanged,
  'branch.created': unchanged,
  'branch.updated': unchanged,
  'branch.merged': unchanged,
  'branch.abandoned': unchanged,
  'artifact.created': artifact,
  'artifact.updated': artifact,
  'artifact.linked': unchanged,
  'artifact.redacted': unchanged,
  'span.started': unchanged,
  'span.updated': unchanged,
  'span.completed': unchanged,
  'span.failed': unchanged,
  'tool.requested': callRequested,
  'tool.approval_required': callAsked,
  'tool.approved': callApproved,
  'tool.denied': callEnded,
  'tool.completed': callEnded,
  'tool.failed': callEnded,
  'connector.delivery_received': unchanged,
  'connector.delivery_deduped': unchanged,
  'connector.normalized': unchanged,
  'connector.task_submitted': unchanged,
  'connector.failed': unchanged,
  'receipt.issued': unchanged,
  'receipt.verified': unchanged,
  'receipt.verification_failed': unchanged,
  'replay.started': unchanged,
  'replay.event_replayed': unchanged,
  'replay.completed': unchanged,
  'replay.failed': unchanged,
  'vendor.tollbridge.decided': callDecided,
  'vendor.tollbridge.ask_opened': asked,
  'vendor.tollbridge.ask_closed': closed,
  'vendor.tollbridge.answer_refused': unchanged,
  'vendor.tollbridge.login_failed': unchanged,
  'vendor.tollbridge.ask_used': unchanged,
  'vendor.tollbridge.message_delta': piece,
  'vendor.tollbridge.plan': planned,
  'vendor.tollbridge.usage': used,
  'vendor.tollbridge.quota_used': unchanged,
  'vendor.tollbridge.quota_warned': unchanged,
  'vendor.tollbridge.side_effect': unchanged,
  'vendor.tollbridge.checkpoint': unchanged,
  'vendor.tollbridge.bound': unchanged,
  'vendor.tollbridge.recovered': recovered,
  'vendor.tollbridge.policy_loaded': unchanged,
  'vendor.tollbridge.config_loaded': unchanged,
  'vendor.tollbridge.resource_created': unchanged,
  'vendor.tollbridge.resource_updated': unchanged,
  'vendor.tollbridge.resource_deleted': unchanged,
  'vendor.tollbridge.tree_head': unchanged,
  'vendor.tollbridge.passthrough': unchanged,
  'vendor.tollbridge.frame_refused': unchanged,
  'vendor.tollbridge.alarm': unchanged,
  'vendor.tollbridge.remote_decided': unchanged,
  'vendor.tollbridge.tainted': unchanged,
  'vendor.tollbridge.note': unchanged,
};

export function evolve(view: TaskView, event: CoreEvent): TaskView {
  if (view.finished) forget(view, view.finished);
  const reduce = own(REDUCERS as Readonly<Record<string, Reducer>>, event.event);
  reduce?.(view, event.payload, event);
  if (view.kept === 'all') for (const loss of lossIn(event.payload)) view.loss.push({ ...loss, event: event.id });
  view.cursor = event.id;
  return view;
}

function forget(view: TaskView, finished: MessageView | CallView): void {
  view.finished = undefined;
  if (view.kept === 'all') return;
  if ('written' in finished) {
    view.messages.delete(finished.id);
    return;
  }
  finished.arguments = undefined;
  finished.requested = undefined;
  finished.decision = undefined;
  finished.output = undefined;
}
