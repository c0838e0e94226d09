/**
 * Lists of prompts and resources at the common address: a server is asked again only when it has announced a change, when its
 * answer holds no longer, or for a caller that it may answer otherwise. The server's own address always asks.
 */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import { eventually } from '../../../support/eventually.ts';
import { openMcpGateway } from '../../../support/mcp/gateway.ts';
import { openLegacyClient, openScene, outcome, type SceneOptions } from '../../../support/mcp/one-server.ts';
import { echo, type Loose } from '../../../support/mcp/upstream.ts';

const STEERED = join(import.meta.dirname, '../../../support/upstreams/steered-server.mjs');

const METHODS = [
  ['prompts/list', 'prompts', 'prompts', { name: 'p' }],
  ['resources/list', 'resources', 'resources', { uri: 'note://1', name: 'one' }],
  ['resources/templates/list', 'resourceTemplates', 'resources', { uriTemplate: 'note://{n}', name: 'n' }],
] as const;

/** The answers are read anew, so that a test can change them. */
function listing(more: (method: string) => Loose = () => ({})) {
  const extra: Record<string, Loose[]> = { prompts: [], resources: [], resourceTemplates: [] };
  const answers = Object.fromEntries(
    METHODS.map(([method, member, , entry]) => [
      method,
      () => ({ [member]: [entry, ...extra[member]!], ...more(method) }),
    ]),
  );
  return { answers, extra };
}

const openCommon = (options: SceneOptions) =>
  openScene({ common: true, ...options, gateway: { door: { agents: false }, ...options.gateway } });

describe.each([['legacy'], ['modern']] as const)('a server of the %s era', (era) => {
  test.each(METHODS)('%s is asked once, until a change is announced', async (method, member, list, entry) => {
    const { answers, extra } = listing();
    const { legacy, upstream } = await openCommon({ eras: [era], answers });
    const client = await legacy();
    const shown = async () => outcome(await client.request(method)).result[member] as Loose[];
    expect(await shown()).toHaveLength(1);
    // From the first list on the client is notified, and the server is listened to for that.
    const announced = client.listen(({ method: said }) => said === `notifications/${list}/list_changed`);
    await eventually(() => era === 'legacy' || upstream.listening() > 0, 'the gateway to listen');
    await eventually(async () => {
      const before = upstream.count(method);
      await shown();
      return upstream.count(method) === before;
    }, 'the list to be kept');
    extra[member]!.push({ ...entry, name: 'q', uri: 'note://2', uriTemplate: 'other://{n}' });
    upstream.changed(list);
    await announced;
    expect(await shown()).toHaveLength(2);
    const after = upstream.count(method);
    expect(await shown()).toHaveLength(2);
    expect(upstream.count(method)).toBe(after);
  });

  test('a caller is not answered with the list of another', async () => {
    const people: Record<string, Actor> = {
      ana: { id: 'ana', kind: 'person', scopes: ['*'] },
      ben: { id: 'ben', kind: 'person', scopes: ['*'] },
    };
    const { legacy, upstream } = await openCommon({
      eras: [era],
      answers: listing().answers,
      gateway: { authenticate: async (token) => people[token ?? '']! },
    });
    const [ana, ben] = [
      await legacy({}, { headers: { authorization: 'Bearer ana' } }),
      await legacy({}, { headers: { authorization: 'Bearer ben' } }),
    ];
    await ana.request('prompts/list');
    await eventually(() => era === 'legacy' || upstream.listening() > 0, 'the gateway to listen');
    await eventually(async () => {
      const before = upstream.count('prompts/list');
      await ana.request('prompts/list');
      return upstream.count('prompts/list') === before;
    }, 'the list to be kept');
    const before = upstream.count('prompts/list');
    await ben.request('prompts/list');
    expect(upstream.count('prompts/list')).toBe(before + 1);
  });

  test('the server’s own address asks the server every time', async () => {
    const { legacy, upstream } = await openScene({ eras: [era], answers: listing().answers });
    const client = await legacy();
    for (const count of [1, 2, 3]) {
      await client.request('prompts/list');
      expect(upstream.count('prompts/list')).toBe(count);
    }
  });
});

