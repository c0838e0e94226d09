/** Editors put behind the bridge and taken out again: shown first, written when asked to, comments kept, nothing else touched. */
import { lstat, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { adapters } from '../../adapters/index.ts';
import { type InitOptions, init } from '../../src/cli/commands/start/init.ts';
import { EDITORS, type Editor, type EditorLocation } from '../../src/cli/editors/editors.ts';
import {
  add as addTo,
  remove as removeFrom,
  unwrap as unwrapIn,
  wrap as wrapIn,
} from '../../src/cli/editors/settings-edit.ts';
import { createServerNames } from '../../src/cli/editors/wrapped-words.ts';
import { readConfig } from '../../src/runtime/config/config.ts';
import { userPaths } from '../../src/runtime/config/user-paths.ts';
import { mountsOf } from '../../src/runtime/mounts/mounts.ts';

const editor = (name: string) => EDITORS.find((each) => each.name === name) as Editor;
const LOCATION: EditorLocation = { home: '/home/a', cwd: '/repo', platform: 'linux', env: {} };
/** The first list of an editor, to which an entry is added. */
const into = ({ title, lists }: Editor) => ({ title, list: lists(LOCATION)[0] });
const wrap = (text: string, where: Editor, ours: readonly string[]) =>
  wrapIn(text, into(where).list, { ours, names: createServerNames(), init: `tollbridge init ${where.name}` });
const unwrap = (text: string, where: Editor) => unwrapIn(text, into(where).list);
const add = (text: string, where: Editor, name: string, command: readonly string[], ours: readonly string[]) =>
  addTo(text, into(where), name, command, ours);
const remove = (text: string, where: Editor, name: string, command: readonly string[]) =>
  removeFrom(text, into(where), name, command);

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
      member: 'agent_servers',
      entry: 'Claude',
      before: ['npx', '@example/claude-acp', '--fast'],
      after: ['tollbridge', 'acp', '--', 'npx', '@example/claude-acp', '--fast'],
    },
  ]);
  expect(wrapped.left).toEqual([{ member: 'agent_servers', entry: 'Remote', why: 'it starts no command' }]);
  expect(wrapped.text).toContain('// how I like it');
  expect(wrapped.text).toContain('// mine');
  expect(wrapped.text).toContain('"env": { "A": "1" }');
  expect(wrap(wrapped.text, editor('zed'), ['tollbridge']).changes).toEqual([]);
  const back = unwrap(wrapped.text, editor('zed'));
  expect(back.changes[0]?.after).toEqual(['npx', '@example/claude-acp', '--fast']);
  expect(back.text).toBe(ZED);
});

test.each([
  [
    '{ "mcpServers": { "a": { "command": "x" } } }',
    '{ "mcpServers": { "a": { "command": "tollbridge", "args": ["mcp", "--name", "a", "--", "x"] } } }',
  ],
  [
    '{\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"args": [\n\t\t\t\t"-v" // loud\n\t\t\t],\n\t\t\t"command": "x"\n\t\t}\n\t}\n}\n',
    '{\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"args": [\n\t\t\t\t"mcp", "--name", "a", "--", "x", "-v" // loud\n\t\t\t],\n\t\t\t"command": "tollbridge"\n\t\t}\n\t}\n}\n',
  ],
  [
    '{"mcpServers":{"a":{"command":"x","args":[]},"b":{"command":"y","args":["1","2"]}}}',
    '{"mcpServers":{"a":{"command":"tollbridge","args":["mcp", "--name", "a", "--", "x"]},"b":{"command":"tollbridge","args":["mcp", "--name", "b", "--", "y", "1","2"]}}}',
  ],
])('whatever the layout, only the words change, and come back byte for byte: %j', (before, after) => {
  const wrapped = wrap(before, editor('cursor'), ['tollbridge']);
  expect(wrapped.text).toBe(after);
  expect(unwrap(wrapped.text, editor('cursor')).text).toBe(before);
});

