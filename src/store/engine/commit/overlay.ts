/**
 * Rows as the units of a batch see them, in layers: the disk, the batch that is still being written, earlier units of this batch,
 * the current unit.
 */
import type { Change, Row } from '../../../ports/index.ts';
import type { CachedRows } from '../rows.ts';
import type { RowChange, WriteSet } from './write-set.ts';

export interface Overlay {
  get(object: string, id: string): Row | undefined;
  /** Records a change by the current unit. */
  note(change: Change): void;
  /** The current unit succeeded: the next one sees its changes. */
  keep(): void;
  /** The current unit failed: its changes are dropped. */
  drop(): void;
  /** The last change of a row by this batch's units, for the batch that follows. */
  left(object: string, id: string): Changed | undefined;
  /** True for ids created for this batch's units: no row of that id can be on disk yet. */
  isNew(id: string): boolean;
  /** The previous batch is on disk, so its rows are read from there. */
  standAlone(): void;
  fill(writeSet: WriteSet): void;
  /** The batch is on disk: publishes its rows to the row cache. */
  learn(): void;
  /** Drops all references. */
  release(): void;
  readonly changed: boolean;
}

/** A row, or undefined when it was dropped; `born` is its sort key if it is new. */
interface Changed {
  readonly object: string;
  readonly id: string;
  readonly row: Row | undefined;
  readonly born: string;
}

/** By kind, then by id: the hash of an id string is already known, while a joined key would be hashed anew each time. */
type Changes = Map<string, Map<string, Changed>>;

function set(changes: Changes, change: Changed): void {
  const ofKind = changes.get(change.object);
  if (ofKind) ofKind.set(change.id, change);
  else changes.set(change.object, new Map([[change.id, change]]));
}

/** Rows whose id is in `born` exist only here. `before` is the overlay of the batch that is still being written. */
export function createOverlay(rows: CachedRows, born: ReadonlySet<string>, before?: Overlay): Overlay {
  let under = before;
  const kept: Changes = new Map();
  /** Changes by the current unit. They are few, and searched from the newest. */
  let own: Changed[] = [];
  /** Rows as they were added to the write set. */
  const rendered: RowChange[] = [];

  const isNew = (id: string): boolean => born.has(id) || (under?.isNew(id) ?? false);
  const left = (object: string, id: string): Changed | undefined => kept.get(object)?.get(id);
  const changed = (object: string, id: string): Changed | undefined =>
    own.findLast((change) => change.id === id && change.object === object) ??
    left(object, id) ??
    under?.left(object, id);
  const onDisk = (object: string, id: string): Row | undefined => (isNew(id) ? undefined : rows.peek(object, id));

  function fillOne(writeSet: WriteSet, { object, id, row, born: sortKey }: Changed): void {
    const body = row ? JSON.stringify(row) : null;
    const change = { object, id, born: sortKey, row, body, before: row && onDisk(object, id) };
    writeSet.rows.push(change);
    rendered.push(change);
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
    fill(writeSet) {
      for (const ofKind of kept.values()) for (const change of ofKind.values()) fillOne(writeSet, change);
    },
    standAlone() {
      under = undefined;
    },
    learn() {
      for (const change of rendered) rows.learn(change);
    },
    release() {
      kept.clear();
      rendered.length = 0;
    },
  };
}
