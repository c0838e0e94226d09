/**
 * Makes text from agents, tools and files safe to show to a person. Characters that are invisible, move the cursor, reverse the
 * reading direction or pile up on one another are escaped (`\u{202e}`), so that a text cannot look like another one. Only for
 * display: programs get the exact value.
 */

/** Controls, format characters, lone surrogates, private and unassigned code points, every space but U+0020. */
const UNSEEN = /(?![ \n\t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufffc]/gu;
/** Combining marks that would attach to the character before the text, or before a line of it. */
const LEADING_MARKS = /(^|[\n\t ])(\p{M}+)/gu;
/** More marks on one letter than any script in use needs. */
const PILED_MARKS = /(\p{M}{4})(\p{M}+)/gu;
/** Padding that would push the rest of a text out of view. */
const WIDE_GAP = /[ \t]{41,}/g;
const TALL_GAP = /(?:\n[ \t]*){9,}/g;
const ORDINARY = /^[\x20-\x7e\n\t]*$/;

/** Line breaks and tabs stay; every other invisible character is escaped. */
export function visibleText(text: string): string {
  const shown = ORDINARY.test(text) ? text : seen(text);
  return shown
    .replace(
      TALL_GAP,
      (gap) => `\n⟨${gap.split('\n').length - 2} empty lines⟩\n${gap.slice(gap.lastIndexOf('\n') + 1)}`,
    )
    .replace(WIDE_GAP, (gap) => `⟨${gap.length} ${gap.includes('\t') ? 'spaces and tabs' : 'spaces'}⟩`);
}

/** The same on one line: line breaks and tabs are escaped as well. */
export function visibleLine(text: string): string {
  return visibleText(text.replace(/[\n\t]/g, (char) => (char === '\n' ? '\\n' : '\\t')));
}

/** On one line, cut to a readable length. */
export function brief(text: string, most = 100): string {
  const line = visibleText(text).replace(/\s+/g, ' ').trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

function seen(text: string): string {
  return text
    .replace(UNSEEN, writtenOut)
    .replace(LEADING_MARKS, (_, before: string, marks: string) => `${before}${writtenOut(marks)}`)
    .replace(PILED_MARKS, (_, kept: string, marks: string) => `${kept}${writtenOut(marks)}`);
}

function writtenOut(chars: string): string {
  let out = '';
  for (const char of chars) out += char === '\r' ? '\\r' : `\\u{${char.codePointAt(0)!.toString(16)}}`;
  return out;
}
