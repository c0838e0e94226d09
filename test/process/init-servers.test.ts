/** Servers are found in every file and scope a client has, commands and addresses, and come out again byte for byte. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { addressedUpstream } from '../../src/cli/commands/mcp/addressed.ts';
import { init } from '../../src/cli/commands/start/init.ts';

/** A home and a project with these files; every path of the editors leads there. */
async function aHome(files: Readonly<Record<string, string>>) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-servers-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const project = join(dir, 'project');
  await mkdir(project);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text.replaceAll('PROJECT', project));
  }
  await writeFile(join(dir, 'tollbridge'), '', { mode: 0o755 });
  vi.stubEnv('PATH', dir);
  vi.stubEnv('HOME', dir);
  vi.stubEnv('XDG_CONFIG_HOME', join(dir, '.config'));
  vi.stubEnv('CLAUDE_CONFIG_DIR', '');
  vi.spyOn(process, 'cwd').mockReturnValue(project);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });
  const all = async () =>
    Object.fromEntries(
      await Promise.all(Object.keys(files).map(async (path) => [path, await readFile(join(dir, path), 'utf8')])),
    );
  return { dir, project, all, read: async (path: string) => JSON.parse(await readFile(join(dir, path), 'utf8')) };
}

async function run(where: string, options: Parameters<typeof init>[2] = {}): Promise<string> {
  const out = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    await init(where, [], options);
    return out.mock.calls.map(([text]) => String(text)).join('');
  } finally {
    out.mockRestore();
  }
}

const OURS = (...words: readonly string[]) => ({ command: 'tollbridge', args: ['mcp', ...words] });

/** As `claude mcp add` writes them in the scopes project, user and local. */
const CLAUDE = {
  'project/.mcp.json': `{
  "mcpServers": {
    "files": { "type": "stdio", "command": "npx", "args": ["-y", "server-files", "."], "env": { "ROOT": "\${ROOT:-/srv}" } },
    "search": {
      "type": "http",
      "url": "https://search.example/mcp",
      "headers": {
        "Authorization": "Bearer \${SEARCH_TOKEN}",
        "X-Team": "blue"
      }
    }
  }
}
`,
  '.claude.json': `{
  "numStartups": 7,
  "mcpServers": {
    "files": { "type": "stdio", "command": "docker", "args": ["run", "-i", "mcp/files"], "env": {} },
    "git": { "type": "stdio", "command": "docker", "args": ["run", "-i", "mcp/git"], "env": {} },
    "old": { "type": "sse", "url": "https://old.example/sse" }
  },
  "projects": {
    "PROJECT": {
      "allowedTools": [],
      "mcpServers": {
        "db": { "type": "stdio", "command": "uvx", "args": ["mcp-db"], "env": { "DB": "x" } },
        "made": { "type": "http", "url": "https://made.example/mcp", "headersHelper": "./token.sh" }
      },
      "history": []
    },
    "/elsewhere": { "mcpServers": { "files": { "command": "npx", "args": ["-y", "server-files", "."] } } },
    "/none": {}
  }
}
`,
};

test('Claude Code: the project, user and local scopes, two servers of one program, and servers at an address', async () => {
  const { all, read, project } = await aHome(CLAUDE);
  const before = await all();
  const said = await run('claude-code', { write: true });
  expect(said).toContain('projects > /elsewhere > mcpServers > files\n');
  expect(said).toContain('made: left as it is, only the client itself can use its headersHelper');

  const shared = (await read('project/.mcp.json')).mcpServers;
  expect(shared.files).toEqual({
    type: 'stdio',
    ...OURS('--name', 'files', '--', 'npx', '-y', 'server-files', '.'),
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the client resolves it.
    env: { ROOT: '${ROOT:-/srv}' },
  });
  expect(shared.search).toEqual({
    type: 'stdio',
    ...OURS(
      ...['--name', 'search', '--url', 'https://search.example/mcp'],
      ...['--header-env', 'Authorization=TOLLBRIDGE_HEADER_1', '--header-env', 'X-Team=TOLLBRIDGE_HEADER_2'],
    ),
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the client resolves it.
    env: { TOLLBRIDGE_HEADER_1: 'Bearer ${SEARCH_TOKEN}', TOLLBRIDGE_HEADER_2: 'blue' },
  });
  const own = await read('.claude.json');
  // Another server that is called files too has another name: its tools, and their definitions, are others.
  expect(own.mcpServers.files.args.slice(0, 4)).toEqual(['mcp', '--name', 'files-2', '--']);
  expect(own.mcpServers.git.args.slice(0, 4)).toEqual(['mcp', '--name', 'git', '--']);
  expect(own.mcpServers.old).toEqual({
    type: 'stdio',
    ...OURS('--name', 'old', '--url', 'https://old.example/sse', '--transport', 'sse'),
  });
  expect(own.projects[project].mcpServers.db).toMatchObject(OURS('--name', 'db', '--', 'uvx', 'mcp-db'));
  // The same server has the same name.
  expect(own.projects['/elsewhere'].mcpServers.files.args.slice(0, 3)).toEqual(['mcp', '--name', 'files']);

  expect(await run('claude-code', { write: true })).toContain('Nothing to change.');
  await run('claude-code', { undo: true, write: true });
  expect(await all()).toEqual(before);
});

