/**
 * Every rule that the docs and the examples print, and attempts to get round it: each known agent's way of saying the act, and each
 * way of spelling it differently. The rules are taken from the pages themselves. Hundreds of combinations, so they are put to the engine; the
 * built process is asked in `hostile/rules.test.ts`.
 */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { anAction } from '../../../../fixtures/policies/actions.ts';
import type { Action, Decision } from '../../../../src/model/actions.ts';
import { createCedarEngine } from '../../../../src/policy/cedar/engine.ts';
import type { PureEngine } from '../../../../src/policy/engine.ts';
import { loadPolicies } from '../../../../src/policy/rules/load.ts';
import { readAct } from '../../../../src/runtime/read-act.ts';
import {
  INSIDE,
  NOT_ONLY_GIT,
  PRIVATE_KEYS,
  type Said,
  UNTELLABLE,
  WAYS,
  WIPING,
} from '../../../support/policy/rule-evasions.ts';

const ROOT = new URL('../../../../', import.meta.url);
const dir = realpathSync(mkdtempSync(join(tmpdir(), 'rules-')));
let page: PureEngine;
let example: PureEngine;

/** The first rules a page prints. */
function printed(file: string): string {
  const [, rules = ''] = /```yaml\n([\s\S]*?)```/.exec(readFileSync(new URL(file, ROOT), 'utf8')) ?? [];
  return rules;
}

async function engineOf(rules: string | readonly unknown[]): Promise<PureEngine> {
  return createCedarEngine({ policies: await loadPolicies({ rules, files: [] }), read: readAct });
}

