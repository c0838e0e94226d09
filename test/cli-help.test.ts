/** Help costs nothing and leaves nobody alone; completion knows what the tree knows. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { completion } from '../src/cli/completion.ts';
import { ownName, quoted } from '../src/cli/own-name.ts';
import { addAnswers } from '../src/cli/tree/answers.ts';
import { addKeys } from '../src/cli/tree/keys.ts';
import { addProof } from '../src/cli/tree/proof.ts';
import { addRecord } from '../src/cli/tree/record.ts';
import { addRules } from '../src/cli/tree/rules.ts';
import { addUpkeep } from '../src/cli/tree/upkeep.ts';
import { ran, typed } from './support/cli.ts';

const ROOT = resolve(import.meta.dirname, '..');

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
  const allowed = /^(commander|src\/(main|version)\.ts|src\/cli\/(acting|exit-codes)\.ts|src\/cli\/tree\/\w+\.ts)$/;
  expect(loaded.filter((file) => !allowed.test(file))).toEqual([]);
  expect(loaded).toContain('commander');
});

test('without a word, and with --help, there is help; it begins with what to try first', async () => {
  const help = await ran(['--help']);
  expect(help.code).toBe(0);
  expect(help.out).toContain('New here? "tollbridge demo" shows everything in ten seconds');
  expect(await ran([])).toEqual(help);
});

function tree(): Command {
  const program = new Command('tollbridge').option('--data <dir>', 'where');
  for (const add of [addAnswers, addRecord, addProof, addRules, addKeys, addUpkeep]) add(program);
  return program;
}

test('every command says what it is to somebody new, and so do its options and arguments', () => {
  const all = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(all)];
  for (const command of all(tree()).slice(1)) {
    const name = command.name();
    expect(command.description(), name).not.toBe('');
    for (const { description, flags } of command.options) expect(description, `${name} ${flags}`).not.toBe('');
    for (const argument of command.registeredArguments) {
      expect(argument.description, `${name} <${argument.name()}>`).not.toBe('');
    }
    if (command.commands.length > 0) continue;
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    const [, more = ''] = help.split(/-h, --help.*\n/);
    expect(more.trim().length, `${name} explains itself`).toBeGreaterThan(60);
  }
});

async function completed(words: readonly string[], script: string): Promise<readonly string[]> {
  const typedSoFar = ['tollbridge', ...words].map((word) => `'${word}'`).join(' ');
  const run = `${script}\nCOMP_WORDS=(${typedSoFar}); COMP_CWORD=${words.length}; _tollbridge; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', run]);
  return stdout.split('\n').filter(Boolean);
}

test('bash completes commands, commands of commands and options, and leaves values to itself', async () => {
  const { out } = await typed(() => completion('bash', tree()));
  expect(await completed(['appro'], out)).toEqual(['approvals', 'approve']);
  expect(await completed(['policy', ''], out)).toEqual(['show', 'check', 'test', 'diff', '--data', '--help']);
  expect(await completed(['--data', 'x', 'keys', 'r'], out)).toEqual(['revoke', 'rotate']);
  expect(await completed(['log', '--f'], out)).toEqual(['--follow']);
  expect(await completed(['verify', '--keys', ''], out)).toEqual([]);
});

test('zsh and fish say the same with words beside it; other shells are told which there are', async () => {
  const zsh = (await typed(() => completion('zsh', tree()))).out;
  expect(zsh).toMatch(/^#compdef tollbridge\n/);
  expect(zsh).toContain("' policy') choices=('show:print the rules as Cedar, exactly as they are evaluated'");
  const fish = (await typed(() => completion('fish', tree()))).out;
  expect(fish).toContain(`complete -c tollbridge -n "__tollbridge_at ''" -f -a log -d 'what happened, oldest first'\n`);
  expect(fish).toMatch(/__tollbridge_at ' log'" -s f -l follow -d /);
  expect(fish).toMatch(/__tollbridge_at ' verify'" -l keys -r -d /);
  expect(await typed(() => completion('ksh', tree()))).toEqual({
    code: 2,
    out: '',
    err: 'tollbridge: there is no completion for ksh\n  fix: use bash, zsh or fish\n',
  });
});

test('suggested commands begin with how we were called', () => {
  const called = (script: string, env: NodeJS.ProcessEnv = {}) =>
    ownName({ argv: ['node', script], env, cwd: '/repo' });
  expect(called('/usr/local/bin/tollbridge')).toBe('tollbridge');
  expect(called('/x/_npx/1/node_modules/.bin/tollbridge', { npm_command: 'exec' })).toBe('npx tollbridge');
  expect(called('/repo/dist/src/main.js')).toBe('node dist/src/main.js');
  expect(quoted("it's here")).toBe("'it'\\''s here'");
});