test('an entry that was added is taken away again by the same words, and no other is', () => {
  const before = '{\n    // mine\n    "agent_servers": {\n        "a": { "command": "b" }\n    }\n}\n';
  const made = add(before, editor('zed'), 'coder', ['npx', 'coder'], ['tollbridge']);
  expect(made.text).toContain('        "coder": {\n            "type": "custom",\n');
  const gone = remove(made.text, editor('zed'), 'coder', ['npx', 'coder']);
  expect(gone.text).toBe(before);
  expect(gone.changes).toEqual([
    { member: 'agent_servers', entry: 'coder', before: ['tollbridge', 'acp', '--', 'npx', 'coder'], after: undefined },
  ]);
  for (const [name, command] of [
    ['coder', ['other']],
    ['a', ['b']],
    ['none', ['x']],
  ] as const) {
    expect(() => remove(made.text, editor('zed'), name, command)).toThrow('with this command behind tollbridge');
  }
});

test.each([
  '{}',
  '{ "theme": "dark" }\n',
  '{\n  "mcpServers": {} // none yet\n}\n',
  '{\n  "mcpServers": {\n    "a": { "command": "x" }, // mine\n  },\n}\n',
  '{\n  "mcpServers": {\n    "a": { "command": "x" } // mine\n  }\n}\n',
  '{\r\n\t"mcpServers": {\r\n\t\t"a": { "command": "x" }\r\n\t}\r\n}\r\n',
  '{"mcpServers":{"a":{"command":"x"}}}',
])('one more, and one less again: %j', (before) => {
  const made = add(before, editor('cursor'), 'new', ['y', '-z'], ['tollbridge']);
  const back = remove(made.text, editor('cursor'), 'new', ['y', '-z']).text;
  expect(wrap(made.text, editor('cursor'), ['tollbridge']).left.map(({ entry }) => entry)).toEqual(['new']);
  expect(made.text).toContain(
    before.includes('// mine') ? '// mine\n    "new": {\n      "command": "tollbridge"' : '"new"',
  );
  if (before.includes('mcpServers')) expect(back).toBe(before);
  else expect(JSON.parse(back)).toEqual({ ...JSON.parse(before), mcpServers: {} });
});

test.each([
  ['{"mcpServers":[1]}', 'mcpServers is not an object; mend it first'],
  ['[]', 'the settings are not an object; mend them first'],
  ['{"mcpServers":', 'line 1 cannot be read (ValueExpected); mend it first'],
])('settings that are broken are left alone: %s', (text, said) => {
  expect(() => wrap(text, editor('cursor'), ['tollbridge'])).toThrow(said);
});

