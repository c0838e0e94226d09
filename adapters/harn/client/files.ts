/** Files that a remote produced: fetched, checked against their hash, stored here. A file that cannot be fetched stays a reference. */
import { createHash } from 'node:crypto';
import { Fault, type JsonObject, type Logger, type NewArtifact, type Sink } from '../../../src/index.ts';
import { type Remote, segment } from '../../../src/transport/outbound/remote.ts';
import { isWithheld, type RemoteArtifact } from './translate.ts';

interface FilesDeps {
  readonly remote: Remote;
  readonly sink: Pick<Sink, 'artifact'>;
  readonly limit: number;
  readonly log: Logger;
}

/** Our name for it. */
export async function keepFile({ remote, sink, limit, log }: FilesDeps, file: RemoteArtifact): Promise<string> {
  const bytes = await contentOf(remote, file, limit).catch((cause) => {
    log.warn({ err: cause, artifact: file.id }, 'a file of a remote stayed there');
    return undefined;
  });
  const { name, bytes: _size, ...about } = (file.metadata ?? {}) as JsonObject;
  const made: NewArtifact = {
    kind: file.kind ?? 'other',
    mime_type: file.mime_type ?? 'application/octet-stream',
    visibility: isWithheld(file.visibility) ? 'receipt_only' : file.visibility === 'internal' ? 'internal' : 'public',
    metadata: { ...about, remote_artifact_id: file.id },
    ...(typeof name === 'string' && { name }),
    ...(bytes ? { bytes } : { uri: file.uri ?? `${remote.base.href}v1/artifacts/${file.id}` }),
    ...(!bytes && file.sha256 && { sha256: file.sha256 }),
  };
  return (await sink.artifact(made)).id;
}

async function contentOf(remote: Remote, file: RemoteArtifact, limit: number): Promise<Uint8Array> {
  const bytes = await remote.bytes(`/v1/artifacts/${segment(file.id)}/content`, { limit });
  const claimed = file.sha256?.replace(/^sha256:/, '').toLowerCase();
  if (claimed && claimed !== createHash('sha256').update(bytes).digest('hex')) {
    throw new Fault('conflict', `file ${file.id} is not what its hash says`);
  }
  return bytes;
}
