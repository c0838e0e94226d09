/** Converts content blocks of the wire to message parts and back. Pure: bytes are passed in and out, never fetched here. */

import type { Artifact, Json, JsonObject, NewArtifact, Part } from '../../src/index.ts';
import { asText, Fault } from '../../src/index.ts';
import { compact, objectOf, textOf, within } from './shapes.ts';

/** A part, or bytes that must be stored as an artifact before a part can refer to them. */
export type FromBlock =
  | { readonly part: Part }
  | { readonly file: NewArtifact; readonly part: (artifactId: string) => Part };

/** The known audiences of a block: a block for the assistant alone is not shown to readers. */
const AUDIENCES: readonly Json[] = ['user', 'assistant'];

function visibilityOf(block: Json): 'public' | 'internal' | undefined {
  const audience = within(block, 'annotations', 'audience') ?? [];
  if (!Array.isArray(audience) || !audience.every((word) => AUDIENCES.includes(word))) return undefined;
  return audience.length === 0 || audience.includes('user') ? 'public' : 'internal';
}

/** Refuses a block with an unknown audience. */
export function requireAudience(block: Json): void {
  if (visibilityOf(block)) return;
  throw new Fault('invalid_request', 'annotations.audience lists user, assistant or both', { param: 'annotations' });
}

export function fromBlock(block: Json): FromBlock {
  const { type, ...rest } = objectOf(block) ?? {};
  // An unknown audience counts as the strictest.
  const visibility = visibilityOf(block) ?? 'internal';
  const VISIBLE = { visibility };
  switch (type) {
    case 'text': {
      const { text, ...more } = rest;
      if (typeof text !== 'string') break;
      return { part: { type: 'text', text, ...VISIBLE, ...kept(more) } as Part };
    }
    case 'resource_link': {
      const { uri, mimeType, ...more } = rest;
      if (!textOf(uri)) break;
      const mime_type = textOf(mimeType) ?? 'application/octet-stream';
      return { part: { type: 'file_ref', uri, mime_type, ...VISIBLE, ...kept(more) } as Part };
    }
    case 'resource': {
      const { uri, text, blob, mimeType } = objectOf(rest.resource) ?? {};
      const about = compact({ uri: textOf(uri), mime_type: textOf(mimeType) });
      if (typeof text === 'string') return { part: { type: 'text', text, resource: about, ...VISIBLE } as Part };
      const bytes = bytesOf(blob);
      if (!bytes) break;
      return artifact('other', bytes, textOf(mimeType), textOf(uri), visibility);
    }
    case 'image': {
      const bytes = bytesOf(rest.data);
      const mime_type = textOf(rest.mimeType);
      if (!bytes || !mime_type) break;
      const part = (artifact_id: string) => ({ type: 'image_ref', artifact_id, mime_type, ...VISIBLE }) as Part;
      return { file: fileOf('image', bytes, mime_type, textOf(rest.uri), visibility), part };
    }
    case 'audio': {
      const bytes = bytesOf(rest.data);
      if (!bytes) break;
      return artifact('other', bytes, textOf(rest.mimeType), undefined, visibility);
    }
    default:
  }
  // A block without a canonical form: kept whole, for clients of this protocol.
  return { part: { type: 'json', value: { acp: block }, visibility: 'internal' } as Part };
}

function artifact(
  kind: string,
  bytes: Uint8Array,
  mime: string | undefined,
  uri: string | undefined,
  visibility: 'public' | 'internal',
): FromBlock {
  return {
    file: fileOf(kind, bytes, mime ?? 'application/octet-stream', uri, visibility),
    part: (artifact_id) => ({ type: 'artifact_ref', artifact_id, visibility }) as Part,
  };
}

function fileOf(
  kind: string,
  bytes: Uint8Array,
  mime_type: string,
  uri: string | undefined,
  visibility: 'public' | 'internal',
): NewArtifact {
  return { kind, mime_type, bytes, visibility, ...(uri && { name: lastOf(uri) }) };
}

/** Members that a part cannot hold are kept under the protocol's name. */
function kept(more: JsonObject): JsonObject {
  return Object.keys(more).length > 0 ? { acp: more } : {};
}

function bytesOf(value: Json | undefined): Uint8Array | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(value)) return undefined;
  return Buffer.from(value, 'base64');
}

/** An artifact that a part refers to; with bytes when they may be embedded. */
export interface Fetched {
  readonly artifact: Artifact;
  readonly bytes?: Uint8Array | undefined;
}

export interface BlockWants {
  readonly image: boolean;
  readonly embed: boolean;
}

export function toBlock(part: Part, fetched: Fetched | undefined, wants: BlockWants): JsonObject | undefined {
  const known = part as JsonObject;
  const more = objectOf(known.acp) ?? {};
  switch (part.type) {
    case 'text': {
      const resource = objectOf(known.resource);
      if (!resource || !wants.embed) return { type: 'text', text: asText(known.text), ...more };
      const { uri = 'tollbridge:resource', mime_type } = resource;
      return { type: 'resource', resource: compact({ uri, mimeType: mime_type, text: known.text }) };
    }
    case 'file_ref': {
      const uri = asText(known.uri);
      return { name: lastOf(uri), ...more, type: 'resource_link', uri, mimeType: asText(known.mime_type) };
    }
    case 'artifact_ref':
    case 'image_ref':
      return fetched ? toArtifactBlock(fetched, wants) : undefined;
    case 'json': {
      const own = objectOf(objectOf(known.value)?.acp);
      return own ?? { type: 'text', text: `\`\`\`json\n${JSON.stringify(known.value, undefined, 2)}\n\`\`\`` };
    }
    default:
      return undefined;
  }
}

/** The URI under which a client can request our artifact. */
export function artifactUri({ id, uri }: Pick<Artifact, 'id' | 'uri'>): string {
  return uri ?? `artifact://${id}`;
}

export function toArtifactBlock({ artifact: about, bytes }: Fetched, wants: BlockWants): JsonObject {
  const { mime_type: mimeType, sha256, metadata } = about;
  const uri = artifactUri(about);
  const name = textOf(metadata.name) ?? lastOf(uri);
  const _meta = { tollbridge: compact({ artifactId: about.id, name, sha256: sha256 ?? undefined }) };
  if (bytes && wants.image && mimeType.startsWith('image/')) {
    return { type: 'image', data: Buffer.from(bytes).toString('base64'), mimeType, uri, _meta };
  }
  if (bytes && wants.embed && isText(mimeType)) {
    return { type: 'resource', resource: { uri, mimeType, text: Buffer.from(bytes).toString('utf8') }, _meta };
  }
  const size = typeof metadata.bytes === 'number' ? { size: metadata.bytes } : {};
  return { type: 'resource_link', uri, name, mimeType, ...size, _meta };
}

export function isText(mimeType: string): boolean {
  return /^text\/|^application\/(json|xml|yaml|x-sh|javascript)|[+](json|xml)$/.test(mimeType);
}

export function lastOf(uri: string): string {
  const path = uri.split(/[?#]/, 1)[0] ?? uri;
  return path.replace(/\/+$/, '').split('/').at(-1) || uri;
}
