/** Help costs nothing and leaves nobody alone; completion knows what the tree knows. */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { completion } from '../../../src/cli/commands/maintenance/completion.ts';
import { createProgram } from '../../../src/cli/commands/program.ts';
import { fold } from '../../../src/cli/output/help-text.ts';
import { ownName, quoted } from '../../../src/cli/own-name.ts';
import { ran, typed } from '../../support/process/cli.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

/** Everything a file loads before it does anything. */
function loadedBy(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  if (!existsSync(file)) return seen;
  for (const [, from = ''] of readFileSync(file, 'utf8').matchAll(
    /^(?:import|export)(?! type)[^;]*? from '([^']+)';/gm,
  )) {
    if (from.startsWith('.')) loadedBy(resolve(dirname(file), from), seen);
    else seen.add(from);
  }
  return seen;
}

test('--help loads the parser, the tree and nothing else', () => {
  const loaded = [...loadedBy(resolve(ROOT, 'src/main.ts'))].map((file) => file.replace(`${ROOT}/`, ''));
  const allowed =
    /^(commander|src\/main\.ts|src\/model\/version\.ts|src\/cli\/run-command\.ts|src\/cli\/output\/(exit-codes|folding|help-text)\.ts|src\/cli\/commands\/(program|\w+\/definition)\.ts)$/;
  expect(loaded.filter((file) => !allowed.test(file))).toEqual([]);
  expect(loaded).toContain('commander');
});

test('without a word, and with --help, there is help; it begins with what to try first', async () => {
  const help = await ran(['--help']);
  expect(help.code).toBe(0);
  expect(help.out).toContain('New here? "tollbridge demo" shows the whole flow in ten seconds');
  expect(await ran([])).toEqual(help);
});

test('every command, option and argument has a description that a newcomer can read', () => {
  for (const command of everyCommand(createProgram()).slice(1)) {
    const name = command.name();
    expect(command.description(), name).not.toBe('');
    for (const { description, flags } of command.options) expect(description, `${name} ${flags}`).not.toBe('');
    for (const argument of command.registeredArguments) {
      expect(argument.description, `${name} <${argument.name()}>`).not.toBe('');
    }
    if (command.commands.length > 0) continue;
    const help = helpOf(command);
    const [, more = ''] = help.split(/^ {2}--data <dir>.*\n(?: {5,}.*\n)*/m);
    expect(more.trim().length, `${name} explains itself`).toBeGreaterThan(60);
    expect(help, `${name} says which log`).toMatch(/^ {2}--data <dir>/m);
  }
});

function helpOf(command: Command): string {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  return help;
}

const everyCommand = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(everyCommand)];

test('help fits a terminal of 80 columns; what is to be typed stays on its line', () => {
  const long = everyCommand(createProgram())
    .flatMap((command) => helpOf(command).split('\n'))
    .filter((line) => line.length > 80 && !/^ {2}\S/.test(line));
  expect(long).toEqual([]);
  expect(fold('one two three four\nfive six seven\n\n  typed as it   stands here', 20)).toBe(
    'one two three four\nfive six seven\n\n  typed as it   stands here',
  );
  expect(fold('one two three four five six', 20)).toBe('one two three four\nfive six');
});

