/** An act as the log and people read it. Pure: from an action and a decision to words. */
import type { Action, Decision } from '../model/actions.ts';
import type { Answer } from '../model/asks.ts';
import type { EventDraft } from '../model/events.ts';
import type { ToolRequestedPayload, ToolRulingPayload } from '../model/payloads.ts';
import type { Artifact, Pointer, Task } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { inTask } from './lifecycle.ts';

/** Arguments as asked for and as rewritten, without secrets; what does not fit is in the artifacts. */
export interface Shown {
  readonly asked: JsonObject;
  readonly rewritten?: JsonObject;
  readonly artifacts: readonly Artifact[];
}

export function asShown(decision: Decision, { rewritten: args }: Shown): Decision {
  return decision.arguments && args ? { ...decision, arguments: args } : decision;
}

export function requestedEvent(task: Task, action: Action, input: JsonObject, ext: JsonObject | undefined): EventDraft {
  const payload: ToolRequestedPayload = {
    tool_call_id: action.tool_call_id as string,
    name: action.tool ?? action.kind,
    kind: action.kind,
    input,
    effect: action.effect,
    evidence: action.evidence,
    ...(action.server && { server: action.server }),
    ...(action.target && { target: action.target }),
    ...(action.definition && { definition: action.definition }),
  };
  return {
    event: 'tool.requested',
    actor: action.actor.id,
    payload: payload as unknown as JsonObject,
    ...inTask(task),
    ...(ext && { ext }),
  };
}

export function denied(task: Task, action: Action, decision: Decision): EventDraft {
  return rulingEvent('tool.denied', task, action, decision);
}

export function rewritten(task: Task, action: Action, decision: Decision): EventDraft {
  return rulingEvent('tool.approved', task, action, decision, decision.arguments);
}

function rulingEvent(event: string, task: Task, action: Action, decision: Decision, input?: JsonObject): EventDraft {
  const payload: ToolRulingPayload = {
    tool_call_id: action.tool_call_id ?? null,
    name: action.tool ?? action.kind,
    by: decision.engine,
    reason: decision.reason,
    ...(decision.code && { code: decision.code }),
    ...(decision.rule_id && { rule_id: decision.rule_id }),
    ...(input && { input }),
  };
  return { event, payload: payload as unknown as JsonObject, ...inTask(task) };
}

export function questionOf(action: Action): string {
  if (action.kind === 'query' && typeof action.arguments.question === 'string') return action.arguments.question;
  const what = action.tool ?? action.kind;
  return action.target
    ? `May ${action.actor.id} use ${what} on ${action.target}?`
    : `May ${action.actor.id} use ${what}?`;
}

export function describeForPeople(action: Action, shown: JsonObject): JsonObject {
  const { kind, tool, server, target, effect, evidence, definition } = action;
  const described = {
    kind,
    tool,
    server,
    target,
    effect,
    evidence,
    definition,
    actor: action.actor.id,
    arguments: shown,
  };
  return Object.fromEntries(Object.entries(described).filter(([, v]) => v !== undefined)) as Record<string, Json>;
}

/** It happened after its task ended: beside the sealed receipt, not part of it. */
export function afterEnd(event: EventDraft): EventDraft {
  return { ...event, payload: { ...event.payload, after_end: true } };
}

/** The word for a no that came from people, or from nobody being there. */
export function notApproved({ arguments: _, ask: _ask, ...decision }: Decision, answer: Answer): Decision {
  const codes: Partial<Record<Answer['kind'], string>> = {
    denied: 'approval_denied',
    expired: 'approval_timed_out',
    canceled: 'approval_withdrawn',
  };
  const reason = 'reason' in answer && answer.reason ? answer.reason : 'not approved';
  return { ...decision, verdict: 'block', code: codes[answer.kind] ?? 'approval_denied', reason };
}

export function quotasOf({ quotas = [] }: Action): Pointer[] {
  return quotas.map(({ id }) => ({ object: 'quota', id }));
}
