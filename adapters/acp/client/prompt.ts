/** The prompt for an agent: the input of a task as content blocks it supports, and the conversation so far. */
import type { JsonObject, Part, Work } from '../../../src/index.ts';
import { type Fetched, toBlock } from '../content.ts';
import { listOf, objectOf, textOf, within } from '../shapes.ts';

const MOST_MESSAGES = 200;
const MOST_TEXT = 64 * 1024;

/** The agent's prompt capabilities decide which parts are sent whole and which as a link. */
export async function promptBlocks(work: Work, can: JsonObject): Promise<JsonObject[]> {
  const wants = {
    image: within(can, 'promptCapabilities', 'image') === true,
    embed: within(can, 'promptCapabilities', 'embeddedContext') === true,
  };
  const input = work.task.input as JsonObject;
  const parts = listOf(input.parts);
  if (parts.length === 0) return [{ type: 'text', text: textOf(input.text) ?? JSON.stringify(input) }];
  const blocks: JsonObject[] = [];
  for (const each of parts) {
    const part = objectOf(each);
    if (!part) continue;
    const block = toBlock(part as Part, await fetched(work, part), wants);
    if (block) blocks.push(block);
  }
  return blocks.length > 0 ? blocks : [{ type: 'text', text: '' }];
}

async function fetched(work: Work, part: JsonObject): Promise<Fetched | undefined> {
  const id = textOf(part.artifact_id);
  if (!id) return undefined;
  const bytes = await work.bytes?.(id);
  const mime_type = textOf(part.mime_type) ?? 'application/octet-stream';
  const artifact = { id, uri: null, mime_type, sha256: null, metadata: {} } as Fetched['artifact'];
  return { artifact, ...(bytes && { bytes }) };
}

export interface Said {
  readonly role: string;
  readonly parts: readonly Part[];
}

/** For an agent without memory of the session: the conversation so far, as far as it fits, as text. */
export async function conversation(messages: AsyncIterable<Said>): Promise<JsonObject | undefined> {
  const lines: string[] = [];
  for await (const { role, parts } of messages) {
    const text = parts
      .flatMap((part) => ('text' in part && typeof part.text === 'string' ? [part.text] : []))
      .join('\n');
    if (text) lines.push(`${role}: ${text}`);
    if (lines.length > MOST_MESSAGES) lines.shift();
  }
  if (lines.length === 0) return undefined;
  const text = lines.join('\n\n');
  const kept = text.length > MOST_TEXT ? `…${text.slice(-MOST_TEXT)}` : text;
  return { type: 'text', text: `What was said before in this conversation:\n\n${kept}` };
}

export async function historyBlock(work: Work): Promise<JsonObject | undefined> {
  async function* before(): AsyncIterable<Said> {
    for await (const message of work.transcript()) if (message.task_id !== work.task.id) yield message;
  }
  return await conversation(before());
}

/** This agent's previous session id, from the metadata of its messages. */
export async function rememberedSession(work: Work, agent: string): Promise<string | undefined> {
  let found: string | undefined;
  for await (const { metadata } of work.transcript()) {
    const { session_id, agent: by } = objectOf((metadata as JsonObject | undefined)?.acp) ?? {};
    if (typeof session_id === 'string' && (by === undefined || by === agent)) found = session_id;
  }
  return found;
}
