/**
 * Pure conversions in both directions: blocks and parts, tool calls and acts, ends and errors. Words without a row are kept as
 * received.
 */

import type { PlanEntry, RequestPermissionResponse } from '@agentclientprotocol/sdk';
import {
  AGENT_ERRORS,
  effectOf,
  faults,
  OPTIONS,
  REQUEST_CANCELLED,
  STANDING_GRANT,
  stopReason,
  type TurnEnd,
} from '../../mappings/acp.ts';
import { raised } from '../../mappings/acp-acts.ts';
import {
  type Answer,
  asFault,
  asText,
  beginning,
  type Effect,
  type End,
  type Failure,
  type Fault,
  type Json,
  type JsonObject,
  type ProposedAction,
} from '../../src/index.ts';
import type { WireError } from '../../src/transport/json-rpc/messages.ts';
import { readTraceParent, type TraceMembers, traceMembers } from '../../src/transport/outbound/trace-context.ts';
import { changesIn } from './client/acts/file-changes.ts';
import { compact, listOf, objectOf, textOf, within } from './shapes.ts';
import { shownEffect, shownPaths } from './shown-act.ts';

/** Adds the reason of an answer for agents that read it: the protocol itself has no member for it. */
export function withReason(outcome: JsonObject, answer: Answer): JsonObject {
  const reason = 'reason' in answer ? answer.reason : undefined;
  if (!reason) return outcome;
  const rule = answer.kind === 'denied' ? answer.rule_id : undefined;
  return withMeta(outcome, OURS, compact({ reason, rule }));
}

/** Our own members go under this name in `_meta`; other names are not touched. */
export const OURS = 'tollbridge';

export function toWireError(thrown: unknown): WireError {
  const fault: Fault = asFault(thrown);
  const { code, word } = faults[fault.kind];
  const details = fault.details ?? {};
  const data = { ...details, code: word, ...(fault.param && { param: fault.param }) };
  return { code, message: fault.message, data };
}

// ---- Tool calls ----

/** A call as reported so far, merged from all its updates. */
export type ReportedCall = {
  readonly toolCallId: string;
  readonly title?: string;
  readonly name?: string;
  readonly kind?: string;
  readonly status?: string;
  readonly rawInput?: Json;
  readonly rawOutput?: Json;
  readonly content?: readonly Json[];
  readonly locations?: readonly Json[];
  readonly _meta?: JsonObject;
};

const REPLACED = ['kind', 'status', 'rawInput', 'rawOutput', 'content', 'locations'] as const;

/** Agents rewrite the title for the text of a question, so the call keeps its first one. */
export function merged(known: ReportedCall | undefined, patch: JsonObject): ReportedCall {
  const reported: Record<string, Json> = { ...(known as JsonObject | undefined) } as Record<string, Json>;
  reported.toolCallId ??= asText(patch.toolCallId);
  for (const member of REPLACED) {
    const value = patch[member];
    if (value !== undefined && value !== null) reported[member] = value;
  }
  for (const member of ['title', 'name'] as const) {
    const value = textOf(patch[member]);
    if (value && !reported[member]) reported[member] = value;
  }
  const meta = objectOf(patch._meta);
  if (meta) reported._meta = { ...objectOf(reported._meta), ...meta };
  return reported as ReportedCall;
}

/** The best available name of the tool. */
export function toolNameOf(call: ReportedCall): string {
  return (
    call.name ??
    textOf(within(call._meta, 'claudeCode', 'toolName')) ??
    textOf(within(call._meta, 'harn', 'toolName')) ??
    textOf(within(call._meta, 'toolName')) ??
    // Harn puts the name into the title; a title with spaces is a sentence about this one call.
    (call.title && !/\s/.test(call.title) ? call.title : undefined) ??
    call.kind ??
    'tool'
  );
}

export function inputOf({ rawInput }: ReportedCall): JsonObject {
  if (rawInput === undefined || rawInput === null) return {};
  return objectOf(rawInput) ?? { value: rawInput };
}

