/** Files on their way into the house: bytes are kept by their hash, everything else refers to them. */
import type { NewArtifact } from '../model/actions.ts';
import type { Artifact } from '../model/resources.ts';
import type { Ids, Store } from '../ports.ts';
import { keptBytes } from './log.ts';

export async function newArtifact(
  file: NewArtifact,
  place: { workspace_id: string; session_id?: string | null; task_id?: string | null; now: string },
  store: Pick<Store, 'putBlob'>,
  ids: Ids,
): Promise<Artifact> {
  const sha256 = file.bytes
    ? await store.putBlob(file.bytes)
    : (file.sha256?.replace(/^sha256:/, '').toLowerCase() ?? null);
  return {
    id: ids.next('artifact'),
    object: 'artifact',
    created_at: place.now,
    updated_at: place.now,
    metadata: keptBytes({ ...file.metadata, ...(file.name && { name: file.name }) }, file.bytes?.byteLength),
    kind: file.kind,
    mime_type: file.mime_type,
    uri: file.uri ?? null,
    visibility: file.visibility ?? 'public',
    sha256,
    workspace_id: place.workspace_id,
    session_id: place.session_id ?? null,
    task_id: place.task_id ?? null,
  };
}
