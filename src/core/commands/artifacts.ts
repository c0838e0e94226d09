/** Stores files: the bytes are stored under their hash, and resources refer to the hash. */
import type { NewArtifact } from '../../model/actions.ts';
import { Fault } from '../../model/faults.ts';
import type { Artifact } from '../../model/resources.ts';
import { VISIBILITIES } from '../../model/words.ts';
import type { Ids, Store } from '../../ports/index.ts';
import { keptBytes } from '../events/log.ts';

/** Rejects an unknown visibility from any caller: readers would interpret it in different ways. */
export function requireVisibility(word: unknown, param: string): void {
  if ((VISIBILITIES as readonly unknown[]).includes(word)) return;
  throw new Fault('invalid_request', `visibility must be one of ${VISIBILITIES.join(', ')}`, { param });
}

export async function newArtifact(
  file: NewArtifact,
  location: { workspace_id: string; session_id?: string | null; task_id?: string | null; now: string },
  store: Pick<Store, 'putBlob'>,
  ids: Ids,
): Promise<Artifact> {
  const { visibility = 'public' } = file;
  requireVisibility(visibility, '/visibility');
  const sha256 = file.bytes
    ? await store.putBlob(file.bytes)
    : (file.sha256?.replace(/^sha256:/, '').toLowerCase() ?? null);
  return {
    id: ids.next('artifact'),
    object: 'artifact',
    created_at: location.now,
    updated_at: location.now,
    metadata: keptBytes({ ...file.metadata, ...(file.name && { name: file.name }) }, file.bytes?.byteLength),
    kind: file.kind,
    mime_type: file.mime_type,
    uri: file.uri ?? null,
    visibility,
    sha256,
    workspace_id: location.workspace_id,
    session_id: location.session_id ?? null,
    task_id: location.task_id ?? null,
  };
}
