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
import type { CommandList } from './editors.ts';
import { withMember, withoutMember } from './jsonc-member.ts';
import { withoutCommand } from './registry-agents.ts';
import { asCommand, asRemote, inline, remoteIn, textOf } from './remote-entry.ts';
import {
  commandWords,
  goesThrough,
  headerVariable,
  nameIn,
  plainName,
  remoteWords,
  type ServerNames,
  unwrapped,
  type Words,
  type Wrapped,
} from './wrapped-words.ts';

interface Change {
  /** The member that holds the entry, as it is shown. */
  readonly member: string;
  readonly entry: string;
  readonly before: readonly string[] | undefined;
  readonly after: readonly string[] | undefined;
}
export interface Edit {
  readonly text: string;
  readonly changes: readonly Change[];
  /** Entries that were left as they are, and why. */
  readonly left: readonly { readonly member: string; readonly entry: string; readonly why: string }[];
}
/** A list without its file: text in, text out. */
export type ListIn = Omit<CommandList, 'file'>;

export interface Wrapping {
  /** The command that starts tollbridge. */
  readonly ours: Words;
  readonly names: ServerNames;
  /** The command that adds to this editor, as it is typed. */
  readonly init: string;
}

/** Wraps every command, and every server at an address. */
export function wrap(text: string, list: ListIn, { ours, names, init }: Wrapping): Edit {
  const { speaks } = list;
  return editEach(text, list, ({ entry, value, words }, text, path) => {
    if (words) {
      if (goesThrough(words, speaks)) return 'it already goes through tollbridge';
      const after = commandWords(ours, speaks, names.of(entry, words), words);
      return { before: words, after, text: reword(text, path, words, after) };
    }
    const type = findNodeAtLocation(value, ['type'])?.value as unknown;
    if (speaks === 'acp' && (type === 'registry' || type === 'extension')) return withoutCommand(entry, type, init);
    const remote = speaks === 'mcp' ? remoteIn(value) : undefined;
    if (remote === undefined || typeof remote === 'string') return remote ?? 'it starts no command';
    const after = remoteWords(ours, names.of(entry, [remote.url]), remote);
    return { before: [remote.url], after, text: asCommand(text, nodeAt(text, path), after) };
  });
}

/** Unwraps every command, as it was before. */
export function unwrap(text: string, list: ListIn): Edit {
  const { speaks } = list;
  return editEach(text, list, ({ entry, words }, text, path) => {
    if (!words) return 'it starts no command';
    if (!goesThrough(words, speaks)) return 'it does not go through tollbridge';
    const behind = unwrapped(words, speaks, entry);
    if (!behind) return 'its options were written by hand';
    if ('command' in behind) {
      return { before: words, after: behind.command, text: reword(text, path, words, behind.command) };
    }
    const again = asRemote(text, nodeAt(text, path), behind.remote);
    if (again === undefined) return 'its variables were written by hand';
    return { before: words, after: [behind.remote.url], text: again };
  });
}

/** The servers that have names already, so that no other is given one of these. */
export function namesIn(text: string, list: ListIn, names: ServerNames): void {
  for (const path of pathsIn(text, list)) {
    for (const { entry, words } of entriesAt(text, path)) {
      const name = words && nameIn(words, list.speaks);
      const behind = words && unwrapped(words, list.speaks, entry);
      if (!name || !words) continue;
      names.taken(name, !behind ? words : 'command' in behind ? behind.command : [behind.remote.url]);
    }
  }
}

export interface NamedServer {
  readonly server: Wrapped;
  readonly headerEnv: Words;
  readonly env: Readonly<Record<string, string>>;
}

/** The server that has this name in the list. */
export function serverNamed(text: string, list: ListIn, name: string): NamedServer | undefined {
  for (const path of pathsIn(text, list)) {
    for (const { entry, value, words } of entriesAt(text, path)) {
      const server = words && nameIn(words, list.speaks) === name ? unwrapped(words, list.speaks, entry) : undefined;
      if (!server) continue;
      const variables = (findNodeAtLocation(value, ['env'])?.children ?? []).map(({ children }) => children ?? []);
      const env = Object.fromEntries(variables.map(([key, each]) => [asText(key?.value), asText(each?.value)]));
      const headers = 'remote' in server ? server.remote.headers : [];
      return { server, env, headerEnv: headers.map((header, at) => `${header}=${headerVariable(at)}`) };
    }
  }
  return undefined;
}

