/** Tasks at the common address, of servers of both designs at once, for clients of 2025-11-25. */
import { expect, onTestFinished, test } from 'vitest';
import { createDemoAgent } from '../../../../src/demo/agent.ts';
import type { Loose } from '../../../support/mcp/fixture/asking.ts';
import { serveFixture } from '../../../support/mcp/fixture/server.ts';
import { type McpGatewayOptions, openMcpGateway, VISITOR } from '../../../support/mcp/gateway.ts';
import { openLegacyClient, outcome } from '../../../support/mcp/one-server.ts';
import { FORMS, followedByV1, YES } from '../../../support/mcp/task-v1.ts';
import { openUpstream } from '../../../support/mcp/upstream.ts';

const RELATED = 'io.modelcontextprotocol/related-task';

/** Two servers of the newer design, one of the older, one without tasks, and an agent. */
async function openAll(more: Partial<McpGatewayOptions> = {}) {
  const [a, b, old] = await Promise.all([
    serveFixture({ era: 'modern' }),
    serveFixture({ era: 'modern' }),
    serveFixture({ era: 'legacy', olderTasks: true }),
  ]);
  const plain = await openUpstream({ eras: ['modern'] });
  const gateway = await openMcpGateway({
    upstreams: { a: { url: a.url }, b: { url: b.url }, old: { url: old.url }, plain: { url: plain.url } },
    agents: [createDemoAgent({ pause: async () => {} })],
    authenticate: async (token: string | undefined) => ({ ...VISITOR, id: token ?? 'ada' }),
    ...more,
  });
  onTestFinished(async () => {
    await gateway.close();
    for (const server of [a, b, old, plain]) await server.close();
  });
  const url = `${gateway.url}/mcp`;
  const open = async (who = 'ada', revision = '2025-11-25') => {
    const client = await openLegacyClient(url, FORMS, { headers: { authorization: `Bearer ${who}` }, revision });
    const ask = async (method: string, params: Loose = {}, answer?: (frame: Loose) => Loose | undefined) =>
      outcome(await client.request(method, params, answer)) as Loose;
    const begin = async (name: string, args: Loose = {}): Promise<Loose> =>
      (await ask('tools/call', { name, arguments: args, task: {} })).result.task;
    const listed = async (): Promise<string[]> => {
      const ids: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const { result } = await ask('tasks/list', cursor === undefined ? {} : { cursor });
        ids.push(...result.tasks.map(({ taskId }: Loose) => taskId));
        cursor = result.nextCursor;
        if (cursor === undefined) return ids;
      }
    };
    return { ...client, ask, begin, listed };
  };
  return { open, url };
}

test('a client that knows tasks learns which tools can be called as one; other clients do not', async () => {
  const { open } = await openAll();
  const { opened, ask } = await open();
  expect(opened.result.capabilities.tasks).toEqual({ list: {}, cancel: {}, requests: { tools: { call: {} } } });
  const supports = (tools: Loose[], prefix: string) =>
    new Set(tools.filter(({ name }) => name.startsWith(prefix)).map(({ execution }) => execution?.taskSupport));
  const { tools } = (await ask('tools/list')).result;
  expect(supports(tools, 'a__')).toEqual(new Set(['optional']));
  expect(supports(tools, 'old__')).toEqual(new Set([undefined, 'optional', 'required']));
  expect(supports(tools, 'plain__')).toEqual(new Set([undefined]));
  expect(supports(tools, 'agent__')).toEqual(new Set(['optional']));

  const older = await open('ada', '2025-06-18');
  expect(older.opened.result.capabilities.tasks).toBeUndefined();
  const shown = (await older.ask('tools/list')).result.tools;
  for (const prefix of ['a__', 'agent__']) expect(supports(shown, prefix)).toEqual(new Set([undefined]));
  const call = { name: 'a__greet', arguments: { name: 'Ada' }, task: {} };
  expect((await older.ask('tools/call', call)).result.content).toEqual([{ type: 'text', text: 'Hello, Ada!' }]);
  const work = { name: 'agent__demo', arguments: { message: 'hello' }, task: {} };
  expect((await older.ask('tools/call', work)).result.structuredContent.status).toBe('COMPLETED');
});

