/**
 * MCP clients and servers that nobody here wrote, unchanged, once directly and once with `tollbridge mcp` between them. Each client
 * lists what a server has and calls one tool; the two transcripts have to be equal but for what is declared here. What is not
 * installed is reported as absent, never left out.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CLAUDE, claudeLists } from './claude.ts';
import { CLIENTS, type Client, MODULES, PYTHON, PYTHON_1, ROOT } from './mcp-clients.ts';
import { DECLARED, differences, type Transcript } from './mcp-compare.ts';

const BUILT = process.env.TOLLBRIDGE_PROGRAM ?? join(ROOT, 'dist/src/main.js');
const run = promisify(execFile);

interface Server {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Harmless, and answered the same each time. */
  readonly call?: { readonly name: string; readonly arguments: object };
  readonly env?: Readonly<Record<string, string>>;
}

const npm = (name: string, args: readonly string[] = [], more: Partial<Server> = {}): Server => ({
  name,
  program: join(MODULES, '.bin', name),
  args,
  ...more,
});
const pypi = (name: string, args: readonly string[] = [], more: Partial<Server> = {}): Server => ({
  name,
  program: join(PYTHON, 'bin', name),
  args,
  ...more,
});
/** Servers that want the older line of the Python SDK. */
const older = (...server: Parameters<typeof pypi>): Server => ({
  ...pypi(...server),
  program: join(PYTHON_1, 'bin', server[0]),
});
const calling = (name: string, args: object = {}): Partial<Server> => ({ call: { name, arguments: args } });

/** It lists sets, whose order differs between any two runs otherwise. */
const ORDERED = { PYTHONHASHSEED: '0' };

