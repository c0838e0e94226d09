/** The files a patch names, in the formats agents use: unified diffs, git headers, and `*** Update File:` blocks. */

const LOOKS_LIKE =
  /^(?:\*\*\* (?:Begin Patch|(?:Add|Update|Delete) File:)|diff --git |(?:---|\+\+\+) \S|rename (?:from|to) |Index: )/m;
/** Blocks name files as they are; diffs put `a/` and `b/` in front. */
const BLOCKS = /^\*\*\* (?:(?:Add|Update|Delete) File|Move to|Rename to): ?(.+)$/gm;
const DIFFS = /^(?:--- |\+\+\+ |rename (?:from|to) |copy (?:from|to) |Index: )(.+)$/gm;
const GIT_HEADER = /^diff --git (?:"?a\/(.+?)"?) (?:"?b\/(.+?)"?)$/gm;
const MAX_FILES = 512;

export function isPatch(text: string): boolean {
  return LOOKS_LIKE.test(text);
}

/** Undefined when the patch names more files than are examined. */
export function patchedPaths(text: string): readonly string[] | undefined {
  const found = new Set<string>();
  for (const [, name = ''] of text.matchAll(BLOCKS)) found.add(name.trim());
  const headers = [...text.matchAll(GIT_HEADER)].flatMap(([, a = '', b = '']) => [a, b]);
  for (const name of [...[...text.matchAll(DIFFS)].map(([, named = '']) => named), ...headers]) {
    const path =
      name
        .split('\t')[0]
        ?.trim()
        .replace(/^"(.*)"$/, '$1') ?? '';
    if (path !== '' && path !== '/dev/null') found.add(/^[ab]\//.test(path) ? path.slice(2) : path);
  }
  if (found.size > MAX_FILES) return undefined;
  return [...found];
}