test('a call is a task at whichever server it is made, found by its name there and its result waited for', async () => {
  const { open } = await openAll();
  const { ask, begin, listed } = await open();
  const begun = [
    (await begin('agent__demo', { message: 'hello' })).taskId,
    (await begin('a__slow_compute', { seconds: 0.1 })).taskId,
    (await begin('a__greet', { name: 'Ada' })).taskId,
    (await begin('b__slow_compute', { seconds: 0.1 })).taskId,
    (await begin('old__slow_compute', { seconds: 0.1 })).taskId,
  ];
  expect(begun.slice(1).map((taskId) => /^mcp\+(\w+):/.exec(taskId)?.[1])).toEqual(['a', 'a', 'b', 'old']);
  for (const taskId of begun) {
    const { result } = await ask('tasks/result', { taskId });
    expect(result._meta).toEqual({ [RELATED]: { taskId } });
    expect((await ask('tasks/get', { taskId })).result).toMatchObject({ taskId, status: 'completed' });
    expect((await ask('tasks/cancel', { taskId })).error.code).toBe(-32602);
  }
  // The older server has no list of its own.
  expect(await listed()).toEqual(begun.slice(0, 4));
  expect((await ask('tasks/list', { cursor: 'nowhere' })).error).toEqual({ code: -32602, message: 'Invalid cursor' });
  const stopped = (await begin('b__slow_compute', { seconds: 60 })).taskId;
  expect((await ask('tasks/cancel', { taskId: stopped })).result).toMatchObject({
    taskId: stopped,
    status: 'cancelled',
  });
});

test('what a task asks is asked under the name it has here, and nobody else sees, answers or stops it', async () => {
  const { open } = await openAll();
  const ada = await open();
  const bob = await open('bob');
  const { taskId } = await ada.begin('a__confirm_delete', { filename: 'x' });
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
    const asked: Loose[] = [];
    const { error } = await bob.ask(method, { taskId }, (frame) => {
      asked.push(frame);
      return { result: YES };
    });
    expect([error.code, asked]).toEqual([-32602, []]);
  }
  expect(await bob.listed()).toEqual([]);
  // The same name at the other server is nobody's.
  expect((await ada.ask('tasks/get', { taskId: taskId.replace('mcp+a:', 'mcp+b:') })).error.code).toBe(-32602);
  const asked: Loose[] = [];
  const { result } = await ada.ask('tasks/result', { taskId }, (frame) => {
    asked.push(frame.params._meta);
    return { result: YES };
  });
  expect(asked).toEqual([{ [RELATED]: { taskId } }]);
  expect(JSON.parse(result.content[0].text)).toEqual({ confirm: YES });
});

test('a call that rules refuse is a task that failed, here as well', async () => {
  const rules = [
    '- { id: no, when: { tool: greet, arguments: { name: Ada } }, then: block, say: not for you }',
    '- { id: all, when: {}, then: allow }',
  ].join('\n');
  const { open } = await openAll({ rules });
  const { ask, begin, listed } = await open();
  for (const server of ['a', 'old']) {
    const { taskId } = await begin(`${server}__greet`, { name: 'Ada' });
    expect((await ask('tasks/get', { taskId })).result).toMatchObject({
      taskId,
      status: 'failed',
      statusMessage: 'not for you',
    });
    expect((await ask('tasks/result', { taskId })).result).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: 'not for you' }],
      _meta: { [RELATED]: { taskId } },
    });
    if (server === 'a') expect(await listed()).toEqual([taskId]);
  }
});

test('the SDK’s first line follows a task of a newer server to its end through the common address', async () => {
  const { url } = await openAll();
  const { kinds, text } = await followedByV1(url, 'a__confirm_delete');
  expect(kinds).toEqual(['taskCreated', 'taskStatus', 'result']);
  expect(JSON.parse(text)).toEqual({ confirm: YES });
});
