/** Servers that go away, take their time or want secrets: what a caller notices of it, and what stays between us and them. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { latch } from '../../support/gateway/agents.ts';
import { anything } from '../../support/mcp/fixture/asking.ts';
import { openMcpGateway } from '../../support/mcp/gateway.ts';
import { openScene, outcome } from '../../support/mcp/one-server.ts';
import { type Loose, openUpstream, text } from '../../support/mcp/upstream.ts';
import { exchange } from '../../support/mcp/wire-client.ts';

/** A server of the legacy era in a few lines: it says what it was given, dies when asked to, and counts its lives. */
const PROGRAM = `
import { createInterface } from 'node:readline';
const say = (frame) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...frame }) + '\\n');
const tools = ['env', 'die', 'pid'].map((name) => ({ name, description: name, inputSchema: { type: 'object' } }));
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'initialize') {
    const { protocolVersion } = params;
    return say({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'small', version: '1' } } });
  }
  if (method === 'tools/list') return say({ id, result: { tools } });
  if (method !== 'tools/call') return say({ id, error: { code: -32601, message: 'Method not found' } });
  if (params.name === 'die') process.exit(3);
  const said = params.name === 'pid' ? process.pid : process.env[params.arguments.name] ?? null;
  say({ id, result: { content: [{ type: 'text', text: String(said) }] } });
});
`;

async function openProgram(config: Loose = {}, secrets: Record<string, string> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-mcp-up-'));
  await writeFile(join(dir, 'server.mjs'), PROGRAM);
  const command = [process.execPath, join(dir, 'server.mjs')];
  const gateway = await openMcpGateway({ upstreams: { small: { command, ...config } }, secrets });
  onTestFinished(async () => {
    await gateway.close();
    await rm(dir, { recursive: true, force: true });
  });
  async function session() {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
    const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
    const opened = await exchange(gateway.at('small'), { body });
    const headers = { 'mcp-session-id': String(opened.headers['mcp-session-id']) };
    return async (name: string, args: Loose = {}) => {
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
      return outcome(await exchange(gateway.at('small'), { headers, body: call })).result;
    };
  }
  return { gateway, session };
}

test('a child that dies takes its call with it; the next call starts it anew', async () => {
  const { session } = await openProgram();
  const call = await session();
  const first = (await call('pid')).content[0].text;
  expect(await call('die')).toMatchObject({ isError: true, content: [{ text: 'small: the server has exited' }] });
  const second = (await call('pid')).content[0].text;
  expect(Number(second)).toBeGreaterThan(0);
  expect(second).not.toBe(first);
});

test('every session of the legacy era has a child of its own', async () => {
  const { session } = await openProgram();
  const [one, two] = [await session(), await session()];
  const pid = (await one('pid')).content[0].text;
  expect((await two('pid')).content[0].text).not.toBe(pid);
  expect((await one('pid')).content[0].text).toBe(pid);
});

test('a child gets what it was given, secrets by their names, and nothing else of ours', async () => {
  process.env.TB_TEST_PRIVATE = 'ours';
  onTestFinished(() => {
    delete process.env.TB_TEST_PRIVATE;
  });
  const { session } = await openProgram(
    { env: { PLAIN: 'yes' }, env_secrets: { TOKEN: 'small-token' } },
    { 'small-token': 's3cret-value-77' },
  );
  const call = await session();
  const value = async (name: string) => (await call('env', { name })).content[0].text;
  expect([await value('PLAIN'), await value('TB_TEST_PRIVATE')]).toEqual(['yes', 'null']);
  expect(await value('TOKEN')).toBe('s3cret-value-77');
});

test('a session the server has forgotten is opened again, and the call made there', async () => {
  const { legacy, upstream } = await openScene({ eras: ['legacy'] });
  const client = await legacy();
  await client.request('tools/call', { name: 'echo', arguments: { text: 'a' } });
  upstream.forget();
  const received = await client.request('tools/call', { name: 'echo', arguments: { text: 'b' } });
  expect(outcome(received).result.content).toEqual([{ type: 'text', text: 'b' }]);
  expect(upstream.count('tools/call')).toBe(2);
});

test('progress keeps a call alive, and not for ever', { timeout: 30_000 }, async () => {
  const tick = async ({ params, notify }: Loose, times: number) => {
    const { progressToken } = params._meta ?? {};
    for (let progress = 1; progress <= times; progress += 1) {
      // The time is what is tested: progress at this interval moves one limit and not the other.
      await new Promise((resolve) => setTimeout(resolve, 100));
      await notify('notifications/progress', { progressToken, progress });
    }
    return text('done');
  };
  const { legacy } = await openScene({
    eras: ['legacy'],
    tools: { long: { call: (ask) => tick(ask, 30) }, endless: { call: (ask) => tick(ask, 200) } },
    config: { timeout_ms: 2500, longest_ms: 5000 },
  });
  const client = await legacy();
  const call = (name: string) => client.request('tools/call', { name, _meta: { progressToken: 'p' } });
  const received = await call('long');
  expect(outcome(received).result.content[0].text).toBe('done');
  expect(received.frames.slice(0, 2).map(({ params }) => params)).toEqual([
    { progressToken: 'p', progress: 1 },
    { progressToken: 'p', progress: 2 },
  ]);
  expect(outcome(await call('endless')).result.content[0].text).toBe(
    'u: the server took too long and the call was canceled',
  );
});

test('a server that is not there is an error result for calls, and an error for everything else', async () => {
  const gone = await openUpstream();
  await gone.close();
  const { modern } = await openScene({ config: { url: gone.url } });
  expect(outcome(await modern('tools/call', { name: 'echo' })).result).toMatchObject({
    isError: true,
    structuredContent: { error: { code: 'upstream_unavailable' } },
  });
  expect(outcome(await modern('prompts/list')).error).toMatchObject({ code: 502 });
});

test('where a server is has to be said once', async () => {
  const both = { url: 'http://127.0.0.1:1/mcp', command: ['x'] };
  await expect(openMcpGateway({ upstreams: { both } })).rejects.toThrow(
    'say where the server is: either command or url',
  );
});

test('a question the server takes back is taken back from the client', async () => {
  const asked = latch();
  const withdraw = async ({ ctx }: Loose) => {
    const stop = new AbortController();
    const form = { message: 'sure?', requestedSchema: { type: 'object', properties: {} } };
    const asking = ctx.mcpReq.send({ method: 'elicitation/create', params: form }, anything, { signal: stop.signal });
    void asked.promise.then(() => stop.abort());
    await asking.catch(() => {});
    return text('went on without');
  };
  const { legacy } = await openScene({ eras: ['legacy'], tools: { hasty: { call: withdraw } } });
  const client = await legacy({ elicitation: {} });
  const { frames } = await client.request('tools/call', { name: 'hasty' }, () => {
    asked.open();
    return undefined;
  });
  const [question, withdrawn, answer] = frames;
  expect(question).toMatchObject({ method: 'elicitation/create', params: { message: 'sure?' } });
  expect(withdrawn).toEqual({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: question?.id } });
  expect(answer?.result.content[0].text).toBe('went on without');
});
