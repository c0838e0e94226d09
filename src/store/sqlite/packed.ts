/**
 * A sheet as three things that cross to another thread at once. Left to itself, the crossing looks at each value alone, and
 * there are hundreds; so the texts travel as one, with their lengths beside them.
 */
import { blankSheet, type Column, type Sheet } from './sheet.ts';

export interface Packed {
  readonly text: string;
  /** One per value: the length of its text, or what else it is. */
  readonly kinds: Int32Array;
  readonly numbers: Float64Array;
  /** How many values each list has. */
  readonly counts: readonly number[];
}

const NULL = -1;
const NUMBER = -2;
const LISTS = Object.keys(blankSheet()) as (keyof Sheet)[];

export function pack(sheet: Sheet): Packed {
  const texts: string[] = [];
  const kinds: number[] = [];
  const numbers: number[] = [];
  const counts: number[] = [];
  for (const list of LISTS) {
    const values = sheet[list];
    counts.push(values.length);
    for (const value of values) {
      if (typeof value === 'string') {
        texts.push(value);
        kinds.push(value.length);
      } else if (typeof value === 'number') {
        numbers.push(value);
        kinds.push(NUMBER);
      } else {
        kinds.push(NULL);
      }
    }
  }
  return { text: texts.join(''), kinds: Int32Array.from(kinds), numbers: Float64Array.from(numbers), counts };
}

export function unpack({ text, kinds, numbers, counts }: Packed): Sheet {
  const sheet = blankSheet();
  let value = 0;
  let number = 0;
  let at = 0;
  const next = (): Column => {
    const kind = kinds[value++]!;
    if (kind === NULL) return null;
    if (kind === NUMBER) return numbers[number++]!;
    at += kind;
    return text.slice(at - kind, at);
  };
  LISTS.forEach((list, index) => {
    const values = sheet[list];
    for (let left = counts[index]!; left > 0; left--) values.push(next());
  });
  return sheet;
}
