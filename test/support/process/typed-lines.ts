/** Lines that pages tell people to type, typed in a shell where there is something to type them about. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { FIRST_RULES } from '../../../src/runtime/config/config.ts';
import { aLog, aShell } from './cli.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

export interface Try {
  /** Written to it once it runs. */
  readonly says?: string;
  /** What has to be received; one that would go on for ever is then asked to stop. */
  readonly until: RegExp;
  readonly stays?: boolean;
  readonly code?: number;
}

export const ACP_HELLO =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n';
export const MCP_HELLO =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"doc","version":"1"}}}\n';
export const AHP_HELLO =
  '{"jsonrpc":"2.0","id":"1","method":"ahp/handshake","params":{"protocol_version":"2.4","agent_info":{"framework":"doc","version":"1","capabilities":[]}}}\n';

/** Lines of shell blocks, without what is said about them. */
export function commandsIn(text: string): readonly string[] {
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
  return blocks.flatMap((block) => block.split('\n')).flatMap((line) => line.replace(/ {2,}#.*$/, '') || []);
}

export async function aLocation() {
  const { dir } = await aLog(['read plan', 'send the plan to ana', 'send the plan to bob'], {
    approve: 'leave open',
    apart: true,
  });
  const { cwd, env } = await aShell();
  const bin = (name: string, command: string) =>
    writeFile(join(cwd, 'bin', name), `#!/bin/sh\nexec '${process.execPath}' ${command}\n`, { mode: 0o755 });
  await bin('my-agent', `'${join(ROOT, 'test/support/acp/agent.mjs')}'`);
  await bin('my-server', `'${join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')}' stdio`);
  await mkdir(join(cwd, '.config/zed'), { recursive: true });
  const zed = { agent_servers: { mine: { type: 'custom', command: 'my-agent', args: ['--fast'] } } };
  await writeFile(join(cwd, '.config/zed/settings.json'), JSON.stringify(zed));
  const servers = JSON.stringify({ mcpServers: { files: { command: 'my-server', args: [] } } });
  const { type: _, ...agent } = zed.agent_servers.mine;
  for (const [file, text] of Object.entries({
    '.mcp.json': servers,
    '.config/Claude/claude_desktop_config.json': servers,
    '.cursor/mcp.json': servers,
    '.jetbrains/acp.json': JSON.stringify({ agent_servers: { mine: agent } }),
    '.config/Code/User/settings.json': JSON.stringify({ 'acp.agents': { mine: agent } }),
  })) {
    await mkdir(join(cwd, dirname(file)), { recursive: true });
    await writeFile(join(cwd, file), text);
  }
  await mkdir(join(cwd, '.config/tollbridge'), { recursive: true });
  await writeFile(join(cwd, '.config/tollbridge/tollbridge.yaml'), 'listen: { port: 0 }\n');
  await mkdir(join(cwd, 'project'));
  const rules = 'rules: [{ id: no-removal, when: { effect: delete }, then: block }]\n';
  await writeFile(join(cwd, 'project/tollbridge.yaml'), rules);
  await writeFile(join(cwd, 'served.yaml'), 'tools: { files: { mcp: { command: [my-server] } } }\n');
  await writeFile(join(cwd, 'rules.yaml'), FIRST_RULES);
  const page = await readFile(join(ROOT, 'docs/rules.md'), 'utf8');
  await writeFile(join(cwd, 'cases.yaml'), /^# cases\.yaml\n[\s\S]*?(?=^```)/m.exec(page)?.[0] ?? '');
  const where = { cwd, env: { ...env, XDG_CONFIG_HOME: join(cwd, '.config'), TOLLBRIDGE_DATA: dir } };
  return where;
}
type Location = Awaited<ReturnType<typeof aLocation>>;

/** Commands in the middle of a sentence or in a table. */
export function namedIn(text: string): readonly string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '');
  return [
    ...new Set([...prose.matchAll(/`(tollbridge [^`]*)`/g)].map(([, command = '']) => command.replace(/\s+/g, ' '))),
  ];
}

export async function run(
  line: string,
  { says, until, stays }: Try,
  where: Location,
): Promise<{ code: number; said: string }> {
  const real = line
    .replace('/run/user/1000/', `${where.cwd}/`)
    // The beginning of an id, as the page has it; the questions here were not asked at one moment.
    .replace(
      'ask_01K',
      '"$(tollbridge approvals --json | head -n 1 | grep -o \'ask_[0-9A-Z]*\' | cut -c 1-24 | head -n 1)"',
    );
  const child: ChildProcessWithoutNullStreams = spawn('bash', ['--norc', '-c', stays || says ? `exec ${real}` : real], {
    ...where,
    stdio: 'pipe',
  });
  let said = '';
  let received = false;
  const hear = (chunk: Buffer) => {
    said += chunk;
    if (received || !until.test(said)) return;
    received = true;
    if (stays) child.kill('SIGTERM');
    child.stdin.end();
  };
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  child.stdin.on('error', () => {});
  if (says) child.stdin.write(says);
  else if (!stays) child.stdin.end();
  const code = await new Promise<number>((done) => child.once('close', (code) => done(code ?? -1)));
  return { code, said };
}
