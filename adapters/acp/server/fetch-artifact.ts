/** Artifacts for content blocks: small texts and pictures with their bytes, everything else as a reference. */
import { type Actor, type Artifact, type Bridge, Fault, type Row } from '../../../src/index.ts';
import { type Fetched, isText } from '../content.ts';

/** Texts and pictures up to this size are embedded. */
const EMBEDDED = 256 * 1024;

/** Undefined when it is deleted or hidden. */
export async function fetchArtifact(bridge: Bridge, actor: Actor, id: string): Promise<Fetched | undefined> {
  try {
    const found = await bridge.view<Artifact & Row>(actor, 'artifact', id);
    const size = Number(found.metadata.bytes ?? Number.POSITIVE_INFINITY);
    const small = size <= EMBEDDED && (isText(found.mime_type) || found.mime_type.startsWith('image/'));
    return { artifact: found, ...(small && { bytes: await bridge.bytes(actor, id) }) };
  } catch (cause) {
    if (cause instanceof Fault) return undefined;
    throw cause;
  }
}
