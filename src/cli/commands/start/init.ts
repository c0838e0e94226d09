/**
 * `tollbridge init`: creates the user's own configuration when there is none. `tollbridge init <editor>`: also shows
 * the changes to an editor's settings that put the commands it starts behind tollbridge, and how to undo them. Writes
 * only with --write; undoes entry by entry, so that other changes made since are kept.
 */
import { Fault } from '../../../model/faults.ts';
import type { CommonOptions } from '../../context.ts';
import { type CommandList, EDITORS, type Editor, here } from '../../editors/editors.ts';
import { initNeovim } from '../../editors/neovim.ts';
import { nameOf, ourCommand, typed, us } from '../../editors/our-command.ts';
import { notInFiles } from '../../editors/registry-agents.ts';
import { add, type Edit, namesIn, remove, unwrap, wrap } from '../../editors/settings-edit.ts';
import { putSettings, readSettings, tilde } from '../../editors/settings-file.ts';
import { createServerNames } from '../../editors/wrapped-words.ts';
import { aboutConfig, haveOwnConfig, optionsKept, ownConfigFor } from './user-config.ts';

export interface InitOptions extends CommonOptions {
  readonly write?: boolean;
  readonly undo?: boolean;
  /** Path of the settings, where it is not the usual one. */
  readonly settings?: string;
  /** Name of a new entry. */
  readonly name?: string;
  readonly json?: boolean;
}

export async function init(where: string | undefined, command: readonly string[], options: InitOptions): Promise<void> {
  if (where === undefined) return await initConfig(options);
  if (where === 'neovim') return initNeovim(command, options);
  const editor = EDITORS.find(({ name }) => name === where);
  if (!editor) {
    const known = [...EDITORS.map(({ name }) => name), 'neovim'].join(', ');
    throw new Fault('invalid_request', `${where} is not an editor or agent this knows; it knows: ${known}`);
  }
  const files = await editsFor(editor, command, options);
  const changed = files.some(({ changes }) => changes.length > 0);
  const written = changed && options.write === true;
  const own = await ownConfigFor(options, written);
  if (written) {
    for (const { file, text, changes } of files) if (changes.length > 0) await putSettings(file, text);
  }
  const shown = files.map(({ text: _, ...file }) => file);
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ ...inAll(editor, shown), written, files: shown, ...(own && { config: own }) })}\n`
      : aboutConfig(own) + report(editor, files, { written, changed, command, options }),
  );
}

async function initConfig({ json }: InitOptions): Promise<void> {
  const own = await haveOwnConfig();
  const says = own.created ? 'Your configuration was made' : 'Your configuration is there already';
  process.stdout.write(
    json
      ? `${JSON.stringify({ config: own })}\n`
      : `${says}: ${tilde(own.file)}\nTo put an editor's agents behind tollbridge: ${us()} init EDITOR\n`,
  );
}

/** For programs written when an editor had one file. */
function inAll({ name }: Editor, files: readonly Omit<FileEdit, 'text'>[]) {
  const changes = files.flatMap((each) => each.changes);
  return { editor: name, file: files[0]?.file, changes, left: files.flatMap((each) => each.left) };
}

interface FileEdit extends Edit {
  readonly file: string;
}

