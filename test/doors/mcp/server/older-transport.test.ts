/**
 * HTTP+SSE of 2024-11-05, on both sides: clients that know no other way are served where that is switched on, and servers that
 * know no other are reached. Same callers, same rules, same refusals as over the transport of today.
 */

import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { UpstreamConfig } from '../../../../adapters/mcp/config.ts';
import type { Actor } from '../../../../src/model/actions.ts';
import { Fault } from '../../../../src/model/faults.ts';
import { eventually } from '../../../support/eventually.ts';
import { openScene, outcome, type Scene, type SceneOptions } from '../../../support/mcp/one-server.ts';
import { SDK_CLIENTS, type SdkClient, v1Client } from '../../../support/mcp/sdk-clients.ts';
import { openSseServer, type SseServer } from '../../../support/mcp/sse-server.ts';
import type { Loose } from '../../../support/mcp/upstream.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';
import { rawHttp } from '../../../support/wire/raw-http.ts';

const PEOPLE: Readonly<Record<string, Actor>> = {
  ana: { id: 'ana', kind: 'person', scopes: ['*'] },
  bo: { id: 'bo', kind: 'person', scopes: ['*'] },
};
const authenticate = async (token: string | undefined) => {
  const actor = PEOPLE[token ?? ''];
  if (!actor) throw new Fault('unauthenticated', 'the token is not valid');
  return actor;
};
const bearer = (name: string) => ({ authorization: `Bearer ${name}` });

async function openOlder(options: SceneOptions = {}): Promise<Scene> {
  const gateway = { ...options.gateway, door: { sse: true, ...options.gateway?.door } };
  return await openScene({ ...options, gateway });
}

async function olderClient(url: string): Promise<SdkClient> {
  const client = await v1Client(new SSEClientTransport(new URL(url)) as Loose);
  onTestFinished(() => client.close());
  return client;
}

