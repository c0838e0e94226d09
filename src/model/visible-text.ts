/**
 * Text from agents, tools and files on its way to a person. Characters that cannot be seen, move the cursor, turn the reading
 * direction round or pile up on one another are written out (`\u{202e}`), so that a text cannot look like another one.
 * Only for display: programs get the exact value.
 */

/** Controls, format characters, surrogates without their other half, private and unassigned code points, every space but the plain one. */
const UNSEEN = /(?![ \n\t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufffc]/gu;
/** Marks that would join what stands before the text, or a line of it. */
const LEADING_MARKS = /(^|[\n\t ])(\p{M}+)/gu;
/** More marks on one letter than any script in use needs. */
const PILED_MARKS = /(\p{M}{4})(\p{M}+)/gu;
/** Padding that would push the rest of a text out of sight. */
const WIDE_GAP = /[ \t]{41,}/g;
const TALL_GAP = /(?:\n[ \t]*){9,}/g;
const ORDINARY = /^[\x20-\x7e\n\t]*$/;

/** Line breaks and tabs stay; everything else that cannot be seen is written out. */
export function visibleText(text: string): string {
  const shown = ORDINARY.test(text) ? text : seen(text);
  return shown
    .replace(
      TALL_GAP,
      (gap) => `\n⟨${gap.split('\n').length - 2} empty lines⟩\n${gap.slice(gap.lastIndexOf('\n') + 1)}`,
    )
    .replace(WIDE_GAP, (gap) => `⟨${gap.length} ${gap.includes('\t') ? 'spaces and tabs' : 'spaces'}⟩`);
}

/** The same on one line: line breaks and tabs are written out as well. */
export function visibleLine(text: string): string {
  return visibleText(text.replace(/[\n\t]/g, (char) => (char === '\n' ? '\\n' : '\\t')));
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
