/** The life of a call in the view of its task: opened once, let through or put to an approver, ended once. */

import { outcomeOfEnd } from '../call-outcomes.ts';
import type { CoreEvent } from '../events.ts';
import type { Json, JsonObject } from '../schema.ts';
import { asText } from '../values/as-text.ts';
import type { CallView, TaskView } from './view.ts';

/** An id that has ended opens another call; one that is open only learns more about itself. */
export function callRequested(view: TaskView, payload: JsonObject, event: CoreEvent): void {
  const id = textOf(payload.tool_call_id);
  if (id === undefined) return;
  const known = view.calls.get(id);
  const call = known && known.endedBy === undefined ? known : opened(view, id, event);
  call.name = textOf(payload.name) ?? call.name;
  call.server = textOf(payload.server) ?? call.server;
  if (call.evidence !== 'held') call.evidence = textOf(payload.evidence) ?? call.evidence;
  if (payload.input !== undefined && call.requested === undefined) call.arguments = payload.input;
}

export function callDecided(view: TaskView, { action, decision }: JsonObject, event: CoreEvent): void {
  const call = openCall(view, member(action, 'tool_call_id'));
  const verdict = member(decision, 'verdict');
  if (!call || (verdict !== 'allow' && verdict !== 'modify')) return;
  const { engine, ...members } = decision as JsonObject;
  call.decision = { ...members, ...(engine !== undefined && { by: engine }), at: event.created_at };
  letThrough(call, member(decision, 'arguments'), event);
}

export function callAsked(view: TaskView, { tool_call_id }: JsonObject): void {
  const call = openCall(view, tool_call_id);
  if (call) call.status = 'waiting';
}

export function callApproved(view: TaskView, payload: JsonObject, event: CoreEvent): void {
  const call = openCall(view, payload.tool_call_id);
  if (!call) return;
  call.decision = { ...payload, at: event.created_at };
  call.since = event.created_at;
  letThrough(call, payload.input, event);
}

/** `tool.completed`, `tool.failed`, `tool.denied`: the first one counts. */
export function callEnded(view: TaskView, payload: JsonObject, event: CoreEvent): void {
  const id = textOf(payload.tool_call_id);
  if (id === undefined) return;
  const known = view.calls.get(id);
  if (known?.endedBy !== undefined) return;
  const call = known ?? opened(view, id, event);
  call.endedBy = event.id;
  view.finished = call;
  call.status = outcomeOfEnd(event.event, payload);
  call.name = call.name || asText(payload.name ?? '');
  call.output = payload.output;
  call.error = textOf(payload.error) ?? textOf(payload.reason);
  call.code = textOf(payload.code);
  if (event.event === 'tool.denied') call.decision = { ...payload, at: event.created_at };
}

function letThrough(call: CallView, rewritten: Json | undefined, event: CoreEvent): void {
  if (rewritten !== undefined) {
    call.requested ??= call.arguments;
    call.arguments = rewritten;
  }
  if (call.evidence !== 'held') {
    call.status = 'requested';
    return;
  }
  call.status = 'running';
  call.startedBy ??= event.id;
}

function opened(view: TaskView, id: string, event: CoreEvent): CallView {
  const { id: openedBy, created_at: openedAt } = event;
  const call: CallView = {
    id,
    name: '',
    server: undefined,
    status: 'requested',
    arguments: undefined,
    requested: undefined,
    evidence: undefined,
    decision: undefined,
    openedBy,
    startedBy: undefined,
    endedBy: undefined,
    openedAt,
    since: openedAt,
    output: undefined,
    error: undefined,
    code: undefined,
  };
  view.calls.set(id, call);
  return call;
}

function openCall(view: TaskView, id: Json | undefined): CallView | undefined {
  const call = typeof id === 'string' ? view.calls.get(id) : undefined;
  return call && call.endedBy === undefined ? call : undefined;
}

function member(value: Json | undefined, name: string): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject)[name] : undefined;
}

/** A non-empty string. */
function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
