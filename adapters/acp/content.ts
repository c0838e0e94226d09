/** Blocks of the wire and parts of our messages. Pure: bytes are handed in and handed out, never fetched here. */

import type { Artifact, Json, JsonObject, NewArtifact, Part } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { compact, objectOf, textOf } from './shapes.ts';

/** A part, or bytes that have to become an artifact before a part can refer to them. */
export type FromBlock =
  | { readonly part: Part }
  | { readonly file: NewArtifact; readonly part: (artifactId: string) => Part };

const VISIBLE = { visibility: 'public' } as const;

export function fromBlock(block: Json): FromBlock {
  const { type, ...rest } = objectOf(block) ?? {};
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
      return artifact('other', bytes, textOf(mimeType), textOf(uri));
    }
    case 'image': {
      const bytes = bytesOf(rest.data);
      const mime_type = textOf(rest.mimeType);
      if (!bytes || !mime_type) break;
      const part = (artifact_id: string) => ({ type: 'image_ref', artifact_id, mime_type, ...VISIBLE }) as Part;
      return { file: fileOf('image', bytes, mime_type, textOf(rest.uri)), part };
    }
    case 'audio': {
      const bytes = bytesOf(rest.data);
      if (!bytes) break;
      return artifact('other', bytes, textOf(rest.mimeType), undefined);
    }
    default:
  }
  // Nothing we have a word for: kept whole, for whoever speaks this protocol.
  return { part: { type: 'json', value: { acp: block }, visibility: 'internal' } as Part };
}

function artifact(kind: string, bytes: Uint8Array, mime: string | undefined, uri: string | undefined): FromBlock {
  return {
    file: fileOf(kind, bytes, mime ?? 'application/octet-stream', uri),
    part: (artifact_id) => ({ type: 'artifact_ref', artifact_id, ...VISIBLE }) as Part,
  };
}

function fileOf(kind: string, bytes: Uint8Array, mime_type: string, uri: string | undefined): NewArtifact {
  return { kind, mime_type, bytes, visibility: 'public', ...(uri && { name: lastOf(uri) }) };
}

/** Members a part has no place for ride along under the protocol's name. */
function kept(more: JsonObject): JsonObject {
  return Object.keys(more).length > 0 ? { acp: more } : {};
}

function bytesOf(value: Json | undefined): Uint8Array | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(value)) return undefined;
  return Buffer.from(value, 'base64');
}

/** An artifact a part refers to; bytes when they may be shown in place. */
export interface Fetched {
  readonly artifact: Artifact;
  readonly bytes?: Uint8Array | undefined;
}

export interface BlockWants {
  readonly image: boolean;
  readonly embed: boolean;
}

export function toBlock(part: Part, fetched: Fetched | undefined, wants: BlockWants): JsonObject | undefined {
  const known = part as unknown as JsonObject;
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

/** Where an artifact of ours can be asked for by name. */
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