test('an agent of the registry or of an extension is left, and it is said how to have it behind the bridge', () => {
  const text = '{"agent_servers":{"claude-acp":{"type":"registry"},"Mine":{"type":"extension"}}}';
  const { left, changes, text: after } = wrap(text, editor('zed'), ['tollbridge']);
  expect([changes, after]).toEqual([[], text]);
  expect(left.map(({ why }) => why)).toEqual([
    expect.stringMatching(
      /from its registry; .* init zed --name claude-acp-tollbridge -- npx -y @agentclientprotocol\/claude-agent-acp$/,
    ),
    expect.stringMatching(/from an extension; .* --name Mine-tollbridge -- <the agent's command>$/),
  ]);
});

test.each([
  ['jetbrains', 'the ACP registry and those the IDE brings along'],
  ['vscode', 'an extension itself, such as the defaults of ACP Client,'],
])(
  'agents of %s that are in no file: it is said how to have them behind the bridge, with the same options',
  async (where, from) => {
    const dir = await aLocation();
    const file = join(dir, 'settings.json');
    const kept = { config: join(dir, 'own.yaml'), data: join(dir, 'data') };
    const init = `init ${where} --config ${kept.config} --data ${kept.data} --settings ${file}`;
    const lines = [
      `Agents from ${from} are in no settings file.`,
      `${init} --name claude-tollbridge -- npx -y @agentclientprotocol/claude-agent-acp`,
      `${init} --name NAME-tollbridge -- <the agent's command>`,
    ];
    const { details } = await run(where, file, kept).catch((thrown) => thrown);
    for (const line of lines) expect(details.fix).toContain(line);
    // The command that is printed does what it says, and the next run leaves its entry alone.
    const command = ['npx', '-y', '@agentclientprotocol/claude-agent-acp'];
    await run(where, file, { ...kept, name: 'claude-tollbridge', write: true }, command);
    const [entries] = Object.values(JSON.parse(await readFile(file, 'utf8'))) as Record<string, { args: string[] }>[];
    expect(entries?.['claude-tollbridge']?.args).toEqual(
      expect.arrayContaining(['--config', kept.config, '--data', kept.data, 'acp', '--', ...command]),
    );
    const again = await run(where, file, kept);
    expect(again).toContain('claude-tollbridge: left as it is, it already goes through tollbridge');
    for (const line of lines) expect(again).toContain(line);
  },
);

test("agents of VS Code's extensions are found under each name, in the file of the person and of the project", () => {
  const lists = editor('vscode')
    .lists(LOCATION)
    .filter(({ speaks }) => speaks === 'acp');
  expect(lists.map(({ file, path }) => [file, ...path])).toEqual([
    ['/home/a/.config/Code/User/settings.json', 'acp.agents'],
    ['/repo/.vscode/settings.json', 'acp.agents'],
    ['/home/a/.config/Code/User/settings.json', 'agent_servers'],
    ['/repo/.vscode/settings.json', 'agent_servers'],
  ]);
});

test('a command whose words are no list is left as it is', () => {
  const { left, changes } = wrap('{"mcpServers":{"a":{"command":"x","args":"y"}}}', editor('cursor'), ['tollbridge']);
  expect([left, changes]).toEqual([[{ member: 'mcpServers', entry: 'a', why: 'it starts no command' }], []]);
});

test('however the bridge is started, what it stands in front of is found again', () => {
  const settings = '{"mcpServers":{"files":{"command":"server","args":["-v","--","x"]}}}';
  for (const ours of [
    ['tollbridge'],
    ['npx', '-y', 'tollbridge'],
    ['/usr/bin/node', '/home/a/bridge/dist/src/main.js'],
  ]) {
    const wrapped = wrap(settings, editor('cursor'), ours);
    expect(wrapped.changes[0]?.after).toEqual([...ours, 'mcp', '--name', 'files', '--', 'server', '-v', '--', 'x']);
    expect(unwrap(wrapped.text, editor('cursor')).changes[0]?.after).toEqual(['server', '-v', '--', 'x']);
  }
});

test('what a person put behind the bridge by hand, with options, is neither put there twice nor taken out', () => {
  const settings = '{"agent_servers":{"a":{"command":"tollbridge","args":["acp","--stall","10m","--","x"]}}}';
  for (const [edit, why] of [
    [wrap(settings, editor('zed'), ['tollbridge']), 'it already goes through tollbridge'],
    [unwrap(settings, editor('zed')), 'its options were written by hand'],
  ] as const) {
    expect(edit).toEqual({ text: settings, changes: [], left: [{ member: 'agent_servers', entry: 'a', why }] });
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
  ['zed', 'win32', '/roaming/Zed/settings.json'],
  ['vscode', 'win32', '/roaming/Code/User/settings.json'],
  ['claude-desktop', 'win32', '/roaming/Claude/claude_desktop_config.json'],
  ['jetbrains', 'win32', '/home/a/.jetbrains/acp.json'],
  ['cursor', 'win32', '/home/a/.cursor/mcp.json'],
  ['claude-code', 'linux', '/repo/.mcp.json'],
  ['cursor', 'linux', '/home/a/.cursor/mcp.json'],
] as const)('%s on %s keeps its settings in %s', (name, platform, path) => {
  const location: EditorLocation = { home: '/home/a', cwd: '/repo', platform, env: { APPDATA: '/roaming' } };
  expect(editor(name).lists(location)[0].file).toBe(path);
});

/** A directory that is gone afterwards, with tollbridge on the path and a place for the person's own configuration. */
async function aLocation(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-init-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  vi.stubEnv('PATH', dir);
  vi.stubEnv('HOME', dir);
  vi.stubEnv('XDG_CONFIG_HOME', join(dir, '.config'));
  onTestFinished(() => void vi.unstubAllEnvs());
  await writeFile(join(dir, 'tollbridge'), '', { mode: 0o755 });
  return dir;
}

async function run(
  where: string | undefined,
  settings: string,
  options: InitOptions = {},
  command: readonly string[] = [],
) {
  const out = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    await init(where, command, { settings, ...options });
    return out.mock.calls.map(([text]) => String(text)).join('');
  } finally {
    out.mockRestore();
  }
}

test('it shows first, writes when asked to, keeps the mode of the file, and undoes', async () => {
  const dir = await aLocation();
  const file = join(dir, 'settings.json');
  await writeFile(file, ZED, { mode: 0o640 });

  const shown = await run('zed', file);
  expect(shown).toContain('  agent_servers > Claude\n  - npx @example/claude-acp --fast\n');
  expect(shown).toContain('  + tollbridge acp -- npx @example/claude-acp --fast\n');
  expect(shown).toContain(` init zed --settings ${file} --write\n`);
  expect(await readFile(file, 'utf8')).toBe(ZED);

  expect(await run('zed', file, { write: true })).toContain(` init zed --settings ${file} --undo --write\n`);
  expect(await readFile(file, 'utf8')).toContain('"command": "tollbridge"');
  expect((await stat(file)).mode & 0o777).toBe(0o640);
  expect(await run('zed', file, { write: true })).toContain('Nothing to change.');

  expect(JSON.parse(await run('zed', file, { undo: true, json: true }))).toMatchObject({
    editor: 'zed',
    written: false,
  });
  expect(await run('zed', file, { undo: true, write: true })).toContain('Undone. Now open a new agent thread in Zed.');
  expect(await readFile(file, 'utf8')).toBe(ZED);
});

test('settings that are a link stay one, and what was added is undone by the line it prints', async () => {
  const dir = await aLocation();
  const kept = join(dir, 'kept.json');
  const link = join(dir, 'settings.json');
  await writeFile(kept, '{}\n');
  await symlink(kept, link);
  const said = await run('cursor', link, { write: true }, ['my-server', '--root', '/srv']);
  expect(said).toMatch(/To undo it: .* init cursor --settings \S+ --undo --write -- my-server --root \/srv\n/);
  expect((await lstat(link)).isSymbolicLink()).toBe(true);
  expect(JSON.parse(await readFile(kept, 'utf8')).mcpServers['my-server']).toBeDefined();
  const undone = await run('cursor', link, { write: true, undo: true }, ['my-server', '--root', '/srv']);
  expect(undone).toMatch(
    / {2}mcpServers > my-server\n {2}- .*mcp --name my-server -- my-server --root \/srv\n\nUndone\. /,
  );
  expect(JSON.parse(await readFile(kept, 'utf8')).mcpServers).toEqual({});
});

test('the first one makes the configuration of the person, which says nothing yet; a later one leaves it alone', async () => {
  const dir = await aLocation();
  const own = userPaths().file;
  expect(own.startsWith(dir)).toBe(true);
  const settings = join(dir, 'settings.json');
  await writeFile(settings, ZED);
  await run('zed', settings);
  await expect(stat(own)).rejects.toThrow('ENOENT');
  expect(await run('zed', settings, { write: true })).toMatch(/^Your own configuration was made: ~\/.+\n\nZed: /);
  expect((await stat(own)).mode & 0o777).toBe(0o600);
  const config = await readConfig({ env: {}, cwd: dir, user: userPaths() });
  expect([config.file, config.written]).toEqual([own, {}]);
  await writeFile(own, 'rules: []\n');
  expect(await run(undefined, settings)).toContain('Your configuration is there already: ~/');
  expect(await readFile(own, 'utf8')).toBe('rules: []\n');
});

test('every section the first configuration shows is one that can be used', async () => {
  const dir = await aLocation();
  expect(await run(undefined, '')).toContain('Your configuration was made: ~/');
  const text = await readFile(userPaths().file, 'utf8');
  const used = text.replace(/^# ((?:rules|agents|tools|listen):.*| {2}.*)$/gm, '$1');
  const file = join(dir, 'used.yaml');
  await writeFile(file, used);
  const config = await readConfig({ env: {}, cwd: dir, file });
  expect(Object.keys(config.written).sort()).toEqual(['agents', 'listen', 'rules', 'tools']);
  mountsOf(config, adapters);
});

test('what it does not know, cannot read or finds empty is one sentence with a way on', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-init-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, 'settings.json');
  await expect(run('emacs', file)).rejects.toThrow(
    'emacs is not an editor or agent this knows; it knows: zed, jetbrains, vscode, claude-desktop, claude-code, cursor, neovim',
  );
  await expect(run('zed', file)).rejects.toThrow(
    /names no agent yet; add one with: .* init zed --settings \S+ -- <the agent's command>/,
  );
  await writeFile(file, '{\n  "agent_servers": {\n');
  await expect(run('zed', file)).rejects.toThrow(
    /settings\.json: line 3 cannot be read \(CloseBraceExpected\); mend it first/,
  );
  expect(
    await run('jetbrains', file.replace('settings', 'none'), { name: 'my coder' }, ['npx', 'coder', '-x']),
  ).toContain('--write --name "my coder" -- npx coder -x\n');
});
