/**
 * Folds one task's events into the facts a receipt states. Reads only the log; what the log does not say is not stated.
 */

import type { CoreEvent } from '../../model/events.ts';
import { position } from '../../model/events.ts';
import type { Receipt, ReplayMaterial } from '../../model/receipt.ts';
import type { JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import { own } from '../../model/values/own.ts';
import type { AutonomyTier } from '../../model/words.ts';
import { copyOfRun, createRun, type EventRun, extendRun } from '../merkle/event-hash.ts';
import { onto, type Pile } from './append-list.ts';
import type { OpenAsk } from './approvals.ts';
import { count, membersOf, text } from './read-members.ts';
import { REDUCERS, withWord } from './reducers.ts';
import { type Calls, copyOfCalls, createCalls } from './tool-calls.ts';

type Approval = NonNullable<Receipt['approvals']>[number];
type FileWrite = Receipt['side_effects']['fs_writes'][number];
type NetworkEgress = Receipt['side_effects']['network_egress'][number];
type Handoff = Receipt['side_effects']['a2a_handoffs'][number];
type ArtifactRef = Receipt['final_artifacts'][number];
type Redaction = NonNullable<Receipt['redactions']>[number];

/** Sums for one model of one provider, in whole tokens and millionths of a dollar. Absent means not reported. */
export interface UsageSum {
  readonly provider: string;
  readonly model?: string;
  readonly usd_micros?: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
}

export interface ModelCall {
  readonly call_id: string;
  readonly provider?: string;
  readonly model?: string;
  readonly version?: string;
  /** The recorded response, when there is one. */
  readonly material?: ReplayMaterial;
}

/**
 * Owned by the account that created it. `learn` changes it in place, because it runs with every event; its lists and maps are
 * replaced and never mutated, except for the calls. To fold events tentatively, use a copy.
 */
export interface TaskEvidence {
  /** The last event folded: reading on after it catches up. */
  cursor: string | undefined;
  /** Sequence of the last event folded whose resource is the task itself; 0 before the first. */
  sequence: number;
  /** The task's own events so far, for the root a receipt commits to. Undefined once one of them was missed. */
  run: EventRun | undefined;
  created_at: string | undefined;
  started_at: string | undefined;
  trace_id: string | undefined;
  calls: Calls;
  asks: ReadonlyMap<string, OpenAsk>;
  approvals: Pile<Approval> | undefined;
  /** Questions that asked for a value, counted by result. */
  inputs: Readonly<Record<string, number>>;
  fs_writes: Pile<FileWrite> | undefined;
  network: Pile<NetworkEgress> | undefined;
  /** Side effects counted by strength of evidence. */
  effects: Readonly<Record<string, number>>;
  usage: ReadonlyMap<string, UsageSum>;
  handoffs: ReadonlyMap<string, Handoff>;
  /** Receipts of other gateways, by subject. */
  links: ReadonlyMap<string, JsonObject>;
  artifacts: ReadonlyMap<string, ArtifactRef>;
  models: Pile<ModelCall> | undefined;
  redactions: Pile<Redaction> | undefined;
  decisions: Readonly<Record<string, number>>;
  first_tier: AutonomyTier | undefined;
  last_tier: AutonomyTier | undefined;
  policy_versions: readonly string[];
  /** Overrides that produced an event of this task, when it is a replay. */
  override_keys: readonly string[];
  /** Calls of another protocol that were carried without being understood. */
  unmodelled: number;
  not_reported: readonly string[];
  interrupted: boolean;
  still_running: boolean;
}

export function createEvidence(): TaskEvidence {
  return copyOf(EMPTY);
}

export function copyOf(evidence: TaskEvidence): TaskEvidence {
  return { ...evidence, calls: copyOfCalls(evidence.calls), run: evidence.run && copyOfRun(evidence.run) };
}

const EMPTY: TaskEvidence = {
  calls: createCalls(),
  cursor: undefined,
  sequence: 0,
  run: createRun(),
  created_at: undefined,
  started_at: undefined,
  trace_id: undefined,
  asks: new Map(),
  approvals: undefined,
  inputs: {},
  fs_writes: undefined,
  network: undefined,
  effects: {},
  usage: new Map(),
  handoffs: new Map(),
  links: new Map(),
  artifacts: new Map(),
  models: undefined,
  redactions: undefined,
  decisions: {},
  first_tier: undefined,
  last_tier: undefined,
  policy_versions: [],
  override_keys: [],
  unmodelled: 0,
  not_reported: [],
  interrupted: false,
  still_running: false,
};

/**
 * Folds one event. An event already folded changes nothing, so overlapping reads are harmless. Returns the event's leaf if it was
 * hashed.
 */
export function learn(evidence: TaskEvidence, event: CoreEvent): string | undefined {
  if (alreadyFolded(evidence, event)) return undefined;
  const reducer = own(REDUCERS, event.event);
  if (typeof reducer === 'function') reducer(evidence, membersOf(event.payload), event);
  return foldEnvelope(evidence, event);
}

function alreadyFolded({ cursor }: TaskEvidence, { id }: CoreEvent): boolean {
  // Ids sort as text, so a later event needs no closer comparison.
  if (cursor === undefined || id > cursor) return false;
  if (id === cursor) return true;
  const last = position(cursor);
  const here = position(asText(id));
  return last !== undefined && here !== undefined && here <= last;
}

/** Members that any event may carry, whatever its resource. */
function foldEnvelope(evidence: TaskEvidence, event: CoreEvent): string | undefined {
  evidence.cursor = event.id;
  const leaf = event.resource?.object === 'task' ? follow(evidence, event) : undefined;
  evidence.trace_id ??= text(event.trace_id);
  const override = text(event.replay?.override_key);
  if (override) evidence.override_keys = withWord(evidence.override_keys, override);
  const marks = membersOf(event.metadata).redactions;
  if (Array.isArray(marks)) evidence.redactions = marks.reduce(redacted(event.id), evidence.redactions);
  return leaf;
}

/** The next event of the task itself. A draft repeats the last sequence: it is not an event yet, and is not hashed. */
function follow(evidence: TaskEvidence, event: CoreEvent): string | undefined {
  const sequence = count(event.sequence) ?? 0;
  if (sequence <= evidence.sequence) return undefined;
  if (sequence > evidence.sequence + 1) evidence.run = undefined;
  evidence.sequence = sequence;
  return commit(evidence, event);
}

/** Also called for events written together with the receipt, which add no evidence. */
export function commit(evidence: TaskEvidence, event: CoreEvent): string | undefined {
  return evidence.run && extendRun(evidence.run, event);
}

/** A mark's pointer is relative to the event; the receipt's pointer starts with the event's id. */
function redacted(eventId: string) {
  return (pile: Pile<Redaction> | undefined, mark: unknown): Pile<Redaction> | undefined => {
    const { field, reason } = membersOf(mark);
    const path = text(field) ?? '';
    const pointer = path === '' || path.startsWith('/') ? path : `/${path}`;
    return onto(pile, { field: `/events/${eventId}${pointer}`, reason: text(reason) ?? 'not said' });
  };
}
