/**
 * Rows as the units of a batch see them: what is on disk, what a batch that is still being written changed, what earlier
 * units changed, what the unit in hand changed.
 */
import type { Change, Row } from '../../ports.ts';
import type { Rows, Spelled } from './rows.ts';
import type { Sheet } from './sheet.ts';

export interface Overlay {
  get(object: string, id: string): Row | undefined;
  /** A change by the unit in hand. */
  note(change: Change): void;
  /** The unit in hand is done: the next one sees its changes. */
  keep(): void;
  /** The unit in hand came to nothing. */
  drop(): void;
  /** What its units left of a row, if they changed it; for the batch that follows. */
  left(key: string): Changed | undefined;
  /** True for what can be nowhere but here. */
  isNew(id: string): boolean;
  fill(sheet: Sheet): void;
  /** What was put down is on disk: from now on everybody sees it. */
  learn(): void;
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

/** What is called by an id in `born` is nowhere but here. `before`: of the batch that is still being written. */
export function createOverlay(rows: Rows, born: ReadonlySet<string>, before?: Overlay): Overlay {
  let under = before;
  const kept = new Map<string, Changed>();
  let own: Map<string, Changed> | undefined;
  /** As it was put down. */
  const spelled: { readonly object: string; readonly id: string; readonly row: Spelled | undefined }[] = [];

  const isNew = (id: string): boolean => born.has(id) || (under?.isNew(id) ?? false);
  const onDisk = (object: string, id: string): Row | undefined => (isNew(id) ? undefined : rows.peek(object, id));

  return {
    get changed() {
      return kept.size > 0;
    },
    isNew,
    left: (key) => kept.get(key),
    get(object, id) {
      if (kept.size > 0 || own || under) {
        const key = keyOf(object, id);
        const change = own?.get(key) ?? kept.get(key) ?? under?.left(key);
        if (change) return change.row;
      }
      return onDisk(object, id);
    },
    note(change) {
      const { object, id } = 'put' in change ? change.put : change.drop;
      const key = keyOf(object, id);
      const last = own?.get(key) ?? kept.get(key) ?? under?.left(key);
      const known = last ? last.born : onDisk(object, id)?.created_at;
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
    fill(sheet) {
      for (const [key, { object, id, row, born: place }] of kept) {
        if (!row) sheet.dropped.push(object, id, place);
        const last = under?.left(key);
        const now = last ? last.row : onDisk(object, id);
        spelled.push({ object, id, row: row && rows.fill(sheet, row, place, now) });
      }
    },
    learn() {
      for (const { object, id, row } of spelled) rows.learn(object, id, row);
      // Long on disk. Held any longer it would hold the one before it in turn.
      under = undefined;
    },
  };
}
