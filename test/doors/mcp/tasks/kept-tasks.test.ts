/** Tasks that are kept here for clients of 2025-11-25: across a restart, when the rules say no, and in notifications that the client did not ask for. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, onTestFinished, test } from 'vitest';
import type { UpstreamConfig } from '../../../../adapters/mcp/config.ts';
import type { Loose } from '../../../support/mcp/fixture/asking.ts';
import { fixtureCommand, serveFixture } from '../../../support/mcp/fixture/server.ts';
import { type McpGateway, type McpGatewayOptions, openMcpGateway, VISITOR } from '../../../support/mcp/gateway.ts';
import { openLegacyClient, outcome } from '../../../support/mcp/one-server.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';

const RELATED = 'io.modelcontextprotocol/related-task';
const people = async (token: string | undefined) => ({ ...VISITOR, id: token ?? 'ada' });
const NO_GREETING = [
  '- { id: no-greeting, when: { tool: greet, arguments: { name: Ada } }, then: block, say: greetings are not for you }',
  '- { id: all, when: {}, then: allow }',
].join('\n');

test('a task of another gateway is kept like any other, and is answered with the receipt of its call', async () => {
  const fixture = await openModern();
  const open = await openLasting({ url: fixture.url });
  const before = await openClient(await open());
  const _meta = { 'dev.tollbridge/caller': { task_id: 'task_there', tool_call_id: 'call_there' } };
  const params = { name: 'greet', arguments: { name: 'Ada' }, task: {}, _meta };
  const { result } = await before.ask('tools/call', params);
  const gateway = await open();
  const after = await openClient(gateway);
  expect(await after.listed()).toEqual([result.task.taskId]);
  expect((await after.ask('tasks/result', { taskId: result.task.taskId })).result.content).toEqual([
    { type: 'text', text: 'Hello, Ada!' },
  ]);
  const [stored] = await gateway.runtime.store.receipts({});
  expect(result._meta['dev.tollbridge/act']).toMatchObject({
    receipt_id: stored?.receipt.receipt_id,
    receipt_hash: stored?.receipt.chain.receipt_hash,
  });
});

/** A gateway that can be opened again over the same log. */
async function openLasting(u: UpstreamConfig, more: Partial<McpGatewayOptions> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-mcp-tasks-'));
  let gateway: McpGateway | undefined;
  const again = async (changed: Partial<McpGatewayOptions> = {}) => {
    await gateway?.close();
    gateway = await openMcpGateway({ upstreams: { u }, dir, authenticate: people, ...more, ...changed });
    return gateway;
  };
  onTestFinished(async () => {
    await gateway?.close();
    await rm(dir, { recursive: true, force: true });
  });
  return again;
}

async function openClient(gateway: McpGateway, who = 'ada', path = 'u') {
  const headers = { authorization: `Bearer ${who}` };
  const client = await openLegacyClient(path === '' ? `${gateway.url}/mcp` : gateway.at(path), {}, { headers });
  const ask = async (method: string, params: Loose = {}): Promise<Loose> =>
    outcome(await client.request(method, params));
  const begin = async (name: string, args: Loose = {}, task: Loose = {}): Promise<Loose> =>
    (await ask('tools/call', { name, arguments: args, task })).result.task;
  const listed = async () => (await ask('tasks/list')).result.tasks.map(({ taskId }: Loose) => taskId);
  return { ...client, ask, begin, listed };
}

async function openModern() {
  const fixture = await serveFixture({ era: 'modern' });
  onTestFinished(() => fixture.close());
  return fixture;
}

test('tasks are found again after a restart: those at the server, those that ended at once, and the list of them', async () => {
  const fixture = await openModern();
  const open = await openLasting({ url: fixture.url });
  const before = await openClient(await open());
  const slow = (await before.begin('slow_compute', { seconds: 0.1 })).taskId;
  const quick = (await before.begin('greet', { name: 'Ada' })).taskId;
  const short = (await before.begin('greet', { name: 'Bob' }, { ttl: 0 })).taskId;
  const state = (await before.ask('tasks/get', { taskId: quick })).result;

  const gateway = await open();
  const after = await openClient(gateway);
  expect(await after.listed()).toEqual([slow, quick]);
  expect((await after.ask('tasks/get', { taskId: quick })).result).toEqual(state);
  expect((await after.ask('tasks/result', { taskId: quick })).result).toEqual({
    content: [{ type: 'text', text: 'Hello, Ada!' }],
    _meta: { [RELATED]: { taskId: quick } },
  });
  expect((await after.ask('tasks/result', { taskId: slow })).result.content).toEqual([
    { type: 'text', text: 'computed' },
  ]);
  expect((await after.ask('tasks/get', { taskId: short })).error.code).toBe(-32602);

  const common = await openClient(gateway, 'ada', '');
  expect(await common.listed()).toEqual([`mcp+u:${slow}`, `mcp+u:${quick}`]);
  const there = { taskId: `mcp+u:${quick}` };
  expect((await common.ask('tasks/result', there)).result._meta).toEqual({ [RELATED]: there });

  const other = await openClient(gateway, 'bob');
  expect(await other.listed()).toEqual([]);
  for (const taskId of [slow, quick]) {
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
      expect((await other.ask(method, { taskId })).error.code).toBe(-32602);
    }
  }
});

