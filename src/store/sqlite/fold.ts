/** Folds events into rows outside the live path: for a rebuild, and for the part of the log that is about to be pruned. */
import type { CoreEvent } from '../../model/events.ts';
import type { Projector, Row } from '../../ports/index.ts';
import type { Connection } from './connection.ts';

export interface Fold {
  apply(event: CoreEvent): void;
}

/**
 * `table` has object, id, created_at and body; a NULL body marks a dropped row. `unproven` names an optional column that says
 * whether a row rests on pruned events: it came from the baseline, or was computed from such a row.
 */
export function createFold(connection: Connection, table: string, projector: Projector, unproven?: 'unproven'): Fold {
  const select = connection.prepare(`SELECT body, ${unproven ?? 0} FROM ${table} WHERE object = ? AND id = ?`);
  const upsert = connection.prepare(
    unproven
      ? `INSERT INTO ${table} (object, id, created_at, body, unproven) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (object, id) DO UPDATE SET body = excluded.body, unproven = excluded.unproven`
      : `INSERT INTO ${table} (object, id, created_at, body) VALUES (?, ?, ?, ?)
         ON CONFLICT (object, id) DO UPDATE SET body = excluded.body`,
  );
  const gone = unproven ? 'body = NULL, unproven = 0' : 'body = NULL';
  const erase = connection.prepare(`UPDATE ${table} SET ${gone} WHERE object = ? AND id = ?`);

  /** Whether the projector read a row that rests on pruned events. */
  let rests = false;
  const getting =
    (hide: boolean) =>
    <T extends Row>(object: string, id: string): T | undefined => {
      const [body, pruned] = (select.get([object, id]) as [string | null, number] | undefined) ?? [null, 0];
      if (pruned) rests = true;
      return body === null || (hide && pruned) ? undefined : (JSON.parse(body) as T);
    };
  const [get, getProven] = [getting(false), getting(true)];

  /** The rows the event makes when such rows are hidden: a row that comes out the same does not rest on them. */
  function provenBy(event: CoreEvent): ReadonlySet<string> {
    try {
      const changes = projector.apply(event, getProven);
      return new Set(changes.flatMap((change) => ('put' in change ? [JSON.stringify(change.put)] : [])));
    } catch {
      return new Set();
    }
  }

  return {
    apply(event) {
      rests = false;
      const changes = projector.apply(event, get);
      const proven = unproven && rests ? provenBy(event) : undefined;
      for (const change of changes) {
        if ('put' in change) {
          const { put: row } = change;
          const body = JSON.stringify(row);
          upsert.run([
            row.object,
            row.id,
            row.created_at,
            body,
            ...(unproven ? [proven && !proven.has(body) ? 1 : 0] : []),
          ]);
        } else {
          erase.run([change.drop.object, change.drop.id]);
        }
      }
    },
  };
}
