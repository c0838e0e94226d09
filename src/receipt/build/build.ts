/**
 * Builds a receipt, not yet sealed, from the evidence and the task's end. Pure: every time and name is passed in, so the same
 * input gives the same bytes. Adds no claims of its own: it repeats the evidence words and names the gaps.
 */

import type { RECEIPT_SUBJECTS, Receipt, ReceiptDelta } from '../../model/receipt.ts';
import type { Failure, Task } from '../../model/resources.ts';
import type { Json, JsonObject, Open } from '../../model/schema.ts';
import { own } from '../../model/values/own.ts';
import { type OutcomeState, RECEIPT_SCHEMA, type ReplayMode, type TerminalState } from '../../model/words.ts';
import { spellMany } from '../seal/canonical-json.ts';
import { listed } from './append-list.ts';
import { unanswered } from './approvals.ts';
import { summaryOfCall, wasSpent } from './call-summaries.ts';
import type { TaskEvidence } from './evidence.ts';
import { signable } from './read-members.ts';
import { type CallEvidence, callsInOrder } from './tool-calls.ts';
import { consumed, cost, modelRoute, totals, usageGaps } from './usage.ts';

export type UnsealedReceipt = Omit<Receipt, 'chain' | 'signatures'>;

export interface ReceiptInput {
  readonly receipt_id: string;
  readonly evidence: TaskEvidence;
  readonly task: Pick<Task, 'id' | 'session_id' | 'workspace_id' | 'created_at'> &
    Partial<Pick<Task, 'started_at' | 'branch_id' | 'persona_id' | 'parent_task_id'>>;
  readonly end: {
    /** In the words of tasks or of outcomes. */
    readonly state: TerminalState | OutcomeState;
    readonly failure?: Failure | null;
    readonly not_reported?: readonly string[];
    /** The work did not stop when it was canceled. */
    readonly still_running?: boolean;
    /** The gateway process ended in the middle of the work. */
    readonly interrupted?: boolean;
  };
  /** Absent times come from the evidence, then from the task. */
  readonly times: {
    readonly completed_at: string;
    readonly issued_at?: string;
    readonly created_at?: string;
    readonly started_at?: string;
  };
  readonly issuer: Receipt['issuer'];
  /** In addition to, or instead of, the task's own: tenant, persona, trace. */
  readonly identifiers?: Partial<Receipt['identifiers']>;
  readonly subject?: { readonly object: (typeof RECEIPT_SUBJECTS)[number]; readonly id: string };
  /** Absent tiers come from the decisions, then default to `act_with_approval`. */
  readonly trust?: Partial<Receipt['trust']>;
  readonly budget_limit?: NonNullable<Receipt['autonomy_budget']['limit']>;
  /** Limits that applied and that the budget has no member for. */
  readonly limits?: Readonly<Record<string, number>>;
  readonly replay_input: Receipt['replay_input'];
  readonly deltas?: readonly ReceiptDelta[];
  readonly metadata?: JsonObject;
  /** The receipt's chain; by default the workspace's own. */
  readonly chain_id?: string;
  /** A replay repeats no effects: no cost, no effects, no approvals, and only its origin as metadata. */
  readonly replay?: { readonly source: string; readonly source_task_id: string; readonly mode: Open<ReplayMode> };
}

