/**
 * `tollbridge init`: creates the user's own configuration when there is none. `tollbridge init <editor>`: also shows
 * the changes to an editor's settings that put the commands it starts behind tollbridge, and how to undo them. Writes
 * only with --write; undoes entry by entry, so that other changes made since are kept.
 */
import { Fault } from '../../../model/faults.ts';
import type { CommonOptions } from '../../context.ts';
import { EDITORS, type Editor, here } from '../../editors/editors.ts';
import { initNeovim } from '../../editors/neovim.ts';
import { nameOf, ourCommand, typed, us } from '../../editors/our-command.ts';
import { add, type Edit, remove, unwrap, wrap } from '../../editors/settings-edit.ts';
import { putSettings, readSettings, tilde } from '../../editors/settings-file.ts';
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
  const file = options.settings ?? editor.settings(here());
  const text = await readSettings(file);
  const edit = await editFor(editor, text, command, options, file);
  const written = edit.changes.length > 0 && options.write === true;
  const own = await ownConfigFor(options, written);
  if (written) await putSettings(file, edit.text);
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ editor: editor.name, file, written, changes: edit.changes, left: edit.left, ...(own && { config: own }) })}\n`
      : aboutConfig(own) + report(editor, file, edit, { written, command, options }),
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

async function editFor(editor: Editor, text: string, command: readonly string[], options: InitOptions, file: string) {
  try {
    const name = options.name ?? nameOf(command);
    if (options.undo) return command.length > 0 ? remove(text, editor, name, command) : unwrap(text, editor);
    const ours = [...(await ourCommand()), ...optionsKept(options)];
    if (command.length > 0) return add(text, editor, name, command, ours);
    const edit = wrap(text, editor, ours);
    if (edit.changes.length + edit.left.length > 0) return edit;
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.kind === 'invalid_request')
      throw new Fault('invalid_request', `${tilde(file)}: ${thrown.message}`);
    throw thrown;
  }
  const what = editor.speaks === 'acp' ? 'agent' : 'server';
  throw new Fault(
    'not_found',
    `${tilde(file)} names no ${what} yet; add one with: ${us()} init ${editor.name} -- <the ${what}'s command>`,
  );
}

interface Asked {
  readonly written: boolean;
  readonly command: readonly string[];
  readonly options: InitOptions;
}

function report(editor: Editor, file: string, edit: Edit, { written, command, options }: Asked): string {
  const lines = [`${editor.title}: ${tilde(file)}`, ''];
  for (const { entry, before, after } of edit.changes) {
    lines.push(`  ${editor.member} > ${entry}`);
    if (before) lines.push(`  - ${typed(before)}`);
    if (after) lines.push(`  + ${typed(after)}`);
    lines.push('');
  }
  for (const { entry, why } of edit.left) lines.push(`  ${editor.member} > ${entry}: left as it is, ${why}`, '');
  const { undo, name, settings } = options;
  const again = (...how: readonly string[]) =>
    `${us()} ${typed(['init', editor.name, ...optionsKept(options), ...(settings ? ['--settings', settings] : []), ...how])}`;
  const added = command.length > 0 ? [...(name ? ['--name', name] : []), '--', ...command] : [];
  if (edit.changes.length === 0) lines.push('Nothing to change.');
  else if (!written)
    lines.push(`Nothing is written yet. To write it: ${again(...(undo ? ['--undo'] : []), '--write', ...added)}`);
  else if (undo) lines.push(`Undone. Now ${editor.next}.`);
  else lines.push(`Written. Now ${editor.next}.`, `To undo it: ${again('--undo', '--write', ...added)}`);
  return `${lines.join('\n')}\n`;
}
