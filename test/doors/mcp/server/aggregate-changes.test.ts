/**
 * Lists that change at the common address: clients that would now see another list than before are notified, in both eras, whatever
 * era the server is of; clients that would see the same list are not. Resources have the names of the common address.
 */

import { describe, expect, onTestFinished, test } from 'vitest';
import type { Caller } from '../../../../adapters/mcp/server/caller.ts';
import { createListChanges } from '../../../../adapters/mcp/server/list-changes.ts';
import type { Actor } from '../../../../src/model/actions.ts';
import type { Bridge } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { openScene, outcome, type Scene, type SceneOptions } from '../../../support/mcp/one-server.ts';
import { echo, type Loose, openUpstream, text, type Upstream } from '../../../support/mcp/upstream.ts';

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const names = (received: Loose): string[] => outcome(received).result.tools.map(({ name }: Loose) => name);
const NO_SECRETS =
  '- { id: no, when: { tool: secret, principal: "person:visitor" }, then: block, say: no }\n- { id: all, when: {}, then: allow }';

async function openCommon(options: SceneOptions = {}): Promise<Scene> {
  return await openScene({ common: true, ...options, gateway: { door: { agents: false }, ...options.gateway } });
}

/** Adds a tool, tells, and waits until the gateway has looked at it. */
async function adds(upstream: Upstream, name: string): Promise<void> {
  const before = upstream.count('tools/list');
  upstream.tools[name] = echo;
  upstream.changed();
  await eventually(() => upstream.count('tools/list') > before);
}

/** Everything said on the stream of a session that belongs to no request. */
function receivedByOthers(client: Awaited<ReturnType<Scene['legacy']>>) {
  const received: Loose[] = [];
  const stop = new AbortController();
  client
    .listen((frame) => {
      received.push(frame);
      return undefined;
    }, stop.signal)
    .catch(() => {});
  return { received, stop: () => stop.abort() };
}

describe.each([['legacy'], ['modern']] as const)('a server of the %s era', (era) => {
  const eras = [era];

  test('a legacy client is notified of what it may see, and of nothing else', async () => {
    const { legacy, upstream } = await openCommon({ eras, rules: NO_SECRETS });
    const client = await legacy();
    expect(client.opened.result.capabilities).toMatchObject({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
    });
    const { received, stop } = receivedByOthers(client);
    expect(names(await client.request('tools/list'))).toEqual(['u__echo']);
    // A server's notifications arrive once its stream is open.
    await eventually(() => era === 'legacy' || upstream.count('subscriptions/listen') > 0 || upstream.listening() > 0);
    await adds(upstream, 'secret');
    await adds(upstream, 'plain');
    await eventually(() => received.length > 0);
    expect(received).toEqual([{ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }]);
    expect(names(await client.request('tools/list'))).toEqual(['u__echo', 'u__plain']);
    stop();
  });

  test('a modern client that listens is notified the same, under its own subscription', async () => {
    const { modern, upstream } = await openCommon({ eras, rules: NO_SECRETS });
    const received: Loose[] = [];
    const hangUp = new AbortController();
    const wishes = { toolsListChanged: true, promptsListChanged: true };
    const listening = modern(
      'subscriptions/listen',
      { notifications: wishes },
      {
        id: 'mine',
        signal: hangUp.signal,
        frame: (frame) => {
          received.push(frame);
          return undefined;
        },
      },
    ).catch(() => {});
    await eventually(() => received.length > 0);
    const mark = { _meta: { [SUBSCRIPTION]: 'mine' } };
    expect(received[0]).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: wishes, ...mark },
    });
    await eventually(() => era === 'legacy' || upstream.listening() > 0);
    await adds(upstream, 'secret');
    await adds(upstream, 'plain');
    await eventually(() => received.length > 1);
    expect(received.slice(1)).toEqual([{ jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: mark }]);
    hangUp.abort();
    await listening;
  });

  test('a change of a subscribed resource is reported under its name at this address', async () => {
    const { legacy, modern, upstream } = await openCommon({
      eras,
      answers: {
        'resources/subscribe': () => ({}),
        'resources/read': ({ params }) => ({ contents: [{ uri: params.uri, text: 'x' }] }),
      },
    });
    const client = await legacy();
    const { received, stop } = receivedByOthers(client);
    const uri = 'mcp+u:note://1';
    expect(outcome(await client.request('resources/read', { uri })).result.contents).toEqual([{ uri, text: 'x' }]);
    await client.request('resources/subscribe', { uri });
    const hangUp = new AbortController();
    const later: Loose[] = [];
    const wishes = { notifications: { resourceSubscriptions: [uri, 'mcp+nobody:note://1'] } };
    const frame = (said: Loose) => {
      later.push(said);
      return undefined;
    };
    modern('subscriptions/listen', wishes, { id: 's', signal: hangUp.signal, frame }).catch(() => {});
    await eventually(() => later.length > 0);
    expect(later[0].params.notifications).toEqual({ resourceSubscriptions: [uri] });
    await eventually(() => (era === 'legacy' ? upstream.count('resources/subscribe') : upstream.listening()) > 1);
    upstream.updated('note://1');
    await eventually(() => received.length > 0 && later.length > 1);
    expect(received).toEqual([{ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } }]);
    expect(later[1]).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/resources/updated',
      params: { uri, _meta: { [SUBSCRIPTION]: 's' } },
    });
    hangUp.abort();
    stop();
  });
});

