/**
 * A sheet as three things that cross to another thread at once. Left to itself, the crossing looks at each value alone, and
 * there are hundreds; so the texts travel joined, with their lengths beside them.
 */
import { blankSheet, type Column, type Sheet } from './sheet.ts';

export interface Packed {
  /** One after the other; none is cut. */
  readonly texts: readonly string[];
  /** One per value: the length of its text, or what else it is. */
  readonly kinds: Int32Array;
  readonly numbers: Float64Array;
  /** How many values each list has. */
  readonly counts: readonly number[];
}

const NULL = -1;
const NUMBER = -2;
/** Longer ones get a piece of memory of their own, fresh from the system each time, and that costs more than joining them. */
const JOINED = 65_536;
const LISTS = Object.keys(blankSheet()) as (keyof Sheet)[];

export function pack(sheet: Sheet): Packed {
  const counts = LISTS.map((list) => sheet[list].length);
  const size = counts.reduce((sum, count) => sum + count, 0);
  const kinds = new Int32Array(size);
  const numbers = new Float64Array(size);
  const texts: string[] = [];
  let joining: string[] = [];
  let length = 0;
  let value = 0;
  let number = 0;
  for (const list of LISTS) {
    for (const column of sheet[list]) {
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

export function unpack({ texts, kinds, numbers, counts }: Packed): Sheet {
  const sheet = blankSheet();
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
    const values = sheet[list];
    for (let left = counts[index]!; left > 0; left--) values.push(next());
  });
  return sheet;
}