const TARGETS = ['path', 'file_path', 'filePath', 'abs_path', 'url', 'command', 'cmd'] as const;

/** The path, address or command it is about, when there is one. */
export function targetOf(call: ReportedCall): string | undefined {
  const located = textOf(within(call.locations?.[0], 'path'));
  const diff = listOf(call.content).find((item) => within(item, 'type') === 'diff');
  const input = inputOf(call);
  const named = TARGETS.map((name) => textOf(input[name])).find((value) => value !== undefined);
  return located ?? textOf(within(diff, 'path')) ?? named;
}

/** The effect the agent claims, or a higher one where the arguments show it. An unknown kind claims nothing. */
export function effectOfCall(call: ReportedCall): Effect {
  return raised(effectOf(call.kind), shownEffect(call));
}

/** The agent, and the base of its relative paths. */
export interface AskingAgent {
  readonly agent: string;
  readonly cwd: string;
}

export function toAction(call: ReportedCall, toolCallId: string, { agent, cwd }: AskingAgent): ProposedAction {
  const target = targetOf(call);
  const locations = shownPaths(call);
  const { title, kind } = call;
  return {
    kind: 'tool',
    tool_call_id: toolCallId,
    tool: toolNameOf(call),
    arguments: inputOf(call),
    effect: effectOfCall(call),
    evidence: 'asked',
    ...(target && { target }),
    ...changesIn(call),
    claims: { agent, ...(title && { title }), ...(kind && { kind }) },
    cwd,
    attributes: {
      acp_kind: kind ?? 'other',
      ...(title && { title: beginning(title, 200) }),
      ...(locations.length > 0 && { locations }),
    },
  };
}

/** The text of a tool's result, when it has nothing else. */
export function outputOf(call: ReportedCall): Json {
  if (call.rawOutput !== undefined) return call.rawOutput;
  const texts = listOf(call.content).flatMap((item) => textOf(within(item, 'content', 'text')) ?? []);
  return texts.length > 0 ? texts.join('\n') : null;
}

// ---- Permission ----

export interface WireOption {
  readonly optionId: string;
  readonly kind: string;
  readonly name?: string;
}

export function optionsOf(value: unknown): readonly WireOption[] {
  return listOf(value).flatMap((item) => {
    const { optionId, kind, name } = objectOf(item) ?? {};
    return typeof optionId === 'string' && typeof kind === 'string'
      ? [{ optionId, kind, ...(typeof name === 'string' && { name }) }]
      : [];
  });
}

/** Chosen by kind and never by position. A lasting option is never chosen: the agent would stop asking, and the gate deciding. */
export function toWireOutcome(options: readonly WireOption[], answer: Answer): JsonObject {
  const kinds: readonly string[] =
    answer.kind === 'approved' ? OPTIONS.approved : answer.kind === 'canceled' ? [] : OPTIONS.denied;
  const chosen = kinds.flatMap((kind) => options.find((option) => option.kind === kind) ?? [])[0];
  const refusal = options.find(({ kind }) => kind === OPTIONS.denied[0]);
  // An approval that only a lasting option could express is a no.
  const instead = answer.kind === 'approved' && !chosen ? refusal : undefined;
  const option = chosen ?? instead;
  return {
    outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' },
  } satisfies RequestPermissionResponse;
}

export function onlyLasting(options: readonly WireOption[]): boolean {
  return options.some(({ kind }) => kind === STANDING_GRANT) && !options.some(({ kind }) => kind === 'allow_once');
}

// ---- Ends ----

const FAILURES: Readonly<Record<Exclude<TurnEnd, 'completed' | 'canceled'>, Failure>> = {
  out_of_tokens: { code: 'budget_exhausted', message: 'the agent ran out of tokens', details: { limit: 'tokens' } },
  out_of_requests: {
    code: 'budget_exhausted',
    message: 'the agent reached its limit of model requests',
    details: { limit: 'requests' },
  },
  refused: { code: 'refused', message: 'the agent refused' },
};

