/**
 * One task's events folded into what a receipt states: keep the evidence, learn what is new.
 * Reads nothing but the log; what the log does not say is left unsaid.
 */

import { asText } from '../model/as-text.ts';
import type { CoreEvent } from '../model/events.ts';
import { position } from '../model/events.ts';
import { own } from '../model/own.ts';
import type { Receipt, ReplayMaterial } from '../model/receipt.ts';
import type { AutonomyTier } from '../model/words.ts';
import type { OpenAsk } from './approvals.ts';
import { LESSONS, withWord } from './lessons.ts';
import { onto, type Pile } from './pile.ts';
import { count, membersOf, text } from './reading.ts';
import { type Calls, copyOfCalls, createCalls } from './tool-calls.ts';

type Approval = NonNullable<Receipt['approvals']>[number];
type FileWrite = Receipt['side_effects']['fs_writes'][number];
type NetworkEgress = Receipt['side_effects']['network_egress'][number];
type Handoff = Receipt['side_effects']['a2a_handoffs'][number];
type ArtifactRef = Receipt['final_artifacts'][number];
type Redaction = NonNullable<Receipt['redactions']>[number];

/** Sums for one model of one provider, in whole tokens and millionths of a dollar. Absent means nobody said. */
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
 * Belongs to whoever made it. Learning changes it in place, because an account learns with every event; the lists and maps in
 * it are replaced and never changed, but for the calls. Whoever wants to know what would follow learns on a copy.
 */
export interface Evidence {
  /** The last event folded: reading on after it catches up. */
  cursor: string | undefined;
  /** Sequence of the last event folded whose resource is the task itself; 0 before the first. */
  sequence: number;
  created_at: string | undefined;
  started_at: string | undefined;
  trace_id: string | undefined;
  calls: Calls;
  asks: ReadonlyMap<string, OpenAsk>;
  approvals: Pile<Approval> | undefined;
  /** Values people were asked for, by how it went. */
  inputs: Readonly<Record<string, number>>;
  fs_writes: Pile<FileWrite> | undefined;
  network: Pile<NetworkEgress> | undefined;
  /** Side effects by how firmly they are known. */
  effects: Readonly<Record<string, number>>;
  usage: ReadonlyMap<string, UsageSum>;
  handoffs: ReadonlyMap<string, Handoff>;
  artifacts: ReadonlyMap<string, ArtifactRef>;
  models: Pile<ModelCall> | undefined;
  redactions: Pile<Redaction> | undefined;
  decisions: Readonly<Record<string, number>>;
  first_tier: AutonomyTier | undefined;
  last_tier: AutonomyTier | undefined;
  policy_versions: readonly string[];
  /** Overrides that produced an event of this task, when it is a replay. */
  override_keys: readonly string[];
  /** Calls in another protocol's words that were carried without being understood. */
  unmodelled: number;
  not_reported: readonly string[];
  interrupted: boolean;
  still_running: boolean;
}

export function createEvidence(): Evidence {
  return copyOf(EMPTY);
}

export function copyOf(evidence: Evidence): Evidence {
  return { ...evidence, calls: copyOfCalls(evidence.calls) };
}

const EMPTY: Evidence = {
  calls: createCalls(),
  cursor: undefined,
  sequence: 0,
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

/** An event already folded changes nothing, so overlapping reads are harmless. */
export function learn(evidence: Evidence, event: CoreEvent): void {
  if (alreadyFolded(evidence, event)) return;
  own(LESSONS, event.event)?.(evidence, membersOf(event.payload), event);
  learnEnvelope(evidence, event);
}

function alreadyFolded({ cursor }: Evidence, { id }: CoreEvent): boolean {
  // Ids sort as text: what comes later needs no closer look.
  if (cursor === undefined || id > cursor) return false;
  if (id === cursor) return true;
  const last = position(cursor);
  const here = position(asText(id));
  return last !== undefined && here !== undefined && here <= last;
}

/** What any event may carry, whatever it is about. */
function learnEnvelope(evidence: Evidence, event: CoreEvent): void {
  evidence.cursor = event.id;
  if (event.resource?.object === 'task') evidence.sequence = Math.max(evidence.sequence, count(event.sequence) ?? 0);
  evidence.trace_id ??= text(event.trace_id);
  const override = text(event.replay?.override_key);
  if (override) evidence.override_keys = withWord(evidence.override_keys, override);
  const marks = membersOf(event.metadata).redactions;
  if (Array.isArray(marks)) evidence.redactions = marks.reduce(redacted(event.id), evidence.redactions);
}

/** Marks point into the event; the receipt points at the event and on into it. */
function redacted(eventId: string) {
  return (pile: Pile<Redaction> | undefined, mark: unknown): Pile<Redaction> | undefined => {
    const { field, reason } = membersOf(mark);
    const path = text(field) ?? '';
    const pointer = path === '' || path.startsWith('/') ? path : `/${path}`;
    return onto(pile, { field: `/events/${eventId}${pointer}`, reason: text(reason) ?? 'not said' });
  };
}