test('two callers hear what concerns each of them', async () => {
  const people: Record<string, Actor> = {
    ana: { id: 'ana', kind: 'person', scopes: ['*'] },
    visitor: { id: 'visitor', kind: 'person', scopes: ['*'] },
  };
  const authenticate = async (token: string | undefined) => people[token ?? 'visitor']!;
  const { legacy, upstream } = await openCommon({ eras: ['legacy'], rules: NO_SECRETS, gateway: { authenticate } });
  const [ana, visitor] = [await legacy({}, { headers: { authorization: 'Bearer ana' } }), await legacy()];
  const [anas, visitors] = [receivedByOthers(ana), receivedByOthers(visitor)];
  await ana.request('tools/list');
  await visitor.request('tools/list');
  await adds(upstream, 'secret');
  await eventually(() => anas.received.length > 0);
  expect(names(await ana.request('tools/list'))).toEqual(['u__echo', 'u__secret']);
  expect(names(await visitor.request('tools/list'))).toEqual(['u__echo']);
  expect(visitors.received).toEqual([]);
  anas.stop();
  visitors.stop();
});

test('other rules are a change as well, and so is a definition that is no longer what it was', async () => {
  let rules = NO_SECRETS;
  const { legacy, upstream, gateway } = await openCommon({
    eras: ['legacy'],
    rules: () => rules,
    tools: { echo, secret: echo },
  });
  const client = await legacy();
  const { received, stop } = receivedByOthers(client);
  expect(names(await client.request('tools/list'))).toEqual(['u__echo']);
  rules = '- { id: all, when: {}, then: allow }';
  await gateway.runtime.policy.reload();
  await eventually(() => received.length === 1);
  expect(names(await client.request('tools/list'))).toEqual(['u__echo', 'u__secret']);
  upstream.tools.secret = { ...echo, definition: { description: 'does secret, and more' } };
  upstream.changed();
  await eventually(() => received.length === 2);
  expect(names(await client.request('tools/list'))).toEqual(['u__echo']);
  expect(new Set(received.map(({ method }) => method))).toEqual(new Set(['notifications/tools/list_changed']));
  stop();
});

test('a server without tools has its prompts and resources here, and links in answers can be followed', async () => {
  const link = { type: 'resource_link', uri: 'note://1', name: 'one' };
  const notes = await openUpstream({
    tools: {},
    answers: {
      'prompts/list': () => ({ prompts: [{ name: 'greet' }] }),
      'resources/list': ({ params }) =>
        params.cursor === undefined
          ? { resources: [{ uri: 'note://1', name: 'one' }], nextCursor: '' }
          : { resources: [{ uri: 'note://2', name: 'two' }] },
    },
  });
  onTestFinished(() => notes.close());
  const { modern } = await openCommon({
    tools: { find: { call: () => ({ content: [link, { ...link, uri: 'https://a.example/' }] }) } },
    others: { notes: { url: notes.url } },
  });
  expect(outcome(await modern('prompts/list')).result.prompts).toEqual([{ name: 'notes__greet' }]);
  const { resources, nextCursor } = outcome(await modern('resources/list')).result;
  expect([resources.map(({ uri }: Loose) => uri), nextCursor]).toEqual([
    ['mcp+notes:note://1', 'mcp+notes:note://2'],
    undefined,
  ]);
  expect(outcome(await modern('resources/list', { cursor: 'mine' })).error.code).toBe(-32602);
  const { content } = outcome(await modern('tools/call', { name: 'u__find' })).result;
  expect(content.map(({ uri }: Loose) => uri)).toEqual(['mcp+u:note://1', 'https://a.example/']);
});

test('what a client says of itself reaches the servers it has been at; a level reaches all of them', async () => {
  const { legacy, upstream } = await openCommon({ eras: ['legacy'], answers: { 'logging/setLevel': () => ({}) } });
  const client = await legacy({ roots: { listChanged: true } });
  await client.request('logging/setLevel', { level: 'debug' });
  expect(upstream.asked.find(({ method }) => method === 'logging/setLevel')?.params).toEqual({ level: 'debug' });
  await client.post({ method: 'notifications/roots/list_changed' });
  await eventually(() => upstream.count('notifications/roots/list_changed') > 0);
});

test('a task of a server is followed here under a name that says whose it is', async () => {
  const task = { taskId: 't1', status: 'working', createdAt: 't', lastUpdatedAt: 't', ttlMs: null };
  const { modern, upstream } = await openCommon({
    tools: { long: { call: () => ({ resultType: 'task', ...task }) } },
    answers: {
      'tasks/update': () => ({}),
      'tasks/get': () => ({ ...task, status: 'completed', result: text('done') }),
    },
  });
  const able = { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } };
  const { result } = outcome(await modern('tools/call', { name: 'u__long' }, able));
  expect(result).toMatchObject({ resultType: 'task', taskId: 'mcp+u:t1' });
  const update = { taskId: 'mcp+u:t1', inputResponses: {} };
  expect(outcome(await modern('tasks/update', update, able)).result).toMatchObject({ resultType: 'complete' });
  expect(upstream.asked.at(-1)).toMatchObject({ method: 'tasks/update', params: { taskId: 't1' } });
  expect(outcome(await modern('tasks/update', { ...update, taskId: 'mcp+nobody:t1' }, able)).error).toBeDefined();
});

test('when the list cannot be shown to a client, nothing is watched for it', async () => {
  let watching = 0;
  const watch = () => {
    watching += 1;
    return () => {
      watching -= 1;
    };
  };
  const changes = createListChanges({
    bridge: { watch } as unknown as Bridge,
    log: { info() {}, warn() {}, error() {} },
    show: () => Promise.reject(new Error('the server is gone')),
    servers: true,
  });
  const listening = changes.listen({ toolsListChanged: true }, {} as Caller, () => {});
  await expect(listening).rejects.toThrow('the server is gone');
  expect(watching).toBe(0);
});