beforeAll(async () => {
  mkdirSync(join(dir, 'src'));
  mkdirSync(join(dir, 'deep', 'er'), { recursive: true });
  writeFileSync(join(dir, '.env'), 'KEY=1\n');
  writeFileSync(join(dir, 'server.pem'), 'x\n');
  writeFileSync(join(dir, 'README.md'), 'x\n');
  symlinkSync('.env', join(dir, 'notes.txt'));
  symlinkSync('later.pem', join(dir, 'dangling.txt'));
  symlinkSync('/', join(dir, 'src', 'up'));
  symlinkSync('deep', join(dir, 'shallow'));
  writeFileSync(join(dir, 'deep', 'er', '.env'), 'KEY=2\n');
  page = await engineOf(printed('docs/rules.md'));
  const { rules } = parse(readFileSync(new URL('examples/rules.yaml', ROOT), 'utf8')) as { rules: readonly unknown[] };
  example = await engineOf(rules);
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const act = (change: Said): Action =>
  anAction({
    evidence: 'asked',
    effect: 'unknown',
    arguments: {},
    cwd: dir,
    target: undefined,
    server: undefined,
    ...change,
  });
const judge = (change: Said, engine = page): Decision => engine.judge(act(change));

/** How the same file is spelled. */
const SPELLINGS: readonly (readonly [string, () => string])[] = [
  ['by its name', () => '.env'],
  ['with a dot in front', () => './.env'],
  ['absolute', () => join(dir, '.env')],
  ['through its parent', () => 'src/../.env'],
  ['with doubled slashes', () => `${dir}//.env`],
  ['with a slash behind', () => '.env/'],
  ['with a dot behind', () => `${dir}/./.env/.`],
  ['through a link', () => 'notes.txt'],
  ['through a link to a directory', () => 'shallow/er/.env'],
  ['through a link out of here', () => `src/up${dir}/.env`],
  ['from the home directory', () => `~/${relative(homedir(), join(dir, '.env'))}`],
  ['another ending, by its name', () => 'server.pem'],
  ['through a link to what is not there yet', () => 'dangling.txt'],
];

describe('no-keys of docs/rules.md', () => {
  for (const [way, said] of WAYS) {
    test.each(SPELLINGS)(`${way}, %s`, (_, spelled) => {
      expect(judge(said(spelled()))).toMatchObject({ verdict: 'block', rule_id: 'no-keys' });
    });
  }

  test.each([
    ['a file: address', () => pathToFileURL(join(dir, '.env')).href],
    ['a file: address with escapes', () => `file://${dir}/%2Eenv`],
    ['a file: address of this machine', () => `file://localhost${dir}/.env`],
    ['escapes in a path', () => `${dir}/%2eenv`],
    ['blanks around it', () => ' .env '],
    ['backslashes', () => 'deep\\er\\.env'],
    ['decomposed letters in a directory', () => `${dir}/cafe\u0301/.env`],
  ])('%s', (_, spelled) => {
    expect(judge({ tool: 'Read', effect: 'read', arguments: { file_path: spelled() } })).toMatchObject({
      verdict: 'block',
      rule_id: 'no-keys',
    });
  });

  test.each([
    ['a wildcard for the shell', 'cat .e*v'],
    ['a variable', 'cat $FILE'],
    ['a substitution', 'cat $(echo .en)v'],
    ['braces', 'cat {.env,README.md}'],
    ['a program text', 'python3 -c \'open(".e"+"nv").read()\''],
  ])('%s asks at least', (_, command) => {
    expect(['block', 'escalate']).toContain(judge({ tool: 'Bash', effect: 'execute', arguments: { command } }).verdict);
  });

  test.each([
    ['an edit without a path', { tool: 'Edit', arguments: { new_string: 'x' } }],
    ['a read without a path', { tool: 'read_file', effect: 'read', arguments: {} }],
    [
      'a question with a title only',
      { tool: 'edit', claims: { agent: 'some-agent', kind: 'edit', title: 'Edit a file' } },
    ],
    ['a command nobody told', { kind: 'terminal', tool: undefined, effect: 'execute', arguments: {} }],
    [
      "an agent's own tool with a text nobody can place",
      { tool: 'do_it', arguments: { wish: 'please tidy the secrets up' } },
    ],
  ] as const)('%s asks', (_, change) => {
    expect(judge(change as Said)).toMatchObject({ verdict: 'escalate', code: 'undetermined' });
  });

  test.each([
    ['a file like any other', { tool: 'Read', effect: 'read', arguments: { file_path: 'README.md' } }],
    [
      'a tool without a path',
      { tool: 'add', effect: 'read', evidence: 'held', definition: 'd', arguments: { a: 1, b: 2 } },
    ],
    [
      'a tool with a text',
      { tool: 'search', effect: 'read', evidence: 'held', definition: 'd', arguments: { q: 'how to bake bread' } },
    ],
  ] as const)('%s is left alone', (_, change) => {
    expect(judge(change as Said).verdict).toBe('allow');
  });

  test('where the file system ignores case, so do the rules', async () => {
    const { pathForms } = await import('../../../../src/policy/acts/paths.ts');
    const { createDisk } = await import('../../../../src/policy/acts/disk.ts');
    const lower = pathForms('.ENV', [dir], createDisk());
    // This file system decides which of the two is right; the rules follow it.
    const verdict = judge({ tool: 'Read', effect: 'read', arguments: { file_path: '.ENV' } }).verdict;
    expect(verdict).toBe(lower.ignoresCase ? 'block' : 'allow');
  });
});

describe('no-wiping of docs/rules.md', () => {
  test.each(WIPING)('%j', (command) => {
    expect(judge({ tool: 'Bash', effect: 'execute', arguments: { command } })).toMatchObject({
      verdict: 'block',
      rule_id: 'no-wiping',
    });
  });

  test.each(UNTELLABLE)('what %j does cannot be known, so it asks', (command) => {
    expect(['block', 'escalate']).toContain(judge({ tool: 'Bash', effect: 'execute', arguments: { command } }).verdict);
  });

  test.each<readonly [string, Said]>([
    ['claude code', { tool: 'Bash', arguments: { command: 'rm -rf x', description: 'lists files' } }],
    ['codex, as a list', { tool: 'shell', arguments: { command: ['bash', '-lc', 'rm -rf x'] } }],
    [
      'codex, the bare list',
      { tool: 'local_shell', arguments: { action: { type: 'exec', command: ['rm', '-rf', 'x'] } } },
    ],
    ['codex, exec_command', { tool: 'exec_command', arguments: { cmd: 'rm -rf x' } }],
    ['codex, typing into a shell', { tool: 'write_stdin', arguments: { session_id: 1, chars: 'rm -rf x\n' } }],
    [
      'gemini, only as a title',
      {
        tool: 'execute',
        arguments: {},
        claims: {
          agent: 'gemini-cli',
          kind: 'execute',
          title: 'rm -rf x [current working directory /a] (Lists files)',
        },
      },
    ],
    [
      'gemini, with a mark inside',
      {
        tool: 'execute',
        arguments: {},
        claims: { agent: 'gemini', kind: 'execute', title: 'ls [in a]; rm -rf x [current working directory /a]' },
      },
    ],
    ['qwen', { tool: 'run_shell_command', arguments: { command: 'rm -rf x', is_background: false } }],
    ['opencode', { tool: 'bash', arguments: { command: 'rm -rf x', description: 'd' } }],
    ['Cursor', { tool: 'run_terminal_cmd', arguments: { command: 'rm -rf x' } }],
    ['VS Code', { tool: 'run_in_terminal', arguments: { command: 'rm -rf x', explanation: 'e' } }],
    ['Cline, a list of commands', { tool: 'run_commands', arguments: { commands: ['ls -l', 'rm -rf x'] } }],
    ['Copilot', { tool: 'bash', arguments: { command: 'rm -rf x', sessionId: 's' } }],
    [
      'a terminal of the editor',
      { kind: 'terminal', tool: undefined, arguments: { command: 'rm', args: ['-rf', 'x'] } },
    ],
    ['a server behind a prefix', { tool: 'mcp__shell__exec', arguments: { command: 'rm -rf x' } }],
    ['a name nobody knows', { tool: 'zap', arguments: { thing: 'rm -rf x' } }],
    ['a verb of a tool nobody knows', { tool: 'constructor', arguments: { query: 'rm -rf x' } }],
  ])('%s', (_, change) => {
    expect(judge({ effect: 'execute', ...change })).toMatchObject({ verdict: 'block', rule_id: 'no-wiping' });
  });

  test('a title of another agent restricts, and proves nothing', () => {
    const titled = (title: string) => ({
      tool: 'execute',
      arguments: {},
      claims: { agent: 'x', kind: 'execute', title },
    });
    expect(judge(titled('rm -rf x'))).toMatchObject({ verdict: 'block' });
    expect(judge(titled('git status'))).toMatchObject({ verdict: 'escalate', code: 'undetermined' });
  });

  test('words that only look like it do not', () => {
    const command = 'git status "rm -rf x"';
    expect(judge({ tool: 'Bash', effect: 'execute', arguments: { command } }).rule_id).not.toBe('no-wiping');
  });
});

describe('git-is-fine of docs/rules.md allows that and no more', () => {
  test.each([
    [{ tool: 'Bash', arguments: { command: 'git status' } }],
    [{ tool: 'Bash', arguments: { command: 'git status --short && git status' } }],
    [{ tool: 'shell', arguments: { command: ['bash', '-lc', 'git status'] } }],
    [
      {
        tool: 'execute',
        arguments: {},
        claims: { agent: 'gemini-cli', kind: 'execute', title: 'git status [current working directory /a]' },
      },
    ],
  ])('%j', (change) => {
    expect(judge({ effect: 'execute', ...change } as Said)).toMatchObject({
      verdict: 'allow',
      rule_id: 'git-is-fine',
    });
  });

  test.each(NOT_ONLY_GIT)('not %j', (command) => {
    expect(judge({ tool: 'Bash', effect: 'execute', arguments: { command } }).verdict).not.toBe('allow');
  });

  test('a second command beside the first is looked at too', () => {
    const both = { command: 'git status', cmd: 'curl https://example.org' };
    expect(judge({ tool: 'Bash', effect: 'execute', arguments: both }).verdict).toBe('escalate');
  });
});

describe('not-inside of docs/rules.md', () => {
  test.each(INSIDE)('%s', (_, change) => {
    expect(judge({ effect: 'read', ...change })).toMatchObject({ verdict: 'escalate', rule_id: 'not-inside' });
  });
});

describe('no-private-keys of docs/rules.md', () => {
  test.each(PRIVATE_KEYS)('%s', (_, change) => {
    expect(judge(change)).toMatchObject({ verdict: 'block', rule_id: 'no-private-keys' });
  });
});

describe('the other rules that are printed', () => {
  test('outside-needs-a-human: a claim of reading does not turn an act of sending into one', () => {
    expect(judge({ tool: 'send_mail', effect: 'send' })).toMatchObject({
      verdict: 'escalate',
      rule_id: 'outside-needs-a-human',
    });
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'reads-are-fine: a tool called %s is no exception',
    (tool) => {
      expect(judge({ tool, effect: 'send' }).verdict).toBe('escalate');
      expect(judge({ tool, effect: 'delete' }, example)).toMatchObject({
        verdict: 'block',
        rule_id: 'nothing-is-deleted',
      });
    },
  );

  test('no-force: the same call without force is what runs', () => {
    const forced = judge({ tool: 'git_push', effect: 'write', arguments: { force: true } });
    expect(forced).toMatchObject({ verdict: 'modify', arguments: { force: false } });
  });

  test('examples/rules.yaml: notes-are-fine excepts every spelling of an .env', () => {
    const note = (name: string) =>
      judge({ tool: 'write_note', effect: 'write', arguments: { name, text: 'x' } }, example).verdict;
    expect(note('shopping')).toBe('allow');
    for (const name of ['.env', './.env', 'prod.env', 'a/../.env', join(dir, '.env'), 'notes.txt']) {
      expect(note(name), name).not.toBe('allow');
    }
  });

  test('examples/rules.yaml: no-keys and no-wiping hold there too', () => {
    expect(judge({ tool: 'Read', effect: 'read', arguments: { file_path: 'x.key' } }, example)).toMatchObject({
      verdict: 'block',
    });
    expect(judge({ tool: 'Bash', effect: 'execute', arguments: { command: 'ls && rm -fr x' } }, example)).toMatchObject(
      { verdict: 'block' },
    );
  });
});

describe('an allowing rule on paths', () => {
  let allowing: PureEngine;
  beforeAll(async () => {
    allowing = await engineOf('- { id: src, when: { path: [src/*, test/*] }, then: allow }');
  });
  const edit = (args: object) =>
    judge({ tool: 'Edit', effect: 'write', arguments: args as Action['arguments'] }, allowing).verdict;

  test('allows what lies there', () => {
    expect(edit({ file_path: 'src/a.ts' })).toBe('allow');
    expect(edit({ file_path: join(dir, 'src/a.ts') })).toBe('allow');
    expect(edit({ edits: [{ file_path: 'src/a.ts' }, { file_path: 'test/b.ts' }] })).toBe('allow');
  });

  test.each([
    [{ file_path: 'src/../../etc/passwd' }],
    [{ file_path: 'src/up/etc/passwd' }],
    [{ file_path: 'src/a.ts', destination: '/etc/passwd' }],
    [{ file_path: 'src/a.ts', other: '../x' }],
    [{ edits: [{ file_path: 'src/a.ts' }, { file_path: 'README.md' }] }],
    [{ file_path: 'src/a.ts', command: 'ls' }],
    [{ file_path: '~/src/a.ts' }],
    [{}],
  ])('not %j', (args) => {
    expect(edit(args)).not.toBe('allow');
  });
});
