/** Five servers of which one hangs, one crashes and one is slow: the others are there at once, and the missing ones are named. */

import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { openMcpGateway } from '../../../support/mcp/gateway.ts';
import { openLegacyClient, outcome } from '../../../support/mcp/one-server.ts';
import type { Loose } from '../../../support/mcp/upstream.ts';

const STEERED = join(import.meta.dirname, '../../../support/upstreams/steered-server.mjs');
const UNAVAILABLE = 'dev.tollbridge/unavailable';

async function fiveServers() {
  const dir = await mkdtemp(join(tmpdir(), 'tb-many-'));
  const journal = (name: string) => join(dir, `${name}.journal`);
  const steered = (name: string, ...flags: string[]) => ({
    command: [process.execPath, STEERED, journal(name), ...flags],
    effects: { echo: 'read', grow: 'read' } as const,
  });
  const said: string[] = [];
  const log = {
    info() {},
    error() {},
    warn: (about: Loose, text: string) => void said.push(`${about.server}: ${text}`),
  };
  const gateway = await openMcpGateway({
    log,
    upstreams: {
      one: steered('one'),
      two: steered('two'),
      hangs: steered('hangs', '--hang'),
      crashes: steered('crashes', '--crash'),
      slow: steered('slow', '--slow', join(dir, 'go')),
    },
  });
  onTestFinished(async () => {
    await gateway.close();
    await rm(dir, { recursive: true });
  });
  const starts = (name: string) => readFileSync(journal(name), 'utf8').match(/"started"/g)?.length;
  return { gateway, starts, said, go: () => writeFile(join(dir, 'go'), '') };
}

const names = (received: Parameters<typeof outcome>[0]) =>
  outcome(received).result.tools.map(({ name }: Loose) => name) as string[];
const missing = (received: Parameters<typeof outcome>[0]) =>
  Object.fromEntries(
    (outcome(received).result._meta?.[UNAVAILABLE] ?? []).map(({ server, state }: Loose) => [server, state]),
  );

test('the tools of the healthy servers are listed while others hang, crash and start; a late one is announced', async () => {
  const { gateway, starts, said, go } = await fiveServers();
  const healthy = ['one__echo', 'one__grow', 'two__echo', 'two__grow'];
  const client = await openLegacyClient(`${gateway.url}/mcp`);
  const first = await client.request('tools/list');
  expect(names(first)).toEqual(healthy);
  expect(Object.keys(missing(first)).toSorted()).toEqual(['crashes', 'hangs', 'slow']);
  const crashed = async () => missing(await client.request('tools/list')).crashes === 'unavailable';
  await eventually(crashed, 'the crash to be noticed');
  expect(said).toContain('hangs: a tool server has not answered; tools are listed without it meanwhile');
  expect(said).toContain('crashes: a tool server is unavailable');
  const called = await client.request('tools/call', { name: 'one__echo' });
  expect(outcome(called).result.content[0].text).toContain('echo by');
  expect(names(await client.request('tools/list'))).toEqual(healthy);

  const absent = outcome(await client.request('tools/call', { name: 'slow__echo' })).result;
  expect(absent).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('slow does not answer') }] });
  const prompts = outcome(await client.request('prompts/list')).result.prompts;
  expect(prompts.map(({ name }: Loose) => name)).toEqual(['one__hello', 'two__hello']);

  const announced = client.listen(({ method }) => method === 'notifications/tools/list_changed');
  await go();
  await announced;
  const last = await client.request('tools/list');
  expect(names(last)).toEqual([...healthy.slice(0, 2), 'slow__echo', 'slow__grow', ...healthy.slice(2)]);
  expect(missing(last)).toEqual({ hangs: 'starting', crashes: 'unavailable' });
  expect(starts('slow')).toBe(1);
  expect(starts('hangs')).toBe(1);
});

test('a tool that a server adds while it runs appears at the common address, and is announced', async () => {
  const { gateway } = await fiveServers();
  const client = await openLegacyClient(`${gateway.url}/mcp`);
  await client.request('tools/list');
  const announced = client.listen(({ method }) => method === 'notifications/tools/list_changed');
  await client.request('tools/call', { name: 'one__grow' });
  await announced;
  expect(names(await client.request('tools/list'))).toContain('one__grown');
  const called = await client.request('tools/call', { name: 'one__grown' });
  expect(outcome(called).result.content[0].text).toContain('grown by');
});
