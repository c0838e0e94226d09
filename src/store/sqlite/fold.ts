/** Events into rows, outside the live path: for a rebuild, and for the part of the log that is about to be pruned. */
import type { CoreEvent } from '../../model/events.ts';
import type { Projector, Row } from '../../ports.ts';
import type { Connection } from './connection.ts';

export interface Fold {
  apply(event: CoreEvent): void;
}

/** `table` has object, id, created_at and body; a NULL body is a row that was dropped. */
export function createFold(connection: Connection, table: string, projector: Projector): Fold {
  const select = connection.prepare(`SELECT body, created_at FROM ${table} WHERE object = ? AND id = ?`);
  const upsert = connection.prepare(
    `INSERT INTO ${table} (object, id, created_at, body) VALUES (?, ?, ?, ?)
     ON CONFLICT (object, id) DO UPDATE SET body = excluded.body`,
  );
  const erase = connection.prepare(`UPDATE ${table} SET body = NULL WHERE object = ? AND id = ?`);

  function get<T extends Row>(object: string, id: string): T | undefined {
    const found = select.get([object, id]) as [string | null] | undefined;
    return found?.[0] ? (JSON.parse(found[0]) as T) : undefined;
  }
  return {
    apply(event) {
      for (const change of projector.apply(event, get)) {
        if ('put' in change) {
          const { put: row } = change;
          upsert.run([row.object, row.id, row.created_at, JSON.stringify(row)]);
        } else {
          erase.run([change.drop.object, change.drop.id]);
        }
      }
    },
  };
}
