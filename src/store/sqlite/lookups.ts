/** The rows that decisions read, one at a time. */
import type { Lookups } from '../engine/database.ts';
import type { Connection } from './file/connection.ts';
import type { createReceipts } from './receipts.ts';
import type { Rows } from './rows.ts';

type StoredLocation = [number: number, task: string | null, session: string | null, workspace: string | null];

export function createLookups(
  connection: Connection,
  rows: Rows,
  receipts: ReturnType<typeof createReceipts>,
): Omit<Lookups, 'remote'> {
  const findResource = connection.prepare('SELECT id, base FROM resources WHERE object = ? AND name = ?');
  const lastStretch = connection.prepare('SELECT max(stretch) FROM stretches WHERE resource = ?');
  const lastSequence = connection.prepare('SELECT max(sequence) FROM events WHERE position >> 12 = ? AND resource = ?');
  const locationsOf = connection.prepare('SELECT id, task, session, workspace FROM places WHERE resource = ?');
  const answer = connection.prepare('SELECT digest, result FROM idempotency WHERE scope = ?');
  return {
    row: rows.body,
    chain: receipts.head,
    answer(scope) {
      const found = answer.get([scope]) as [string, string | null] | undefined;
      return found && { digest: found[0], result: found[1] };
    },
    head(object, id) {
      const found = findResource.get([object, id]) as [number, number] | undefined;
      if (!found) return undefined;
      const [number, base] = found;
      const locations = (locationsOf.all([number]) as StoredLocation[]).map((stored) => {
        const [number, task_id, session_id, workspace_id] = stored;
        return { number, task_id, session_id, workspace_id };
      });
      const stretch = (lastStretch.get([number]) as [number | null])[0] ?? -1;
      const last = (lastSequence.get([stretch, number]) as [number | null])[0];
      return { number, sequence: last ?? base, stretch, locations };
    },
  };
}
