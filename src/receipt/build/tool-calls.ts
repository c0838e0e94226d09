/** The log's facts about each tool call, from request to end. Later facts never erase earlier ones that disagree. */

import { type CallOutcome, outcomeOfEnd } from '../../model/call-outcomes.ts';
import type { CoreEvent } from '../../model/events.ts';
import type { JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import type { RefusedCall, ReportedAct } from '../../ports/index.ts';
import { listed, onto, type Pile } from './append-list.ts';
import { doing, refusedAs } from './call-summaries.ts';
import { hashIfPossible, type Members, membersOf, text } from './read-members.ts';

/** One call. Owned by its account, which updates it until there is an answer. */
export interface CallEvidence {
  /** Index among the task's calls, by first mention. */
  readonly order: number;
  readonly call_id: string;
  tool: string;
  server: string | undefined;
  effect: string | undefined;
  /** `observed` is the weakest claim, so it is the default. */
  evidence: string;
  /** Hash of the input as requested. */
  requested_hash: string | undefined;
  /** Hash of the input that ran, when a rule or the agent changed it after the request. */
  executed_hash: string | undefined;
  output_hash: string | undefined;
  verdict: string | undefined;
  would_be: string | undefined;
  rule_id: string | undefined;
  engine: string | undefined;
  policy_version: string | undefined;
  ask_id: string | undefined;
  /** The approver who changed the arguments. */
  changed_by: string | undefined;
  denied: boolean | undefined;
  /** The approval was used for this call: from then on it may have had an effect. */
  begun: boolean;
  /** The call succeeded without permission: what it was waiting for at that time. */
  ran_without: string | undefined;
  /** What the call was doing when it was stopped before it could answer. */
  stopped_while: string | undefined;
  outcome: CallOutcome | undefined;
  /** Why it was refused, or why its outcome is unknown. */
  reason: string | undefined;
  /** A later report that disagrees with the first. */
  also_reported: CallOutcome | undefined;
  /** Machine word for why it was refused or failed. */
  code: string | undefined;
  /** The event that recorded the answer. */
  output_event_id: string | undefined;
  /** Decision and end were written in one commit. */
  one_commit: boolean;
  /** A value was logged that has no canonical form, so no hash of it can be given. */
  unhashable: boolean;
  /** The decision another gateway reports for it. */
  remote: JsonObject | undefined;
  /** The hash the remote gateway gives for the result, when it returned only a summary. */
  remote_output: string | undefined;
}

/** Calls with an answer are settled and never changed again; denied calls stay open, because an agent may run them anyway. */
export interface Calls {
  count: number;
  readonly open: Map<string, CallEvidence>;
  settled: Pile<CallEvidence> | undefined;
  /** Settled calls by id. */
  readonly over: Map<string, CallEvidence>;
  /** Ids of calls that were not let through and are reported as run. */
  readonly alarmed: Set<string>;
  /** Acts that were not let through as requested: tool and input to the call's id. */
  readonly withheld: Map<string, string>;
}

export function createCalls(): Calls {
  return { count: 0, open: new Map(), settled: undefined, over: new Map(), alarmed: new Set(), withheld: new Map() };
}

/** A copy that can be extended without changing the original. */
export function copyOfCalls({ count, open, settled, over, alarmed, withheld }: Calls): Calls {
  const copy: Calls = { count, open: new Map(), settled, over: new Map(over), alarmed: new Set(alarmed), withheld };
  for (const [id, call] of open) copy.open.set(id, { ...call });
  return copy;
}

const ACTS = new Set(['tool', 'fs.read', 'fs.write', 'terminal', 'handoff', 'memory.write']);

/** `tool.requested` */
export function requested(calls: Calls, payload: Members): void {
  const id = text(payload.tool_call_id);
  if (!id) return;
  const call = callOf(calls, id, text(payload.name) ?? text(payload.kind));
  foldOrigin(call, payload);
  foldRequested(call, payload.input);
}

/** `vendor.tollbridge.decided`, when it is about an act. */
export function decided(calls: Calls, payload: Members): void {
  const action = membersOf(payload.action);
  const decision = membersOf(payload.decision);
  const id = text(action.tool_call_id);
  if (!id || !(calls.open.has(id) || ACTS.has(asText(action.kind)))) return;
  const call = callOf(calls, id, text(action.tool) ?? text(action.kind));
  foldOrigin(call, action);
  foldRequested(call, action.arguments);
  if (decision.verdict === 'modify') foldRewritten(call, decision.arguments);
  call.verdict = text(decision.verdict) ?? call.verdict;
  // Proposed again, and let through this time.
  if (call.denied && (call.verdict === 'allow' || call.verdict === 'modify')) call.denied = false;
  call.would_be = text(decision.would_be) ?? call.would_be;
  call.rule_id = text(decision.rule_id) ?? call.rule_id;
  call.engine = text(decision.engine) ?? call.engine;
  call.policy_version = text(decision.policy_version) ?? call.policy_version;
  call.code = text(decision.code) ?? call.code;
  if (call.verdict === 'block') call.reason = text(decision.reason) ?? call.reason;
  noteWithheld(calls, call);
}

/** `tool.approved`, `tool.denied` */
export function decidedByApprover(calls: Calls, payload: Members, denied: boolean): void {
  const id = text(payload.tool_call_id);
  if (!id) return;
  const call = callOf(calls, id, text(payload.name));
  foldRewritten(call, payload.input);
  call.ask_id = text(payload.ask_id) ?? call.ask_id;
  call.changed_by = text(payload.changed_by) ?? call.changed_by;
  call.rule_id = text(payload.rule_id) ?? call.rule_id;
  call.code = text(payload.code) ?? call.code;
  call.denied = denied;
  if (denied) call.reason = text(payload.reason) ?? call.reason;
  noteWithheld(calls, call);
}

/** `vendor.tollbridge.ask_used` */
export function begun(calls: Calls, payload: Members): void {
  const ask = text(payload.ask_id);
  if (!ask) return;
  for (const call of calls.open.values()) {
    if (call.ask_id !== ask) continue;
    call.begun = true;
    return;
  }
}

/** `tool.completed`, `tool.failed` */
export function ended(calls: Calls, payload: Members, event: CoreEvent): void {
  const id = text(payload.tool_call_id);
  if (!id) return;
  const known = calls.open.get(id);
  const before = known ? undefined : calls.over.get(id);
  if (before) {
    again(before, payload, event);
    return;
  }
  const call = callOf(calls, id, text(payload.name));
  const outcome = outcomeOfEnd(event.event, payload);
  if (known && (outcome === 'canceled' || outcome === 'unknown')) call.stopped_while = doing(known);
  // Allowed in the log, and then refused because the approval could no longer be delivered.
  if (payload.code === CALLED_OFF) call.denied = true;
  const without = withheld(call);
  foldEnd(call, outcome, payload, event);
  if (call.outcome === 'succeeded' && without !== 'refused') call.ran_without = without;
  calls.open.delete(id);
  calls.over.set(id, call);
  calls.settled = onto(calls.settled, call);
}

function foldEnd(call: CallEvidence, outcome: CallOutcome, payload: Members, event: CoreEvent): void {
  call.output_hash = call.remote_output ?? hashIfPossible(payload.output);
  if (call.output_hash) call.output_event_id = text(event.id);
  else if (payload.output !== undefined) call.unhashable = true;
  // Agents report refused calls as failed, canceled or lost; only a call that succeeded is anything but refused.
  call.outcome = outcome === 'succeeded' ? outcome : (refusedAs(call) ?? outcome);
  if (call.outcome === 'unknown' || (call.outcome === 'refused' && !call.reason)) {
    call.reason = text(payload.error) ?? call.reason;
  }
  call.code = text(payload.code) ?? call.code;
  if (payload.one_commit === true) call.one_commit = true;
}

/**
 * The end is reported once more. It replaces `unknown`; a definite end stands, and one that disagrees is recorded beside it.
 */
function again(call: CallEvidence, payload: Members, event: CoreEvent): void {
  const outcome = outcomeOfEnd(event.event, payload);
  if (call.outcome === 'unknown' && outcome !== 'unknown') {
    call.stopped_while = undefined;
    call.reason = undefined;
    call.code = undefined;
    foldEnd(call, outcome, payload, event);
  } else if (outcome !== call.outcome && !(call.outcome === 'refused' && outcome !== 'succeeded')) {
    call.also_reported = outcome;
  }
}

/** `vendor.tollbridge.alarm` */
export function alarmed(calls: Calls, payload: Members): void {
  const id = text(payload.tool_call_id);
  if (id) calls.alarmed.add(id);
}

/**
 * Why a call should not have run, as far as the log knows: it was not let through itself, or it has no decision and does the same
 * as a call that was not let through. One alarm per call is enough.
 */
export function refusalOf(calls: Calls, id: string, reported?: ReportedAct): RefusedCall | undefined {
  if (calls.alarmed.has(id)) return undefined;
  const call = calls.open.get(id) ?? calls.over.get(id);
  if (call?.verdict !== undefined || call?.denied !== undefined) return call && refusal(call);
  const tool = call?.tool ?? reported?.tool;
  const hash = call?.requested_hash ?? (reported && hashIfPossible(reported.input));
  const other = tool && hash ? calls.withheld.get(actKey(tool, hash)) : undefined;
  const known = other === undefined ? undefined : (calls.open.get(other) ?? calls.over.get(other));
  const refused = known && refusal(known, 'rewritten');
  return refused && { ...refused, refused_call_id: known.call_id };
}

/** `otherwise`: the state to report when the act ran as requested although a rule had rewritten it. */
function refusal(call: CallEvidence, otherwise?: 'rewritten'): RefusedCall | undefined {
  const state = withheld(call) ?? (call.verdict === 'modify' ? otherwise : undefined);
  if (!state) return undefined;
  const { tool: name, evidence, rule_id, ask_id, engine, code } = call;
  return {
    name,
    state,
    evidence,
    ...(rule_id && { rule_id }),
    ...(ask_id && { ask_id }),
    ...(engine && { engine }),
    ...(code && { code }),
  };
}

/** Lets the same act be recognized under another id. */
function noteWithheld(calls: Calls, call: CallEvidence): void {
  if (!call.requested_hash || !(withheld(call) || call.verdict === 'modify')) return;
  calls.withheld.set(actKey(call.tool, call.requested_hash), call.call_id);
}

function actKey(tool: string, hash: string): string {
  return `${hash} ${tool}`;
}

function withheld(call: CallEvidence): Exclude<RefusedCall['state'], 'rewritten'> | undefined {
  if (call.denied || call.verdict === 'block') return 'refused';
  const state = call.outcome ? call.stopped_while : doing(call);
  return WITHHELD.find((word) => word === state);
}
const WITHHELD = ['deferred', 'waiting_for_approval', 'approved_but_not_begun'] as const;
const CALLED_OFF = 'called_off';

/** All calls, in the order they were first mentioned. */
export function callsInOrder(calls: Calls): readonly CallEvidence[] {
  return [...listed(calls.settled), ...calls.open.values()].sort((a, b) => a.order - b.order);
}

export function callOf(calls: Calls, id: string, tool: string | undefined): CallEvidence {
  const known = calls.open.get(id);
  if (known) {
    if (known.tool === 'unknown' && tool) known.tool = tool;
    return known;
  }
  const call = firstMention(calls.count, id, tool ?? 'unknown');
  calls.count += 1;
  calls.open.set(id, call);
  return call;
}

/** Every member exists from the start, so that all calls have the same hidden class and folding adds no member. */
function firstMention(order: number, call_id: string, tool: string): CallEvidence {
  return {
    order,
    call_id,
    tool,
    server: undefined,
    effect: undefined,
    evidence: 'observed',
    requested_hash: undefined,
    executed_hash: undefined,
    output_hash: undefined,
    verdict: undefined,
    would_be: undefined,
    rule_id: undefined,
    engine: undefined,
    policy_version: undefined,
    ask_id: undefined,
    changed_by: undefined,
    denied: undefined,
    begun: false,
    ran_without: undefined,
    stopped_while: undefined,
    outcome: undefined,
    reason: undefined,
    also_reported: undefined,
    code: undefined,
    output_event_id: undefined,
    one_commit: false,
    unhashable: false,
    remote: undefined,
    remote_output: undefined,
  };
}

function foldOrigin(call: CallEvidence, source: Members): void {
  call.server = text(source.server) ?? call.server;
  call.effect = text(source.effect) ?? call.effect;
  call.evidence = text(source.evidence) ?? call.evidence;
}

/** The input at the time of the decision is the requested one; an input that changes later is the one that ran. */
function foldRequested(call: CallEvidence, input: unknown): void {
  if (input === undefined) return;
  const hash = hashIfPossible(input);
  if (!hash) call.unhashable = true;
  else if (call.requested_hash === undefined || call.verdict === undefined) call.requested_hash = hash;
  else if (hash !== call.requested_hash) call.executed_hash ??= hash;
}

export function foldRewritten(call: CallEvidence, input: unknown): void {
  if (input === undefined) return;
  const hash = hashIfPossible(input);
  if (hash) call.executed_hash = hash;
  else call.unhashable = true;
}
