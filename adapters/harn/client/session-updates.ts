/**
 * Some servers relay their agent's updates unchanged, in the form of the Agent Client Protocol's session updates. This reads the
 * few that have a meaning here; thoughts are not recorded, and unknown updates are skipped.
 */
import { isObject, type Json, type JsonObject } from '../../../src/index.ts';

export type SessionUpdate =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'requested';
      readonly id: string;
      readonly name: string;
      readonly input: JsonObject;
    }
  | {
      readonly kind: 'ended';
      readonly id: string;
      readonly ok: boolean;
      readonly name?: string | undefined;
      readonly output?: Json | undefined;
      readonly error?: string | undefined;
    }
  | { readonly kind: 'plan'; readonly entries: readonly Json[] }
  | { readonly kind: 'other' };

export function readUpdate(payload: JsonObject): SessionUpdate | undefined {
  const update = objectOf(payload.update) ?? payload;
  const id = textOf(update.toolCallId) ?? '';
  switch (update.sessionUpdate) {
    case 'agent_message_chunk': {
      const text = textOf(objectOf(update.content)?.text);
      return text === undefined ? { kind: 'other' } : { kind: 'text', text };
    }
    case 'tool_call':
      return (
        over(update, id) ?? { kind: 'requested', id, name: nameOf(update), input: objectOf(update.rawInput) ?? {} }
      );
    case 'tool_call_update':
      return over(update, id) ?? { kind: 'other' };
    case 'plan':
      return { kind: 'plan', entries: Array.isArray(update.entries) ? update.entries : [] };
    default:
      return { kind: 'other' };
  }
}

function over(update: JsonObject, id: string): SessionUpdate | undefined {
  if (update.status !== 'completed' && update.status !== 'failed') return undefined;
  const ok = update.status === 'completed';
  const output = update.rawOutput ?? contentOf(update.content);
  const name = textOf(update.title);
  return { kind: 'ended', id, ok, name, output, ...(!ok && { error: textOf(output) ?? 'the tool failed' }) };
}

function nameOf(update: JsonObject): string {
  return textOf(update.title) ?? textOf(update.kind) ?? 'unknown';
}

/** Only the text of a tool's result. */
function contentOf(content: Json | undefined): Json {
  if (!Array.isArray(content)) return null;
  const texts = content.flatMap((item: Json) => textOf(objectOf(objectOf(item)?.content)?.text) ?? []);
  return texts.length > 0 ? texts.join('\n') : null;
}

function objectOf(value: Json | undefined): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
