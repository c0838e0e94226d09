/**
 * The way into the log. Everything written passes here once: secrets are taken out before the store sees an event,
 * and what is too large to stand inline becomes an artifact.
 */
import type { EventDraft } from '../model/events.ts';
import type { RedactionMark } from '../model/payloads.ts';
import type { Artifact, Message, Part } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { Committed, Draft, Ids, Store, Unit } from '../ports.ts';

export interface Redactor {
  redact<T>(value: T): { readonly value: T; readonly marks: readonly RedactionMark[] };
  text(value: string): string;
  learn(secret: string): void;
}

export interface LogDeps {
  readonly store: Store;
  readonly redactor: Redactor;
  readonly ids: Ids;
  /** A payload member whose JSON is longer than this is kept as an artifact. */
  readonly inlineLimit: number;
}

export interface Log {
  commit(unit: Unit): Promise<Committed>;
  /** The value as it may stand in an event, and the artifacts that hold what does not fit. */
  fit(value: Json, place: Place): Promise<Fitted<Json>>;
  fitMessage(message: Message, place: Place): Promise<Fitted<Message>>;
  clean<T>(value: T): T;
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

export function createLog({ store, redactor, ids, inlineLimit }: LogDeps): Log {
  function cleanEvent(event: EventDraft): EventDraft {
    const { value, marks } = redactor.redact({ payload: event.payload, ext: event.ext, metadata: event.metadata });
    if (marks.length === 0) return event;
    const redactions = marks as unknown as Json;
    return {
      ...event,
      payload: value.payload,
      metadata: { ...value.metadata, redactions },
      ...(value.ext && { ext: value.ext }),
    };
  }

  function cleanDraft(draft: Draft): Draft {
    return {
      ...draft,
      events: draft.events.map(cleanEvent),
      ...(draft.result !== undefined && { result: redactor.redact(draft.result).value }),
    };
  }

  async function keep(bytes: Uint8Array, about: Pick<Artifact, 'kind' | 'mime_type' | 'visibility'>, place: Place) {
    const sha256 = await store.putBlob(bytes);
    const artifact: Artifact = {
      id: ids.next('artifact'),
      object: 'artifact',
      created_at: place.now,
      updated_at: place.now,
      metadata: { bytes: bytes.byteLength, spilled: true },
      ...about,
      uri: null,
      sha256,
      workspace_id: place.workspace_id,
      session_id: place.session_id ?? null,
      task_id: place.task_id ?? null,
    };
    return artifact;
  }

  async function fit(value: Json, place: Place): Promise<Fitted<Json>> {
    // Redacted before it is measured: what becomes a blob is never looked at again.
    const clean = redactor.redact(value).value;
    const text = JSON.stringify(clean) ?? 'null';
    if (text.length <= inlineLimit) return { value: clean, artifacts: [] };
    const about = { kind: 'other', mime_type: 'application/json', visibility: 'internal' } as const;
    const artifact = await keep(Buffer.from(text), about, place);
    return { value: reference(artifact), artifacts: [artifact] };
  }

  async function fitMessage(message: Message, place: Place): Promise<Fitted<Message>> {
    const artifacts: Artifact[] = [];
    const parts: Part[] = [];
    for (const part of message.parts) {
      const text = JSON.stringify(part);
      const secret = part.visibility === 'receipt_only' && part.type !== 'artifact_ref';
      if (!secret && text.length <= inlineLimit) {
        parts.push(part);
        continue;
      }
      // Receipt-only content may be referred to, never shown; the artifact carries the same mark.
      const visibility = secret ? 'receipt_only' : (part.visibility ?? 'internal');
      const bytes = Buffer.from(JSON.stringify(redactor.redact(part).value));
      const artifact = await keep(bytes, { kind: 'other', mime_type: 'application/json', visibility }, place);
      artifacts.push(artifact);
      parts.push(reference(artifact) as unknown as Part);
    }
    return artifacts.length === 0 ? { value: message, artifacts } : { value: { ...message, parts }, artifacts };
  }

  return {
    commit: (unit) => store.commit({ ...unit, decide: (at) => cleanDraft(unit.decide(at)) }),
    fit,
    fitMessage,
    clean: (value) => redactor.redact(value).value,
  };
}

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
  return artifacts.map((artifact) => ({
    ...at,
    event: 'artifact.created',
    payload: { artifact: artifact as unknown as Json },
  }));
}

/** How many bytes of an artifact we keep is ours to say, and nobody else's: without it there is nothing to hand out. */
export function keptBytes(metadata: JsonObject | undefined, bytes: number | undefined): JsonObject {
  const { bytes: _claimed, ...rest } = metadata ?? {};
  return bytes === undefined ? rest : { ...rest, bytes };
}
