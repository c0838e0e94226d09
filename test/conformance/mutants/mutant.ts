/** One promise, broken on purpose in a copy of the sources, and the part of a suite that has to notice. */
export interface Mutant {
  /** The promise that is broken, as a user would say it. */
  readonly promise: string;
  /** From the root of the project. */
  readonly file: string;
  /** Stands exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Categories of the suite `harn`, or words in the names of checks of the suite `runs`. */
  readonly by:
    | { readonly suite: 'harn'; readonly category: string; readonly revision: string }
    | { readonly suite: 'runs'; readonly only: string };
}

/** The text with the promise broken; an error when the mutant no longer fits the sources. */
export function mutated({ file, find, replace }: Mutant, text: string): string {
  const at = text.indexOf(find);
  if (at < 0) throw new Error(`${file} does not hold: ${find}`);
  if (text.indexOf(find, at + 1) >= 0) throw new Error(`${file} holds more than once: ${find}`);
  return text.slice(0, at) + replace + text.slice(at + find.length);
}