/** Members are set in canonical order throughout; sealing relies on that for speed, never for correctness. */
export function buildReceipt(input: ReceiptInput): UnsealedReceipt {
  const { evidence, replay } = input;
  const times = timesOf(input);
  const calls = callsInOrder(evidence.calls);
  const total = totals(evidence.usage);
  const route = modelRoute(evidence, replay !== undefined);
  const receipt: Partial<Writable<UnsealedReceipt>> = {};

  if (!replay) receipt.approvals = approvalsOf(input, times.completed_at);
  const spent = replay ? NOTHING : consumed(total, calls.filter(wasSpent).length, elapsed(times));
  receipt.autonomy_budget = {
    consumed: spent,
    ...(input.budget_limit && { limit: input.budget_limit }),
  };
  receipt.cost = replay ? { currency: 'USD', provider_breakdown: [], total: 0 } : cost(evidence.usage, total);
  if (input.deltas && (replay || input.deltas.length > 0)) receipt.deltas = [...input.deltas];
  else if (replay) receipt.deltas = [];
  receipt.final_artifacts = [...evidence.artifacts.values()];
  receipt.identifiers = identifiersOf(input);
  receipt.issued_at = input.times.issued_at ?? times.completed_at;
  receipt.issuer = input.issuer;
  receipt.lifecycle = {
    completed_at: times.completed_at,
    created_at: times.created_at,
    failure: input.end.failure ? (signable(input.end.failure) as JsonObject) : null,
    final_state: FINAL_STATE[input.end.state],
    started_at: times.started_at,
  };
  receipt.metadata = replay
    ? { replay_mode: replay.mode, source: replay.source, source_task_id: replay.source_task_id }
    : metadataOf(input, calls, usageGaps(evidence, total, route), spent);
  receipt.model_route = route;
  receipt.receipt_id = input.receipt_id;
  receipt.redactions = replay ? [] : listed(evidence.redactions);
  receipt.replay_input = input.replay_input;
  receipt.schema = RECEIPT_SCHEMA;
  receipt.side_effects = replay
    ? { a2a_handoffs: [], fs_writes: [], network_egress: [], tool_calls: [] }
    : {
        a2a_handoffs: [...evidence.handoffs.values()],
        fs_writes: listed(evidence.fs_writes),
        network_egress: listed(evidence.network),
        tool_calls: spellMany(calls.map(summaryOfCall)),
      };
  receipt.subject = input.subject
    ? { id: input.subject.id, object: input.subject.object }
    : { id: input.task.id, object: replay ? 'replay_segment' : 'task' };
  receipt.trust = trustOf(input);
  return receipt as UnsealedReceipt;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const FINAL_STATE: Readonly<Record<TerminalState | OutcomeState, OutcomeState>> = {
  COMPLETED: 'SUCCEEDED',
  SUCCEEDED: 'SUCCEEDED',
  FAILED: 'FAILED',
  CANCELED: 'CANCELED',
};

const NOTHING = { input_tokens: 0, output_tokens: 0, tool_calls: 0, usd: 0, wall_time_ms: 0 } as const;

type Times = Record<'created_at' | 'started_at' | 'completed_at', string>;

/** A task that never started has its creation time as its start. */
function timesOf({ times, evidence, task }: ReceiptInput): Times {
  const created_at = times.created_at ?? evidence.created_at ?? task.created_at;
  const started_at = times.started_at ?? evidence.started_at ?? task.started_at ?? created_at;
  return { created_at, started_at, completed_at: times.completed_at };
}

function elapsed(times: Times): number {
  const ms = Date.parse(times.completed_at) - Date.parse(times.started_at);
  return Number.isFinite(ms) ? Math.max(0, Math.round(ms)) : 0;
}

function identifiersOf({ identifiers: known = {}, task, evidence, replay }: ReceiptInput): Receipt['identifiers'] {
  const ids: Writable<Partial<Receipt['identifiers']>> = {};
  const branch_id = known.branch_id ?? task.branch_id;
  const trace_id = known.trace_id ?? (replay ? undefined : evidence.trace_id);
  if (branch_id) ids.branch_id = branch_id;
  const persona_ref = known.persona_ref ?? task.persona_id;
  if (persona_ref) ids.persona_ref = persona_ref;
  ids.session_id = known.session_id ?? task.session_id;
  ids.task_id = known.task_id ?? task.id;
  if (known.tenant_id) ids.tenant_id = known.tenant_id;
  if (trace_id) ids.trace_id = trace_id;
  ids.workspace_ref = known.workspace_ref ?? task.workspace_id;
  return ids as Receipt['identifiers'];
}

function approvalsOf({ evidence, issuer }: ReceiptInput, ended_at: string): NonNullable<Receipt['approvals']> {
  const approvals = listed(evidence.approvals);
  for (const ask of evidence.asks.values()) if (!ask.input) approvals.push(unanswered(ask, issuer.id, ended_at));
  return approvals;
}

function trustOf({ trust, evidence }: ReceiptInput): Receipt['trust'] {
  return {
    end_tier: trust?.end_tier ?? evidence.last_tier ?? 'act_with_approval',
    ...(trust?.policy_ref && { policy_ref: trust.policy_ref }),
    start_tier: trust?.start_tier ?? evidence.first_tier ?? 'act_with_approval',
  };
}

function metadataOf(
  input: ReceiptInput,
  calls: readonly CallEvidence[],
  gaps: readonly string[],
  spent: Receipt['autonomy_budget']['consumed'],
): JsonObject {
  const { evidence, end } = input;
  const words: Record<string, number> = { asked: 0, held: 0, observed: 0 };
  for (const { evidence: word } of calls) words[word] = (words[word] ?? 0) + 1;
  const metadata: Writable<JsonObject> = {
    ...(input.metadata && (signable(input.metadata) as JsonObject)),
    ...(evidence.calls.alarmed.size > 0 && { alarms: evidence.calls.alarmed.size }),
    chain: { id: input.chain_id ?? input.task.workspace_id, scope: 'workspace' },
  };
  if (Object.keys(evidence.decisions).length > 0) metadata.decisions = evidence.decisions;
  metadata.evidence = words;
  if (Object.keys(evidence.inputs).length > 0) metadata.inputs = evidence.inputs;
  if (end.interrupted || evidence.interrupted) metadata.interrupted = true;
  const over = exceeded(spent, input.budget_limit);
  if (input.limits && Object.keys(input.limits).length > 0) metadata.limits = sorted(input.limits);
  if (over.length > 0) metadata.limits_exceeded = over;
  if (evidence.links.size > 0) metadata.linked_receipts = [...evidence.links.values()];
  metadata.not_reported = [...new Set([...evidence.not_reported, ...(end.not_reported ?? []), ...gaps])] as Json;
  if (input.task.parent_task_id) metadata.parent_task_id = input.task.parent_task_id;
  if (evidence.policy_versions.length > 0) metadata.policy_versions = evidence.policy_versions;
  if (Object.keys(evidence.effects).length > 0) metadata.side_effect_evidence = evidence.effects;
  if (end.still_running || evidence.still_running) metadata.still_running = true;
  if (evidence.unmodelled > 0) metadata.unmodelled_calls = evidence.unmodelled;
  return metadata;
}

/** A limit may have been lowered during the work, or passed by the usage reported at its end: the receipt names it. */
function exceeded(
  spent: Receipt['autonomy_budget']['consumed'],
  limit: Readonly<Record<string, number | undefined>> | undefined,
): string[] {
  const used = spent as Readonly<Record<string, number | undefined>>;
  return Object.keys(limit ?? {})
    .filter((name) => (own(used, name) ?? 0) > ((limit && own(limit, name)) ?? Number.POSITIVE_INFINITY))
    .sort();
}

function sorted(amounts: Readonly<Record<string, number>>): JsonObject {
  return Object.fromEntries(Object.entries(amounts).sort(([one], [other]) => (one < other ? -1 : 1)));
}
