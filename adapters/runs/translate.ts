/** The pure middle: a run's request as a task's input, a task and its standing as a run, a message as its text. */
import { SAID_MEMBERS } from '../../mappings/runs.ts';
import type { JsonObject, KnownPart, Message, MessageInput, Part, Task } from '../../src/index.ts';
import type { RunProgress } from './server/render/events.ts';
import { runMetadataOf } from './server/run-metadata.ts';
import type { Mark } from './server/sensitive.ts';

/** An input with a single text becomes a text part; any other is kept whole, after the text in it that is meant to be read. */
export function toCoreInput(input: JsonObject, attachments: readonly Part[], marks: readonly Mark[]): MessageInput {
  const visibility = marks.some(({ field }) => field.startsWith('input')) ? 'internal' : 'public';
  const members = Object.entries(input);
  const [only] = members;
  const text = (said: string): Part => ({ type: 'text', text: said, visibility: 'public' });
  if (members.length === 1 && typeof only?.[1] === 'string' && only[1] !== '') {
    return { role: 'user', parts: [text(only[1]), ...attachments] };
  }
  const said = SAID_MEMBERS.map((name) => input[name]).find((value) => typeof value === 'string' && value !== '');
  const whole: Part = { type: 'json', value: input, visibility };
  return { role: 'user', parts: [...(typeof said === 'string' ? [text(said)] : []), whole, ...attachments] };
}

/** A file by its address; an artifact of ours by its id. */
export function toCoreAttachment(ref: string, isOurs: boolean): Part {
  if (isOurs) return { type: 'artifact_ref', artifact_id: ref, visibility: 'public' };
  return { type: 'file_ref', uri: ref, mime_type: 'application/octet-stream', visibility: 'public' };
}

export interface ReadMessage {
  readonly content: string;
  /** Something in it is not for this reader. */
  readonly hidden: boolean;
  readonly files: readonly string[];
}

export function readMessage({ parts }: Pick<Message, 'parts'>): ReadMessage {
  const shown = parts.filter(({ visibility }) => visibility !== 'internal' && visibility !== 'receipt_only');
  const texts = shown.flatMap((part) => {
    const known = part as KnownPart;
    if (known.type === 'text') return [known.text];
    return known.type === 'json' ? [JSON.stringify(known.value)] : [];
  });
  const files = shown.flatMap((part) => {
    const known = part as KnownPart;
    return known.type === 'artifact_ref' || known.type === 'image_ref' ? [known.artifact_id] : [];
  });
  return { content: texts.join('\n'), hidden: shown.length < parts.length, files };
}

export interface WireRun extends JsonObject {
  readonly id: string;
  readonly workspace_id: string | null;
  readonly subject_id: string | null;
  readonly status: string;
  readonly run_class: string;
  readonly metadata: { readonly created_at: string; readonly updated_at: string };
  readonly event_payload: { readonly redacted: true; readonly value: null };
}

export function toWireRun(id: string, first: Task, standing: RunProgress): WireRun {
  const metadata = runMetadataOf(first);
  const [question] = standing.questions;
  return {
    id,
    workspace_id: metadata?.workspace_id ?? null,
    subject_id: metadata?.subject_id ?? null,
    status: standing.status,
    run_class: metadata?.run_class ?? 'default',
    metadata: { created_at: first.created_at, updated_at: standing.updated_at || first.updated_at },
    event_payload: { redacted: true, value: null },
    ...(question && {
      awaiting_input: { input_kind: question.input_kind, reason_code: question.reason_code },
    }),
  };
}
