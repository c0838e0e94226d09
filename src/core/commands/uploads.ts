/** Uploads the bytes of an artifact that was only registered: once, and checked against its registered hash. */
import { Fault } from '../../model/faults.ts';
import type { Artifact } from '../../model/resources.ts';
import type { Bridge, Row } from '../../ports/index.ts';
import { requireScope } from '../access.ts';
import type { Context } from '../context.ts';

export interface UploadDeps extends Context {
  readonly artifactLimit: number;
}

export function createUploads({ store, log, access, artifactLimit }: UploadDeps): Pick<Bridge, 'attach'> {
  return {
    async attach(actor, artifactId, bytes) {
      requireScope(actor, 'artifacts:write');
      const before = await access.see<Artifact & Row>(actor, 'artifact', artifactId);
      if (bytes.byteLength > artifactLimit) {
        throw new Fault('payload_too_large', `an artifact may have at most ${artifactLimit} bytes`);
      }
      const sha256 = await store.putBlob(bytes);
      await log.commit({
        reads: [{ object: 'artifact', id: before.id }],
        decide(at) {
          const now = at.get<Artifact & Row>('artifact', before.id);
          if (!now) throw new Fault('not_found', `no artifact ${before.id}`);
          if (now.sha256 && now.sha256.toLowerCase() !== sha256) {
            throw new Fault('invalid_request', 'the content does not have the hash of this artifact', {
              param: '/sha256',
            });
          }
          // Uploading the same bytes again changes nothing.
          if (now.metadata.bytes === bytes.byteLength && now.sha256 === sha256) return { events: [] };
          const artifact = { ...now, sha256, metadata: { ...now.metadata, bytes: bytes.byteLength } };
          return {
            events: [
              {
                event: 'artifact.updated',
                resource: { object: 'artifact', id: now.id },
                workspace_id: now.workspace_id ?? null,
                session_id: now.session_id ?? null,
                actor: actor.id,
                payload: { artifact: artifact },
              },
            ],
          };
        },
      });
      return await access.see<Row>(actor, 'artifact', before.id);
    },
  };
}
