/** Parts of blobs. A blob exists once its header is written, so an interrupted put leaves nothing that can be read. */
import type { BlobRows } from '../../engine/database.ts';
import type { Connections } from '../connection/connections.ts';
import { filledIn } from '../schema/migrations.ts';

export function createBlobRows(connections: Connections, schema: string): BlobRows {
  const sql = (text: string) => filledIn(text, schema);
  const SIZE = sql('SELECT size FROM $S.blobs WHERE sha256 = $1');
  const PART = sql('SELECT digest, bytes FROM $S.blob_parts WHERE sha256 = $1 AND part = $2');
  const PUT = sql(
    `INSERT INTO $S.blob_parts (sha256, part, digest, bytes) VALUES ($1, $2, $3, $4)
     ON CONFLICT (sha256, part) DO UPDATE SET digest = excluded.digest, bytes = excluded.bytes`,
  );
  const PARTS = sql('SELECT count(*) FROM $S.blob_parts WHERE sha256 = $1');
  const FINISH = sql('INSERT INTO $S.blobs (sha256, size) VALUES ($1, $2) ON CONFLICT DO NOTHING');
  return {
    size: async (sha256) => (await connections.query(SIZE, [sha256]))[0]?.[0] as number | undefined,
    async part(sha256, part) {
      const [found] = await connections.query(PART, [sha256, part]);
      return found && { digest: found[0] as string, bytes: found[1] as Buffer };
    },
    async putPart(sha256, part, { digest, bytes }) {
      const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      await connections.query(PUT, [sha256, part, digest, content]);
    },
    parts: async (sha256) => (await connections.query(PARTS, [sha256]))[0]![0] as number,
    async finish(sha256, size) {
      await connections.query(FINISH, [sha256, size]);
    },
  };
}