test('a server that is added later gets a name no other has', async () => {
  const { read, dir } = await aHome(CLAUDE);
  await run('claude-code', { write: true });
  const file = join(dir, 'project/.mcp.json');
  const settings = await read('project/.mcp.json');
  settings.mcpServers['files 2'] = { command: 'third' };
  await writeFile(file, JSON.stringify(settings));
  await run('claude-code', { write: true });
  expect((await read('project/.mcp.json')).mcpServers['files 2'].args.slice(0, 3)).toEqual([
    'mcp',
    '--name',
    'files-2-2',
  ]);
});

test('Cursor: global and project', async () => {
  const files = {
    '.cursor/mcp.json': '{ "mcpServers": { "a b": { "command": "x" } } }\n',
    'project/.cursor/mcp.json':
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the client resolves it.
      '{"mcpServers":{"web":{"url":"https://web.example/mcp","headers":{"X-Key":"${env:KEY}"}}}}\n',
  };
  const { all, read } = await aHome(files);
  await run('cursor', { write: true });
  expect((await read('.cursor/mcp.json')).mcpServers['a b']).toEqual(OURS('--name', 'a-b', '--', 'x'));
  expect((await read('project/.cursor/mcp.json')).mcpServers.web).toEqual({
    ...OURS('--name', 'web', '--url', 'https://web.example/mcp', '--header-env', 'X-Key=TOLLBRIDGE_HEADER_1'),
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the client resolves it.
    env: { TOLLBRIDGE_HEADER_1: '${env:KEY}' },
  });
  await run('cursor', { undo: true, write: true });
  expect(await all()).toEqual(files);
});

test('VS Code: mcp.json of the user and of the folder, servers in settings, and agents', async () => {
  const files = {
    '.config/Code/User/mcp.json': `{
  "inputs": [{ "type": "promptString", "id": "key", "description": "Key", "password": true }],
  "servers": {
    // mine
    "github": { "type": "http", "url": "https://api.example/mcp/", "headers": { "Authorization": "Bearer \${input:key}" } },
    "local": { "type": "stdio", "command": "npx", "args": ["server"] },
  }
}
`,
    'project/.vscode/mcp.json': '{ "servers": { "pipe": { "type": "http", "url": "unix:///tmp/x.sock" } } }\n',
    '.config/Code/User/settings.json':
      '{\n  "acp.agents": { "coder": { "command": "coder" } },\n  "mcp": { "servers": { "older": { "command": "y" } } }\n}\n',
    'project/.vscode/settings.json': '{ "mcp": { "servers": { "here": { "command": "z" } } } }\n',
  };
  const { all, read, dir } = await aHome(files);
  const said = await run('vscode', { write: true });
  expect(said).toContain('pipe: left as it is, its transport is not one of MCP over HTTP');
  expect(await readFile(join(dir, '.config/Code/User/mcp.json'), 'utf8')).toContain(
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the client resolves it.
    '"github": { "type": "stdio", "command": "tollbridge", "args": ["mcp", "--name", "github", "--url", "https://api.example/mcp/", "--header-env", "Authorization=TOLLBRIDGE_HEADER_1"], "env": { "TOLLBRIDGE_HEADER_1": "Bearer ${input:key}" } },',
  );
  const settings = await read('.config/Code/User/settings.json');
  expect(settings['acp.agents'].coder).toEqual({ command: 'tollbridge', args: ['acp', '--', 'coder'] });
  expect(settings.mcp.servers.older).toEqual(OURS('--name', 'older', '--', 'y'));
  expect((await read('project/.vscode/settings.json')).mcp.servers.here).toEqual(OURS('--name', 'here', '--', 'z'));
  await run('vscode', { undo: true, write: true });
  expect(await all()).toEqual(files);
});

