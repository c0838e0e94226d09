/**
 * `claude mcp list` after `tollbridge init claude-code --write`, on fresh home directories with three servers of others: each has to be
 * connected, each time. The program is Claude Code as it comes from npm; without it the case is reported as absent.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { MODULES } from './mcp-clients.ts';

const run = promisify(execFile);
const TIMES = 5;

export const CLAUDE = process.env.TOLLBRIDGE_INTEROP_CLAUDE ?? join(MODULES, '.bin/claude');

interface ClaudeReport {
  readonly client: string;
  readonly ok: boolean;
  readonly connected: readonly number[];
  readonly said?: string;
}

export async function claudeLists(built: string): Promise<ClaudeReport> {
  const connected: number[] = [];
  let said = '';
  for (let time = 0; time < TIMES; time += 1) {
    const home = await mkdtemp(join(tmpdir(), 'tollbridge-interop-claude-'));
    try {
      said = await listed(home, built);
    } catch (cause) {
      said = String(cause);
    } finally {
      await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    }
    connected.push(
      said
        .split('\n')
        .filter((line) => line.includes('tollbridge') || line.includes(built))
        .filter(isConnected).length,
    );
  }
  const ok = connected.every((count) => count === 3);
  return { client: 'claude mcp list', ok, connected, ...(!ok && { said: said.slice(0, 1_000) }) };
}

const isConnected = (line: string) => /✓|✔|connected/i.test(line) && !/failed|pending/i.test(line);

async function listed(home: string, built: string): Promise<string> {
  const cwd = join(home, 'work');
  await mkdir(cwd);
  const server = (name: string, ...args: string[]) => ({ type: 'stdio', command: join(MODULES, '.bin', name), args });
  const mcpServers = {
    everything: server('mcp-server-everything', 'stdio'),
    files: server('mcp-server-filesystem', cwd),
    memory: server('mcp-server-memory'),
  };
  await writeFile(join(home, '.claude.json'), JSON.stringify({ mcpServers }));
  const how = { cwd, env: { PATH: process.env.PATH, HOME: home }, timeout: 120_000 };
  await run(process.execPath, [built, 'init', 'claude-code', '--write'], how);
  const { stdout } = await run(CLAUDE, ['mcp', 'list'], how);
  return stdout;
}
