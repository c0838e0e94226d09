/** Unpacks bodies with the words of a database, which are read when they are first met and stay true for ever. */
import type { Database } from '../database.ts';
import { andThen, type Wait } from '../wait.ts';
import { createUnpacker } from './unpack.ts';

export interface WordReader {
  /** At once where the database answers at once. A body that cannot be unpacked comes back as it is, and is no JSON. */
  unpack(body: string): Wait<string>;
  /** The third member of a packed object, as JSON; undefined where a word of it was not read yet. */
  third(body: string): string | undefined;
}

/** Words are read this many at a time: those of one event lie together. */
const BLOCK = 64;
/** Words kept in memory. */
const MOST = 50_000;

export function createWordReader(words: Database['words']): WordReader {
  const known = new Map<number, string>();
  /** The first word that was not known in the last attempt. */
  let missing: number | undefined;
  const { unpack: attempt, third } = createUnpacker((number) => {
    const word = known.get(number);
    if (word === undefined) missing ??= number;
    return word;
  });

  function load(number: number): Wait<boolean> {
    if (known.size > MOST) known.clear();
    const first = number - (number % BLOCK);
    return andThen(words(first, first + BLOCK - 1), (found) => {
      for (const word of found) known.set(word.number, word.text);
      return known.has(number);
    });
  }

  function unpack(body: string): Wait<string> {
    missing = undefined;
    const text = attempt(body);
    if (missing === undefined) return text;
    return andThen(load(missing), (found) => (found ? unpack(body) : text));
  }

  return { unpack, third };
}
