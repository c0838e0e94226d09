/**
 * The rows of a transaction packed into a few values for postMessage. Structured cloning handles each value by itself, and there are
 * hundreds; so the texts are joined, with their lengths beside them.
 */
import { type Column, emptyWriteSet } from '../../engine/commit/write-set.ts';
import { type TableRows, tableRowsOf } from './table-rows.ts';

export interface Packed {
  /** Joined texts; no text is split across two. */
  readonly texts: readonly string[];
  /** One per value: the length of its text, or a marker for null or a number. */
  readonly kinds: Int32Array;
  readonly numbers: Float64Array;
  /** How many values each list has. */
  readonly counts: readonly number[];
}

const NULL = -1;
const NUMBER = -2;
/** A longer joined text would get its own memory from the system each time, which costs more than the joining saves. */
const JOINED = 65_536;
const LISTS = Object.keys(tableRowsOf(emptyWriteSet())) as (keyof TableRows)[];

export function pack(rows: TableRows): Packed {
  const counts = LISTS.map((list) => rows[list].length);
  const size = counts.reduce((sum, count) => sum + count, 0);
  const kinds = new Int32Array(size);
  const numbers = new Float64Array(size);
  const texts: string[] = [];
  let joining: string[] = [];
  let length = 0;
  let value = 0;
  let number = 0;
  for (const list of LISTS) {
    for (const column of rows[list]) {
      if (typeof column === 'string') {
        if (length > 0 && length + column.length > JOINED) {
          texts.push(joining.join(''));
          joining = [];
          length = 0;
        }
        joining.push(column);
        length += column.length;
        kinds[value++] = column.length;
      } else if (typeof column === 'number') {
        numbers[number++] = column;
        kinds[value++] = NUMBER;
      } else {
        kinds[value++] = NULL;
      }
    }
  }
  texts.push(joining.join(''));
  return { texts, kinds, numbers: numbers.slice(0, number), counts };
}

export function unpack({ texts, kinds, numbers, counts }: Packed): TableRows {
  const rows = tableRowsOf(emptyWriteSet());
  let value = 0;
  let number = 0;
  let piece = 0;
  let at = 0;
  const next = (): Column => {
    const kind = kinds[value++]!;
    if (kind === NULL) return null;
    if (kind === NUMBER) return numbers[number++]!;
    if (kind > 0 && at === texts[piece]!.length) {
      piece++;
      at = 0;
    }
    at += kind;
    return texts[piece]!.slice(at - kind, at);
  };
  LISTS.forEach((list, index) => {
    const values = rows[list] as Column[];
    for (let left = counts[index]!; left > 0; left--) values.push(next());
  });
  return rows;
}
