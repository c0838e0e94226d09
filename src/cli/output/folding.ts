/**
 * Folds long lines. Separate from `terminal-text.ts`, because help needs this without the code that makes text safe to
 * show.
 */

/**
 * Folds between words to a width, with every line but the first indented by `indent`. Without a width it stays one
 * line.
 */
export function folded(text: string, width: number | undefined, indent = 0): string {
  if (width === undefined || width < indent + 20) return text;
  const lines: string[] = [];
  for (const [, space = '', word = ''] of text.matchAll(/(\s*)(\S+)/g)) {
    const last = lines.at(-1);
    if (last === undefined) lines.push(`${space}${word}`);
    else if (last.length + space.length + word.length <= width) lines[lines.length - 1] = `${last}${space}${word}`;
    else lines.push(`${' '.repeat(indent)}${word}`);
  }
  return lines.join('\n');
}
