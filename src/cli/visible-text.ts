/**
 * A file shown to a person who has to judge it. Characters that cannot be seen, or that move or reorder what can, are
 * shown by their number, so that the text on the screen is the text in the file.
 */

/** Control and format characters, separators and fillers that look like nothing, and what has no agreed look. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** Lines stay lines and tabs stay tabs; everything else that cannot be seen becomes `<U+202E>`. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (char) =>
    char === '\n' || char === '\t'
      ? char
      : `<U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`,
  );
}

/** With a number before each line, so that an end of file cannot be drawn. */
export function numbered(text: string): string {
  const lines = visible(text).replace(/\n$/, '').split('\n');
  const width = String(lines.length).length;
  return lines.map((line, index) => `${String(index + 1).padStart(width)} | ${line}\n`).join('');
}
