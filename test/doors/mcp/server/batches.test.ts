/** Several messages in one, as 2025-03-26 has them: taken in its sessions, refused in words in any other, understood from servers. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openMcpGateway } from '../../../support/mcp/gateway.ts';
import { openLegacyClient, openScene, outcome } from '../../../support/mcp/one-server.ts';
import { echo, type Loose, text } from '../../../support/mcp/upstream.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';

const BATCHING = '2025-03-26';
const call = (id: number | string, words: string) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: words } },
});

async function openBatching(revision = BATCHING) {
  const scene = await openScene({
    gateway: { silenceMs: 20_000 },
    tools: {
      echo,
      asks: {
        async call(ask) {
          const { reported } = await ask.input({ reported: { method: 'roots/list' } });
          return text(JSON.stringify(reported.roots));
        },
      },
    },
  });
  const url = scene.gateway.at('u');
  const client = await openLegacyClient(url, { roots: {} }, { revision });
  const post = (batch: readonly Loose[], more: Partial<Parameters<typeof exchange>[1]> = {}) =>
    exchange(url, { headers: { 'mcp-session-id': client.session }, body: JSON.stringify(batch), ...more });
  return { ...scene, url, client, post };
}

test('each message is answered as if it had come by itself, and all answers come together', async () => {
  const { post, upstream } = await openBatching();
  const { status, type, frames } = await post([
    call(1, 'one'),
    { jsonrpc: '2.0', method: 'notifications/roots/list_changed' },
    { jsonrpc: '2.0', id: 2, method: 'ping' },
    { nonsense: true },
    { jsonrpc: '2.0', id: 3, method: 'initialize', params: {} },
    call('four', 'four'),
  ]);
  expect([status, type]).toEqual([200, 'application/json']);
  expect(frames[0]).toMatchObject([
    { id: 1, result: { content: [{ text: 'one' }] } },
    { id: 2, result: {} },
    { id: null, error: { code: -32600 } },
    { id: 3, error: { code: -32600, message: 'initialize does not go into a batch' } },
    { id: 'four', result: { content: [{ text: 'four' }] } },
  ]);
  expect(upstream.count('tools/call')).toBe(2);
});

test('one that asks nothing is taken without an answer', async () => {
  const { post } = await openBatching();
  const { status, frames } = await post([{ jsonrpc: '2.0', method: 'notifications/roots/list_changed' }]);
  expect([status, frames]).toEqual([202, []]);
});

test('what is asked on the way comes on the stream of the batch, and the answers after it', async () => {
  const { post, client } = await openBatching();
  const asking = { jsonrpc: '2.0', id: 'asks', method: 'tools/call', params: { name: 'asks' } };
  const { type, frames } = await post([asking, call(2, 'two')], {
    async frame(frame) {
      if (frame.method === 'roots/list') await client.post({ id: frame.id, result: { roots: [{ uri: 'file:///r' }] } });
      return undefined;
    },
  });
  expect(type).toBe('text/event-stream');
  expect(frames.slice(1).map(({ id, result }) => [id, result.content[0].text])).toEqual([
    ['asks', '[{"uri":"file:///r"}]'],
    [2, 'two'],
  ]);
});

test('one that is empty, or longer than anyone needs, is refused whole', async () => {
  const { post, upstream } = await openBatching();
  const said = async (batch: Loose[]) => {
    const { status, frames } = await post(batch);
    return [status, frames[0]?.error.message];
  };
  expect(await said([])).toEqual([400, 'Invalid Request: the batch is empty']);
  expect(await said(Array.from({ length: 101 }, (_, at) => call(at, 'x')))).toEqual([
    400,
    'Invalid Request: a batch holds at most 100 messages, this one 101',
  ]);
  expect(upstream.count('tools/call')).toBe(0);
});

test('in other revisions a batch is refused, and nothing in it happens', async () => {
  const { post, url, upstream } = await openBatching('2025-06-18');
  const older = await post([call(1, 'one')]);
  expect([older.status, older.frames[0]]).toEqual([
    400,
    {
      jsonrpc: '2.0',
      id: null,
      error: {
        code: -32600,
        message:
          'Batches are of revision 2025-03-26 only, and this session speaks 2025-06-18: send each message by itself',
      },
    },
  ]);
  const newer = await exchange(url, {
    headers: { 'mcp-protocol-version': '2026-07-28' },
    body: JSON.stringify([call(1, 'one')]),
  });
  expect([newer.status, newer.frames[0]?.error.code]).toEqual([400, -32600]);
  expect(newer.frames[0]?.error.message).toContain('Batches are of revision 2025-03-26 only');
  expect(upstream.count('tools/call')).toBe(0);
});

test('a server that says several things in one is understood', async () => {
  const results: Record<string, Loose> = {
    initialize: {
      protocolVersion: BATCHING,
      capabilities: { tools: {} },
      serverInfo: { name: 's', version: '1' },
    },
    'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
    'tools/call': text('heard'),
  };
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const { id, method, params } = body === '' ? ({} as Loose) : JSON.parse(body);
    const result = results[method];
    if (!result) return void response.writeHead(method?.startsWith('notifications/') ? 202 : 405).end();
    const answer = { jsonrpc: '2.0', id, result };
    const { progressToken } = params?._meta ?? {};
    const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } };
    const streams = method === 'tools/call';
    response.writeHead(200, { 'content-type': streams ? 'text/event-stream' : 'application/json' });
    response.end(streams ? `data: ${JSON.stringify([progress, answer])}\n\n` : JSON.stringify([answer]));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const gateway = await openMcpGateway({ upstreams: { u: { url } } });
  onTestFinished(async () => {
    await gateway.close();
    server.closeAllConnections();
    server.close();
  });
  const client = await openLegacyClient(gateway.at('u'), {}, { revision: BATCHING });
  const received = await client.request('tools/call', { name: 'echo', _meta: { progressToken: 'p' } });
  expect(received.frames[0]).toMatchObject({ method: 'notifications/progress', params: { progressToken: 'p' } });
  expect(outcome(received).result.content).toEqual([{ type: 'text', text: 'heard' }]);
});
