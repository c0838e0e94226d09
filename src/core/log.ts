/**
 * The way into the log. Everything written passes here once: secrets are taken out before the store sees an event,
 * and what is too large to stand inline becomes an artifact.
 */
import type { EventDraft } from '../model/events.ts';
import type { RedactionMark } from '../model/payloads.ts';
import type { Artifact, Message, Part } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { Committed, Draft, Ids, Store, Unit } from '../ports.ts';
import type { Beginnings } from './streamed.ts';

export interface Redactor {
  redact<T>(value: T): { readonly value: T; readonly marks: readonly RedactionMark[] };
  text(value: string): string;
  learn(secret: string): void;
  readonly beginnings: Beginnings;
}

export interface LogDeps {
  readonly store: Store;
  readonly redactor: Redactor;
  readonly ids: Ids;
  /** A payload member whose JSON is longer than this is kept as an artifact. */
  readonly inlineLimit: number;
  /** Cleans what is large elsewhere than on this thread. Absent: it is cleaned here. */
  readonly cleanLarge?: CleanLarge;
}

/** JSON without its secrets, and where they were. */
export type CleanLarge = (
  value: Json,
) => Promise<{ readonly bytes: Uint8Array; readonly marks: readonly RedactionMark[] }>;

export interface Log {
  commit(unit: Unit): Promise<Committed>;
  /** The value as it may stand in an event, and the artifacts that hold what does not fit. At once where it fits. */
  fit(value: Json, place: Place): Fitted<Json> | Promise<Fitted<Json>>;
  /** The same member by member, longest first: what an event is about still stands in it. */
  fitMembers(payload: JsonObject, place: Place): Fitted<JsonObject> | Promise<Fitted<JsonObject>>;
  fitMessage(message: Message, place: Place): Fitted<Message> | Promise<Fitted<Message>>;
  clean<T>(value: T): T;
  readonly beginnings: Beginnings;
}
export interface Fitted<T> {
  readonly value: T;
  readonly artifacts: readonly Artifact[];
}
export interface Place {
  readonly workspace_id: string;
  readonly session_id?: string | null;
  readonly task_id?: string | null;
  readonly now: string;
}

export function createLog({ store, redactor, ids, inlineLimit, ...deps }: LogDeps): Log {
  const cleanLarge = deps.cleanLarge ?? cleanHere;
  async function cleanHere(content: Json): ReturnType<CleanLarge> {
    const { value, marks } = redactor.redact(content);
    return { bytes: Buffer.from(JSON.stringify(value) ?? 'null'), marks };
  }

  function cleanEvent(event: EventDraft): EventDraft {
    // Everything in it that someone else may have worded, names given by callers included.
    const { payload, ext, metadata, actor, trace_id, span_id, idempotency_key } = event;
    const said = { payload, ext, metadata, actor, trace_id, span_id, idempotency_key };
    const { value, marks } = redactor.redact(said);
    if (marks.length === 0) return event;
    // What a door took out before is told as well.
    const before = Array.isArray(value.metadata?.redactions) ? value.metadata.redactions : [];
    const changed = Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
    return {
      ...event,
      ...changed,
      metadata: { ...value.metadata, redactions: [...before, ...marks] as unknown as Json },
    };
  }

  /** The draft itself where there was nothing to take out, which is nearly always. */
  function cleanDraft(draft: Draft): Draft {
    const events = draft.events.map(cleanEvent);
    const result = draft.result === undefined ? undefined : redactor.redact(draft.result).value;
    if (result === draft.result && events.every((event, at) => event === draft.events[at])) return draft;
    return { ...draft, events, ...(result !== undefined && { result }) };
  }

  /** Content kept apart. Cleaned here, because nobody looks into it again; what was taken out is told with it. */
  async function keep(content: Json, visibility: string, place: Place): Promise<Artifact> {
    const { bytes, marks } = await cleanLarge(content);
    const redactions = marks.map(({ field, reason }) => ({ field: `/content${field}`, reason }));
    return {
      id: ids.next('artifact'),
      object: 'artifact',
      created_at: place.now,
      updated_at: place.now,
      metadata: { bytes: bytes.byteLength, spilled: true, ...(redactions.length > 0 && { redactions }) },
      kind: 'other',
      mime_type: 'application/json',
      visibility,
      uri: null,
      sha256: await store.putBlob(bytes),
      workspace_id: place.workspace_id,
      session_id: place.session_id ?? null,
      task_id: place.task_id ?? null,
    };
  }

  function fit(value: Json, place: Place): Fitted<Json> | Promise<Fitted<Json>> {
    // What stays inline is cleaned by the commit, which also marks what it took out.
    return fitsIn(value, inlineLimit) ? { value, artifacts: NONE } : apart(value, place);
  }

  async function apart(value: Json, place: Place): Promise<Fitted<Json>> {
    const artifact = await keep(value, 'internal', place);
    return { value: reference(artifact), artifacts: [artifact] };
  }

  function fitMembers(payload: JsonObject, place: Place): Fitted<JsonObject> | Promise<Fitted<JsonObject>> {
    return isShort(payload, inlineLimit) ? { value: payload, artifacts: NONE } : membersApart(payload, place);
  }

  async function membersApart(payload: JsonObject, place: Place): Promise<Fitted<JsonObject>> {
    const sizes = Object.entries(payload).map(([name, value]) => ({ name, size: JSON.stringify(value)?.length ?? 0 }));
    let left = sizes.reduce((sum, { name, size }) => sum + name.length + size, 0);
    const artifacts: Artifact[] = [];
    const slim: Record<string, Json | undefined> = { ...payload };
    for (const { name, size } of sizes.toSorted((a, b) => b.size - a.size)) {
      if (left <= inlineLimit) break;
      const artifact = await keep(payload[name] ?? null, 'internal', place);
      artifacts.push(artifact);
      slim[name] = reference(artifact);
      left -= size - JSON.stringify(slim[name]).length;
    }
    return { value: slim, artifacts };
  }

  function staysInside(part: Part): boolean {
    return !isForReceiptsOnly(part) && fitsIn(part as unknown as Json, inlineLimit);
  }

  function fitMessage(message: Message, place: Place): Fitted<Message> | Promise<Fitted<Message>> {
    return message.parts.every(staysInside) ? { value: message, artifacts: NONE } : partsApart(message, place);
  }

  async function partsApart(message: Message, place: Place): Promise<Fitted<Message>> {
    const artifacts: Artifact[] = [];
    const parts: Part[] = [];
    for (const part of message.parts) {
      if (staysInside(part)) {
        parts.push(part);
        continue;
      }
      // Receipt-only content may be referred to, never shown; the artifact carries the same mark.
      const visibility = isForReceiptsOnly(part) ? 'receipt_only' : (part.visibility ?? 'internal');
      const artifact = await keep(part as unknown as Json, visibility, place);
      artifacts.push(artifact);
      parts.push(reference(artifact) as unknown as Part);
    }
    return { value: { ...message, parts }, artifacts };
  }

  return {
    commit: (unit) => store.commit({ ...unit, decide: (at) => cleanDraft(unit.decide(at)) }),
    fit,
    fitMembers,
    fitMessage,
    clean: (value) => redactor.redact(value).value,
    beginnings: redactor.beginnings,
  };
}

