/** Writes Cedar literals. Any text stays one literal: nothing in it can end the string it is in. */

import { ANY, type Pattern } from '../rules/glob.ts';

/** Printable characters are written as they are; control, invisible and direction-changing characters are escaped. */
const SPELLED_OUT = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]/u;

export function cedarString(text: string): string {
  return `"${escapeText(text)}"`;
}

/** A glob as a `like` pattern: `*` is the wildcard, `\*` a star, `\\` a backslash; any other backslash is itself. */
export function cedarPattern(glob: string): string {
  return `"${globParts(glob)
    .map((part) => (part === null ? '*' : escapeText(part).replaceAll('*', '\\*')))
    .join('')}"`;
}

/** The text that a glob without wildcards matches; undefined when it has one. */
export function plainGlob(glob: string): string | undefined {
  const parts = globParts(glob);
  return parts.includes(null) ? undefined : parts.join('');
}

/** A parsed glob, for matching without Cedar. */
export function globPattern(glob: string): Pattern {
  return globParts(glob).map((part) => part ?? ANY);
}

/** Literal texts, and null for each wildcard. */
function globParts(glob: string): readonly (string | null)[] {
  const parts: (string | null)[] = [];
  let literal = '';
  for (let at = 0; at < glob.length; at += 1) {
    const char = glob[at] as string;
    const next = glob[at + 1];
    if (char === '\\' && (next === '*' || next === '\\')) {
      literal += next;
      at += 1;
    } else if (char === '*') {
      if (literal !== '') parts.push(literal);
      parts.push(null);
      literal = '';
    } else literal += char;
  }
  if (literal !== '') parts.push(literal);
  return parts;
}

function escapeText(text: string): string {
  let out = '';
  for (const char of text) {
    if (char === '"' || char === '\\') out += `\\${char}`;
    else if (SPELLED_OUT.test(char)) out += `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;
    else out += char;
  }
  return out;
}
