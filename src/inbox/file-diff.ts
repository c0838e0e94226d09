/** The changes a write would make in a file, line by line, for people. Pure. */
import { structuredPatch } from 'diff';
import type { FileChange } from '../model/actions.ts';
import { visibleText } from '../model/values/visible-text.ts';

/** Two texts with nothing in common take long to compare; then the new one is shown whole instead. */
const LONGEST_MS = 100;
const CONTEXT = 3;
/** This many equal lines in a row are padding: they are counted instead of shown. */
const PADDING = 10;

export function fileDiff({ before, after }: FileChange): { readonly what: string; readonly text: string } {
  if (before === undefined) return { what: 'what the file would hold, whole', text: marked('+', after) };
  if (before === null) return { what: 'a new file', text: marked('+', after) };
  if (before === after) return { what: 'no change', text: '' };
  const patch = structuredPatch('', '', before, after, '', '', { context: CONTEXT, timeout: LONGEST_MS });
  if (!patch) return { what: 'what the file would hold, whole', text: marked('+', after) };
  const lines = patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines: changed }) => [
    `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`,
    ...changed.map(visibleText),
  ]);
  return { what: 'changed lines', text: withoutPadding(lines).join('\n') };
}

function marked(sign: string, text: string): string {
  return withoutPadding(text.split('\n').map((line) => `${sign}${visibleText(line)}`)).join('\n');
}

export function withoutPadding(lines: readonly string[]): readonly string[] {
  const shown: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] as string;
    let end = at + 1;
    while (lines[end] === line) end += 1;
    if (end - at >= PADDING) shown.push(line, `⟨the line above ${end - at} times⟩`);
    else shown.push(...lines.slice(at, end));
    at = end;
  }
  return shown;
}