const SERVERS: readonly Server[] = [
  npm('mcp-server-everything', ['stdio'], calling('echo', { message: 'hello' })),
  npm('mcp-server-filesystem', ['.'], calling('list_allowed_directories')),
  npm('mcp-server-memory', [], calling('read_graph')),
  npm(
    'mcp-server-sequential-thinking',
    [],
    calling('sequentialthinking', { thought: 'one', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }),
  ),
  npm('mcp-server-github', [], { env: { GITHUB_PERSONAL_ACCESS_TOKEN: 'x' } }),
  npm('mcp-server-slack', [], { env: { SLACK_BOT_TOKEN: 'xoxb-x', SLACK_TEAM_ID: 'T0' } }),
  npm('mcp-server-chart'),
  npm('context7-mcp'),
  npm('notion-mcp-server'),
  npm('tavily-mcp', [], { env: { TAVILY_API_KEY: 'x' } }),
  npm('playwright-mcp', ['--headless']),
  npm('git-mcp-server', [], calling('git_status', { path: '.' })),
  pypi('mcp-server-time', ['--local-timezone', 'UTC'], {
    ...calling('convert_time', { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' }),
  }),
  pypi('mcp-server-git', [], calling('git_status', { repo_path: '.' })),
  pypi('mcp-server-fetch'),
  older('mcp-server-sqlite', ['--db-path', 'test.db'], calling('list_tables')),
  older('mcp-server-calculator', [], calling('calculate', { expression: '6*7' })),
  older('mcp-text-editor', [], calling('get_text_file_contents', { files: [] })),
  older('cli-mcp-server', [], { ...calling('show_security_rules'), env: { ALLOWED_DIR: '.', ...ORDERED } }),
  older('mcp-shell-server', [], {
    ...calling('shell_execute', { command: ['echo', 'hello'], directory: '/' }),
    env: { ALLOW_COMMANDS: 'echo' },
  }),
];

interface Report {
  readonly client: string;
  readonly server: string;
  /** Absent where the two do not work together without the gateway either. */
  readonly ok?: boolean;
  readonly differs?: readonly string[];
  readonly unusable?: string;
}

export async function mcp(tell: (line: string) => void): Promise<readonly { readonly ok?: boolean }[]> {
  if (!existsSync(BUILT)) throw new Error('build it first: npm run build');
  tell(JSON.stringify({ declared: DECLARED }));
  const clients = CLIENTS.filter((client) => here(client.name, client.needs(), tell));
  const servers = SERVERS.filter(({ name, program }) => here(name, program, tell));
  const reports: Report[] = [];
  const wanted = process.env.TOLLBRIDGE_INTEROP_SERVER?.split(',');
  for (const server of servers.filter(({ name }) => wanted?.includes(name) ?? true)) {
    for (const client of clients) {
      reports.push(await compare(client, server));
      tell(JSON.stringify(reports.at(-1)));
    }
  }
  const asked = here('Claude Code', CLAUDE, tell) ? [await claudeLists(BUILT)] : [];
  for (const report of asked) tell(JSON.stringify(report));
  const pairs = reports.filter(({ ok }) => ok !== undefined);
  const counts = {
    pairs: pairs.length,
    equal: pairs.filter(({ ok }) => ok).length,
    unusable: reports.length - pairs.length,
  };
  tell(JSON.stringify({ ...counts, clients: clients.length, servers: servers.length }));
  return [...reports, ...asked];
}

function here(name: string, path: string | undefined, tell: (line: string) => void): boolean {
  if (path !== undefined && existsSync(path)) return true;
  tell(JSON.stringify({ absent: name, how: 'see interop/mcp/README.md' }));
  return false;
}

async function compare(client: Client, server: Server): Promise<Report> {
  const names = { client: client.name, server: server.name };
  const home = await mkdtemp(join(tmpdir(), 'tollbridge-interop-mcp-'));
  try {
    const config = join(home, 'tollbridge', 'tollbridge.yaml');
    await mkdir(join(home, 'tollbridge'));
    await writeFile(config, 'rules: [{ id: all, when: { kind: tool }, then: allow }]\n');
    const front = [process.execPath, BUILT, '--config', config, '--data', join(home, 'data'), 'mcp', '--'];
    const command = [server.program, ...server.args];
    const direct = await transcript(client, server, await script(home, command), join(home, 'work')).catch(messageOf);
    if (typeof direct === 'string') return { ...names, unusable: direct };
    const through = await transcript(client, server, await script(home, [...front, ...command]), join(home, 'work'));
    await keep(client, server, { direct, through });
    const differs = differences(direct, through);
    return {
      ...names,
      ok: differs.length === 0,
      ...(differs.length > 0 && { differs: shown(differs, direct, through) }),
    };
  } catch (cause) {
    return { ...names, ok: false, differs: [messageOf(cause)] };
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/** Both transcripts as they were, where a directory for them is named. */
async function keep(client: Client, server: Server, both: object): Promise<void> {
  const dir = process.env.TOLLBRIDGE_INTEROP_KEEP;
  if (dir === undefined) return;
  await mkdir(dir, { recursive: true });
  const name = `${server.name} ${client.name}`.replaceAll(/[^A-Za-z0-9.]+/g, '-');
  await writeFile(join(dir, `${name}.json`), JSON.stringify(both, null, 2));
}

/** The line in which a program that failed says why. */
function messageOf(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause);
  const why = message.split('\n').findLast((line) => /^\S*Error: /.test(line)) ?? message;
  return why.slice(0, 600);
}

/** One word without options: some clients take options of a server's command for their own. */
async function script(home: string, command: readonly string[]): Promise<string> {
  const path = join(home, 'server.sh');
  const words = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  await writeFile(path, `#!/bin/sh\nexec ${words.join(' ')}\n`, { mode: 0o755 });
  return path;
}

async function transcript(client: Client, server: Server, command: string, cwd: string): Promise<Transcript> {
  await rm(cwd, { recursive: true, force: true });
  await mkdir(cwd, { recursive: true });
  const env = { PATH: process.env.PATH, HOME: cwd, ...server.env };
  const asked = JSON.stringify({ command: [command], call: server.call ?? null });
  const [program = '', ...args] = client.command();
  const { stdout } = await run(program, [...args, asked], { cwd, env, timeout: 120_000, maxBuffer: 64 * 1024 * 1024 });
  const said = JSON.parse(stdout.slice(stdout.indexOf('{'))) as Transcript;
  const { error } = (said.opened ?? {}) as { readonly error?: string };
  if (error !== undefined) throw new Error(`Error: ${error}`);
  return said;
}

function shown(parts: readonly string[], direct: Transcript, through: Transcript): readonly string[] {
  const cut = (value: unknown) => JSON.stringify(value ?? null).slice(0, 300);
  return parts.map((part) => `${part}: ${cut(direct[part])} | ${cut(through[part])}`);
}
