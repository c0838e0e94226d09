/** Pure conversion between A2A objects and canonical ones. Visibility is kept: internal content is not sent. */
import { type Message, type Part, Role, type TaskState, taskStateFromJSON } from '@a2a-js/sdk';
import { EXTENSIONS, REFUSAL_CODES, REJECTED, REJECTED_CODE, taskState, VISIBILITY } from '../../mappings/a2a.ts';
import {
  type Artifact,
  type Json,
  type JsonObject,
  type KnownPart,
  type MessageInput,
  type Part as OurPart,
  type Task as OurTask,
  TASK_STATES,
} from '../../src/index.ts';
import { Refusal } from './server/refusal.ts';

type Visibility = (typeof VISIBILITY)[number];

export function toWireState(status: string, about?: Pick<OurTask, 'failure' | 'started_at'>): TaskState {
  if (status === 'FAILED' && about && wasRefused(about)) return taskStateFromJSON(REJECTED);
  const known = TASK_STATES.find((state) => state === status);
  // An unknown state of another gateway counts as unfinished work.
  return taskStateFromJSON(known ? taskState.toWire(known) : 'TASK_STATE_WORKING');
}

/** No work was tried: the agent refused, or was never asked. */
function wasRefused({ failure, started_at }: Pick<OurTask, 'failure' | 'started_at'>): boolean {
  if (!failure) return false;
  if (failure.code === REJECTED_CODE) return true;
  const begun = Boolean(started_at) && failure.details?.begun !== false;
  return !begun && REFUSAL_CODES.includes(failure.code);
}

export function textPart(value: string, mediaType = 'text/plain'): Part {
  return { content: { $case: 'text', value }, mediaType, filename: '', metadata: undefined };
}

export function dataPart(value: Json, metadata?: JsonObject): Part {
  return { content: { $case: 'data', value }, mediaType: 'application/json', filename: '', metadata };
}

/** The bytes of an artifact when they fit into a message; otherwise its URL. */
export interface ArtifactContent {
  readonly bytes?: Uint8Array;
  readonly url?: string;
}

export function filePart(artifact: Pick<Artifact, 'mime_type' | 'metadata'>, { bytes, url }: ArtifactContent): Part {
  const filename = typeof artifact.metadata.name === 'string' ? artifact.metadata.name : '';
  const content: Part['content'] = bytes
    ? { $case: 'raw', value: Buffer.from(bytes) }
    : { $case: 'url', value: url ?? '' };
  return { content, mediaType: artifact.mime_type, filename, metadata: undefined };
}

/** The public parts. `file` resolves a reference. */
export function toWireParts(parts: readonly OurPart[], file: (id: string) => Part | undefined): Part[] {
  return parts.flatMap((part): Part[] => {
    // Messages are public here, also with the activity extension.
    if (part.visibility !== undefined && part.visibility !== 'public') return [];
    const known = part as KnownPart;
    switch (known.type) {
      case 'text':
        return [textPart(known.text)];
      case 'json':
        return [dataPart(known.value as Json)];
      case 'file_ref':
        return [
          {
            content: { $case: 'url', value: known.uri },
            mediaType: known.mime_type,
            filename: '',
            metadata: undefined,
          },
        ];
      case 'artifact_ref':
      case 'image_ref': {
        const found = file(known.artifact_id);
        return found ? [found] : [];
      }
      default:
        return [];
    }
  });
}

export function wireMessage(
  message: Pick<Message, 'messageId' | 'parts'> & Partial<Message>,
  from: 'user' | 'agent' = 'agent',
): Message {
  return {
    contextId: '',
    taskId: '',
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    role: from === 'user' ? Role.ROLE_USER : Role.ROLE_AGENT,
    ...message,
  };
}

/** Stores bytes that arrived inside a message and returns their id. */
export type KeepFile = (file: {
  bytes: Uint8Array;
  mime_type: string;
  name: string;
  visibility: Visibility;
}) => Promise<string>;

/** A peer's message in canonical form. `aboutMessage` keeps the members that have no canonical place. */
export async function toCoreMessage(message: Message, keep: KeepFile): Promise<MessageInput> {
  const parts: OurPart[] = [];
  const whole = visibilityIn(message.metadata) ?? 'public';
  for (const part of message.parts) {
    const made = toCorePart(part, visibilityIn(part.metadata) ?? whole, keep);
    parts.push(made instanceof Promise ? await made : made);
  }
  return { role: 'user', parts };
}

/** The members of a message beside its parts, to be stored with it. */
export function aboutMessage({ messageId, extensions, referenceTaskIds, metadata, parts }: Message): JsonObject {
  const named = parts.map(({ filename, metadata: about }) => ({
    ...(filename && { filename }),
    ...(about && { metadata: about as JsonObject }),
  }));
  return {
    message_id: messageId,
    ...(metadata && { message_metadata: metadata as JsonObject }),
    ...(extensions.length > 0 && { extensions }),
    ...(referenceTaskIds.length > 0 && { reference_task_ids: referenceTaskIds }),
    ...(named.some((each) => Object.keys(each).length > 0) && { parts: named }),
  };
}

/** A2A does not define who may read a part; our extension does, in the metadata of a part or of the whole message. */
function visibilityIn(metadata: Part['metadata']): Visibility | undefined {
  const said: unknown = metadata?.[EXTENSIONS.visibility];
  if (said === undefined) return undefined;
  const known = VISIBILITY.find((word) => word === said);
  if (!known) throw new Refusal('INVALID_PARAMS', `${EXTENSIONS.visibility} is one of ${VISIBILITY.join(', ')}`);
  return known;
}

/** Asynchronous only for bytes, which must be stored first. */
function toCorePart(part: Part, visibility: Visibility, keep: KeepFile): OurPart | Promise<OurPart> {
  const { content, mediaType, filename } = part;
  switch (content?.$case) {
    case 'text':
      return { type: 'text', text: content.value, visibility };
    case 'data':
      return { type: 'json', value: content.value ?? null, visibility };
    case 'url':
      return { type: 'file_ref', uri: content.value, mime_type: mediaType || OCTETS, visibility };
    case 'raw':
      return keptPart({ bytes: content.value, mime_type: mediaType || OCTETS, name: filename, visibility }, keep);
    default:
      throw new Refusal('INVALID_PARAMS', 'a part has to hold text, raw, url or data');
  }
}
const OCTETS = 'application/octet-stream';

async function keptPart(file: Parameters<KeepFile>[0], keep: KeepFile): Promise<OurPart> {
  const { mime_type, visibility } = file;
  const artifact_id = await keep(file);
  return mime_type.startsWith('image/')
    ? { type: 'image_ref', artifact_id, mime_type, visibility }
    : { type: 'artifact_ref', artifact_id, visibility };
}

/** The kind of a file, for receipts and lists. */
export function artifactKind(mimeType: string): string {
  if (mimeType.startsWith('image/')) return 'image';
  if (mimeType === 'text/x-diff') return 'diff';
  if (mimeType === 'text/x-patch') return 'patch';
  return mimeType === 'application/json' ? 'dataset' : 'file';
}
