/** Rows as the units of a batch see them: what is on disk, what earlier units changed, what the unit in hand changed. */
import type { Change, Row } from '../../ports.ts';
import type { Rows } from './rows.ts';

export interface Overlay {
  get(object: string, id: string): Row | undefined;
  /** A change by the unit in hand. */
  note(change: Change): void;
  /** The unit in hand is done: the next one sees its changes. */
  keep(): void;
  /** The unit in hand came to nothing. */
  drop(): void;
  write(): void;
  readonly changed: boolean;
}

/** A row, or undefined when it was dropped; `born` is where it goes in the order if it is new. */
interface Changed {
  readonly object: string;
  readonly id: string;
  readonly row: Row | undefined;
  readonly born: string;
}

const keyOf = (object: string, id: string): string => `${object}\n${id}`;

export function createOverlay(rows: Rows): Overlay {
  const kept = new Map<string, Changed>();
  let own: Map<string, Changed> | undefined;

  return {
    get changed() {
      return kept.size > 0;
    },
    get(object, id) {
      if (kept.size > 0 || own) {
        const key = keyOf(object, id);
        const change = own?.get(key) ?? kept.get(key);
        if (change) return change.row;
      }
      return rows.peek(object, id);
    },
    note(change) {
      const { object, id } = 'put' in change ? change.put : change.drop;
      const key = keyOf(object, id);
      const before = own?.get(key) ?? kept.get(key);
      const known = before?.born ?? rows.peek(object, id)?.created_at;
      own ??= new Map();
      if ('put' in change) own.set(key, { object, id, row: change.put, born: known ?? change.put.created_at });
      else if (known !== undefined) own.set(key, { object, id, row: undefined, born: known });
    },
    keep() {
      if (!own) return;
      for (const [key, change] of own) kept.set(key, change);
      own = undefined;
    },
    drop() {
      own = undefined;
    },
    write() {
      for (const { object, id, row, born } of kept.values()) {
        if (row) rows.put(row, born);
        else rows.drop(object, id, born);
      }
    },
  };
}
