/** Neovim: a file of our own that it loads by itself, shown first, written when asked for, and taken away again. The user's Lua is never touched. */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type InitOptions, init } from '../../src/cli/commands/start/init.ts';
import type { EditorLocation } from '../../src/cli/editors/editors.ts';
import { neovimFile } from '../../src/cli/editors/neovim.ts';
import { luaFor } from '../../src/cli/editors/neovim-lua.ts';
import { aDirectory, typed } from '../support/process/cli.ts';

/** A home with Neovim in it, and tollbridge on the path. */
async function aHome() {
  const dir = await aDirectory();
  await mkdir(join(dir, 'bin'));
  await writeFile(join(dir, 'bin', 'tollbridge'), '', { mode: 0o755 });
  vi.stubEnv('PATH', join(dir, 'bin'));
  vi.stubEnv('XDG_CONFIG_HOME', dir);
  vi.stubEnv('NVIM_APPNAME', '');
  onTestFinished(() => void vi.unstubAllEnvs());
  const run = (options: InitOptions = {}, command: readonly string[] = []) =>
    typed(() => init('neovim', command, options));
  return { dir, file: join(dir, 'nvim', 'plugin', 'tollbridge.lua'), run };
}

test('it is shown line by line, written when asked for, and gone again when undone', async () => {
  const { dir, file, run } = await aHome();
  const { out } = await run();
  expect(out).toContain(
    '  + local ours = { "tollbridge", "acp", "--" }\n  + local every = true\n  + local agents = {}\n',
  );
  expect(out).toMatch(/\nNothing is written yet\. To write it: .* init neovim --write\n$/);
  expect(existsSync(file)).toBe(false);

  const written = await run({ write: true });
  expect(written.out).toMatch(/\nWritten\. Now start Neovim again\.\nTo undo it: .* init neovim --undo --write\n$/);
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  // What was shown is what was written, to the last line.
  expect(out.split('\n').filter((line) => line.startsWith('  +'))).toEqual(
    lines.map((line) => `  + ${line}`.trimEnd()),
  );
  expect((await run({ write: true })).out).toMatch(/\nNothing to change\.\n$/);

  const back = await run({ undo: true });
  expect(back.out.split('\n').filter((line) => line.startsWith('  -'))).toHaveLength(lines.length);
  expect(existsSync(file)).toBe(true);
  expect((await run({ undo: true, write: true })).out).toMatch(/\nUndone\. Now start Neovim again\.\n$/);
  expect(await readdir(join(dir, 'nvim', 'plugin'))).toEqual([]);
  expect((await run({ undo: true, write: true })).out).toMatch(/\nNothing to change\.\n$/);
});

test('an agent that is added is taken away by the line that is printed, and what was there comes back byte for byte', async () => {
  const { file, run } = await aHome();
  await run({ write: true });
  const before = await readFile(file, 'utf8');
  const added = await run({ write: true }, ['npx', 'coder', '--say', 'a "b" \\ \u0001']);
  expect(added.out).toContain('  +   ["coder"] = { "npx", "coder", "--say", "a \\"b\\" \\\\ \\001" },\n');
  expect(added.out).toContain('Choose it with :CodeCompanionChat adapter=coder, or :AvanteSwitchProvider.\n');
  expect(added.out).toMatch(/To undo it: .* init neovim --undo --write -- npx coder --say /);
  expect(await run({ write: true }, ['coder'])).toMatchObject({
    code: 4,
    err: expect.stringContaining('Neovim already has an agent coder; give this one another name with --name'),
  });
  expect(await run({ write: true, undo: true }, ['npx', 'coder'])).toMatchObject({
    code: 3,
    err: expect.stringContaining('Neovim has no agent coder with this command behind tollbridge'),
  });
  await run({ write: true, undo: true }, ['npx', 'coder', '--say', 'a "b" \\ \u0001']);
  expect(await readFile(file, 'utf8')).toBe(before);
});

test('agents that were added stay when the others are taken out, and the file goes with the last of them', async () => {
  const { file, run } = await aHome();
  await run({ write: true });
  await run({ write: true, name: 'mine' }, ['coder']);
  await run({ write: true, undo: true });
  expect(await readFile(file, 'utf8')).toContain(
    'local every = false\nlocal agents = {\n  ["mine"] = { "coder" },\n}\n',
  );
  const last = await run({ write: true, undo: true, name: 'mine', json: true }, ['coder']);
  expect(JSON.parse(last.out)).toEqual({
    editor: 'neovim',
    file,
    written: true,
    changes: [{ entry: 'mine', before: ['tollbridge', 'acp', '--', 'coder'] }],
    left: [],
  });
  expect(existsSync(file)).toBe(false);
  expect(JSON.parse((await run({ json: true })).out)).toMatchObject({
    written: false,
    changes: [{ entry: '*', after: ['tollbridge', 'acp', '--'] }],
  });
});

test.each([
  ['print("mine")\n', 'was not written by tollbridge; name another file with --settings'],
  [`${luaFor({ every: true, agents: {} }, ['tollbridge'])}print("mine")\n`, 'was changed since tollbridge wrote it'],
])('what another caller wrote is neither overwritten nor removed (%#)', async (text, said) => {
  const { file, run } = await aHome();
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
  for (const undo of [false, true]) {
    expect(await run({ write: true, undo })).toMatchObject({ code: 4, err: expect.stringContaining(said) });
    expect(await readFile(file, 'utf8')).toBe(text);
  }
});