test('an answer that a modern server lets others keep is kept for everybody; one that is stale at once is not', async () => {
  const people = async (token: string | undefined): Promise<Actor> => ({
    id: token ?? 'visitor',
    kind: 'person',
    scopes: ['*'],
  });
  const { modern, upstream } = await openCommon({
    eras: ['modern'],
    answers: listing((method) =>
      method === 'prompts/list' ? { ttlMs: 60_000, cacheScope: 'public' } : { ttlMs: 0, cacheScope: 'private' },
    ).answers,
    gateway: { authenticate: people },
  });
  for (const token of ['ana', 'ben', 'ana']) {
    const headers = { authorization: `Bearer ${token}` };
    const { result } = outcome(await modern('prompts/list', {}, { headers }));
    // The list of this address depends on the caller, whatever the server says of its own.
    expect(result).toMatchObject({ prompts: [{ name: 'u__p' }], ttlMs: 0, cacheScope: 'private' });
    await modern('resources/list', {}, { headers });
  }
  expect(upstream.count('prompts/list')).toBe(1);
  expect(upstream.count('resources/list')).toBe(3);
});

test('rules decide on each request, also where the list is known', async () => {
  let rules = '- { id: all, when: {}, then: allow }';
  const { modern, gateway, events } = await openCommon({
    eras: ['modern'],
    rules: () => rules,
    answers: listing(() => ({ ttlMs: 60_000, cacheScope: 'public' })).answers,
  });
  const shown = async () => outcome(await modern('prompts/list')).result.prompts as Loose[];
  expect(await shown()).toHaveLength(1);
  expect(await shown()).toHaveLength(1);
  const passed = (await events()).filter(
    ({ event, payload }) => event === 'vendor.tollbridge.passthrough' && (payload as Loose).method === 'prompts/list',
  );
  expect(passed).toHaveLength(2);
  rules = '- { id: no, when: { tool: prompts/list }, then: block, say: no }\n- { id: all, when: {}, then: allow }';
  await gateway.runtime.policy.reload();
  expect(await shown()).toEqual([]);
});

test('a list in pages, one that is large, and one whose changes nobody announces are asked for every time', async () => {
  const { legacy, upstream } = await openCommon({
    eras: ['legacy'],
    capabilities: { tools: { listChanged: true }, prompts: {}, resources: { listChanged: true } },
    tools: { echo },
    answers: {
      'prompts/list': () => ({ prompts: [{ name: 'p' }] }),
      'resources/list': ({ params }) =>
        params.cursor === undefined ? { resources: [], nextCursor: 'next' } : { resources: [] },
      'resources/templates/list': () => ({
        resourceTemplates: [{ uriTemplate: 'x://{y}', name: 'long', description: 'x'.repeat(200_000) }],
      }),
    },
  });
  const client = await legacy();
  for (const [method] of METHODS) {
    await client.request(method);
    const once = upstream.count(method);
    await client.request(method);
    expect([method, upstream.count(method)]).toEqual([method, 2 * once]);
  }
});

test('a list that one program has returned serves other sessions of the caller without a program of their own', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-lists-'));
  const journal = join(dir, 'journal');
  const gateway = await openMcpGateway({
    door: { agents: false },
    upstreams: { one: { command: [process.execPath, STEERED, journal, '--announces'], effects: { echo: 'read' } } },
  });
  onTestFinished(async () => {
    await gateway.close();
    await rm(dir, { recursive: true });
  });
  const lines = async () => (await readFile(journal, 'utf8')).split('\n');
  /** Programs that the gateway starts for itself name the gateway as their client. */
  const forClients = async () =>
    (await lines()).filter((line) => line.includes('"initialize"') && line.includes('"clientInfo":{"name":"c"')).length;
  const asked = async () => (await lines()).filter((line) => line.includes('"prompts/list"')).length;
  const first = await openLegacyClient(`${gateway.url}/mcp`);
  const prompts = async (client: typeof first) =>
    outcome(await client.request('prompts/list')).result.prompts.map(({ name }: Loose) => name);
  expect(await prompts(first)).toEqual(['one__hello']);
  expect([await forClients(), await asked()]).toEqual([1, 1]);
  const second = await openLegacyClient(`${gateway.url}/mcp`);
  expect(await prompts(second)).toEqual(['one__hello']);
  expect([await forClients(), await asked()]).toEqual([1, 1]);
  // From its first call on it has a program of its own, whose lists are its own.
  await second.request('tools/call', { name: 'one__echo' });
  expect(await prompts(second)).toEqual(['one__hello']);
  expect([await forClients(), await asked()]).toEqual([2, 2]);
});
