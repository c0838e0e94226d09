/**
 * `tollbridge init <editor>`: shows what would change in an editor's settings so that what it starts goes through the bridge, writes
 * it when asked to, and says how to undo it. Shows first; writes only with --write; undoes entry by entry, so that whatever else was changed
 * since stays changed.
 */
import { access, constants, mkdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { Fault } from '../model/faults.ts';
import { EDITORS, type Editor, here } from './editors.ts';
import { ownName } from './own-name.ts';
import { add, type Edit, remove, unwrap, wrap } from './settings-edit.ts';

export interface InitOptions {
  readonly write?: boolean;
  readonly undo?: boolean;
  /** Settings elsewhere than usual. */
  readonly settings?: string;
  /** What a new entry is called. */
  readonly name?: string;
  readonly json?: boolean;
}

export async function init(where: string, command: readonly string[], options: InitOptions): Promise<void> {
  if (where === 'neovim') {
    process.stdout.write(forNeovim(command, await ourCommand()));
    return;
  }
  const editor = EDITORS.find(({ name }) => name === where);
  if (!editor) {
    const known = [...EDITORS.map(({ name }) => name), 'neovim'].join(', ');
    throw new Fault('invalid_request', `${where} is not an editor or agent this knows; it knows: ${known}`);
  }
  const file = options.settings ?? editor.settings(here());
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return '';
    throw new Fault('permission_denied', `${tilde(file)} cannot be read (${cause.code})`);
  });
  const edit = await editFor(editor, text, command, options, file);
  if (edit.changes.length > 0 && options.write) await put(file, edit.text);
  const written = edit.changes.length > 0 && options.write === true;
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ editor: editor.name, file, written, changes: edit.changes, left: edit.left })}\n`
      : report(editor, file, edit, { written, command, options }),
  );
}

async function editFor(editor: Editor, text: string, command: readonly string[], options: InitOptions, file: string) {
  try {
    const name = options.name ?? nameOf(command);
    if (options.undo) return command.length > 0 ? remove(text, editor, name, command) : unwrap(text, editor);
    const ours = await ourCommand();
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
    if (before) lines.push(`  - ${shown(before)}`);
    if (after) lines.push(`  + ${shown(after)}`);
    lines.push('');
  }
  for (const { entry, why } of edit.left) lines.push(`  ${editor.member} > ${entry}: left as it is, ${why}`, '');
  const { undo, name, settings } = options;
  const again = (...how: readonly string[]) =>
    `${us()} ${shown(['init', editor.name, ...(settings ? ['--settings', settings] : []), ...how])}`;
  const added = command.length > 0 ? [...(name ? ['--name', name] : []), '--', ...command] : [];
  if (edit.changes.length === 0) lines.push('Nothing to change.');
  else if (!written)
    lines.push(`Nothing is written yet. To write it: ${again(...(undo ? ['--undo'] : []), '--write', ...added)}`);
  else if (undo) lines.push(`Undone. Now ${editor.next}.`);
  else lines.push(`Written. Now ${editor.next}.`, `To undo it: ${again('--undo', '--write', ...added)}`);
  return `${lines.join('\n')}\n`;
}

/** Written beside and put in place in one step: an editor that reads meanwhile sees the old settings or the new ones. */
async function put(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  // Settings are often a link to where someone keeps them; the link stays.
  const target = await realpath(file).catch(() => file);
  const mode = await stat(target).then(
    ({ mode }) => mode,
    () => 0o600,
  );
  const beside = `${target}.${process.pid}.tmp`;
  await writeFile(beside, text.endsWith('\n') ? text : `${text}\n`, { mode });
  await rename(beside, target);
}

/** How an editor can start us: by name when it is on the path, otherwise exactly as we were started. */
async function ourCommand(): Promise<readonly string[]> {
  for (const dir of (process.env.PATH ?? '').split(delimiter)) {
    const there =
      dir &&
      (await access(join(dir, 'tollbridge'), constants.X_OK).then(
        () => true,
        () => false,
      ));
    // What npx puts on the path is gone when npx is.
    if (there && !dir.includes('_npx')) return ['tollbridge'];
  }
  const [node = 'node', script = ''] = process.argv;
  return script.includes('_npx') ? ['npx', '-y', 'tollbridge'] : [node, script];
}

function nameOf(command: readonly string[]): string {
  const words = command.filter((word) => !word.startsWith('-') && !/^(npx|node|bunx|uvx|pnpm|dlx)$/.test(word));
  return basename(words[0] ?? command[0] ?? 'agent').replace(/@[\d.^~]+$/, '');
}

function forNeovim(command: readonly string[], ours: readonly string[]): string {
  const agent = command.length > 0 ? command : ["<the agent's command>"];
  const words = [...ours, 'acp', '--', ...agent].map((word) => JSON.stringify(word)).join(', ');
  return `Neovim is configured in Lua, which this does not rewrite. With CodeCompanion, name the command like this:

  require("codecompanion").setup({
    adapters = { acp = {
      claude_code = function()
        return require("codecompanion.adapters").extend("claude_code", {
          commands = { default = { ${words} } },
        })
      end,
    } },
  })

To undo it, take the commands line out again.
`;
}

const us = () => ownName({ argv: process.argv, env: process.env, cwd: process.cwd() });

function shown(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word))).join(' ');
}

function tilde(path: string): string {
  return path.startsWith(homedir()) ? `~${path.slice(homedir().length)}` : path;
}
