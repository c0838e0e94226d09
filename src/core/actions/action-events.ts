/** Events and texts about an act, for the log and for people. Pure: from an action and a decision to event drafts. */
import type { Action, Decision, ToolResult } from '../../model/actions.ts';
import { outcomeOfEnd } from '../../model/call-outcomes.ts';
import { type EventDraft, withMembers } from '../../model/events.ts';
import type { ToolDecisionPayload, ToolEndedPayload, ToolRequestedPayload } from '../../model/payloads.ts';
import type { Artifact, Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { visibleLine } from '../../model/values/visible-text.ts';
import { inTask } from '../tasks/lifecycle.ts';
import { CANNOT_MODIFY, decidedEvent } from './gate.ts';

/** Arguments as requested and as rewritten, without secrets; values too long for an event are in the artifacts. */
export interface ShownArguments {
  readonly asked: JsonObject;
  readonly rewritten?: JsonObject;
  readonly artifacts: readonly Artifact[];
}

/** A call whose end is recorded. `paired`: an agent of this gateway made it and receives its result. */
export interface EndedCall {
  readonly id: string;
  readonly tool: string;
  readonly evidence: string;
  readonly paired?: boolean;
  readonly code?: string | undefined;
  /** See `RuleOptions`. */
  readonly runBy?: string | undefined;
  /** The decision is written in the same commit. */
  readonly oneCommit?: boolean;
}

export function asShown(decision: Decision, { rewritten: args }: ShownArguments): Decision {
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
    ...(action.caller && { caller: action.caller }),
  };
  return {
    event: 'tool.requested',
    actor: action.actor.id,
    payload: payload,
    ...inTask(task),
    ...(ext && { ext }),
  };
}

export function decidedIn(task: Task, action: Action, decision: Decision): EventDraft {
  return { ...decidedEvent(action, decision), ...inTask(task) };
}

/** The same request in the model's words; its result is `agent.tool_result` under the same id. */
export function toolUse(task: Task, action: Action, input: JsonObject): EventDraft {
  const payload = { tool_call_id: action.tool_call_id as string, name: action.tool ?? action.kind, input };
  return { event: 'agent.tool_use', actor: action.actor.id, payload, ...inTask(task) };
}

export function denied(task: Task, action: Action, decision: Decision): EventDraft {
  return decisionEvents('tool.denied', task, action, decision);
}

/** `changed`: an approver rewrote the arguments, not a rule. */
export function rewritten(
  task: Task,
  action: Action,
  decision: Decision,
  changed?: { readonly ask_id: string; readonly by: string },
): EventDraft {
  const event = decisionEvents('tool.approved', task, action, decision, decision.arguments);
  if (!changed) return event;
  const { ask_id, by } = changed;
  return { ...withMembers(event, { by, ask_id, changed_by: by }), actor: by };
}

function decisionEvents(
  event: 'tool.approved' | 'tool.denied',
  task: Task,
  action: Action,
  decision: Decision,
  input?: JsonObject,
): EventDraft {
  const payload: ToolDecisionPayload = {
    tool_call_id: action.tool_call_id ?? null,
    name: action.tool ?? action.kind,
    by: decision.engine,
    reason: decision.reason,
    ...(decision.code && { code: decision.code }),
    ...(decision.rule_id && { rule_id: decision.rule_id }),
    ...(input && { input }),
    ...(event === 'tool.denied' && { outcome: outcomeOfEnd(event, decision) }),
  };
  return { event, payload: payload, ...inTask(task) };
}

/** The headline of a question, in our words: the agent's claims about its act are shown beside it, marked as the agent's. */
export function questionOf(action: Action): string {
  if (action.kind === 'query' && typeof action.arguments.question === 'string') return action.arguments.question;
  const who = visibleLine(action.actor.id);
  const what = short(action.tool ?? action.kind);
  if (action.kind === 'prompt') return `May ${who} give ${what} this work?`;
  return action.target ? `May ${who} use ${what} on ${short(action.target)}?` : `May ${who} use ${what}?`;
}

/** Keeps a headline to one line; its subject is shown whole below it. */
function short(text: string): string {
  const shown = visibleLine(text);
  return shown.length <= LONGEST_IN_HEADLINE
    ? shown
    : `${shown.slice(0, LONGEST_IN_HEADLINE)}… (${text.length} characters)`;
}
const LONGEST_IN_HEADLINE = 300;

export function describeForPeople(action: Action, shown: JsonObject): JsonObject {
  const { kind, tool, server, target, effect, evidence, definition, claims } = action;
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
    claims: claims && Object.keys(claims).length > 0 ? { ...claims } : undefined,
  };
  return Object.fromEntries(Object.entries(described).filter(([, v]) => v !== undefined)) as Record<string, Json>;
}

/** The end of a call, after what else its result reports. `output`: what the log may hold of the result's output. */
export function endEvents(
  task: Task,
  call: EndedCall,
  result: ToolResult,
  output: Json,
  clean: (value: JsonObject) => JsonObject,
): EventDraft[] {
  const at = inTask(task);
  const status = result.status === 'ok' ? 'ok' : 'error';
  const event = status === 'ok' ? 'tool.completed' : 'tool.failed';
  const events: EventDraft[] = [];
  for (const effect of result.effects ?? []) {
    const payload = { ...effect, tool_call_id: call.id, evidence: call.evidence };
    events.push({ event: 'vendor.tollbridge.side_effect', payload, ...at });
  }
  if (result.usage) {
    const payload = { ...result.usage, call_id: call.id } as JsonObject;
    events.push({ event: 'vendor.tollbridge.usage', payload, ...at });
  }
  if (result.remote) {
    const payload = { ...result.remote, tool_call_id: call.id, name: call.tool };
    events.push({ event: 'vendor.tollbridge.remote_decided', payload: clean(payload), ...at });
  }
  const payload: ToolEndedPayload = {
    tool_call_id: call.id,
    name: call.tool,
    status,
    output,
    ...(result.error && { error: result.error }),
    ...(call.code && { code: call.code }),
    outcome: outcomeOfEnd(event, { status, code: call.code }),
    ...(call.oneCommit && { one_commit: true }),
    ...(result.loss && { loss: result.loss }),
  };
  events.push({ event, payload, ...at, ...(result.ext && { ext: result.ext }) });
  return events;
}

/** The agent received the result of its call, which is in the event before, or a refusal. */
export function toolResult(
  task: Task,
  { id, tool: name }: Pick<EndedCall, 'id' | 'tool'>,
  status: string,
  error?: string,
): EventDraft {
  const payload = { tool_call_id: id, name, status: status === 'ok' ? 'ok' : 'error', ...(error && { error }) };
  return { event: 'agent.tool_result', payload, ...inTask(task) };
}

/** Marks an event after the end of its task: beside the sealed receipt, not part of it. */
export function afterEnd(event: EventDraft): EventDraft {
  return withMembers(event, { after_end: true });
}

/** A rule that rewrites arguments refuses an asker that accepts only a yes or a no. */
export function asExecutable(decision: Decision, { takesArguments }: { readonly takesArguments: boolean }): Decision {
  const rewrites =
    decision.verdict === 'modify' || (decision.verdict === 'escalate' && decision.arguments !== undefined);
  if (!rewrites || (takesArguments && decision.arguments)) return decision;
  return {
    ...decision,
    verdict: 'block',
    code: CANNOT_MODIFY,
    reason: `${decision.reason} (the rule rewrites the arguments, which cannot be carried back to this agent)`,
  };
}