/** Adds one entry: this command, wrapped. */
export function add(
  text: string,
  { title, list }: { readonly title: string; readonly list: ListIn },
  name: string,
  command: Words,
  ours: Words,
): Edit {
  const { path, speaks } = list;
  if (entriesAt(text, path).some(({ entry }) => entry === name)) {
    throw new Fault('conflict', `${title} already has an entry ${name}; give this one another name with --name`);
  }
  const words = commandWords(ours, speaks, plainName(name), command);
  const [first = '', ...args] = words;
  const value = { ...list.entry, command: first, args };
  const before = text.trim() === '' ? '{}' : text;
  const tree = treeOf(before);
  const entries = findNodeAtLocation(tree, [...path]);
  const member = path.join(' > ');
  return {
    text: entries ? withMember(before, entries, name, value) : withMember(before, tree, member, { [name]: value }),
    changes: [{ member, entry: name, before: undefined, after: words }],
    left: [],
  };
}

/** Removes an added entry; one with another command is not ours to remove. */
export function remove(
  text: string,
  { title, list }: { readonly title: string; readonly list: ListIn },
  name: string,
  command: Words,
): Edit {
  const { path, speaks } = list;
  const words = entriesAt(text, path).find(({ entry }) => entry === name)?.words;
  const behind = words && unwrapped(words, speaks, name);
  const same = behind && 'command' in behind && behind.command.join('\0') === command.join('\0');
  if (!same) throw new Fault('not_found', `${title} has no entry ${name} with this command behind tollbridge`);
  return {
    text: withoutMember(text, findNodeAtLocation(treeOf(text), [...path]) as Node, name),
    changes: [{ member: path.join(' > '), entry: name, before: words, after: undefined }],
    left: [],
  };
}

interface Entry {
  readonly entry: string;
  readonly value: Node;
  /** The words of its command, where it starts one. */
  readonly words: Words | undefined;
}
/** The entry's text with the change, or why it stays as it is. */
type EditOne = (
  entry: Entry,
  text: string,
  path: readonly string[],
) => { readonly before: Words; readonly after: Words; readonly text: string } | string;

function editEach(text: string, list: ListIn, change: EditOne): Edit {
  let edited = text;
  const changes: Change[] = [];
  const left: { member: string; entry: string; why: string }[] = [];
  for (const path of pathsIn(text, list)) {
    const member = path.join(' > ');
    for (const each of entriesAt(text, path)) {
      const { entry } = each;
      const made = change(each, edited, [...path, entry]);
      if (typeof made === 'string') left.push({ member, entry, why: made });
      else {
        edited = made.text;
        changes.push({ member, entry, before: made.before, after: made.after });
      }
    }
  }
  return { text: edited, changes, left };
}

/** Words that stay keep their text; only the words before them in the list are added or removed. */
function reword(text: string, path: readonly string[], before: Words, [first = '', ...args]: Words): string {
  const tree = treeOf(text);
  const command = findNodeAtLocation(tree, [...path, 'command']) as Node;
  const list = findNodeAtLocation(tree, [...path, 'args']);
  const kept = list?.children ?? [];
  const old = before.length - 1;
  const moved = kept[old - args.length - 1];
  const content = moved ? textOf(text, moved) : JSON.stringify(first);
  const edits = [{ offset: command.offset, length: command.length, content }];
  const added = inline(args.slice(0, args.length - old), args.length - old - 1, textOf(text, command));
  if (!list) {
    edits.push({ offset: command.offset + command.length, length: 0, content: `, "args": ${added}` });
    return applyEdits(text, edits);
  }
  if (args.length >= old) {
    const start = kept[0]?.offset ?? list.offset + 1;
    const content = added.slice(1, -1) + (kept.length > 0 ? ', ' : '');
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

function wordsOf(value: Node): Words | undefined {
  const command = findNodeAtLocation(value, ['command'])?.value as unknown;
  const args = findNodeAtLocation(value, ['args']);
  const rest = (args?.children ?? []).map((each) => each.value as unknown);
  if (typeof command !== 'string' || (args && args.type !== 'array')) return undefined;
  return rest.every((word) => typeof word === 'string') ? [command, ...rest] : undefined;
}

/** The paths of the lists there are. */
function pathsIn(text: string, { path }: ListIn): readonly (readonly string[])[] {
  const star = path.indexOf('*');
  if (star < 0) return [path];
  const above = path.slice(0, star);
  return membersAt(text, above).map(([key]) => [...above, asText(key?.value), ...path.slice(star + 1)]);
}

function entriesAt(text: string, path: readonly string[]): readonly Entry[] {
  return membersAt(text, path).flatMap(([key, value]) =>
    key && value ? [{ entry: asText(key.value), value, words: wordsOf(value) }] : [],
  );
}

function membersAt(text: string, path: readonly string[]): readonly (readonly Node[])[] {
  if (text.trim() === '') return [];
  const object = findNodeAtLocation(treeOf(text), [...path]);
  if (!object) return [];
  if (object.type !== 'object')
    throw new Fault('invalid_request', `${path.join(' > ')} is not an object; mend it first`);
  return (object.children ?? []).map(({ children }) => children ?? []);
}

function nodeAt(text: string, path: readonly string[]): Node {
  return findNodeAtLocation(treeOf(text), [...path]) as Node;
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
