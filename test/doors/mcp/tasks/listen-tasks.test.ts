/** Status notifications of a task reach the client that began it, under the name the task has at that address, and nobody else. */
import { expect, onTestFinished, test } from 'vitest';
import { openTaskServer } from '../../../support/mcp/fixture/announced-tasks.ts';
import { openMcpGateway, VISITOR } from '../../../support/mcp/gateway.ts';
import { openLegacyClient } from '../../../support/mcp/one-server.ts';
import type { Loose } from '../../../support/mcp/upstream.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';

const META = 'io.modelcontextprotocol/';
/** The server, and a gateway before it that takes a token for its bearer's name. */
async function openBoth() {
  const server = await openTaskServer();
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