/** The end of a turn, from the result of its prompt. An unknown word is never success. */
export function toCoreEnd(result: Json, summary: string): End {
  const word = textOf(within(result, 'stopReason')) ?? '';
  const terminal = textOf(within(result, '_meta', 'harn', 'terminal', 'kind'));
  const end = stopReason.toCore(word);
  if (!end) {
    const message = `the agent stopped as ${word ? JSON.stringify(word.slice(0, 80)) : 'nothing anyone knows'}`;
    return { state: 'FAILED', summary, failure: { code: 'unknown_stop_reason', message } };
  }
  if (end === 'canceled') return { state: 'CANCELED', summary };
  if (end !== 'completed') return { state: 'FAILED', summary, failure: FAILURES[end] };
  if (terminal && terminal !== 'natural') {
    return { state: 'FAILED', summary, failure: { code: terminal, message: `the agent stopped: ${terminal}` } };
  }
  return { state: 'COMPLETED', summary };
}

/** The same from an error. Its message is repeated; its data is not. */
export function toCoreFailure(
  { code, message, data }: Pick<WireError, 'code' | 'message'> & { readonly data?: Json | undefined },
  canceled: boolean,
): End {
  // Some agents respond to a cancel with an error.
  if (canceled || code === REQUEST_CANCELLED) return { state: 'CANCELED' };
  const word = AGENT_ERRORS[code] ?? 'upstream_error';
  // Errors have numbers here. An agent's own word for its failure is kept, and is not ours to act on.
  const own = beginning(textOf(within(data, 'code')) ?? '', 100);
  const why = `errors of this protocol are numbers; the agent's own word for its failure is ${own} (details.word)`;
  return {
    state: 'FAILED',
    failure: { code: word, message: beginning(message, 500), details: { code, ...(own && { word: own }) } },
    ...(own && own !== word && { loss: [{ aspect: 'failure', why }] }),
  };
}

/** The result of a prompt, from the end of its task. */
export function toWireStop(state: string, failure: Partial<Failure> | null | undefined): { stop: string } | WireError {
  if (state === 'COMPLETED') return { stop: stopReason.toWire('completed') };
  if (state === 'CANCELED') return { stop: stopReason.toWire('canceled') };
  const code = failure?.code ?? 'failed';
  if (code === 'budget_exhausted') {
    const requests = within(failure as JsonObject, 'details', 'limit') === 'requests';
    return { stop: stopReason.toWire(requests ? 'out_of_requests' : 'out_of_tokens') };
  }
  if (code === 'refused' || code === 'policy_violation') return { stop: stopReason.toWire('refused') };
  return { code: -32603, message: failure?.message ?? 'the task failed', data: { code } };
}

const PLAN_STATES = ['pending', 'in_progress', 'completed'] as const satisfies readonly PlanEntry['status'][];
const PLAN_RANKS = ['high', 'medium', 'low'] as const satisfies readonly PlanEntry['priority'][];

/** The entries of a plan, with every member the wire requires. */
export function toWirePlan(entries: unknown): JsonObject[] {
  return listOf(entries).flatMap((entry) => {
    const { content, status, priority } = objectOf(entry) ?? {};
    if (typeof content !== 'string') return [];
    const known = PLAN_STATES.find((each) => each === status) ?? 'pending';
    const rank = PLAN_RANKS.find((each) => each === priority) ?? 'medium';
    return [{ content, status: known, priority: rank } satisfies PlanEntry];
  });
}

/** The trace of a request, where its sender names one. */
export function traceOf(params: JsonObject): TraceMembers {
  const traceParent = textOf(within(params, '_meta', 'traceparent'));
  return traceParent ? traceMembers(readTraceParent(traceParent, within(params, '_meta', 'tracestate'))) : {};
}

export function withMeta(value: JsonObject, name: string, members: JsonObject): JsonObject {
  const meta = objectOf(value._meta) ?? {};
  return { ...value, _meta: { ...meta, [name]: compact({ ...objectOf(meta[name]), ...members }) } };
}
