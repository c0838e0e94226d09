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
  left(object: string, id: string): Changed | undefined;
  /** True for what was made for its units: it cannot be on disk before they are. */
  isNew(id: string): boolean;
  /** The batch before it is on disk: what that one left is found there. */
  standAlone(): void;
  fill(sheet: Sheet): void;
  /** What was put down is on disk: from now on everybody sees it. */
  learn(): void;
  /** Let go of everything. */
  release(): void;
  readonly changed: boolean;
}

/** A row, or undefined when it was dropped; `born` is where it goes in the order if it is new. */
interface Changed {
  readonly object: string;
  readonly id: string;
  readonly row: Row | undefined;
  readonly born: string;
}

/** By kind, then by id: ids have been looked up before, and a key put together of both would have to be read to its end each time. */
type Changes = Map<string, Map<string, Changed>>;

function set(changes: Changes, change: Changed): void {
  const ofKind = changes.get(change.object);
  if (ofKind) ofKind.set(change.id, change);
  else changes.set(change.object, new Map([[change.id, change]]));
}

/** What is called by an id in `born` is nowhere but here. `before`: of the batch that is still being written. */
export function createOverlay(rows: Rows, born: ReadonlySet<string>, before?: Overlay): Overlay {
  let under = before;
  const kept: Changes = new Map();
  /** Few: searched from the newest. */
  let own: Changed[] = [];
  /** As it was put down. */
  const spelled: { readonly object: string; readonly id: string; readonly row: Spelled | undefined }[] = [];

  const isNew = (id: string): boolean => born.has(id) || (under?.isNew(id) ?? false);
  const left = (object: string, id: string): Changed | undefined => kept.get(object)?.get(id);
  const changed = (object: string, id: string): Changed | undefined =>
    own.findLast((change) => change.id === id && change.object === object) ??
    left(object, id) ??
    under?.left(object, id);
  const onDisk = (object: string, id: string): Row | undefined => (isNew(id) ? undefined : rows.peek(object, id));

  function fillOne(sheet: Sheet, { object, id, row, born: place }: Changed): void {
    if (!row) sheet.dropped.push(object, id, place);
    spelled.push({ object, id, row: row && rows.fill(sheet, row, place, onDisk(object, id)) });
  }

  return {
    get changed() {
      return kept.size > 0;
    },
    isNew,
    left,
    get(object, id) {
      const change = changed(object, id);
      return change ? change.row : onDisk(object, id);
    },
    note(change) {
      const { object, id } = 'put' in change ? change.put : change.drop;
      const last = changed(object, id);
      const known = last ? last.born : onDisk(object, id)?.created_at;
      if ('put' in change) own.push({ object, id, row: change.put, born: known ?? change.put.created_at });
      else if (known !== undefined) own.push({ object, id, row: undefined, born: known });
    },
    keep() {
      for (const change of own) set(kept, change);
      own = [];
    },
    drop() {
      own = [];
    },
    fill(sheet) {
      for (const ofKind of kept.values()) for (const change of ofKind.values()) fillOne(sheet, change);
    },
    standAlone() {
      under = undefined;
    },
    learn() {
      for (const { object, id, row } of spelled) rows.learn(object, id, row);
    },
    release() {
      kept.clear();
      spelled.length = 0;
    },
  };
}