const NONE: readonly Artifact[] = [];

function isForReceiptsOnly({ visibility, type }: Part): boolean {
  return visibility === 'receipt_only' && type !== 'artifact_ref';
}

/** Whether its JSON is no longer than that. Most values are so short that nobody has to spell them to know. */
function fitsIn(value: Json, limit: number): boolean {
  if (isShort(value, limit)) return true;
  if (typeof value === 'string') return value.length <= limit && JSON.stringify(value).length <= limit;
  if (typeof value === 'object' && value !== null) {
    const members: readonly unknown[] = Object.values(value);
    if (members.some((member) => typeof member === 'string' && member.length > limit)) return false;
  }
  return (JSON.stringify(value)?.length ?? 0) <= limit;
}

/** Short however it is spelled. */
function isShort(value: Json, limit: number): boolean {
  return roomAfter(value, limit, SHALLOW) >= 0;
}

/** What is left of the room when the value is spelled at its longest; less than nothing when that cannot be told at a glance. */
function roomAfter(value: unknown, room: number, levels: number): number {
  if (typeof value === 'string') return room - LONGEST_SPELLING * value.length - 2;
  if (typeof value !== 'object' || value === null) return room - LONGEST_SCALAR;
  if (levels === 0 || 'toJSON' in value) return -1;
  let left = room - 2;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && left >= 0; at += 1) left = roomAfter(value[at], left - 1, levels - 1);
    return left;
  }
  for (const name in value) {
    left = roomAfter((value as JsonObject)[name], left - LONGEST_SPELLING * name.length - 4, levels - 1);
    if (left < 0) return left;
  }
  return left;
}
/** Of one letter, in JSON: `\u0000`. */
const LONGEST_SPELLING = 6;
/** A number, `false` or `null`. */
const LONGEST_SCALAR = 25;
const SHALLOW = 20;

function reference(artifact: Artifact): JsonObject {
  return {
    type: 'artifact_ref',
    artifact_id: artifact.id,
    visibility: artifact.visibility,
    sha256: artifact.sha256,
    bytes: (artifact.metadata.bytes as number | undefined) ?? 0,
  };
}

/** Announces artifacts in the commit that first refers to them. */
export function artifactEvents(
  artifacts: readonly Artifact[],
  at: Omit<EventDraft, 'event' | 'payload'>,
): EventDraft[] {
  return artifacts.map((artifact) => {
    const { redactions, ...metadata } = artifact.metadata;
    return {
      event: 'artifact.created',
      payload: { artifact: { ...artifact, metadata } as unknown as Json },
      ...at,
      ...(artifact.metadata.spilled === true && redactions !== undefined && { metadata: { redactions } }),
    };
  });
}

/** How many bytes of an artifact we keep is ours to say, and nobody else's: without it there is nothing to hand out. */
export function keptBytes(metadata: JsonObject | undefined, bytes: number | undefined): JsonObject {
  const { bytes: _claimed, ...rest } = metadata ?? {};
  return bytes === undefined ? rest : { ...rest, bytes };
}
