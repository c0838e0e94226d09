/** Artifacts: registered by reference, uploaded, and read whole or in part. */
import type { Artifact, Row } from '../../../../src/index.ts';
import type { WireShape } from '../../revisions/schemas.ts';
import type { Call, Reply, RouteContext, Routes } from '../call.ts';
import { listPage, whereOf } from '../pages.ts';

type Ids =
  | `${'register' | 'get' | 'link' | 'redact'}Artifact`
  | 'listArtifacts'
  | 'downloadArtifactContent'
  | 'uploadArtifactContent';

export function artifactRoutes({ bridge }: RouteContext): Pick<Routes, Ids> {
  return {
    listArtifacts: async (call) => {
      const where = whereOf(call.query, 'workspace_id', 'session_id', 'task_id');
      return { body: await listPage(bridge, call, { object: 'artifact', where }) };
    },
    registerArtifact: async ({ actor, once, body }) => {
      const wanted = body as WireShape<'RegisterArtifactRequest'>;
      const { resource } = await bridge.submit({ kind: 'artifact.register', actor, ...once, body: wanted });
      return { status: 201, body: resource };
    },
    getArtifact: async ({ actor, params }) => ({ body: await bridge.view(actor, 'artifact', params.artifact_id!) }),
    linkArtifact: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as WireShape<'LinkArtifactRequest'>), artifact_id: params.artifact_id! };
      return { body: (await bridge.submit({ kind: 'artifact.link', actor, ...once, body: wanted })).resource };
    },
    redactArtifact: async ({ actor, once, params, body }) => {
      const wanted = { ...(body as WireShape<'RedactArtifactRequest'>), artifact_id: params.artifact_id! };
      return { body: (await bridge.submit({ kind: 'artifact.redact', actor, ...once, body: wanted })).resource };
    },
    downloadArtifactContent: async (call) => download(call),
    uploadArtifactContent: async ({ actor, params, body }) => ({
      body: await bridge.attach(actor, params.artifact_id!, body as Uint8Array),
    }),
  };

  async function download({ actor, params, http }: Call): Promise<Reply> {
    const id = params.artifact_id!;
    const artifact = await bridge.view<Artifact & Row>(actor, 'artifact', id);
    const size = await sizeOf(actor, artifact);
    const headers = {
      'content-disposition': `attachment; filename="${id}"`,
      'content-security-policy': "default-src 'none'; sandbox",
      'accept-ranges': 'bytes',
      ...(artifact.sha256 && { etag: `"${artifact.sha256}"` }),
    };
    const type = safeType(artifact.mime_type);
    const range = rangeOf(http?.request.headers.range, size);
    if (range === 'unsatisfiable') {
      return { status: 416, bytes: '', type, headers: { ...headers, 'content-range': `bytes */${size}` } };
    }
    if (!range) return { bytes: await bridge.bytes(actor, id), type, headers };
    const bytes = await bridge.bytes(actor, id, range);
    const shown = `bytes ${range.start}-${range.end - 1}/${size}`;
    return { status: 206, bytes, type, headers: { ...headers, 'content-range': shown } };
  }

  async function sizeOf(actor: Call['actor'], artifact: Artifact): Promise<number> {
    const { bytes } = artifact.metadata;
    return typeof bytes === 'number' ? bytes : (await bridge.bytes(actor, artifact.id)).byteLength;
  }
}

/** The registered media type, if it is a valid one. */
function safeType(mime: string): string {
  return /^[\w.+-]+\/[\w.+-]+(\s*;\s*[\w.+-]+=[\w.+-]+)*$/.test(mime) ? mime : 'application/octet-stream';
}

/** One range, end exclusive; a request for several ranges is answered with the whole content. */
function rangeOf(
  header: string | undefined,
  size: number,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const found = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '');
  if (!found || (found[1] === '' && found[2] === '')) return undefined;
  const [, first = '', last = ''] = found;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  return start >= size || start >= end ? 'unsatisfiable' : { start, end };
}
