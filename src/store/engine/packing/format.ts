/**
 * The short form of a JSON text. Every value begins with a tag; a value that is written out ends with a control character, which no JSON
 * text contains. Numbers have 94 digits, the printable characters of ASCII but the space. A stored text that begins with a brace is JSON.
 */
export const TAG = {
  emptyObject: 'e',
  array: 'a',
  emptyArray: 'y',
  text: 's',
  /** A text that was written out before in the same body. */
  again: 'b',
  time: 't',
  /** The time that was written last. */
  sameTime: 'u',
  eventId: 'v',
  /** A number from 0 to 93. */
  digit: 'd',
  number: 'n',
  true: '1',
  false: '0',
  null: '-',
  /** An object or a list as JSON text. */
  json: 'j',
} as const;

/** Tags of references to words by how many digits their numbers have: A to D for strings, E to H for the names of an object's members. */
export const STRING_WORD = 64;
export const NAMES_WORD = 68;
export const MOST_DIGITS = 4;

export const END = '\u0001';
export const BASE = 94;
/** The character of the digit 0. */
export const ZERO = 33;
export const HIGHEST_WORD = BASE ** MOST_DIGITS - 1;

const DIGITS = Array.from({ length: BASE }, (_, digit) => String.fromCharCode(ZERO + digit));

/** Texts that a later value may repeat, and how many. */
export const SHORTEST_AGAIN = 8;
export const LONGEST_AGAIN = 120;
export const MOST_AGAIN = 90;

function digits(number: number): string {
  let found = DIGITS[number % BASE]!;
  for (let rest = Math.floor(number / BASE); rest > 0; rest = Math.floor(rest / BASE)) {
    found = DIGITS[rest % BASE]! + found;
  }
  return found;
}

/** A number with the count of its digits before it, so that it needs no end. */
export function numeral(number: number): string {
  const found = digits(number);
  return String.fromCharCode(ZERO + found.length) + found;
}

/** To a word, whose number is at most `HIGHEST_WORD`. */
export function reference(kind: typeof STRING_WORD | typeof NAMES_WORD, number: number): string {
  const found = digits(number);
  return String.fromCharCode(kind + found.length) + found;
}