test('every command has its row, in the README and on the page about commands', () => {
  const missing = ['README.md', 'docs/commands.md'].flatMap((page) => {
    const rows = readFileSync(resolve(ROOT, page), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    // `keys create NAME`, `list`, `revoke ID`: the first word of what stands in a row is said once.
    const has = (...words: readonly string[]) =>
      rows.some((row) => words.every((word) => new RegExp(`[\`\\s]${word}[\`\\s]`).test(row)));
    return everyCommand(createProgram())
      .slice(1)
      .filter(({ commands }) => commands.length === 0)
      .map((command) => [...(command.parent?.parent ? [command.parent.name()] : []), command.name()])
      .filter((words) => !has(...words))
      .map((words) => `${page}: ${words.join(' ')}`);
  });
  expect(missing).toEqual([]);
});

test('pages that help speaks of come with the program', async () => {
  const said = everyCommand(createProgram()).map(helpOf).join('\n');
  const pages = [...new Set([...said.matchAll(/docs\/[\w-]+\.md/g)].map(([page]) => page))];
  expect(pages.length).toBeGreaterThan(3);
  const { files } = JSON.parse(readFileSync(resolve(ROOT, 'package.json'), 'utf8')) as { files: string[] };
  expect(files).toContain('docs');
  expect(pages.filter((page) => !existsSync(resolve(ROOT, page)))).toEqual([]);
});

async function completed(words: readonly string[], script: string): Promise<readonly string[]> {
  const typedSoFar = ['tollbridge', ...words].map((word) => `'${word}'`).join(' ');
  const run = `${script}\nCOMP_WORDS=(${typedSoFar}); COMP_CWORD=${words.length}; _tollbridge; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', run]);
  return stdout.split('\n').filter(Boolean);
}

test('bash completes commands, commands of commands and options, and leaves values to itself', async () => {
  const { out } = await typed(() => completion('bash', createProgram()));
  expect(await completed(['appro'], out)).toEqual(['approvals', 'approve']);
  expect(await completed(['policy', ''], out)).toEqual([
    'show',
    'check',
    'test',
    'diff',
    '--version',
    '--config',
    '--data',
    '--help',
  ]);
  expect(await completed(['--data', 'x', 'keys', 'r'], out)).toEqual(['revoke', 'rotate']);
  expect(await completed(['log', '--f'], out)).toEqual(['--follow']);
  expect(await completed(['verify', '--keys', ''], out)).toEqual([]);
  expect(await completed(['mcp', '--', 'npx', 'login', ''], out)).toEqual([]);
});

test('what can only be one of a few words is completed too', async () => {
  const { out } = await typed(() => completion('bash', createProgram()));
  expect(await completed(['completion', ''], out)).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']));
  expect(await completed(['init', 'cl'], out)).toEqual(['claude-desktop', 'claude-code']);
});

test('zsh and fish say the same with words beside it; for other shells the error lists the supported ones', async () => {
  const zsh = (await typed(() => completion('zsh', createProgram()))).out;
  expect(zsh).toMatch(/^#compdef tollbridge\n/);
  expect(zsh).toContain("' policy') choices=('show:print the rules as Cedar, as they are evaluated'");
  const fish = (await typed(() => completion('fish', createProgram()))).out;
  expect(fish).toContain(
    `complete -c tollbridge -n "__tollbridge_at ''" -f -a log -d 'print the newest events of the log'\n`,
  );
  expect(fish).toMatch(/__tollbridge_at ' log'" -s f -l follow -d /);
  expect(fish).toMatch(/__tollbridge_at ' verify'" -l keys -r -d /);
  expect(await ran(['completion', 'ksh'])).toEqual({
    code: 2,
    out: '',
    err: 'tollbridge: completion does not know ksh; it knows: bash, zsh, fish\n  fix: "tollbridge completion --help" says what there is\n',
  });
});

/** What a shell offers, or undefined where that shell is not installed; its script is then only read, as above. */
const TRIED: Readonly<Record<string, (words: readonly string[], script: string) => Promise<readonly string[]>>> = {
  async fish(words, script) {
    const typedSoFar = ['tollbridge', ...words].join(' ');
    const { stdout } = await promisify(execFile)('fish', [
      '--no-config',
      '-c',
      `${script}\ncomplete -C '${typedSoFar}'`,
    ]);
    return stdout.split('\n').flatMap((line) => line.split('\t')[0] || []);
  },
  async zsh(words, script) {
    // Loaded as a file on its path would be; what it offers is printed where zsh would put it into a list.
    const typedSoFar = ['tollbridge', ...words].map((word) => `'${word}'`).join(' ');
    const run = `compdef() {}\n_describe() { print -l -- \${\${(P)2}%%:*} }\n_files() { print FILES }\n${script}
words=(${typedSoFar}); CURRENT=${words.length + 1}; _tollbridge`;
    const { stdout } = await promisify(execFile)('zsh', ['-f', '-c', run]);
    const last = words.at(-1) ?? '';
    return stdout.split('\n').filter((word) => word && (word.startsWith(last) || word === 'FILES'));
  },
};
const installed = Object.keys(TRIED).filter((shell) => spawnSync(shell, ['-c', 'true']).status === 0);

for (const shell of installed) {
  test(`${shell} completes commands, commands of commands and options, and leaves values to itself`, async () => {
    const { out } = await typed(() => completion(shell, createProgram()));
    const choices = (...words: readonly string[]) => TRIED[shell]?.(words, out);
    expect(await choices('appro')).toEqual(['approvals', 'approve']);
    expect(await choices('policy', '')).toEqual(expect.arrayContaining(['show', 'check', 'test', 'diff']));
    expect(await choices('--data', 'x', 'keys', 'r')).toEqual(['revoke', 'rotate']);
    expect(await choices('log', '--f')).toEqual(['--follow']);
    expect(await choices('init', 'cl')).toEqual(expect.arrayContaining(['claude-desktop', 'claude-code']));
    expect(await choices('verify', '--keys', '')).not.toContain('--trust');
    expect(await choices('mcp', '--', 'npx', 'l')).not.toContain('login');
  });
}

test('suggested commands begin with how we were called', () => {
  const called = (script: string, env: NodeJS.ProcessEnv = {}) =>
    ownName({ argv: ['node', script], env, cwd: '/repo' });
  expect(called('/usr/local/bin/tollbridge')).toBe('tollbridge');
  expect(called('/x/_npx/1/node_modules/.bin/tollbridge', { npm_command: 'exec' })).toBe('npx tollbridge');
  expect(called('/repo/dist/src/main.js')).toBe('node dist/src/main.js');
  expect(quoted("it's here")).toBe("'it'\\''s here'");
});