test('an address whose variables were changed by hand is not taken out', async () => {
  const { read, dir } = await aHome({ '.cursor/mcp.json': '{"mcpServers":{"web":{"url":"https://web.example/mcp"}}}' });
  await run('cursor', { write: true });
  const settings = await read('.cursor/mcp.json');
  settings.mcpServers.web.env = { HTTPS_PROXY: 'http://proxy.example' };
  await writeFile(join(dir, '.cursor/mcp.json'), JSON.stringify(settings));
  expect(await run('cursor', { undo: true })).toContain('web: left as it is, its variables were written by hand');
});

test.each([
  ['another word for the transport', '{"type":"streamable-http","url":"https://x.example/mcp"}', '"streamable-http"'],
  ['yet another', '{ "url": "https://x.example/mcp", "type": "streamableHttp" }', '"streamableHttp"'],
  ['an address with escapes', '{"url":"https:\\/\\/x.example\\/mcp"}', '"https:\\/\\/x.example\\/mcp"'],
  ['no headers', '{"headers":{}, "url":"https://x.example/mcp"}', '"headers":{}'],
  ['headers first', '{"headers":{"A":"x"}, "url":"https://x.example/mcp", "type":"http"}', '"A=TOLLBRIDGE_HEADER_1"'],
  ['arguments first', '{"args":["-y", "a"],"command":"npx"}', '"npx", "-y"'],
  ['no arguments', '{"command":"npx","args":[ ]}', '"npx"'],
  ['a command with escapes', '{"command":"\\u006epx","args":["\\u0061"]}', '"\\u006epx", "\\u0061"'],
  [
    'comments within',
    '{\n // mine\n "command": "docker",\n "args": [\n "run", // here\n "x"\n ],\n}',
    '"run", // here',
  ],
])('what is written is taken out byte for byte: %s', async (_, entry, kept) => {
  const files = { '.cursor/mcp.json': `{ "mcpServers": { "s": ${entry} } }\n` };
  const { all } = await aHome(files);
  await run('cursor', { write: true });
  expect((await all())['.cursor/mcp.json']).toMatch(/"command": ?"tollbridge"/);
  expect((await all())['.cursor/mcp.json']).toContain(kept);
  await run('cursor', { undo: true, write: true });
  expect(await all()).toEqual(files);
});

test('a program of a similar name is not taken apart, and a header that is none stays with its server', async () => {
  const files = {
    '.cursor/mcp.json':
      '{"mcpServers":{"a":{"command":"/opt/tollbridge-tools/x","args":["mcp","--","y"]},"b":{"url":"https://b.example","headers":{"A=B":"x"}}}}',
  };
  const { all } = await aHome(files);
  expect(await run('cursor', { write: true })).toContain('b: left as it is, its headers have names that no header has');
  expect(await run('cursor', { undo: true, write: true })).toContain(
    'a: left as it is, its options were written by hand',
  );
  expect(await all()).toEqual(files);
});

test('headers come from variables, as secrets where they are long enough to be redacted; without a token the gateway signs in', () => {
  const env = { TOLLBRIDGE_HEADER_1: 'Bearer abcdef', TOLLBRIDGE_HEADER_2: 'blue' };
  const headerEnv = ['Authorization=TOLLBRIDGE_HEADER_1', 'X-Team=TOLLBRIDGE_HEADER_2'];
  expect(addressedUpstream('https://a.example/mcp', { headerEnv }, env)).toEqual({
    url: 'https://a.example/mcp',
    transport: 'auto',
    headers: { 'X-Team': 'blue' },
    header_secrets: { Authorization: 'client-settings:1' },
  });
  expect(addressedUpstream('https://a.example/mcp', { transport: 'sse' })).toEqual({
    url: 'https://a.example/mcp',
    transport: 'sse',
    sign_in: {},
  });
  for (const transport of ['streamable-http', 'streamableHttp'])
    expect(addressedUpstream('https://a.example/mcp', { transport }).transport).toBe('streamable');
  for (const [options, said] of [
    [{ headerEnv: ['Authorization=HOME'] }, /takes HEADER=TOLLBRIDGE_HEADER_NAME/],
    [{ headerEnv: ['X=TOLLBRIDGE_HEADER_9'] }, /TOLLBRIDGE_HEADER_9 is not set/],
    [{ transport: 'ws' }, /auto, streamable or sse/],
  ] as const) {
    expect(() => addressedUpstream('https://a.example', options, env)).toThrow(said);
  }
  expect(() => addressedUpstream('file:///etc/passwd')).toThrow('is not an address');
});
