/**
 * `tollbridge init neovim`: Neovim is configured in Lua, which only its user should rewrite. So the wrapped commands
 * are in a file of our own, which Neovim loads by itself; removing that file undoes it. A file that is not ours, or was
 * changed since, is left alone.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from '../../model/faults.ts';
import type { InitOptions } from '../commands/start/init.ts';
import { aboutConfig, optionsKept, ownConfigFor } from '../commands/start/user-config.ts';
import { type EditorLocation, here } from './editors.ts';
import { luaFor, type NeovimPlan, readLua } from './neovim-lua.ts';
import { nameOf, ourCommand, typed, us } from './our-command.ts';
import { putSettings, readSettings, tilde } from './settings-file.ts';

const NOTHING: NeovimPlan = { every: false, agents: {} };

export async function initNeovim(command: readonly string[], options: InitOptions): Promise<void> {
  const file = options.settings ?? neovimFile(here());
  const before = await readSettings(file);
  const name = options.name ?? nameOf(command);
  const plan = planIn(before, file);
  const next = options.undo ? without(plan, name, command) : withMore(plan, name, command);
  const ours = [...(await ourCommand()), ...optionsKept(options)];
  // A file of an earlier version is updated, and removed when its plan is empty.
  const after = next.every || Object.keys(next.agents).length > 0 ? luaFor(next, ours) : '';
  const changed = after !== before;
  const written = changed && options.write === true;
  const own = await ownConfigFor(options, written);
  if (written) await (after === '' ? rm(file) : putSettings(file, after));
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ editor: 'neovim', file, written, changes: changesOf(plan, next, ours), left: [], ...(own && { config: own }) })}\n`
      : aboutConfig(own) + report(file, before, after, { written, command, options }),
  );
}

/** The path of a plugin file that Neovim loads by itself, below `stdpath('config')`. */
export function neovimFile({ home, platform, env }: EditorLocation): string {
  const usual = platform === 'win32' ? (env.LOCALAPPDATA ?? join(home, 'AppData', 'Local')) : join(home, '.config');
  return join(env.XDG_CONFIG_HOME || usual, env.NVIM_APPNAME || 'nvim', 'plugin', 'tollbridge.lua');
}

function planIn(text: string, file: string): NeovimPlan {
  const found = readLua(text);
  switch (found.is) {
    case 'absent':
      return NOTHING;
    case 'ours':
      return found.plan;
    case 'foreign':
      throw new Fault('conflict', `${tilde(file)} was not written by tollbridge; name another file with --settings`);
    case 'changed':
      throw new Fault(
        'conflict',
        `${tilde(file)} was changed since tollbridge wrote it; to undo it, remove the file, and write it again if you like`,
      );
  }
}

function withMore(plan: NeovimPlan, name: string, command: readonly string[]): NeovimPlan {
  if (command.length === 0) return { ...plan, every: true };
  if (Object.hasOwn(plan.agents, name)) {
    throw new Fault('conflict', `Neovim already has an agent ${name}; give this one another name with --name`);
  }
  return { ...plan, agents: { ...plan.agents, [name]: command } };
}

function without(plan: NeovimPlan, name: string, command: readonly string[]): NeovimPlan {
  if (command.length === 0) return { ...plan, every: false };
  const { [name]: found, ...agents } = plan.agents;
  if (found?.join('\0') !== command.join('\0')) {
    throw new Fault('not_found', `Neovim has no agent ${name} with this command behind tollbridge`);
  }
  return { ...plan, agents };
}

/** The changes in the format of the other editors: the command before, and the command now. */
function changesOf(from: NeovimPlan, to: NeovimPlan, ours: readonly string[]) {
  const started = ({ agents }: NeovimPlan, entry: string) =>
    Object.hasOwn(agents, entry) ? [...ours, 'acp', '--', ...(agents[entry] ?? [])] : undefined;
  const entries = Object.keys({ ...from.agents, ...to.agents });
  const changes = entries.map((entry) => ({ entry, before: started(from, entry), after: started(to, entry) }));
  const every = {
    entry: '*',
    ...(from.every ? { before: [...ours, 'acp', '--'] } : { after: [...ours, 'acp', '--'] }),
  };
  return [
    ...(from.every === to.every ? [] : [every]),
    ...changes.filter(({ before, after }) => before?.join('\0') !== after?.join('\0')),
  ];
}

interface Asked {
  readonly written: boolean;
  readonly command: readonly string[];
  readonly options: InitOptions;
}

function report(file: string, before: string, after: string, { written, command, options }: Asked): string {
  const { undo, name, settings } = options;
  const again = (...how: readonly string[]) =>
    `${us()} ${typed(['init', 'neovim', ...optionsKept(options), ...(settings ? ['--settings', settings] : []), ...how])}`;
  const added = command.length > 0 ? [...(name ? ['--name', name] : []), '--', ...command] : [];
  const lines = [`Neovim with CodeCompanion or Avante: ${tilde(file)}`, ''];
  if (before === after) return `${[...lines, 'Nothing to change.'].join('\n')}\n`;
  lines.push(...difference(before, after).map((line) => `  ${line}`), '');
  if (!written)
    lines.push(`Nothing is written yet. To write it: ${again(...(undo ? ['--undo'] : []), '--write', ...added)}`);
  else if (undo) lines.push('Undone. Now start Neovim again.');
  else
    lines.push(
      'Written. Now start Neovim again.',
      ...(added.length > 0
        ? [`Choose it with :CodeCompanionChat adapter=${name ?? nameOf(command)}, or :AvanteSwitchProvider.`]
        : []),
      `To undo it: ${again('--undo', '--write', ...added)}`,
    );
  return `${lines.join('\n')}\n`;
}

/** Removed and added lines; equal lines at both ends are left out. */
function difference(before: string, after: string): readonly string[] {
  const old = linesOf(before);
  const now = linesOf(after);
  const most = Math.min(old.length, now.length);
  let head = 0;
  while (head < most && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < most - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  return [
    ...old.slice(head, old.length - tail).map((line) => `- ${line}`.trimEnd()),
    ...now.slice(head, now.length - tail).map((line) => `+ ${line}`.trimEnd()),
  ];
}

const linesOf = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));
