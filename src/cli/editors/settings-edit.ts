/**
 * Wraps commands in an editor's settings with tollbridge, and unwraps them. Text in, text out: only the words of the
 * command change, so that comments, layout and everything else stay as they are, and undoing restores the original.
 */

import {
  applyEdits,
  findNodeAtLocation,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import { Fault } from '../../model/faults.ts';
import { asText } from '../../model/values/as-text.ts';
import type { Editor } from './editors.ts';
import { withMember, withoutMember } from './jsonc-member.ts';

export interface Change {
  readonly entry: string;
  readonly before: readonly string[] | undefined;
  readonly after: readonly string[] | undefined;
}
export interface Edit {
  readonly text: string;
  readonly changes: readonly Change[];
  /** Entries that were left as they are, and why. */
  readonly left: readonly { readonly entry: string; readonly why: string }[];
}

type Words = readonly string[];

/** Wraps every command of this editor. `ours` is the command that starts tollbridge. */
export function wrap(text: string, editor: Editor, ours: Words): Edit {
  return editEach(text, editor, (words) =>
    goesThrough(words, editor) ? 'it already goes through tollbridge' : [...ours, editor.speaks, '--', ...words],
  );
}

/** Unwraps every command, as it was before. */
export function unwrap(text: string, editor: Editor): Edit {
  return editEach(text, editor, (words) =>
    isWrapped(words, editor)
      ? words.slice(words.indexOf('--') + 1)
      : goesThrough(words, editor)
        ? 'its options were written by hand'
        : 'it does not go through tollbridge',
  );
}

/** Adds one entry: this command, wrapped. */
export function add(text: string, editor: Editor, name: string, command: Words, ours: Words): Edit {
  if (entriesOf(text, editor).some(({ entry }) => entry === name)) {
    throw new Fault('conflict', `${editor.title} already has an entry ${name}; give this one another name with --name`);
  }
  const words = [...ours, editor.speaks, '--', ...command];
  const [first = '', ...args] = words;
  const value = { ...editor.entry, command: first, args };
  const before = text.trim() === '' ? '{}' : text;
  const tree = treeOf(before);
  const entries = findNodeAtLocation(tree, [editor.member]);
  return {
    text: entries
      ? withMember(before, entries, name, value)
      : withMember(before, tree, editor.member, { [name]: value }),
    changes: [{ entry: name, before: undefined, after: words }],
    left: [],
  };
}

/** Removes an added entry; one with another command is not ours to remove. */
export function remove(text: string, editor: Editor, name: string, command: Words): Edit {
  const found = entriesOf(text, editor).find(({ entry }) => entry === name);
  const words = found && wordsOf(found.value);
  const same =
    words && isWrapped(words, editor) && words.slice(words.indexOf('--') + 1).join('\0') === command.join('\0');
  if (!same) throw new Fault('not_found', `${editor.title} has no entry ${name} with this command behind tollbridge`);
  return {
    text: withoutMember(text, findNodeAtLocation(treeOf(text), [editor.member]) as Node, name),
    changes: [{ entry: name, before: words, after: undefined }],
    left: [],
  };
}

function editEach(text: string, editor: Editor, change: (words: Words) => Words | string): Edit {
  let edited = text;
  const changes: Change[] = [];
  const left: { entry: string; why: string }[] = [];
  for (const { entry, value } of entriesOf(text, editor)) {
    const before = wordsOf(value);
    const after = before ? change(before) : 'it starts no command';
    if (typeof after === 'string' || !before) {
      left.push({ entry, why: asText(after) });
      continue;
    }
    edited = reword(edited, [editor.member, entry], before, after);
    changes.push({ entry, before, after });
  }
  return { text: edited, changes, left };
}

/** Words that stay keep their text; only the words before them in the list are added or removed. */
function reword(text: string, path: readonly string[], before: Words, [first = '', ...args]: Words): string {
  const tree = treeOf(text);
  const command = findNodeAtLocation(tree, [...path, 'command']) as Node;
  const list = findNodeAtLocation(tree, [...path, 'args']);
  const edits = [{ offset: command.offset, length: command.length, content: JSON.stringify(first) }];
  if (!list) {
    edits.push({ offset: command.offset + command.length, length: 0, content: `, "args": ${inline(args)}` });
    return applyEdits(text, edits);
  }
  const kept = list.children ?? [];
  const old = before.length - 1;
  if (args.length >= old) {
    const added = args.slice(0, args.length - old);
    const start = kept[0]?.offset ?? list.offset + 1;
    const content = added.map((word) => JSON.stringify(word)).join(', ') + (kept.length > 0 ? ', ' : '');
    edits.push({ offset: start, length: 0, content });
    return applyEdits(text, edits);
  }
  const from = kept[0]?.offset ?? list.offset + 1;
  const stays = kept[old - args.length];
  // An `args` list that we added beside the command, and that is now empty, was not there before.
  const between = text.slice(command.offset + command.length, list.offset);
  if (!stays && between === ', "args": ') {
    edits.push({
      offset: command.offset + command.length,
      length: list.offset + list.length - command.offset - command.length,
      content: '',
    });
    return applyEdits(text, edits);
  }
  const last = kept.at(-1) as Node;
  edits.push({ offset: from, length: (stays?.offset ?? last.offset + last.length) - from, content: '' });
  return applyEdits(text, edits);
}

const inline = (words: Words) => `[${words.map((word) => JSON.stringify(word)).join(', ')}]`;

/** `… acp -- command`: recognised however tollbridge itself was started. */
function goesThrough(words: Words, { speaks }: Editor): boolean {
  const before = words.slice(0, Math.max(words.indexOf('--'), 0));
  return before.includes(speaks) && before.some((word) => OURS.test(word));
}

/** The form we write. With options in between the user wrote it, and an undo would lose them. */
function isWrapped(words: Words, editor: Editor): boolean {
  return goesThrough(words, editor) && words[words.indexOf('--') - 1] === editor.speaks;
}

/** Tollbridge by its name, or by the file it is started from when it is not installed. */
const OURS = /tollbridge|[\\/]src[\\/]main\.[jt]s$/;

function wordsOf(value: Node): Words | undefined {
  const command = findNodeAtLocation(value, ['command'])?.value as unknown;
  const args = findNodeAtLocation(value, ['args']);
  const rest = (args?.children ?? []).map((each) => each.value as unknown);
  if (typeof command !== 'string' || (args && args.type !== 'array')) return undefined;
  return rest.every((word) => typeof word === 'string') ? [command, ...rest] : undefined;
}

function entriesOf(text: string, { member }: Editor): readonly { readonly entry: string; readonly value: Node }[] {
  if (text.trim() === '') return [];
  const entries = findNodeAtLocation(treeOf(text), [member]);
  if (!entries) return [];
  if (entries.type !== 'object') throw new Fault('invalid_request', `${member} is not an object; mend it first`);
  return (entries.children ?? []).flatMap(({ children }) => {
    const [key, value] = children ?? [];
    return key && value ? [{ entry: asText(key.value), value }] : [];
  });
}

function treeOf(text: string): Node {
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error || !tree) {
    const line = text.slice(0, error?.offset ?? 0).split('\n').length;
    const what = error ? printParseErrorCode(error.error) : 'nothing is there';
    throw new Fault('invalid_request', `line ${line} cannot be read (${what}); mend it first`);
  }
  if (tree.type !== 'object') throw new Fault('invalid_request', 'the settings are not an object; mend them first');
  return tree;
}