test.each([
  ['linux', {}, '/home/a/.config/nvim/plugin/tollbridge.lua'],
  ['darwin', {}, '/home/a/.config/nvim/plugin/tollbridge.lua'],
  ['linux', { XDG_CONFIG_HOME: '/cfg', NVIM_APPNAME: 'lazy' }, '/cfg/lazy/plugin/tollbridge.lua'],
  ['win32', { LOCALAPPDATA: '/local' }, '/local/nvim/plugin/tollbridge.lua'],
] as const)('on %s with %j it is in %s', (platform, env, path) => {
  const location: EditorLocation = { home: '/home/a', cwd: '/repo', platform, env };
  expect(neovimFile(location)).toBe(path);
});

/** The plugins, as far as the file has to do with them: set up when they are loaded, resolved and read when an agent is started. */
const PLUGINS: Readonly<Record<string, string>> = {
  'codecompanion/config.lua': `local M = {}
    M.setup = function(mine)
      M.adapters = { acp = vim.tbl_extend("force", { gemini = "gemini", goose = "goose" }, mine) }
    end
    return M`,
  'codecompanion/adapters/acp/init.lua': `local M = {}
    local known = {
      gemini = { name = "gemini", commands = { default = { "gemini", "--acp" }, yolo = { "gemini", "--yolo" } } },
      goose = { name = "goose", commands = { default = { "goose", "acp" } } },
    }
    M.extend = function(name, more) return vim.tbl_deep_extend("force", vim.deepcopy(known[name]), more or {}) end
    M.resolve = function(name)
      local found = require("codecompanion.config").adapters.acp[name]
      return type(found) == "function" and found() or M.extend(found)
    end
    return M`,
  'avante/config.lua': `local M = {}
    M.setup = function(mine)
      M.acp_providers = vim.tbl_extend("force", { goose = { command = "goose", args = { "acp" } } }, mine)
    end
    M.override = M.setup
    return M`,
};

const NEOVIM = 'nvim';

const STARTED = `
  require("codecompanion.config").setup({
    own = function() return { name = "own", commands = { default = { "tollbridge", "acp", "--hide-always", "--", "own" } } } end,
  })
  local resolve = require("codecompanion.adapters.acp").resolve
  local started = { companion = {}, avante = {} }
  for _, name in ipairs({ "gemini", "goose", "own", "mine" }) do started.companion[name] = resolve(name).commands end
  local avante = require("avante.config")
  avante.setup({})
  avante.setup({ late = { command = "late" } })
  for name, provider in pairs(avante.acp_providers) do
    started.avante[name] = vim.list_extend({ provider.command }, provider.args)
  end
  io.stdout:write(vim.fn.json_encode(started))`;

async function inNeovim(dir: string, lua: string, plugins: Readonly<Record<string, string>>) {
  for (const [name, text] of Object.entries(plugins)) {
    const file = join(dir, 'nvim', 'lua', name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  await writeFile(join(dir, 'try.lua'), lua);
  const env = { PATH: process.env.PATH, HOME: dir, XDG_CONFIG_HOME: dir, TOLLBRIDGE_DATA: '/data' };
  const args = ['--headless', '-i', 'NONE', '-c', `luafile ${join(dir, 'try.lua')}`, '-c', 'qa!'];
  return await promisify(execFile)(NEOVIM, args, { env });
}

// Where there is no Neovim the file is only read, as above.
if (spawnSync(NEOVIM, ['--version']).status === 0) {
  test('Neovim starts every agent through us, whenever its plugins are loaded and however often they are set up', async () => {
    const { PATH } = process.env;
    const { dir, run } = await aHome();
    await run({ write: true });
    await run({ write: true, name: 'mine' }, ['my "agent"']);
    vi.stubEnv('PATH', PATH);
    const { stdout } = await inNeovim(dir, STARTED, PLUGINS);
    const ours = ['tollbridge', 'acp', '--'];
    expect(JSON.parse(stdout)).toEqual({
      companion: {
        gemini: { default: [...ours, 'gemini', '--acp'], yolo: [...ours, 'gemini', '--yolo'] },
        goose: { default: [...ours, 'goose', 'acp'] },
        own: { default: ['tollbridge', 'acp', '--hide-always', '--', 'own'] },
        mine: { default: [...ours, 'my "agent"'] },
      },
      avante: { goose: [...ours, 'goose', 'acp'], late: [...ours, 'late'], mine: [...ours, 'my "agent"'] },
    });
  });

  test('a plugin that has become another is said to go round us, one that breaks says why, and one that is not there is not missed', async () => {
    const { PATH } = process.env;
    const { dir, run } = await aHome();
    await run({ write: true });
    vi.stubEnv('PATH', PATH);
    const lua = `local warned = false
      vim.notify = function(what) warned = io.stdout:write(what, "|") end
      require("avante.config")
      vim.wait(10000, function() return warned end)
      io.stdout:write(tostring(select(2, pcall(require, "codecompanion.config"))))
      io.stdout:write("|", tostring(pcall(require, "codecompanion.adapters.acp")))`;
    const { stdout } = await inNeovim(dir, lua, {
      'avante/config.lua': 'return {}',
      'codecompanion/config.lua': 'error("out of order")',
    });
    const [warned, broken, absent] = stdout.split('|');
    expect(warned).toBe('tollbridge: this Avante is not known, and its agents do not go through it');
    expect(broken).toMatch(/codecompanion\/config\.lua:1: out of order$/);
    expect(absent).toBe('false');
  });
}
