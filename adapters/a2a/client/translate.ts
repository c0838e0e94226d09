/** The input of our task as parts for a peer: text, data, links, and files with their bytes as long as they fit. */
import type { Part } from '@a2a-js/sdk';
import type { Json, JsonObject, Part as OurPart, Work } from '../../../src/index.ts';
import { dataPart, filePart, textPart, toWireParts } from '../translate.ts';

export interface InputRules {
  /** The largest total size of files in one message. */
  readonly fileLimit: number;
}

type Files = Pick<Work, 'bytes' | 'artifact'>;

/** A message becomes its parts, and an input that is only a text that text; any other input is data. */
export async function toWireInput(input: JsonObject, files: Files, rules: InputRules): Promise<Part[]> {
  if (!Array.isArray(input.parts)) {
    const { text, ...rest } = input;
    const only = typeof text === 'string' && Object.keys(rest).length === 0;
    return [only ? textPart(text) : dataPart(input as Json)];
  }
  const said = input.parts;
  const found = await fetched(said, files, rules);
  const parts = toWireParts(said, (id) => found.get(id));
  return parts.length > 0 ? parts : [textPart('')];
}

async function fetched(parts: readonly OurPart[], files: Files, { fileLimit }: InputRules) {
  const found = new Map<string, Part>();
  let room = fileLimit;
  for (const part of parts) {
    const { artifact_id: id, mime_type } = part as { artifact_id?: unknown; mime_type?: unknown };
    if (typeof id !== 'string' || found.has(id)) continue;
    const artifact = await files.artifact?.(id);
    const bytes = await files.bytes?.(id);
    if (bytes && artifact?.metadata.spilled) {
      // A part that was stored separately only because of its length is an ordinary part.
      const [whole] = toWireParts([spilled(bytes)], () => undefined);
      if (whole) found.set(id, whole);
      continue;
    }
    const about = {
      mime_type: artifact?.mime_type ?? (typeof mime_type === 'string' ? mime_type : 'application/octet-stream'),
      metadata: artifact?.metadata ?? {},
    };
    if (bytes && bytes.length <= room) {
      room -= bytes.length;
      found.set(id, filePart(about, { bytes }));
    } else if (artifact?.uri && /^https?:/.test(artifact.uri)) found.set(id, filePart(about, { url: artifact.uri }));
    else found.set(id, textPart(missing(id, about.metadata, bytes)));
  }
  return found;
}

function spilled(bytes: Uint8Array): OurPart {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8')) as OurPart;
  } catch {
    return { type: 'text', text: '', visibility: 'internal' };
  }
}

/** The message to the peer names the file it lacks. */
function missing(id: string, { name }: JsonObject, bytes: Uint8Array | undefined): string {
  const why = bytes ? `${bytes.length} bytes are too many to send` : 'its content is not kept here';
  return `[a file that was not handed over: ${typeof name === 'string' ? name : id}; ${why}]`;
}
