/** Which children find which variables: what is ours reaches none, and what is the person's reaches those it would have reached. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aClone, type Clone, GITHUB_TOKEN, OUR_SECRET } from '../support/process/cloned-repository.ts';

const VARIABLES = {
  TOLLBRIDGE_LOG: 'warn',
  TOLLBRIDGE_SESSION: 'session_of_another',
  TOLLBRIDGE_TOKEN: 'canary_token',
  CORP_SECRET_db: 'canary_of_another_vault',
  CORP_PASSPHRASE: 'canary_that_opens_a_vault',
  EDITOR_SETTING: 'from the client',
};
/** Vaults that read, or are opened by, variables whose names are not ours. */
const VAULTS = `vaults:
  corp: { provider: env, prefix: CORP_SECRET_ }
  local: { provider: file, path: v.json, passphrase_env: CORP_PASSPHRASE }
  env: { provider: env }
`;

/** What the child found; the mark by which what it leaves behind is ended is ours to give and says nothing. */
function environment(clone: Clone): Readonly<Record<string, string>> {
  const { TOLLBRIDGE_CHILD: _, ...env } = clone.journal().find(({ env }) => env)?.env ?? {};
  return env;
}

function nothingOfOurs(env: Readonly<Record<string, string>>): void {
  expect(Object.keys(env).filter((name) => /^(TOLLBRIDGE_|CORP_)/.test(name))).toEqual([]);
  expect(JSON.stringify(env)).not.toMatch(new RegExp(`${OUR_SECRET}|canary_of_another|canary_that|canary_token`));
}

async function startedBy(clone: Clone, args: readonly string[], says: string): Promise<void> {
  const running = clone.start(args, VARIABLES);
  if (says) running.end.raw(`${says}\n`);
  await expect.poll(() => clone.journal().length, { timeout: 20_000, interval: 50 }).toBeGreaterThan(0);
  running.child.stdin.end();
  running.child.kill('SIGTERM');
  await running.ended;
}

const MCP_HELLO = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
});

test.each([
  ['acp', ''],
  ['mcp', MCP_HELLO],
])('%s -- COMMAND: what it would have had without us, less what is ours', async (command, says) => {
  const clone = await aClone();
  await clone.putOwn(VAULTS);
  await startedBy(clone, [command, '--', ...clone.upstream], says);
  const env = environment(clone);
  expect(env).toMatchObject({ GITHUB_TOKEN, EDITOR_SETTING: 'from the client', HOME: clone.home });
  nothingOfOurs(env);
});

test('acp -- COMMAND without any configuration: likewise', async () => {
  const clone = await aClone();
  await startedBy(clone, ['acp', '--', ...clone.upstream], '');
  const { CORP_SECRET_db: _, CORP_PASSPHRASE: __, ...env } = environment(clone);
  expect(env).toMatchObject({ GITHUB_TOKEN, EDITOR_SETTING: 'from the client' });
  nothingOfOurs(env);
});

test('a2a -- COMMAND: likewise, once a peer gives it work', async () => {
  const clone = await aClone();
  await clone.putOwn(VAULTS);
  const gateway = clone.start(['a2a', '--port', '0', '--name', 'mine', '--', ...clone.upstream], VARIABLES);
  const [, url = '', token = ''] = await gateway.says(/ at (http:\S+) {2}\(token (\S+)\)/);
  const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'go' }] };
  const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } };
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}`, 'a2a-version': '1.0' };
  const answer = fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }).catch(() => undefined);
  await expect.poll(() => clone.journal().length, { timeout: 20_000, interval: 50 }).toBeGreaterThan(0);
  gateway.child.kill('SIGTERM');
  await gateway.ended;
  await answer;
  const env = environment(clone);
  expect(env).toMatchObject({ GITHUB_TOKEN, EDITOR_SETTING: 'from the client' });
  nothingOfOurs(env);
});

test('a tool server that the configuration names: a minimal environment and what is configured for it', async () => {
  const clone = await aClone();
  const command = JSON.stringify(clone.upstream);
  const more = `tools:\n  files: { mcp: { command: ${command}, env: { SAID: here }, env_secrets: { MAIL: mail } } }\n`;
  await clone.putOwn(`${VAULTS}${more}`);
  await startedBy(clone, ['mcp', '--server', 'files'], MCP_HELLO);
  const env = environment(clone);
  expect(env).toMatchObject({ SAID: 'here', MAIL: OUR_SECRET, HOME: clone.home });
  const { MAIL: _, ...rest } = env;
  nothingOfOurs(rest);
  expect(JSON.stringify(env)).not.toContain(GITHUB_TOKEN);
  expect(env.EDITOR_SETTING).toBeUndefined();
});

test('an agent and a harness that the configuration names: likewise', async () => {
  const clone = await aClone();
  const command = JSON.stringify(clone.upstream);
  for (const section of [
    `agents:\n  coder: { acp: { command: ${command}, inherit: [EDITOR_SETTING] } }\n`,
    `harnesses:\n  guard: { ahp: { command: ${command}, env: { EDITOR_SETTING: from the client } } }\n`,
  ]) {
    const before = clone.journal().length;
    await clone.putOwn(`listen: { port: 0 }\n${section}`);
    const editor = clone.start(['acp-agent'], VARIABLES);
    await editor.end.ask('initialize', { protocolVersion: 1, clientCapabilities: {} });
    const { result } = await editor.end.ask('session/new', { cwd: clone.repo, mcpServers: [] });
    const prompt = [{ type: 'text', text: 'read plan' }];
    void editor.end.ask('session/prompt', { sessionId: result?.sessionId, prompt });
    await expect.poll(() => clone.journal().length, { timeout: 20_000, interval: 50 }).toBeGreaterThan(before);
    editor.child.kill('SIGTERM');
    await editor.ended;
    const { TOLLBRIDGE_CHILD: _, ...env } = clone.journal()[before]?.env ?? {};
    expect(env).toMatchObject({ EDITOR_SETTING: 'from the client' });
    expect(JSON.stringify(env)).not.toContain(GITHUB_TOKEN);
    nothingOfOurs(env);
  }
});

test('doctor -- COMMAND tries it with the environment it would have', async () => {
  const clone = await aClone();
  await clone.putOwn(VAULTS);
  await clone.run(['doctor', '--port', '0', '--', ...clone.upstream], VARIABLES);
  expect(environment(clone)).toMatchObject({ GITHUB_TOKEN });
  nothingOfOurs(environment(clone));
});

test('init keeps the configuration and the log it was given, as absolute paths', async () => {
  const clone = await aClone();
  const settings = join(clone.home, 'zed.json');
  await writeFile(settings, JSON.stringify({ agent_servers: { a: { command: 'my-agent', args: [] } } }));
  await clone.put('mine.yaml', 'rules: []\n');
  const where = ['--config', 'mine.yaml', '--data', 'data'];
  const { code, out } = await clone.run([...where, 'init', 'zed', '--settings', settings, '--write']);
  expect(code).toBe(0);
  const kept = ` --config ${join(clone.repo, 'mine.yaml')} --data ${join(clone.repo, 'data')}`;
  expect(out).toContain(`${kept} acp -- my-agent\n`);
  const undone = await clone.run(['init', 'zed', '--settings', settings, '--undo', '--write']);
  expect(undone.out).toContain('  + my-agent\n');
});
