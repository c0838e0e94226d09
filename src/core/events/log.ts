/**
 * The only write path into the log. Secrets are removed before the store sees an event, and values too large for an event become
 * artifacts.
 */
import type { EventDraft } from '../../model/events.ts';
import type { RedactionMark } from '../../model/payloads.ts';
import type { Artifact, Message, Part } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type { Visibility } from '../../model/words.ts';
import type { Committed, Draft, Ids, Store, Unit } from '../../ports/index.ts';
import type { Beginnings } from './stream-redaction.ts';

export interface LogRedactor {
  redact<T>(value: T): { readonly value: T; readonly marks: readonly RedactionMark[] };
  text(value: string): string;
  learn(secret: string): void;
  readonly beginnings: Beginnings;
}

export interface LogDeps {
  readonly store: Store;
  readonly redactor: LogRedactor;
  readonly ids: Ids;
  /** A payload member whose JSON is longer than this is stored as an artifact. */
  readonly inlineLimit: number;
  /** Redacts large values on another thread. Absent: on this one. */
  readonly cleanLarge?: CleanLarge;
}

/** Redacted JSON, and the paths of the removed secrets. */
export type CleanLarge = (
  value: Json,
) => Promise<{ readonly bytes: Uint8Array; readonly marks: readonly RedactionMark[] }>;

