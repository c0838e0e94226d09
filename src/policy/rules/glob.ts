/** `*` matches any run of characters, every other character itself: the same meaning as Cedar's `like`. */

export const ANY = Symbol('any');
/** A parsed pattern: literal texts and wildcards, in order. */
export type Pattern = readonly (string | typeof ANY)[];

function parseGlob(glob: string): Pattern {
  const parts: (string | typeof ANY)[] = [];
  for (const [index, literal] of glob.split('*').entries()) {
    if (index > 0) parts.push(ANY);
    if (literal !== '') parts.push(literal);
  }
  return parts;
}

/** Leftmost matching of each literal is enough, because a wildcard takes anything: linear in practice, no backtracking. */
export function matches(pattern: Pattern, text: string): boolean {
  let at = 0;
  let open = false;
  for (const [index, part] of pattern.entries()) {
    if (part === ANY) {
      open = true;
      continue;
    }
    if (!open) {
      if (!text.startsWith(part, at)) return false;
      at += part.length;
    } else if (index === pattern.length - 1) {
      // The last literal has to reach the end, so it is compared only there.
      return text.length - part.length >= at && text.endsWith(part);
    } else {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
      open = false;
    }
  }
  return open || at === text.length;
}

export function matchesGlob(glob: string, text: string): boolean {
  return glob === text || (glob.includes('*') && matches(parseGlob(glob), text));
}
