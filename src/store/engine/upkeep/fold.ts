/** Folds events into rows outside the live path: for a rebuild, and for the part of the log that is about to be pruned. */
import type { CoreEvent, EventDraft } from '../../../model/events.ts';
import type { Pointer } from '../../../model/resources.ts';
import type { Projector, Row } from '../../../ports/index.ts';
import type { FoldedRow, FoldTable } from '../database.ts';
import type { Item } from '../packing/stored-log.ts';
import { andThen, type Wait } from '../wait.ts';

/** A row that was computed from one that rests on pruned events rests on them too. */
export function foldInto(table: FoldTable, projector: Projector, items: readonly Item[]): Wait<CoreEvent[]> {
  const events = items.map(({ text }) => JSON.parse(text) as CoreEvent);
  const pointers = events.flatMap((event) => projector.touches(event as EventDraft));
  const touched = new Map(pointers.map((pointer) => [nameOf(pointer), pointer]));
  return andThen(table.load([...touched.values()]), (loaded) => {
    const rows = new Map(loaded.map((row) => [nameOf(row), row]));
    const changed = new Map<string, FoldedRow>();
    for (const event of events) {
      for (const row of changesBy(event, projector, rows)) {
        rows.set(nameOf(row), row);
        changed.set(nameOf(row), row);
      }
    }
    // An event may replace or drop a row that the projector did not read.
    const unread = [...changed.values()].filter((row) => !touched.has(nameOf(row)));
    return andThen(unread.length > 0 ? table.load(unread) : [], (stored) => {
      for (const { created_at, ...row } of stored) {
        const name = nameOf(row);
        changed.set(name, { ...changed.get(name)!, created_at });
      }
      const saved = [...changed.values()].filter(({ created_at }) => created_at !== NEVER_THERE);
      return andThen(table.save(saved), () => events);
    });
  });
}

/** The age of a row that is dropped and was not read: unless it is stored, there is nothing to drop. */
const NEVER_THERE = '';

function changesBy(event: CoreEvent, projector: Projector, rows: ReadonlyMap<string, FoldedRow>): FoldedRow[] {
  /** Whether the projector read a row that rests on pruned events. */
  let rests = false;
  const getting =
    (hide: boolean) =>
    <T extends Row>(object: string, id: string): T | undefined => {
      const { body = null, unproven = false } = rows.get(nameOf({ object, id })) ?? {};
      if (unproven) rests = true;
      return body === null || (hide && unproven) ? undefined : (JSON.parse(body) as T);
    };
  const changes = projector.apply(event, getting(false));
  const proven = rests ? provenBy(event, projector, getting(true)) : undefined;
  return changes.flatMap((change): FoldedRow[] => {
    if ('drop' in change) {
      const { object, id } = change.drop;
      const created_at = rows.get(nameOf(change.drop))?.created_at ?? NEVER_THERE;
      return [{ object, id, created_at, body: null, unproven: false }];
    }
    const { object, id, created_at } = change.put;
    const body = JSON.stringify(change.put);
    const first = rows.get(nameOf(change.put))?.created_at || created_at;
    return [{ object, id, created_at: first, body, unproven: proven !== undefined && !proven.has(body) }];
  });
}

/** The rows the event makes when rows that rest on pruned events are hidden: a row that comes out the same does not rest on them. */
function provenBy(event: CoreEvent, projector: Projector, get: Parameters<Projector['apply']>[1]): ReadonlySet<string> {
  try {
    const changes = projector.apply(event, get);
    return new Set(changes.flatMap((change) => ('put' in change ? [JSON.stringify(change.put)] : [])));
  } catch {
    return new Set();
  }
}

function nameOf({ object, id }: Pointer): string {
  return `${object}\n${id}`;
}