export interface Log {
  commit(unit: Unit): Promise<Committed>;
  /** The value as it may be stored in an event, and the artifacts for what does not fit. Synchronous where it fits. */
  fit(value: Json, location: EventLocation): Fitted<Json> | Promise<Fitted<Json>>;
  /** The same member by member, longest first, so that the short members of an event stay in it. */
  fitMembers(payload: JsonObject, location: EventLocation): Fitted<JsonObject> | Promise<Fitted<JsonObject>>;
  fitMessage(message: Message, location: EventLocation): Fitted<Message> | Promise<Fitted<Message>>;
  clean<T>(value: T): T;
  readonly beginnings: Beginnings;
}
export interface Fitted<T> {
  readonly value: T;
  readonly artifacts: readonly Artifact[];
}
interface EventLocation {
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
    // All members that may contain a caller's text, including names that callers choose.
    const { payload, ext, metadata, actor, trace_id, span_id, idempotency_key } = event;
    const texts = { payload, ext, metadata, actor, trace_id, span_id, idempotency_key };
    const { value, marks } = redactor.redact(texts);
    if (marks.length === 0) return event;
    // Includes the marks of secrets that a door removed before.
    const before = Array.isArray(value.metadata?.redactions) ? value.metadata.redactions : [];
    const changed = Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
    return {
      ...event,
      ...changed,
      metadata: { ...value.metadata, redactions: [...before, ...marks] },
    };
  }

  /** Returns the draft itself where there was nothing to redact, which is nearly always. */
  function cleanDraft(draft: Draft): Draft {
    const events = draft.events.map(cleanEvent);
    const result = draft.result === undefined ? undefined : redactor.redact(draft.result).value;
    if (result === draft.result && events.every((event, at) => event === draft.events[at])) return draft;
    return { ...draft, events, ...(result !== undefined && { result }) };
  }

  /** Stores content as an artifact. It is redacted here, because no later step reads it again; the marks are stored with it. */
  async function keep(content: Json, visibility: Visibility, location: EventLocation): Promise<Artifact> {
    const { bytes, marks } = await cleanLarge(content);
    const redactions = marks.map(({ field, reason }) => ({ field: `/content${field}`, reason }));
    return {
      id: ids.next('artifact'),
      object: 'artifact',
      created_at: location.now,
      updated_at: location.now,
      metadata: { bytes: bytes.byteLength, spilled: true, ...(redactions.length > 0 && { redactions }) },
      kind: 'other',
      mime_type: 'application/json',
      visibility,
      uri: null,
      sha256: await store.putBlob(bytes),
      workspace_id: location.workspace_id,
      session_id: location.session_id ?? null,
      task_id: location.task_id ?? null,
    };
  }

  function fit(value: Json, location: EventLocation): Fitted<Json> | Promise<Fitted<Json>> {
    // Inline values are redacted by the commit, which also adds the marks.
    return fitsIn(value, inlineLimit) ? { value, artifacts: NONE } : apart(value, location);
  }

  async function apart(value: Json, location: EventLocation): Promise<Fitted<Json>> {
    const artifact = await keep(value, 'public', location);
    return { value: reference(artifact), artifacts: [artifact] };
  }

  function fitMembers(payload: JsonObject, location: EventLocation): Fitted<JsonObject> | Promise<Fitted<JsonObject>> {
    return isShort(payload, inlineLimit) ? { value: payload, artifacts: NONE } : membersApart(payload, location);
  }

  async function membersApart(payload: JsonObject, location: EventLocation): Promise<Fitted<JsonObject>> {
    const sizes = Object.entries(payload).map(([name, value]) => ({ name, size: JSON.stringify(value)?.length ?? 0 }));
    let left = sizes.reduce((sum, { name, size }) => sum + name.length + size, 0);
    const artifacts: Artifact[] = [];
    const slim: Record<string, Json | undefined> = { ...payload };
    for (const { name, size } of sizes.toSorted((a, b) => b.size - a.size)) {
      if (left <= inlineLimit) break;
      // The artifact has the visibility of its event.
      const artifact = await keep(payload[name] ?? null, 'public', location);
      artifacts.push(artifact);
      slim[name] = reference(artifact);
      left -= size - JSON.stringify(slim[name]).length;
    }
    return { value: slim, artifacts };
  }

  function staysInside(part: Part): boolean {
    return !isForReceiptsOnly(part) && fitsIn(part, inlineLimit);
  }

  function fitMessage(message: Message, location: EventLocation): Fitted<Message> | Promise<Fitted<Message>> {
    return message.parts.every(staysInside) ? { value: message, artifacts: NONE } : partsApart(message, location);
  }

  async function partsApart(message: Message, location: EventLocation): Promise<Fitted<Message>> {
    const artifacts: Artifact[] = [];
    const parts: Part[] = [];
    for (const part of message.parts) {
      if (staysInside(part)) {
        parts.push(part);
        continue;
      }
      // Receipt-only content may be referred to, never shown; the artifact has the same visibility.
      const visibility = isForReceiptsOnly(part)
        ? 'receipt_only'
        : ((part.visibility as Visibility | undefined) ?? 'public');
      const artifact = await keep(part, visibility, location);
      artifacts.push(artifact);
      parts.push(reference(artifact) as Part);
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

/** Whether its JSON is within the limit. Most values are so short that they need not be serialized to know. */
function fitsIn(value: Json, limit: number): boolean {
  if (isShort(value, limit)) return true;
  if (typeof value === 'string') return value.length <= limit && JSON.stringify(value).length <= limit;
  if (typeof value === 'object' && value !== null) {
    const members: readonly unknown[] = Object.values(value);
    if (members.some((member) => typeof member === 'string' && member.length > limit)) return false;
  }
  return (JSON.stringify(value)?.length ?? 0) <= limit;
}

/** Within the limit at its longest serialization. */
function isShort(value: Json, limit: number): boolean {
  return roomAfter(value, limit, SHALLOW) >= 0;
}

/** The room left after the longest serialization of the value; negative when a shallow look cannot tell. */
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
/** The longest JSON encoding of one character: `\u0000`. */
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

/** Creates the events of artifacts in the commit that first refers to them. */
export function artifactEvents(
  artifacts: readonly Artifact[],
  at: Omit<EventDraft, 'event' | 'payload'>,
): EventDraft[] {
  return artifacts.map((artifact) => {
    const { redactions, ...metadata } = artifact.metadata;
    return {
      event: 'artifact.created',
      payload: { artifact: { ...artifact, metadata } },
      ...at,
      ...(artifact.metadata.spilled === true && redactions !== undefined && { metadata: { redactions } }),
    };
  });
}

/** Only core states how many bytes of an artifact are stored; without that figure the artifact has no downloadable content. */
export function keptBytes(metadata: JsonObject | undefined, bytes: number | undefined): JsonObject {
  const { bytes: _claimed, ...rest } = metadata ?? {};
  return bytes === undefined ? rest : { ...rest, bytes };
}