describe('at the door', () => {
  test('it is not there unless it is switched on', async () => {
    const { gateway } = await openScene();
    const received = await exchange(`${gateway.at('u')}/sse`, { method: 'GET' });
    expect(received.status).toBe(404);
  });

  test('a client of the first line uses a server, is asked by it, and hears its progress', async () => {
    const { gateway, upstream } = await openOlder({
      tools: {
        echo: { call: ({ args }) => ({ content: [{ type: 'text', text: args.text }] }) },
        ask: {
          async call({ input }) {
            const said = await input({
              who: {
                method: 'elicitation/create',
                params: { message: 'Who?', requestedSchema: { type: 'object', properties: {} } },
              },
            });
            return { content: [{ type: 'text', text: JSON.stringify(said.who) }] };
          },
        },
        slowly: {
          async call({ params, notify }) {
            const { progressToken } = params._meta;
            await notify('notifications/progress', { progressToken, progress: 1, total: 2 });
            // This client forgets who wanted to hear of it when the answer comes in the same piece.
            await new Promise((resolve) => setTimeout(resolve, 50));
            return { content: [{ type: 'text', text: 'done' }] };
          },
        },
      },
    });
    const client = await olderClient(`${gateway.at('u')}/sse`);
    expect(client.server).toMatchObject({ name: 'test-upstream' });
    expect((await client.tools()).map(({ name }) => name)).toEqual(['echo', 'ask', 'slowly']);
    expect((await client.call('echo', { text: 'hi' })).content).toEqual([{ type: 'text', text: 'hi' }]);
    const asked = await client.call('ask', {});
    expect(JSON.parse(asked.content[0].text)).toMatchObject({ action: 'accept', content: { name: 'Ana' } });
    const progress: Loose[] = [];
    await client.call('slowly', {}, (received) => progress.push(received));
    expect(progress).toMatchObject([{ progress: 1, total: 2 }]);
    await client.close();
    await eventually(() => upstream.sessions() === 0);
  });

  test('the common address has it as well, and its calls are held at the same gate', async () => {
    const rules =
      '- { id: ask, when: { tool: echo }, then: ask, say: a person decides }\n- { id: all, when: {}, then: allow }';
    const { gateway, events } = await openOlder({ rules });
    const client = await olderClient(`${gateway.url}/mcp/sse`);
    // This client fills every form the same way, and not with the word for yes.
    const { isError, content } = await client.call('u__echo', { text: 'hi' });
    expect([isError, content[0].text]).toEqual([true, 'denied by the person at the client']);
    const reported = (await events()).map(({ event }) => event).filter((event) => /^tool\./.test(event));
    expect(reported).toEqual(['tool.requested', 'tool.approval_required', 'tool.denied']);
  });

  test('a session is its opener’s: to anyone else, and to anyone after its end, there is none', async () => {
    const { gateway, upstream } = await openOlder({ gateway: { authenticate } });
    const at = `${gateway.at('u')}/sse`;
    expect((await exchange(at, { method: 'GET' })).status).toBe(401);
    const hangUp = new AbortController();
    let location = '';
    const listening = fetch(at, { headers: bearer('ana'), signal: hangUp.signal }).then(async ({ body }) => {
      for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) location += Buffer.from(chunk).toString();
    });
    listening.catch(() => {});
    await eventually(() => location.includes('\n\n'));
    const [, address = ''] = /^event: endpoint\ndata: (\/mcp\/u\/message\?sessionId=\S{24})\n\n/.exec(location) ?? [];
    const post = async (who: string, to = address) => {
      const body = { jsonrpc: '2.0', id: 1, method: 'ping' };
      const received = await exchange(`${gateway.url}${to}`, { headers: bearer(who), body });
      return [received.status, outcome(received)?.error?.message];
    };
    expect(await post('bo')).toEqual([404, 'Session not found']);
    expect(await post('bo', '/mcp/u/message?sessionId=never')).toEqual([404, 'Session not found']);
    // The same session, spoken to as one of another address.
    expect(await post('ana', address.replace('/u/', '/v/'))).toEqual([404, 'Session not found']);
    expect(upstream.asked).toEqual([]);
    expect((await post('ana'))[0]).toBe(202);
    await eventually(() => location.includes('"id":1'));
    hangUp.abort();
    await eventually(() => upstream.sessions() === 0);
    let last: unknown[] = [];
    while (last[0] !== 404) last = await post('ana');
    expect(last).toEqual([404, 'Session not found']);
  });

  test('pages of other origins, other names for us, and frames that are none', async () => {
    const { gateway, upstream } = await openOlder();
    const { host } = new URL(gateway.url);
    const get = async (...headers: string[]) =>
      (await rawHttp(gateway.url, `GET /mcp/u/sse HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)).status;
    expect(await get(`Host: ${host}`)).toBe(200);
    expect(await get(`Host: ${host}`, 'Origin: https://evil.example')).toBe(403);
    expect(await get('Host: evil.example')).toBe(403);
    const at = gateway.at('u');
    expect((await exchange(`${at}/sse`, { body: {} })).status).toBe(405);
    expect((await exchange(`${at}/message?sessionId=x`, { method: 'GET' })).status).toBe(405);
    expect(upstream.asked).toEqual([]);
  });
});

describe('towards servers', () => {
  async function openBehind(config: Partial<UpstreamConfig> = {}, endpoint?: string) {
    const older: SseServer = await openSseServer(endpoint === undefined ? {} : { endpoint });
    onTestFinished(() => older.close());
    const scene = await openScene({
      others: { older: { url: older.url, ...config } },
      gateway: { secrets: { key: 'ours-and-secret' } },
    });
    return { ...scene, older };
  }

  for (const [name, open] of Object.entries(SDK_CLIENTS)) {
    test(`a ${name} uses one that is found to speak it`, async () => {
      const { gateway, older } = await openBehind();
      const client = await open({ url: gateway.at('older') });
      onTestFinished(() => client.close());
      expect(client.server).toMatchObject({ name: 'older', version: '0.9' });
      expect((await client.call('echo', { text: 'hi' })).content).toEqual([{ type: 'text', text: 'hi' }]);
      const asked = await client.call('ask', {});
      expect(JSON.parse(asked.content[0].text)).toMatchObject({ action: 'accept', content: { name: 'Ana' } });
      expect(JSON.parse((await client.call('sample', {})).content[0].text)).toMatchObject({ model: 'm' });
      const progress: Loose[] = [];
      await client.call('slowly', { text: 'x' }, (received) => progress.push(received));
      expect(progress).toMatchObject([
        { progress: 1, message: 'x' },
        { progress: 2, message: 'x' },
      ]);
      const tried = older.seen.filter(({ method, path }) => method === 'POST' && path === '/sse');
      expect(tried.length).toBeGreaterThan(0);
    });
  }

  test('one that is said to speak it is not tried otherwise, and gets our credentials with everything', async () => {
    const { gateway, older } = await openBehind({ transport: 'sse', token: 'key' });
    const client = await SDK_CLIENTS['v1 client']!({ url: gateway.at('older') });
    onTestFinished(() => client.close());
    expect((await client.call('echo', { text: 'hi' })).content).toEqual([{ type: 'text', text: 'hi' }]);
    expect(older.seen.filter(({ method, path }) => method === 'POST' && path === '/sse')).toEqual([]);
    expect(new Set(older.seen.map(({ headers }) => headers.authorization))).toEqual(
      new Set(['Bearer ours-and-secret']),
    );
  });

  test('one that names another place to post to gets nothing', async () => {
    const { gateway, older, upstream } = await openBehind(
      { transport: 'sse', token: 'key' },
      'http://127.0.0.1:1/steal',
    );
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } };
    const { error } = outcome(await exchange(gateway.at('older'), { body }));
    expect(error.message).toBe('the server cannot be used: it names an address to post to that is not its own');
    expect(older.seen.filter(({ method }) => method === 'POST')).toEqual([]);
    expect(upstream.asked).toEqual([]);
  });

  test('many with the same ids hear their own answers; a stream that was cut is opened again', async () => {
    const { gateway, older } = await openBehind({ transport: 'sse' });
    const clients = await Promise.all(
      Array.from({ length: 8 }, () => SDK_CLIENTS['v1 client']!({ url: gateway.at('older') })),
    );
    for (const client of clients) onTestFinished(() => client.close());
    const words = clients.map((_, at) => `client ${at}`);
    const said = async () =>
      (await Promise.all(clients.map((client, at) => client.call('echo', { text: words[at] })))).map(
        ({ content }) => content[0].text,
      );
    expect(await said()).toEqual(words);
    expect(older.sessions()).toBeGreaterThanOrEqual(clients.length);
    older.cut();
    await eventually(() => older.sessions() === 0);
    expect(await said()).toEqual(words);
  });
});
