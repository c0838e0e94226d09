/** Editors put behind the bridge and taken out again: shown first, written when asked to, comments kept, nothing else touched. */
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { add, EDITORS, type Editor, type Place, unwrap, wrap } from '../src/cli/editors.ts';
import { type InitOptions, init } from '../src/cli/init.ts';

const editor = (name: string) => EDITORS.find((each) => each.name === name) as Editor;

const ZED = `{
  // how I like it
  "theme": "One Dark",
  "agent_servers": {
    "Claude": { "type": "custom", "command": "npx", "args": ["@example/claude-acp", "--fast"], "env": { "A": "1" } }, // mine
    "Remote": { "url": "https://agent.example" },
  },
}
`;

test('a command goes behind the bridge and comes out as it was, comments and all', () => {
  const wrapped = wrap(ZED, editor('zed'), ['tollbridge']);
  expect(wrapped.changes).toEqual([
    {
      entry: 'Claude',
      before: ['npx', '@example/claude-acp', '--fast'],
      after: ['tollbridge', 'acp', '--', 'npx', '@example/claude-acp', '--fast'],
    },
  ]);
  expect(wrapped.left).toEqual([{ entry: 'Remote', why: 'it starts no command' }]);
  expect(wrapped.text).toContain('// how I like it');
  expect(wrapped.text).toContain('// mine');
  expect(wrapped.text).toContain('"env": { "A": "1" }');
  expect(wrap(wrapped.text, editor('zed'), ['tollbridge']).changes).toEqual([]);
  const back = unwrap(wrapped.text, editor('zed'));
  expect(back.changes[0]?.after).toEqual(['npx', '@example/claude-acp', '--fast']);
  expect(back.text.replace(/\s/g, '')).toBe(ZED.replace(/\s/g, ''));
});

test('however the bridge is started, what it stands in front of is found again', () => {
  const settings = '{"mcpServers":{"files":{"command":"server","args":["-v","--","x"]}}}';
  for (const ours of [['tollbridge'], ['npx', '-y', 'tollbridge'], ['/usr/bin/node', '/opt/tollbridge/main.js']]) {
    const wrapped = wrap(settings, editor('cursor'), ours);
    expect(wrapped.changes[0]?.after).toEqual([...ours, 'mcp', '--', 'server', '-v', '--', 'x']);
    expect(unwrap(wrapped.text, editor('cursor')).changes[0]?.after).toEqual(['server', '-v', '--', 'x']);
  }
});

test('a new entry is added where there was none, and never over another', () => {
  const made = add('', editor('jetbrains'), 'coder', ['npx', 'coder'], ['tollbridge']);
  expect(JSON.parse(made.text)).toEqual({
    agent_servers: { coder: { command: 'tollbridge', args: ['acp', '--', 'npx', 'coder'] } },
  });
  expect(() => add(made.text, editor('jetbrains'), 'coder', ['x'], ['tollbridge'])).toThrow(
    'JetBrains IDEs already has an entry coder; give this one another name with --name',
  );
  expect(JSON.parse(add('{}', editor('zed'), 'a', ['b'], ['tollbridge']).text).agent_servers.a.type).toBe('custom');
  expect(JSON.parse(add('{}', editor('vscode'), 'a', ['b'], ['t']).text)).toEqual({
    'acp.agents': { a: { command: 't', args: ['acp', '--', 'b'] } },
  });
});

test.each([
  ['zed', 'linux', '/home/a/.config/zed/settings.json'],
  ['zed', 'darwin', '/home/a/.config/zed/settings.json'],
  ['jetbrains', 'linux', '/home/a/.jetbrains/acp.json'],
  ['vscode', 'linux', '/home/a/.config/Code/User/settings.json'],
  ['vscode', 'darwin', '/home/a/Library/Application Support/Code/User/settings.json'],
  ['claude-desktop', 'darwin', '/home/a/Library/Application Support/Claude/claude_desktop_config.json'],
  ['claude-desktop', 'linux', '/home/a/.config/Claude/claude_desktop_config.json'],
  ['claude-code', 'linux', '/repo/.mcp.json'],
  ['cursor', 'linux', '/home/a/.cursor/mcp.json'],
] as const)('%s on %s keeps its settings in %s', (name, platform, path) => {
  const place: Place = { home: '/home/a', cwd: '/repo', platform, env: {} };
  expect(editor(name).settings(place)).toBe(path);
});

async function run(where: string, settings: string, options: InitOptions = {}, command: readonly string[] = []) {
  const out = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    await init(where, command, { settings, ...options });
    return out.mock.calls.map(([text]) => String(text)).join('');
  } finally {
    out.mockRestore();
  }
}

test('it shows first, writes when asked to, keeps the mode of the file, and undoes', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-init-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  vi.stubEnv('PATH', dir);
  onTestFinished(() => void vi.unstubAllEnvs());
  await writeFile(join(dir, 'tollbridge'), '', { mode: 0o755 });
  const file = join(dir, 'settings.json');
  await writeFile(file, ZED, { mode: 0o640 });

  const shown = await run('zed', file);
  expect(shown).toContain('  agent_servers > Claude\n  - npx @example/claude-acp --fast\n');
  expect(shown).toContain('  + tollbridge acp -- npx @example/claude-acp --fast\n');
  expect(shown).toContain(`Nothing is written yet. To write it: tollbridge init zed --settings ${file} --write\n`);
  expect(await readFile(file, 'utf8')).toBe(ZED);

  expect(await run('zed', file, { write: true })).toContain(
    `To undo it: tollbridge init zed --settings ${file} --undo --write\n`,
  );
  expect(await readFile(file, 'utf8')).toContain('"command": "tollbridge"');
  expect((await stat(file)).mode & 0o777).toBe(0o640);
  expect(await run('zed', file, { write: true })).toContain('Nothing to change.');

  expect(JSON.parse(await run('zed', file, { undo: true, json: true }))).toMatchObject({
    editor: 'zed',
    written: false,
  });
  expect(await run('zed', file, { undo: true, write: true })).toContain('Undone. Now open a new agent thread in Zed.');
  expect((await readFile(file, 'utf8')).replace(/\s/g, '')).toBe(ZED.replace(/\s/g, ''));
});

test('what it does not know, cannot read or finds empty is one sentence with a way on', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-init-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, 'settings.json');
  await expect(run('emacs', file)).rejects.toThrow(
    'emacs is not an editor or agent this knows; it knows: zed, jetbrains, vscode, claude-desktop, claude-code, cursor, neovim',
  );
  await expect(run('zed', file)).rejects.toThrow(
    "names no agent yet; add one with: tollbridge init zed -- <the agent's command>",
  );
  await writeFile(file, '{\n  "agent_servers": {\n');
  await expect(run('zed', file)).rejects.toThrow(
    /settings\.json: line 3 cannot be read \(CloseBraceExpected\); mend it first/,
  );
  expect(
    await run('jetbrains', file.replace('settings', 'none'), { name: 'my coder' }, ['npx', 'coder', '-x']),
  ).toContain('--write --name "my coder" -- npx coder -x\n');
  expect(await run('neovim', file, {}, ['npx', 'coder'])).toContain('"acp", "--", "npx", "coder"');
});
