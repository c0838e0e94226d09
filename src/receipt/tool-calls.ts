/** What the log says about each tool call, from request to end. Later facts never erase earlier ones that disagree. */
import { asText } from '../model/as-text.ts';
import type { CoreEvent } from '../model/events.ts';
import type { Refusal, ReportedAct } from '../ports.ts';
import { doing } from './call-telling.ts';
import { listed, onto, type Pile } from './pile.ts';
import { hashIfPossible, type Members, membersOf, text } from './reading.ts';

/** One call. Belongs to the account it stands in, which writes down in it what it learns until there is an answer. */
export interface CallEvidence {
  /** Place among the task's calls, by first mention. */
  readonly order: number;
  readonly call_id: string;
  tool: string;
  server: string | undefined;
  effect: string | undefined;
  /** `observed` is the least one can claim, so it is what silence means. */
  evidence: string;
  /** Hash of the input as it was asked for. */
  requested_hash: string | undefined;
  /** Hash of the input that ran, when a rule or the agent changed it after it was asked for. */
  executed_hash: string | undefined;
  output_hash: string | undefined;
  verdict: string | undefined;
  would_be: string | undefined;
  rule_id: string | undefined;
  engine: string | undefined;
  policy_version: string | undefined;
  ask_id: string | undefined;
  denied: boolean | undefined;
  /** The approval was spent on it: from then on it may have happened. */
  begun: boolean;
  /** It ended well without leave: what it was waiting for then. */
  ran_without: string | undefined;
  /** What it was doing when it was stopped before it could answer. */
  stopped_while: string | undefined;
  status: 'succeeded' | 'failed' | 'canceled' | undefined;
  /** Machine word for why it was refused or failed. */
  code: string | undefined;
  /** The event that recorded the answer. */
  output_event_id: string | undefined;
  /** A value was logged that has no canonical form, so no hash of it can be given. */
  unhashable: boolean;
}

/** Calls with an answer are settled and never changed again; denied ones stay open, for an agent may run them anyway. */
export interface Calls {
  count: number;
  readonly open: Map<string, CallEvidence>;
  settled: Pile<CallEvidence> | undefined;
  /** Those, by id. */
  readonly over: Map<string, CallEvidence>;
  /** Ids of those that were not let through and are reported as run. */
  readonly alarmed: Set<string>;
  /** Acts that were not let through as they were asked for: tool and input to the call's id. */
  readonly withheld: Map<string, string>;
}

export function createCalls(): Calls {
  return { count: 0, open: new Map(), settled: undefined, over: new Map(), alarmed: new Set(), withheld: new Map() };
}

/** The same calls, to learn more about without the first ones learning it. */
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
  learnOrigin(call, payload);
  learnAsked(call, payload.input);
}

/** `vendor.tollbridge.decided`, when it is about something an agent does to the world. */
export function decided(calls: Calls, payload: Members): void {
  const action = membersOf(payload.action);
  const decision = membersOf(payload.decision);
  const id = text(action.tool_call_id);
  if (!id || !(calls.open.has(id) || ACTS.has(asText(action.kind)))) return;
  const call = callOf(calls, id, text(action.tool) ?? text(action.kind));
  learnOrigin(call, action);
  learnAsked(call, action.arguments);
  if (decision.verdict === 'modify') learnRewritten(call, decision.arguments);
  call.verdict = text(decision.verdict) ?? call.verdict;
  // Asked about again, and let through this time.
  if (call.denied && (call.verdict === 'allow' || call.verdict === 'modify')) call.denied = false;
  call.would_be = text(decision.would_be) ?? call.would_be;
  call.rule_id = text(decision.rule_id) ?? call.rule_id;
  call.engine = text(decision.engine) ?? call.engine;
  call.policy_version = text(decision.policy_version) ?? call.policy_version;
  call.code = text(decision.code) ?? call.code;
  noteWithheld(calls, call);
}

/** `tool.approved`, `tool.denied` */
export function ruled(calls: Calls, payload: Members, denied: boolean): void {
  const id = text(payload.tool_call_id);
  if (!id) return;
  const call = callOf(calls, id, text(payload.name));
  learnRewritten(call, payload.input);
  call.ask_id = text(payload.ask_id) ?? call.ask_id;
  call.rule_id = text(payload.rule_id) ?? call.rule_id;
  call.code = text(payload.code) ?? call.code;
  call.denied = denied;
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
  // The first answer stands; a second one for the same call is noise.
  if (!known && calls.over.has(id)) return;
  const call = callOf(calls, id, text(payload.name));
  const stopped = payload.code === 'canceled' || payload.code === 'outcome_unknown';
  if (stopped && known) call.stopped_while = doing(known);
  // Allowed in the log, and then answered with a no because the yes could no longer be delivered.
  if (payload.code === CALLED_OFF) call.denied = true;
  call.output_hash = hashIfPossible(payload.output);
  if (call.output_hash) call.output_event_id = text(event.id);
  else if (payload.output !== undefined) call.unhashable = true;
  const without = withheld(call);
  call.status = endedAs(call, payload, event.event);
  if (call.status === 'succeeded' && without !== 'refused') call.ran_without = without;
  call.code = text(payload.code) ?? call.code;
  calls.open.delete(id);
  calls.over.set(id, call);
  calls.settled = onto(calls.settled, call);
}

