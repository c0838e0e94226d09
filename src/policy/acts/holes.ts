/**
 * Texts that are partly unknown: a variable in a command, a wildcard the shell expands. The unknown part is a hole, and a pattern
 * matches such a text surely, perhaps, or not at all.
 */
import { ANY, matches, type Pattern } from '../rules/glob.ts';

/** Stands for any text. A control character, so that no text of an agent is mistaken for one: `solid` replaces it. */
export const HOLE = '\u0000';

export type Meeting = 'yes' | 'maybe' | 'no';

/** Replaces hole characters in input, so that a text from outside never contains holes. */
export function solid(text: string): string {
  return text.includes(HOLE) ? text.replaceAll(HOLE, '\u{fffd}') : text;
}

/** Beyond this many steps the answer is "perhaps": callers must not control the cost of a decision. */
const MAX_STEPS = 200_000;

/** Only a wildcard surely matches a hole. */
export function meets(pattern: Pattern, text: string): Meeting {
  if (matches(pattern, text)) return 'yes';
  return text.includes(HOLE) && overlaps(pattern, text) ? 'maybe' : 'no';
}

/** Whether some text matches both the pattern and the text with holes. */
function overlaps(pattern: Pattern, text: string): boolean {
  const wanted: (string | typeof ANY)[] = pattern.flatMap((part): (string | typeof ANY)[] =>
    part === ANY ? [ANY] : [...part],
  );
  const characters = [...text];
  if (wanted.length * characters.length > MAX_STEPS) return true;
  // row[j]: the part of the pattern read so far can match the first j characters of the text.
  let row = [true];
  for (const [j, char] of characters.entries()) row[j + 1] = (row[j] as boolean) && char === HOLE;
  for (const part of wanted) {
    const next = [part === ANY && (row[0] as boolean)];
    for (const [j, char] of characters.entries()) {
      const before = row[j] as boolean;
      const above = row[j + 1] as boolean;
      const left = next[j] as boolean;
      if (part === ANY) next[j + 1] = above || left;
      else if (char === HOLE) next[j + 1] = left || above || before;
      else next[j + 1] = before && char === part;
    }
    row = next;
  }
  return row[characters.length] as boolean;
}
