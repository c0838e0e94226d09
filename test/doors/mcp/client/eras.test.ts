/** The era is chosen for each caller: nobody is served in another one than its own where the server speaks both. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fixtureCommand } from '../../../support/mcp/fixture/server.ts';
import { openMcpGateway } from '../../../support/mcp/gateway.ts';
import { openLegacyClient, openScene, outcome } from '../../../support/mcp/one-server.ts';
import { type Ask, text } from '../../../support/mcp/upstream.ts';

const which = { call: ({ era }: Ask) => text(era) };
const said = (received: Parameters<typeof outcome>[0]) => outcome(received).result.content[0].text;

test('a server of both eras is addressed in the era of each caller', async () => {
  const { legacy, modern } = await openScene({ tools: { which } });
  const client = await legacy();
  expect(said(await client.request('tools/call', { name: 'which' }))).toBe('legacy');
  expect(said(await modern('tools/call', { name: 'which' }))).toBe('modern');
  expect(said(await client.request('tools/call', { name: 'which' }))).toBe('legacy');
});

test('a legacy client is asked by a tool that can ask only while the call runs', async () => {
  const asks = {
    async call({ era, input }: Ask) {
      if (era === 'modern') return { ...text('this era has no such request'), isError: true };
      const { r } = await input({ r: { method: 'roots/list' } });
      return text(r.roots[0].uri);
    },
  };
  const { legacy } = await openScene({ tools: { asks } });
  const client = await legacy({ roots: {} });
  const answer = () => ({ result: { roots: [{ uri: 'file:///here' }] } });
  expect(said(await client.request('tools/call', { name: 'asks' }, answer))).toBe('file:///here');
});

test('the tools of both eras are known, and each caller is shown those of its own', async () => {
  const listed = ({ era }: Ask) => ({
    tools: ['both', `only-${era}`].map((name) => ({ name, inputSchema: { type: 'object' } })),
  });
  const names = (received: Parameters<typeof outcome>[0]) =>
    outcome(received).result.tools.map((tool: { name: string }) => tool.name);
  const { legacy, modern } = await openScene({
    tools: { both: which, 'only-legacy': which, 'only-modern': which },
    answers: { 'tools/list': listed },
  });
  const client = await legacy();
  expect(names(await client.request('tools/list'))).toEqual(['both', 'only-legacy']);
  expect(names(await modern('tools/list'))).toEqual(['both', 'only-modern']);
  expect(said(await client.request('tools/call', { name: 'only-legacy' }))).toBe('legacy');
  expect(said(await modern('tools/call', { name: 'only-modern' }))).toBe('modern');
});

test('a server of the modern era alone serves a legacy client in that one', async () => {
  const { legacy } = await openScene({ eras: ['modern'], tools: { which } });
  const client = await legacy({ roots: {} });
  expect(client.opened.result.serverInfo.name).toBe('test-upstream');
  expect(said(await client.request('tools/call', { name: 'which' }))).toBe('modern');
});

test('a server that opens no session for a client is answered for in its own words', async () => {
  const { upstream, gateway } = await openScene({ eras: ['legacy'] });
  await upstream.close();
  const client = await openLegacyClient(gateway.at('u'));
  expect(client.opened.error.message).toContain('cannot be reached');
});

const STEERED = join(import.meta.dirname, '../../../support/upstreams/steered-server.mjs');

test('a program is started once, and a legacy client begins with its own first request', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-eras-'));
  const journal = join(dir, 'journal');
  const gateway = await openMcpGateway({
    upstreams: { steered: { command: [process.execPath, STEERED, journal, '--ignore'] } },
  });
  onTestFinished(async () => {
    await gateway.close();
    await rm(dir, { recursive: true });
  });
  const client = await openLegacyClient(gateway.at('steered'));
  await client.request('tools/list');
  await client.request('tools/call', { name: 'echo' });
  const lines = readFileSync(journal, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.filter(({ started }) => started)).toHaveLength(1);
  expect(lines.map(({ method }) => method).slice(1)).toEqual([
    'initialize',
    'notifications/initialized',
    'tools/list',
    'tools/call',
  ]);
});

test('clients that can be asked nothing share one program of the modern era; one that can has its own', async () => {
  const gateway = await openMcpGateway({ upstreams: { fixture: { command: [...fixtureCommand()] } } });
  onTestFinished(() => gateway.close());
  // As a gateway that serves does when it starts.
  await gateway.runtime.bridge.tools({ id: 'a', kind: 'person', scopes: ['*'] });
  const shared = await openLegacyClient(gateway.at('fixture'));
  const own = await openLegacyClient(gateway.at('fixture'), { roots: {} });
  expect(shared.opened.result.capabilities.tasks).toBeDefined();
  expect(own.opened.result.capabilities.tasks).toBeUndefined();
});