/** `vendor.tollbridge.alarm` */
export function alarmed(calls: Calls, payload: Members): void {
  const id = text(payload.tool_call_id);
  if (id) calls.alarmed.add(id);
}

/**
 * Why a call should not have run, as far as the log knows it: it was not let through itself, or nobody decided on it and it
 * does what another call was not let through with. One alarm about a call is enough.
 */
export function refusalOf(calls: Calls, id: string, told?: ReportedAct): Refusal | undefined {
  if (calls.alarmed.has(id)) return undefined;
  const call = calls.open.get(id) ?? calls.over.get(id);
  if (call?.verdict !== undefined || call?.denied !== undefined) return call && refusal(call);
  const tool = call?.tool ?? told?.tool;
  const hash = call?.requested_hash ?? (told && hashIfPossible(told.input));
  const other = tool && hash ? calls.withheld.get(actKey(tool, hash)) : undefined;
  const known = other === undefined ? undefined : (calls.open.get(other) ?? calls.over.get(other));
  const refused = known && refusal(known, 'rewritten');
  return refused && { ...refused, refused_call_id: known.call_id };
}

/** `otherwise`: what it means that the act ran as it was asked for, where a rule had rewritten it. */
function refusal(call: CallEvidence, otherwise?: 'rewritten'): Refusal | undefined {
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

/** So that the same act under another id is found. */
function noteWithheld(calls: Calls, call: CallEvidence): void {
  if (!call.requested_hash || !(withheld(call) || call.verdict === 'modify')) return;
  calls.withheld.set(actKey(call.tool, call.requested_hash), call.call_id);
}

function actKey(tool: string, hash: string): string {
  return `${hash} ${tool}`;
}

function withheld(call: CallEvidence): Exclude<Refusal['state'], 'rewritten'> | undefined {
  if (call.denied || call.verdict === 'block') return 'refused';
  const state = call.status ? call.stopped_while : doing(call);
  return WITHHELD.find((word) => word === state);
}
const WITHHELD = ['deferred', 'waiting_for_approval', 'approved_but_not_begun'] as const;
const CALLED_OFF = 'called_off';

/** All calls, in the order they were first mentioned. */
export function callsInOrder(calls: Calls): readonly CallEvidence[] {
  return [...listed(calls.settled), ...calls.open.values()].sort((a, b) => a.order - b.order);
}

function endedAs(call: CallEvidence, payload: Members, kind: string): NonNullable<CallEvidence['status']> {
  if (payload.code === 'canceled') return 'canceled';
  if (kind === 'tool.completed' && payload.status !== 'error') return 'succeeded';
  return call.denied ? 'canceled' : 'failed';
}

function callOf(calls: Calls, id: string, tool: string | undefined): CallEvidence {
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

/** Every member is there from the start, so that all calls are alike to the engine and learning adds none. */
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
    denied: undefined,
    begun: false,
    ran_without: undefined,
    stopped_while: undefined,
    status: undefined,
    code: undefined,
    output_event_id: undefined,
    unhashable: false,
  };
}

function learnOrigin(call: CallEvidence, source: Members): void {
  call.server = text(source.server) ?? call.server;
  call.effect = text(source.effect) ?? call.effect;
  call.evidence = text(source.evidence) ?? call.evidence;
}

/** What was decided about is what was asked for; an input that changes after the decision is what ran. */
function learnAsked(call: CallEvidence, input: unknown): void {
  if (input === undefined) return;
  const hash = hashIfPossible(input);
  if (!hash) call.unhashable = true;
  else if (call.requested_hash === undefined || call.verdict === undefined) call.requested_hash = hash;
  else if (hash !== call.requested_hash) call.executed_hash ??= hash;
}

function learnRewritten(call: CallEvidence, input: unknown): void {
  if (input === undefined) return;
  const hash = hashIfPossible(input);
  if (hash) call.executed_hash = hash;
  else call.unhashable = true;
}
