/** Submits a task to a remote exactly once: its idempotency key is derived from the task id, and sensitive members are tagged. */
import { assumedClass, isSensitiveKey } from '../../../mappings/runs.ts';
import {
  Fault,
  isObject,
  type Json,
  type JsonObject,
  type KnownPart,
  type Message,
  type Work,
} from '../../../src/index.ts';
import { persist, type Remote } from '../../../src/transport/outbound/remote.ts';
import { readPath } from '../server/sensitive.ts';
import type { BackendSettings } from './config.ts';

const MOST_HISTORY = 40;

/** The name of the remote run: made now, or found again under the same key. */
export async function give(
  remote: Remote,
  settings: BackendSettings,
  work: Work,
  signal: AbortSignal,
): Promise<string> {
  const input = toWireInput(work.task.input as JsonObject, await history(work), settings.inputMember);
  const caller = await work.reference?.('runs');
  const own = { task_id: work.task.id, session_id: work.session.id, ...(caller && { caller: { ...caller } }) };
  const metadata = { ...settings.metadata, tollbridge: own } as JsonObject;
  const tags = tagsFor({ input: input.body, metadata });
  const body = {
    ...settings.body,
    input: input.body,
    metadata,
    streaming: true,
    ...(input.files.length > 0 && { attachment_refs: input.files }),
    ...(tags.length > 0 && { sensitivity_tags: tags }),
  };
  // Not aborted by the signal: the request may have arrived, and then its answer is needed to cancel the run.
  const request = () => remote.call<JsonObject>('POST', '/v1/runs', { body, key: `tollbridge-${work.task.id}` });
  const run = await persist(request, signal, settings.silenceMs);
  if (typeof run?.id !== 'string' || run.id === '') {
    throw new Fault('upstream_unavailable', 'the remote took a run and did not name it');
  }
  return run.id;
}

/** The earlier messages, without parts that others may not read. A run has no session, so they are sent each time. */
async function history(work: Work): Promise<readonly JsonObject[]> {
  const said: JsonObject[] = [];
  for await (const { role, parts, task_id } of work.transcript()) {
    if (task_id === work.task.id) continue;
    const text = textOf(parts);
    if (text !== '') said.push({ role, text });
  }
  return said.slice(-MOST_HISTORY);
}

export function toWireInput(
  input: JsonObject,
  before: readonly JsonObject[],
  member: string,
): { readonly body: JsonObject; readonly files: readonly string[] } {
  const { parts } = input as { parts?: Message['parts'] };
  const more = before.length > 0 ? { conversation: before } : {};
  if (!Array.isArray(parts)) return { body: { ...input, ...more }, files: [] };
  const shown = parts.filter(({ visibility }) => visibility !== 'receipt_only') as KnownPart[];
  const text = textOf(shown);
  const values = shown.flatMap((part) => (part.type === 'json' ? [part.value as Json] : []));
  const files = shown.flatMap((part) => (part.type === 'file_ref' ? [part.uri] : []));
  const [only] = values;
  // An object that travelled whole goes on as it is; the text beside it was read out of it.
  const whole = values.length === 1 && isObject(only) ? only : values.length > 0 ? { values } : {};
  const says = text !== '' && !Object.values(whole).includes(text) ? { [member]: text } : {};
  return { body: { ...whole, ...says, ...more }, files };
}

function textOf(parts: Message['parts']): string {
  return parts
    .flatMap((part) =>
      (part as KnownPart).type === 'text' && part.visibility !== 'receipt_only'
        ? [(part as { text: string }).text]
        : [],
    )
    .join('\n');
}

/** One tag for every sensitive key, at the nearest path the API can express. */
export function tagsFor(value: JsonObject): readonly JsonObject[] {
  const tags = new Map<string, JsonObject>();
  const visit = (it: Json | undefined, path: string, sayable: string): void => {
    if (Array.isArray(it)) {
      for (const [at, item] of it.entries())
        visit(item, `${path}[${at}]`, readPath(`${path}[${at}]`) ? `${path}[${at}]` : sayable);
    } else if (isObject(it)) {
      for (const [key, member] of Object.entries(it)) {
        const inside = `${path}.${key}`;
        const location = readPath(inside) ? inside : sayable;
        if (isSensitiveKey(key)) tags.set(location, { path: location, classification: assumedClass(key) });
        else visit(member, inside, location);
      }
    }
  };
  visit(value, '$', '$.input');
  return [...tags.values()];
}
