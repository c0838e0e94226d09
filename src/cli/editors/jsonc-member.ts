/**
 * Adds one member to, or removes one from, an object in JSON with comments. Layout and comments of the rest stay
 * unchanged.
 */
import { applyEdits, type Edit, type Node } from 'jsonc-parser';

/** Adds the member after the last one. */
export function withMember(text: string, object: Node, name: string, value: unknown): string {
  const newline = text.includes('\r\n') ? '\r\n' : '\n';
  const unit = /^([ \t]+)\S/m.exec(text)?.[1] ?? '  ';
  const written = (indent: string) =>
    `${JSON.stringify(name)}: ${JSON.stringify(value, undefined, unit).replaceAll('\n', `${newline}${indent}`)}`;
  const last = object.children?.at(-1);
  const close = object.offset + object.length - 1;
  if (!last) {
    const outer = indentAt(text, object.offset);
    const inner = outer + unit;
    return spliced(text, object.offset + 1, close, `${newline}${inner}${written(inner)}${newline}${outer}`);
  }
  const end = last.offset + last.length;
  const comma = /^\s*,/.exec(text.slice(end, close))?.[0];
  const line = text.slice(end, close).search(/\r?\n/);
  const inline = `${JSON.stringify(name)}: ${JSON.stringify(value)}`;
  if (line < 0) return spliced(text, end, end, `, ${inline}`);
  // At the end of its line, so that a comment on the last member stays beside it.
  const indent = indentAt(text, last.offset);
  const added = `${newline}${indent}${written(indent)}${comma ? ',' : ''}`;
  return spliced(text, end, end + line, `${comma ? '' : ','}${text.slice(end, end + line)}${added}`);
}

export function withoutMember(text: string, object: Node, name: string): string {
  const members = object.children ?? [];
  const index = members.findIndex(({ children }) => children?.[0]?.value === name);
  const member = members[index];
  if (!member) return text;
  const before = members[index - 1];
  const space = /(\r?\n)?[ \t]*$/.exec(text.slice(0, member.offset))?.[0].length ?? 0;
  const end = member.offset + member.length;
  const comma = /^\s*,/.exec(text.slice(end, object.offset + object.length))?.[0].length ?? 0;
  const edits: Edit[] = [{ offset: member.offset - space, length: space + member.length + comma, content: '' }];
  // Removing the last member leaves the comma that was added before it.
  const at = before ? before.offset + before.length : -1;
  if (comma === 0 && text[at] === ',') edits.push({ offset: at, length: 1, content: '' });
  const alone = members.length === 1 && text.slice(end, object.offset + object.length - 1).trim() === '';
  if (alone) return spliced(text, object.offset + 1, object.offset + object.length - 1, '');
  return applyEdits(text, edits);
}

function spliced(text: string, from: number, to: number, content: string): string {
  return text.slice(0, from) + content + text.slice(to);
}

function indentAt(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
  return /^[ \t]*/.exec(line)?.[0] ?? '';
}
