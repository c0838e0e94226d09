/** Status notifications of a task reach the client that began it, under the name the task has at that address, and nobody else. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openMcpGateway, VISITOR } from '../../../support/mcp/gateway.ts';
import { openLegacyClient } from '../../../support/mcp/one-server.ts';
import type { Loose } from '../../../support/mcp/upstream.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';

const META = 'io.modelcontextprotocol/';
const TASK = { taskId: 't1', status: 'working', createdAt: 'c', lastUpdatedAt: 'c', ttlMs: null };

/** Makes one task, and tells of every task it is asked about. */
async function openServer() {
  const wishes: Loose[] = [];
  const answers: Record<string, (frame: Loose) => Loose[]> = {
    'server/discover': () => [
      {
        result: {
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {}, extensions: { [`${META}tasks`]: {} } },
        },
      },
    ],
    'tools/list': () => [{ result: { tools: [{ name: 'job', inputSchema: { type: 'object' } }] } }],
    'tools/call': () => [{ result: { resultType: 'task', ...TASK } }],
    'subscriptions/listen': ({ id, params: { notifications } }) => {
      wishes.push(notifications);
      const _meta = { [`${META}subscriptionId`]: id };
      const reported = (notifications.taskIds ?? []).map((taskId: string) => ({
        method: 'notifications/tasks',
        params: { ...TASK, taskId, _meta },
      }));
      return [
        { method: 'notifications/subscriptions/acknowledged', params: { notifications, _meta } },
        ...reported,
        { result: { resultType: 'complete', _meta } },
      ];
    },
  };
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const frame = JSON.parse(body);
    const said = answers[frame.method]?.(frame) ?? [{ error: { code: -32601, message: 'no such method' } }];
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const each of said) {
      const id = each.method ? {} : { id: frame.id };
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...id, ...each })}\n\n`);
    }
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    wishes,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => new Promise<unknown>((resolve) => server.close(resolve)),
  };
}

/** The server, and a gateway before it that takes a token for its bearer's name. */
async function openBoth() {
  const server = await openServer();
  const authenticate = async (token: string | undefined) => ({ ...VISITOR, id: token ?? 'nobody' });
  const gateway = await openMcpGateway({ upstreams: { u: { url: server.url } }, authenticate });
  onTestFinished(async () => {
    await gateway.close();
    await server.close();
  });
  return { server, gateway };
}

test('a task is listened for by the client that began it, and by nobody else', async () => {
  const { server, gateway } = await openBoth();
  const ask = (url: string, who: string, method: string, params: Loose, frame?: (frame: Loose) => boolean) =>
    exchange(url, {
      headers: {
        authorization: `Bearer ${who}`,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(params.name && { 'mcp-name': params.name }),
      },
      body: {
        jsonrpc: '2.0',
        id: 1,
        method,
        params: {
          ...params,
          _meta: {
            [`${META}protocolVersion`]: '2026-07-28',
            [`${META}clientCapabilities`]: { extensions: { [`${META}tasks`]: {} } },
          },
        },
      },
      ...(frame && { frame }),
    });
  const listen = (url: string, who: string, taskId: string, frame?: (frame: Loose) => boolean) =>
    ask(url, who, 'subscriptions/listen', { notifications: { taskIds: [taskId] } }, frame);
  const reportedOf = (frames: readonly Loose[]) =>
    frames.filter(({ method }) => method === 'notifications/tasks').map(({ params }) => params.taskId);

  await ask(gateway.at('u'), 'ada', 'tools/call', { name: 'job' });
  expect(reportedOf((await listen(gateway.at('u'), 'ada', 't1')).frames)).toEqual(['t1']);
  expect(reportedOf((await listen(gateway.at('u'), 'bob', 't1')).frames)).toEqual([]);
  expect(server.wishes).toEqual([{ taskIds: ['t1'] }, { taskIds: [] }]);

  const common = await listen(
    `${gateway.url}/mcp`,
    'ada',
    'mcp+u:t1',
    ({ method }) => method === 'notifications/tasks',
  );
  expect(common.frames[0]?.params.notifications).toEqual({ taskIds: ['mcp+u:t1'] });
  expect(reportedOf(common.frames)).toEqual(['mcp+u:t1']);
});

test('a client of 2025-11-25 is notified of its own tasks without asking, at both addresses', async () => {
  const { gateway } = await openBoth();
  for (const [url, tool, taskId] of [
    [gateway.at('u'), 'job', 't1'],
    [`${gateway.url}/mcp`, 'u__job', 'mcp+u:t1'],
  ] as const) {
    const open = (who: string) => openLegacyClient(url, {}, { headers: { authorization: `Bearer ${who}` } });
    const [ada, bob] = await Promise.all([open('ada'), open('bob')]);
    const received: Loose[] = [];
    const over = new AbortController();
    const listening = bob.listen((frame) => void received.push(frame), over.signal).catch(() => {});
    const reported = ada.listen(({ method }) => method === 'notifications/tasks/status');
    await ada.request('tools/call', { name: tool, arguments: {}, task: {} });
    expect((await reported).frames.at(-1)).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/tasks/status',
      params: { taskId, status: 'working', createdAt: 'c', lastUpdatedAt: 'c', ttl: null },
    });
    over.abort();
    await listening;
    expect(received).toEqual([]);
  }
});
