/** What the log says about each tool call, from request to end. Later facts never erase earlier ones that disagree. */
import type { CoreEvent } from '../model/events.ts';
import type { ReplayMaterial } from '../model/receipt.ts';
import { callMaterial, doing, type ToldCall, toldCall } from './call-telling.ts';
import { spellOnce } from './canonical-json.ts';
import { find, listed, onto, type Pile } from './pile.ts';
import { hashIfPossible, type Members, membersOf, text } from './reading.ts';
import { entriesOf, entry, NO_ENTRIES, type Register, withEntryIn } from './register.ts';

export interface CallEvidence {
  /** Place among the task's calls, by first mention. */
  readonly order: number;
  readonly call_id: string;
  readonly tool: string;
  readonly server?: string;
  readonly effect?: string;
  /** `observed` is the least one can claim, so it is what silence means. */
  readonly evidence: string;
  /** Hash of the input as it was asked for. */
  readonly requested_hash?: string;
  /** Hash of the input that ran, when a rule or the agent changed it after it was asked for. */
  readonly executed_hash?: string;
  readonly output_hash?: string;
  readonly verdict?: string;
  readonly would_be?: string;
  readonly rule_id?: string;
  readonly engine?: string;
  readonly policy_version?: string;
  readonly ask_id?: string;
  readonly denied?: boolean;
  /** The approval was spent on it: from then on it may have happened. */
  readonly begun?: boolean;
  /** What it was doing when it was stopped before it could answer. */
  readonly stopped_while?: string;
  readonly status?: 'succeeded' | 'failed' | 'canceled';
  /** Machine word for why it was refused or failed. */
  readonly code?: string;
  /** The event that recorded the answer. */
  readonly output_event_id?: string;
  /** A value was logged that has no canonical form, so no hash of it can be given. */
  readonly unhashable?: boolean;
}

/** Calls with an answer are settled and never looked at again; denied ones stay open, for an agent may run them anyway. */
export interface Calls {
  readonly count: number;
  readonly open: Register<CallEvidence>;
  readonly settled: Pile<SettledCall> | undefined;
}
/** Told and spelled as soon as it is over, so that ending a task with many calls costs little. */
export interface SettledCall {
  readonly call: CallEvidence;
  readonly told: ToldCall;
  readonly material: ReplayMaterial | undefined;
}

export const NO_CALLS: Calls = { count: 0, open: NO_ENTRIES, settled: undefined };

const ACTS = new Set(['tool', 'fs.read', 'fs.write', 'terminal', 'handoff', 'memory.write']);

/** `tool.requested` */
export function requested(calls: Calls, payload: Members): Calls {
  const id = text(payload.tool_call_id);
  if (!id) return calls;
  return update(calls, id, text(payload.name) ?? text(payload.kind), {
    ...origin(payload),
    ...asked(entry(calls.open, id), payload.input),
  });
}

/** `vendor.tollbridge.decided`, when it is about something an agent does to the world. */
export function decided(calls: Calls, payload: Members): Calls {
  const action = membersOf(payload.action);
  const decision = membersOf(payload.decision);
  const id = text(action.tool_call_id);
  const known = id === undefined ? undefined : entry(calls.open, id);
  if (!id || !(known || ACTS.has(String(action.kind)))) return calls;
  return update(calls, id, text(action.tool) ?? text(action.kind), {
    ...origin(action),
    ...asked(known, action.arguments),
    ...(decision.verdict === 'modify' && rewritten(decision.arguments)),
    ...given({
      verdict: text(decision.verdict),
      would_be: text(decision.would_be),
      rule_id: text(decision.rule_id),
      engine: text(decision.engine),
      policy_version: text(decision.policy_version),
      code: text(decision.code),
    }),
  });
}

/** `tool.approved`, `tool.denied` */
export function ruled(calls: Calls, payload: Members, denied: boolean): Calls {
  const id = text(payload.tool_call_id);
  if (!id) return calls;
  return update(calls, id, text(payload.name), {
    ...rewritten(payload.input),
    ...given({ ask_id: text(payload.ask_id), rule_id: text(payload.rule_id), code: text(payload.code) }),
    denied,
  });
}

