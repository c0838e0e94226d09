/** Parts of blobs. A blob exists once its header is written, so an interrupted put leaves nothing that can be read. */
import type { BlobRows } from '../engine/database.ts';
import type { Connection } from './file/connection.ts';

export function createBlobRows(connection: Connection): BlobRows & { sweep(): void } {
  const selectSize = connection.prepare('SELECT size FROM blobs WHERE sha256 = ?');
  const selectPart = connection.prepare('SELECT digest, bytes FROM blob_parts WHERE sha256 = ? AND part = ?');
  const insertPart = connection.prepare(
    'INSERT OR REPLACE INTO blob_parts (sha256, part, digest, bytes) VALUES (?, ?, ?, ?)',
  );
  const insertBlob = connection.prepare('INSERT OR IGNORE INTO blobs (sha256, size) VALUES (?, ?)');
  const countParts = connection.prepare('SELECT count(*) FROM blob_parts WHERE sha256 = ?');
  const orphans = connection.prepare('DELETE FROM blob_parts WHERE sha256 NOT IN (SELECT sha256 FROM blobs)');
  return {
    size: (sha256) => (selectSize.get([sha256]) as [number] | undefined)?.[0],
    part(sha256, part) {
      const found = selectPart.get([sha256, part]) as [string, Buffer] | undefined;
      return found && { digest: found[0], bytes: found[1] };
    },
    putPart: (sha256, part, { digest, bytes }) => insertPart.run([sha256, part, digest, bytes]),
    parts: (sha256) => (countParts.get([sha256]) as [number])[0],
    finish: (sha256, size) => insertBlob.run([sha256, size]),
    /** Removes parts that never became a blob. */
    sweep: () => orphans.run(),
  };
}
