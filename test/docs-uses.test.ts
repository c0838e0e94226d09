/** What the pages about each use tell people to type, typed in a shell: a line that nobody has tried fails here. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { FIRST_RULES } from '../src/config.ts';
import { aLog, aShell } from './support/cli.ts';

const ROOT = resolve(import.meta.dirname, '..');

interface Try {
  /** Written to it once it runs. */
  readonly says?: string;
  /** What has to be heard; one that would go on for ever is then told to stop. */
  readonly until: RegExp;
  readonly stays?: boolean;
  readonly code?: number;
}

const ACP_HELLO =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n';
const MCP_HELLO =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"doc","version":"1"}}}\n';
const AHP_HELLO =
  '{"jsonrpc":"2.0","id":"1","method":"ahp/handshake","params":{"protocol_version":"2.4","agent_info":{"framework":"doc","version":"1","capabilities":[]}}}\n';

/** Every line of the pages, and what comes of it. */
const TRIED: Readonly<Record<string, Try>> = {
  'tollbridge init zed': { until: /\+ tollbridge acp -- my-agent --fast/ },
  'tollbridge init claude-code': { until: /\+ tollbridge mcp -- my-server/ },
  'tollbridge acp -- my-agent --its-flags': { says: ACP_HELLO, until: /"id":0,"result"/ },
  'tollbridge mcp -- my-server --its-flags': { says: MCP_HELLO, until: /"id":0/ },
  'tollbridge ahp --stdio': { says: AHP_HELLO, until: /"result"/ },
  'tollbridge ahp --socket /run/user/1000/tollbridge.sock': { until: /answers agents at/, stays: true },
  'tollbridge a2a -- my-agent --its-flags': { until: /\/a2a\//, stays: true },
  'tollbridge serve': { until: /listens on http/, stays: true },
  'tollbridge approvals': { until: /May agent:demo use send_mail/ },
  'tollbridge approve ask_01K': { until: /Approved/ },
  "tollbridge keys create svc --scope '*'": { until: /svc/ },
  'tollbridge policy check': { until: /./ },
  'tollbridge policy test cases.yaml': { until: /2 cases, all as expected/ },
  'tollbridge policy diff rules.yaml': { until: /./ },
  'tollbridge log': { until: /send_mail/ },
  'tollbridge verify all': { until: /^ok / },
  'tollbridge mcp changes': { until: /./ },
  // What comes of it where there is such a server is in mcp-login.test.ts.
  'tollbridge mcp login search': { until: /no tools\.search\.mcp/, code: 3 },
  'tollbridge mcp login search --paste': { until: /no tools\.search\.mcp/, code: 3 },
  'tollbridge mcp accept files read_file': { until: /read_file/, code: 3 },
  'tollbridge keys create partner --scope tasks:* --scope sessions:* --scope events:read --scope workspaces:read --scope artifacts:*':
    {
      until: /partner/,
    },
};

function commandsIn(text: string): readonly string[] {
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
  return blocks.flatMap((block) => block.split('\n')).flatMap((line) => line.replace(/ {2,}#.*$/, '') || []);
}

async function aPlace() {
  const { dir } = await aLog(['read plan', 'send the plan to ana'], { approve: 'leave open' });
  const { cwd, env } = await aShell();
  const bin = (name: string, command: string) =>
    writeFile(join(cwd, 'bin', name), `#!/bin/sh\nexec '${process.execPath}' ${command}\n`, { mode: 0o755 });
  await bin('my-agent', `'${join(ROOT, 'test/support/acp-agent.mjs')}'`);
  await bin('my-server', `'${join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')}' stdio`);
  await mkdir(join(cwd, '.config/zed'), { recursive: true });
  const zed = { agent_servers: { mine: { type: 'custom', command: 'my-agent', args: ['--fast'] } } };
  await writeFile(join(cwd, '.config/zed/settings.json'), JSON.stringify(zed));
  await writeFile(
    join(cwd, '.mcp.json'),
    JSON.stringify({ mcpServers: { files: { command: 'my-server', args: [] } } }),
  );
  await writeFile(join(cwd, 'tollbridge.yaml'), 'listen: { port: 0 }\n');
  await writeFile(join(cwd, 'rules.yaml'), FIRST_RULES);
  const rules = await readFile(join(ROOT, 'docs/rules.md'), 'utf8');
  await writeFile(join(cwd, 'cases.yaml'), /^# cases\.yaml\n[\s\S]*?(?=^```)/m.exec(rules)?.[0] ?? '');
  const where = { cwd, env: { ...env, XDG_CONFIG_HOME: join(cwd, '.config'), TOLLBRIDGE_DATA: dir } };
  return where;
}
type Place = Awaited<ReturnType<typeof aPlace>>;

async function run(line: string, { says, until, stays }: Try, where: Place): Promise<{ code: number; said: string }> {
  const real = line
    .replace('/run/user/1000/', `${where.cwd}/`)
    .replace('ask_01K', '"$(tollbridge approvals --json | head -n 1 | grep -o \'ask_[0-9A-Z]*\' | head -n 1)"');
  const child: ChildProcessWithoutNullStreams = spawn('bash', ['--norc', '-c', stays || says ? `exec ${real}` : real], {
    ...where,
    stdio: 'pipe',
  });
  let said = '';
  let heard = false;
  const hear = (chunk: Buffer) => {
    said += chunk;
    if (heard || !until.test(said)) return;
    heard = true;
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

test.each(['acp', 'mcp', 'a2a', 'ahp', 'runs', 'rules'])(
  'docs/%s.md',
  async (page) => {
    const lines = commandsIn(await readFile(join(ROOT, `docs/${page}.md`), 'utf8'));
    expect(lines.length).toBeGreaterThan(1);
    const where = await aPlace();
    for (const line of lines) {
      const how = TRIED[line];
      if (!how) throw new Error(`docs/${page}.md tells people to type this, and no test does: ${line}`);
      const { code, said } = await run(line, how, where);
      expect({ line, code, said }).toEqual({ line, code: how.code ?? 0, said: expect.stringMatching(how.until) });
    }
  },
  90_000,
);