/** `vendor.tollbridge.ask_used` */
export function begun(calls: Calls, payload: Members): Calls {
  const ask = text(payload.ask_id);
  for (const call of entriesOf(calls.open)) {
    if (ask && call.ask_id === ask) return update(calls, call.call_id, undefined, { begun: true });
  }
  return calls;
}

/** `tool.completed`, `tool.failed` */
export function ended(calls: Calls, payload: Members, event: CoreEvent): Calls {
  const id = text(payload.tool_call_id);
  if (!id) return calls;
  // The first answer stands; a second one for the same call is noise.
  if (!entry(calls.open, id) && find(calls.settled, ({ call }) => call.call_id === id)) return calls;
  const output_hash = hashIfPossible(payload.output);
  const known = entry(calls.open, id);
  const stopped = payload.code === 'canceled' || payload.code === 'outcome_unknown';
  const next = update(calls, id, text(payload.name), {
    status: endedAs(known, payload, event.event),
    ...given({
      stopped_while: stopped && known ? doing(known) : undefined,
      output_hash,
      code: text(payload.code),
      output_event_id: output_hash && text(event.id),
      unhashable: payload.output !== undefined && output_hash === undefined ? true : undefined,
    }),
  });
  const over = settle(entry(next.open, id) as CallEvidence);
  return { ...next, open: withEntryIn(next.open, id, undefined), settled: onto(next.settled, over) };
}

function settle(call: CallEvidence): SettledCall {
  const material = callMaterial(call);
  return { call, told: spellOnce(toldCall(call)), material: material && spellOnce(material) };
}

/** All calls, in the order they were first mentioned. One without an answer is told as it stands now. */
export function callsInOrder(calls: Calls): readonly SettledCall[] {
  const all = listed(calls.settled);
  for (const call of entriesOf(calls.open)) all.push({ call, told: toldCall(call), material: undefined });
  return all.sort((a, b) => a.call.order - b.call.order);
}

function endedAs(call: CallEvidence | undefined, payload: Members, kind: string): NonNullable<CallEvidence['status']> {
  if (payload.code === 'canceled') return 'canceled';
  if (kind === 'tool.completed' && payload.status !== 'error') return 'succeeded';
  return call?.denied ? 'canceled' : 'failed';
}

function update(calls: Calls, id: string, tool: string | undefined, change: Partial<CallEvidence>): Calls {
  const known = entry(calls.open, id);
  const base = known ?? { order: calls.count, call_id: id, tool: tool ?? 'unknown', evidence: 'observed' };
  const named = base.tool === 'unknown' && tool ? { tool } : {};
  return {
    count: known ? calls.count : calls.count + 1,
    open: withEntryIn(calls.open, id, { ...base, ...named, ...change, order: base.order, call_id: id }),
    settled: calls.settled,
  };
}

function origin(source: Members): Partial<CallEvidence> {
  return given({ server: text(source.server), effect: text(source.effect), evidence: text(source.evidence) });
}

/** What was decided about is what was asked for; an input that changes after the decision is what ran. */
function asked(known: CallEvidence | undefined, input: unknown): Partial<CallEvidence> {
  if (input === undefined) return {};
  const hash = hashIfPossible(input);
  if (!hash) return { unhashable: true };
  if (known?.requested_hash === undefined || known.verdict === undefined) return { requested_hash: hash };
  if (hash === known.requested_hash || known.executed_hash) return {};
  return { executed_hash: hash };
}

function rewritten(input: unknown): Partial<CallEvidence> {
  if (input === undefined) return {};
  const executed_hash = hashIfPossible(input);
  return executed_hash ? { executed_hash } : { unhashable: true };
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };
function given<T extends object>(members: T): Given<T> {
  const kept: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(members)) if (member !== undefined) kept[key] = member;
  return kept as Given<T>;
}
