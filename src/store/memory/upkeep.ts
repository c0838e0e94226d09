/** Pruning, rebuilding and comparing in memory. */
import type { Row } from '../../ports/index.ts';
import { eraOf, firstOfEra } from '../engine/commit/write-set.ts';
import type { FoldedRow, FoldTable, FreshRows, StoredRow, Upkeep } from '../engine/database.ts';
import { filterOf } from '../engine/filters.ts';
import { type MemoryLog, type MemoryRow, pruneEvents } from './log.ts';

export function createUpkeep(use: () => MemoryLog): Upkeep {
  return {
    openTasks(isOver) {
      return [...(use().rows.get('task') ?? [])].flatMap(([id, { row }]) => {
        const state = row && filterOf(row, 'state');
        return row && !(state && isOver(state)) ? [id] : [];
      });
    },
    baseline: foldTable(() => use().baseline),
    prune({ upTo, at, heads }) {
      const log = use();
      for (const [object, text] of heads) log.prunedHeads.set(object, text);
      pruneEvents(log, upTo);
      log.floorAt = at;
    },
    dropKeys(before, most) {
      const { answers } = use();
      const old = [...answers].filter(([, { at }]) => at < before).slice(0, most);
      for (const [scope] of old) answers.delete(scope);
      return old.length;
    },
    tidy() {
      const { parts, blobs, words, floor } = use();
      const kept = firstOfEra(eraOf(floor + 1));
      for (const { number, position } of words.values()) if (position > 0 && position < kept) words.delete(number);
      for (const sha256 of parts.keys()) if (!blobs.has(sha256)) parts.delete(sha256);
    },
    // There is nothing beside the bodies that could disagree with them.
    columnFault: async () => undefined,
    fresh: () => createFresh(use),
  };
}

const nameOf = ({ object, id }: { readonly object: string; readonly id: string }): string => `${object}\n${id}`;

function foldTable(rows: () => Map<string, FoldedRow>): FoldTable {
  return {
    load: (pointers) => pointers.flatMap((pointer) => rows().get(nameOf(pointer)) ?? []),
    save(changed) {
      for (const row of changed) rows().set(nameOf(row), row);
    },
  };
}

function createFresh(use: () => MemoryLog): FreshRows {
  let fresh = new Map<string, FoldedRow>();
  return {
    table: foldTable(() => fresh),
    restart() {
      fresh = new Map([...use().baseline].map(([name, row]) => [name, { ...row, unproven: true }]));
    },
    consistently: (work) => work(),
    exchange() {
      const rows = new Map<string, Map<string, MemoryRow>>();
      for (const { object, id, created_at, body } of fresh.values()) {
        const ofKind = rows.get(object) ?? new Map<string, MemoryRow>();
        const row = body === null ? undefined : (JSON.parse(body) as Row);
        rows.set(object, ofKind.set(id, { created_at, body, row }));
      }
      use().rows = rows;
    },
    stored(after, most) {
      const all = [...use().rows].flatMap(([object, ofKind]) =>
        [...ofKind].map(
          ([id, { created_at, body }]): StoredRow => ({
            ...{ table: 'rows', object, id, created_at, body },
            columns: {},
          }),
        ),
      );
      const sorted = all.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
      return sorted.filter((row) => !after || nameOf(row) > nameOf(after)).slice(0, most);
    },
    missing() {
      const { rows } = use();
      for (const { object, id, body, unproven } of fresh.values()) {
        if (body !== null && !unproven && !rows.get(object)?.has(id)) return { table: 'rows', object, id };
      }
      return undefined;
    },
    close() {},
  };
}
