/**
 * One task's events folded into what a receipt states. Pure and incremental: keep the evidence, fold what is new.
 * Reads nothing but the log; what the log does not say is left unsaid.
 */
import type { CoreEvent } from '../model/events.ts';
import { position } from '../model/events.ts';
import type { Receipt, ReplayMaterial } from '../model/receipt.ts';
import type { AutonomyTier } from '../model/words.ts';
import type { OpenAsk } from './approvals.ts';
import { LESSONS, withWord } from './lessons.ts';
import { onto, type Pile } from './pile.ts';
import { count, membersOf, text } from './reading.ts';
import { type Calls, NO_CALLS } from './tool-calls.ts';

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

export interface Evidence {
  /** The last event folded: reading on after it catches up. */
  readonly cursor: string | undefined;
  /** Sequence of the last event folded whose resource is the task itself; 0 before the first. */
  readonly sequence: number;
  readonly created_at?: string;
  readonly started_at?: string;
  readonly trace_id?: string;
  readonly calls: Calls;
  readonly asks: ReadonlyMap<string, OpenAsk>;
  readonly approvals: Pile<Approval> | undefined;
  /** Values people were asked for, by how it went. */
  readonly inputs: Readonly<Record<string, number>>;
  readonly fs_writes: Pile<FileWrite> | undefined;
  readonly network: Pile<NetworkEgress> | undefined;
  /** Side effects by how firmly they are known. */
  readonly effects: Readonly<Record<string, number>>;
  readonly usage: ReadonlyMap<string, UsageSum>;
  readonly handoffs: ReadonlyMap<string, Handoff>;
  readonly artifacts: ReadonlyMap<string, ArtifactRef>;
  readonly models: Pile<ModelCall> | undefined;
  readonly redactions: Pile<Redaction> | undefined;
  readonly decisions: Readonly<Record<string, number>>;
  readonly first_tier?: AutonomyTier;
  readonly last_tier?: AutonomyTier;
  readonly policy_versions: readonly string[];
  /** Overrides that produced an event of this task, when it is a replay. */
  readonly override_keys: readonly string[];
  /** Calls in another protocol's words that were carried without being understood. */
  readonly unmodelled: number;
  readonly not_reported: readonly string[];
  readonly interrupted: boolean;
  readonly still_running: boolean;
}

export function createEvidence(): Evidence {
  return EMPTY;
}

const EMPTY: Evidence = {
  cursor: undefined,
  sequence: 0,
  calls: NO_CALLS,
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
  policy_versions: [],
  override_keys: [],
  unmodelled: 0,
  not_reported: [],
  interrupted: false,
  still_running: false,
};

/** Evidence that also knows this event. An event already folded changes nothing, so overlapping reads are harmless. */
export function foldEvidence(evidence: Evidence, event: CoreEvent): Evidence {
  if (alreadyFolded(evidence, event)) return evidence;
  const learned = LESSONS[event.event]?.(evidence, membersOf(event.payload), event);
  return { ...evidence, ...learned, ...envelope(evidence, event) };
}

function alreadyFolded(evidence: Evidence, event: CoreEvent): boolean {
  if (evidence.cursor === undefined) return false;
  if (event.id === evidence.cursor) return true;
  const last = position(evidence.cursor);
  const here = position(String(event.id));
  return last !== undefined && here !== undefined && here <= last;
}

/** What any event may carry, whatever it is about. */
function envelope(evidence: Evidence, event: CoreEvent): Partial<Evidence> {
  const aboutTask = event.resource?.object === 'task';
  const trace_id = evidence.trace_id ?? text(event.trace_id);
  const override = text(event.replay?.override_key);
  const marks = membersOf(event.metadata).redactions;
  return {
    cursor: event.id,
    sequence: aboutTask ? Math.max(evidence.sequence, count(event.sequence) ?? 0) : evidence.sequence,
    ...(trace_id && { trace_id }),
    ...(override && { override_keys: withWord(evidence.override_keys, override) }),
    ...(Array.isArray(marks) && { redactions: marks.reduce(redacted(event.id), evidence.redactions) }),
  };
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