/** The edit of each file in which the editor keeps something. */
async function editsFor(
  editor: Editor,
  command: readonly string[],
  options: InitOptions,
): Promise<readonly FileEdit[]> {
  const lists = listsOf(editor, options);
  const [first] = lists;
  const texts = new Map<string, string>();
  for (const { file } of lists) if (!texts.has(file)) texts.set(file, await readSettings(file));
  const name = options.name ?? nameOf(command);
  const into = { title: editor.title, list: first };
  if (command.length > 0) {
    const text = texts.get(first.file) ?? '';
    const edit = options.undo
      ? () => remove(text, into, name, command)
      : async () => add(text, into, name, command, await oursWith(options));
    return [{ file: first.file, ...(await inFile(first.file, edit)) }];
  }
  const again = initOf(editor, options);
  const wrapping = { ours: await oursWith(options), names: createServerNames(), init: again };
  for (const list of lists) await inFile(list.file, () => namesIn(texts.get(list.file) ?? '', list, wrapping.names));
  const edits = new Map<string, FileEdit>();
  for (const list of lists) {
    const { file } = list;
    const { text, changes, left } = edits.get(file) ?? { text: texts.get(file) ?? '', changes: [], left: [] };
    const edit = await inFile(file, () => (options.undo ? unwrap(text, list) : wrap(text, list, wrapping)));
    edits.set(file, {
      file,
      text: edit.text,
      changes: [...changes, ...edit.changes],
      left: [...left, ...edit.left],
    });
  }
  const found = [...edits.values()].filter(({ changes, left }) => changes.length + left.length > 0);
  if (found.length > 0 || options.undo) return found;
  const what = first.speaks === 'acp' ? 'agent' : 'server';
  const files = [...texts.keys()].map(tilde).join(', ');
  throw new Fault(
    'not_found',
    `${files} names no ${what} yet; add one with: ${again} -- <the ${what}'s command>`,
    editor.unlisted ? { details: { fix: notInFiles(editor.unlisted, again).join('\n') } } : {},
  );
}

/** The command for this editor, as it is typed, with the options that every entry keeps. */
function initOf({ name }: Editor, options: InitOptions): string {
  const { settings } = options;
  return `${us()} ${typed(['init', name, ...optionsKept(options), ...(settings ? ['--settings', settings] : [])])}`;
}

/** With --settings, everything this editor keeps is looked for in that one file. */
function listsOf(editor: Editor, { settings }: InitOptions): readonly [CommandList, ...CommandList[]] {
  const at = (list: CommandList): CommandList => (settings === undefined ? list : { ...list, file: settings });
  const [first, ...more] = editor.lists(here());
  const key = ({ file, path }: CommandList) => [file, ...path].join('\0');
  // A project in the home directory has the user's own file.
  const others = new Map(more.map(at).map((list) => [key(list), list]));
  others.delete(key(at(first)));
  return [at(first), ...others.values()];
}

async function oursWith(options: InitOptions): Promise<readonly string[]> {
  return [...(await ourCommand()), ...optionsKept(options)];
}

/** Trouble with a file's text names the file. */
async function inFile<T>(file: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.kind === 'invalid_request')
      throw new Fault('invalid_request', `${tilde(file)}: ${thrown.message}`);
    throw thrown;
  }
}

interface Asked {
  readonly written: boolean;
  readonly changed: boolean;
  readonly command: readonly string[];
  readonly options: InitOptions;
}

function report(editor: Editor, files: readonly FileEdit[], { written, changed, command, options }: Asked): string {
  const lines: string[] = [];
  for (const { file, changes, left } of files) {
    lines.push(`${editor.title}: ${tilde(file)}`, '');
    for (const { member, entry, before, after } of changes) {
      lines.push(`  ${member} > ${entry}`);
      if (before) lines.push(`  - ${typed(before)}`);
      if (after) lines.push(`  + ${typed(after)}`);
      lines.push('');
    }
    for (const { member, entry, why } of left) lines.push(`  ${member} > ${entry}: left as it is, ${why}`, '');
  }
  const { undo, name } = options;
  const again = (...how: readonly string[]) => `${initOf(editor, options)} ${typed(how)}`;
  const added = command.length > 0 ? [...(name ? ['--name', name] : []), '--', ...command] : [];
  if (!changed) lines.push('Nothing to change.');
  else if (!written)
    lines.push(`Nothing is written yet. To write it: ${again(...(undo ? ['--undo'] : []), '--write', ...added)}`);
  else if (undo) lines.push(`Undone. Now ${editor.next}.`);
  else lines.push(`Written. Now ${editor.next}.`, `To undo it: ${again('--undo', '--write', ...added)}`);
  if (editor.unlisted && command.length === 0 && !undo)
    lines.push('', ...notInFiles(editor.unlisted, initOf(editor, options)));
  return `${lines.join('\n')}\n`;
}