test('a long list comes in pages, each task once, and goes on after a restart where it was', async () => {
  const fixture = await openModern();
  const open = await openLasting({ url: fixture.url }, { door: { receipt_calls: 40 } });
  const before = await openClient(await open());
  const begun: string[] = [];
  for (let count = 0; count < 70; count += 1) {
    begun.push((await before.begin('greet', { name: String(count) })).taskId);
    begun.push((await before.begin('slow_compute', { seconds: 0 })).taskId);
  }
  const first = (await before.ask('tasks/list')).result;
  const after = await openClient(await open());
  const pages = [first];
  while (pages.at(-1).nextCursor !== undefined) {
    pages.push((await after.ask('tasks/list', { cursor: pages.at(-1).nextCursor })).result);
  }
  expect(pages.map(({ tasks }) => tasks.length)).toEqual([50, 70, 20]);
  const listed = pages.flatMap(({ tasks }) => tasks.map(({ taskId }: Loose) => taskId));
  expect(listed.toSorted()).toEqual(begun.toSorted());
  for (const cursor of ['nowhere', '0.0', '99.0', 'tollbridge.kept.99.0', 'tollbridge.kept.x']) {
    expect((await after.ask('tasks/list', { cursor })).error).toEqual({ code: -32602, message: 'Invalid cursor' });
  }
});

test('a result that is too large for the log’s own lines outlives a restart as well', async () => {
  const fixture = await openModern();
  const open = await openLasting({ url: fixture.url });
  const name = 'x'.repeat(200_000);
  const { taskId } = await (await openClient(await open())).begin('greet', { name });
  const after = await openClient(await open());
  expect((await after.ask('tasks/result', { taskId })).result.content[0].text).toBe(`Hello, ${name}!`);
});

test('a task whose server is gone with us has failed, and says so; one whose time was up is not there', async () => {
  const open = await openLasting({ command: [...fixtureCommand('--era', 'modern')] });
  const before = await openClient(await open());
  const { taskId } = await before.begin('slow_compute', { seconds: 60 });
  const after = await openClient(await open());
  const { result } = await after.ask('tasks/get', { taskId });
  const statusMessage = 'the server no longer knows this task, and what came of it is not known';
  expect(result).toMatchObject({ taskId, status: 'failed', statusMessage, ttl: 60_000 });
  expect(await after.listed()).toEqual([taskId]);
  expect((await after.ask('tasks/result', { taskId })).error).toEqual({ code: -32603, message: statusMessage });
  expect((await after.ask('tasks/cancel', { taskId })).error.message).toBe('the task has ended as failed');
  expect((await after.ask('tasks/get', { taskId: 'never' })).error.code).toBe(-32602);
  const other = await openClient(await open(), 'bob');
  expect((await other.ask('tasks/get', { taskId })).error.code).toBe(-32602);
});

for (const [era, options] of [
  ['modern', { era: 'modern' }],
  ['legacy', { era: 'legacy', olderTasks: true }],
] as const) {
  test(`a call that rules refuse is a task that failed, with the refusal as its result: ${era} server`, async () => {
    const fixture = await serveFixture(options);
    onTestFinished(() => fixture.close());
    const open = await openLasting({ url: fixture.url }, { rules: NO_GREETING });
    const before = await openClient(await open());
    const task = await before.begin('greet', { name: 'Ada' });
    expect(task.status).toBe('working');
    const { taskId } = task;
    const refusal = {
      content: [{ type: 'text', text: 'greetings are not for you' }],
      structuredContent: {
        error: { message: 'greetings are not for you', code: 'policy_violation', rule_id: 'no-greeting' },
      },
      isError: true,
      _meta: {
        [RELATED]: { taskId },
      },
    };
    const look = async ({ ask }: typeof before) => {
      const { status, statusMessage } = (await ask('tasks/get', { taskId })).result;
      expect([status, statusMessage]).toEqual(['failed', 'greetings are not for you']);
      expect((await ask('tasks/result', { taskId })).result).toMatchObject(refusal);
      expect((await ask('tasks/cancel', { taskId })).error.code).toBe(-32602);
    };
    await look(before);
    await look(await openClient(await open()));
    const plain = await (await openClient(await open())).ask('tools/call', {
      name: 'greet',
      arguments: { name: 'Ada' },
    });
    expect({ ...plain.result, _meta: refusal._meta }).toEqual(refusal);
  });
}

test('by the extension a refusal is the result of the call, at once', async () => {
  const fixture = await openModern();
  const gateway = await (await openLasting({ url: fixture.url }, { rules: NO_GREETING }))();
  const PREFIX = 'io.modelcontextprotocol/';
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'greet' };
  const _meta = {
    [`${PREFIX}protocolVersion`]: '2026-07-28',
    [`${PREFIX}clientCapabilities`]: { extensions: { [`${PREFIX}tasks`]: {} } },
  };
  const params = { name: 'greet', arguments: { name: 'Ada' }, _meta };
  const { frames } = await exchange(gateway.at('u'), {
    headers,
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
  });
  expect(frames.at(-1)?.result).toMatchObject({
    resultType: 'complete',
    isError: true,
    content: [{ type: 'text', text: 'greetings are not for you' }],
  });
});

test('the SDK’s first line hears of a refusal as the end of a task', async () => {
  const fixture = await openModern();
  const gateway = await (await openLasting({ url: fixture.url }, { rules: NO_GREETING }))();
  const client = new ClientV1({ name: 'c', version: '1' }, { capabilities: {} });
  await client.connect(new HttpV1(new URL(gateway.at('u'))) as never);
  onTestFinished(() => client.close());
  await client.listTools();
  const kinds: string[] = [];
  let taskId = '';
  const call = { name: 'greet', arguments: { name: 'Ada' } };
  for await (const said of client.experimental.tasks.callToolStream(call, undefined, { task: {} })) {
    if (kinds.at(-1) !== said.type) kinds.push(said.type);
    if (said.type === 'taskCreated') taskId = said.task.taskId;
    if (said.type === 'taskStatus') expect(said.task.statusMessage).toBe('greetings are not for you');
  }
  expect(kinds).toEqual(['taskCreated', 'taskStatus', 'error']);
  expect((await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).isError).toBe(true);
});
