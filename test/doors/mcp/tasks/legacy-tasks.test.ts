/** Tasks of a server of 2026-07-28, as a client of 2025-11-25 follows them: asked for, waited for, listed and stopped. */
import { expect, onTestFinished, test } from 'vitest';
import type { Loose } from '../../../support/mcp/fixture/asking.ts';
import { serveFixture } from '../../../support/mcp/fixture/server.ts';
import { openMcpGateway, VISITOR } from '../../../support/mcp/gateway.ts';
import { openLegacyClient, outcome } from '../../../support/mcp/one-server.ts';
import { FORMS, followedByV1, YES } from '../../../support/mcp/task-v1.ts';

const RELATED = 'io.modelcontextprotocol/related-task';

async function openNewer(authenticate?: (token: string | undefined) => Promise<typeof VISITOR>) {
  const fixture = await serveFixture({ era: 'modern' });
  const gateway = await openMcpGateway({
    upstreams: { u: { url: fixture.url } },
    ...(authenticate && { authenticate: authenticate as never }),
  });
  onTestFinished(async () => {
    await gateway.close();
    await fixture.close();
  });
  const open = async (
    capabilities: Loose = FORMS,
    more: { revision?: string; headers?: Record<string, string> } = {},
  ) => {
    const client = await openLegacyClient(gateway.at('u'), capabilities, more);
    const ask = async (method: string, params: Loose = {}, answer?: (frame: Loose) => Loose): Promise<Loose> =>
      outcome(await client.request(method, params, answer));
    const begin = async (name: string, args: Loose = {}, task: Loose = {}): Promise<Loose> =>
      (await ask('tools/call', { name, arguments: args, task })).result.task;
    const until = async (taskId: string, ...states: string[]): Promise<Loose> => {
      for (;;) {
        const { result } = await ask('tasks/get', { taskId });
        if (states.includes(result.status)) return result;
      }
    };
    return { ...client, ask, begin, until };
  };
  return { open, url: gateway.at('u') };
}

test('the server is said to have tasks, in this era’s words, and to nobody whose revision has none', async () => {
  const { open } = await openNewer();
  const { opened, ask } = await open();
  expect(opened.result.capabilities.tasks).toEqual({ list: {}, cancel: {}, requests: { tools: { call: {} } } });
  expect(opened.result.capabilities.extensions).toBeUndefined();
  const supports = (tools: Loose[]) => new Set(tools.map(({ execution }) => execution?.taskSupport));
  expect(supports((await ask('tools/list')).result.tools)).toEqual(new Set(['optional']));

  const older = await open(FORMS, { revision: '2025-06-18' });
  expect(older.opened.result.capabilities.tasks).toBeUndefined();
  expect(supports((await older.ask('tools/list')).result.tools)).toEqual(new Set([undefined]));
  const call = { name: 'slow_compute', arguments: { seconds: 0 }, task: {} };
  expect((await older.ask('tools/call', call)).result.content).toEqual([{ type: 'text', text: 'computed' }]);
});

test('a call that is asked to be a task is one; its result is waited for', async () => {
  const { open } = await openNewer();
  const { ask, begin, until } = await open();
  const task = await begin('slow_compute', { seconds: 0.1 });
  expect(task).toMatchObject({ status: 'working', ttl: 60_000, pollInterval: 200 });
  expect([task.ttlMs, task.resultType]).toEqual([undefined, undefined]);
  const { taskId } = task;
  expect((await ask('tasks/result', { taskId })).result).toEqual({
    content: [{ type: 'text', text: 'computed' }],
    _meta: { [RELATED]: { taskId } },
  });
  expect(await until(taskId, 'completed')).not.toHaveProperty('result');
  expect((await ask('tasks/cancel', { taskId })).error).toEqual({
    code: -32602,
    message: 'the task has ended as completed',
  });
  expect((await ask('tasks/get', { taskId: 'never' })).error.code).toBe(-32602);
});

test('what the server answers at once is a task all the same, for as long as it was asked to be kept', async () => {
  const { open } = await openNewer();
  const { ask, begin, until } = await open();
  const { taskId, status } = await begin('greet', { name: 'Ada' });
  expect(status).toBe('working');
  expect(await until(taskId, 'completed')).toMatchObject({ taskId, ttl: 600_000 });
  expect((await ask('tasks/result', { taskId })).result.content).toEqual([{ type: 'text', text: 'Hello, Ada!' }]);
  const short = await begin('greet', { name: 'Bob' }, { ttl: 0 });
  await expect.poll(async () => (await ask('tasks/get', { taskId: short.taskId })).error?.code).toBe(-32602);
});

test('what a task asks is asked while its result is waited for, and says which task it belongs to', async () => {
  const { open } = await openNewer();
  const { ask, begin, until } = await open();
  const { taskId } = await begin('multi_input');
  await until(taskId, 'input_required');
  const asked: Loose[] = [];
  const { result } = await ask('tasks/result', { taskId }, (frame) => {
    asked.push(frame);
    return { result: YES };
  });
  expect(asked.map(({ method, params }) => [method, params.message, params._meta])).toEqual([
    ['elicitation/create', 'One?', { [RELATED]: { taskId } }],
    ['elicitation/create', 'Two?', { [RELATED]: { taskId } }],
  ]);
  expect(JSON.parse(result.content[0].text)).toEqual({ one: YES, two: YES });
});

test('a tool that failed is a task that failed; one that broke has an error; one that was stopped has neither', async () => {
  const { open } = await openNewer();
  const { ask, begin, until } = await open();
  const failed = (await begin('failing_job')).taskId;
  expect((await ask('tasks/result', { taskId: failed })).result).toMatchObject({ isError: true });
  expect((await until(failed, 'completed', 'failed')).status).toBe('failed');
  const broken = (await begin('protocol_error_job')).taskId;
  expect((await ask('tasks/result', { taskId: broken })).error).toEqual({ code: -32603, message: 'the job broke' });
  const slow = (await begin('slow_compute', { seconds: 60 })).taskId;
  expect((await ask('tasks/cancel', { taskId: slow })).result).toMatchObject({ taskId: slow, status: 'cancelled' });
  expect((await ask('tasks/result', { taskId: slow })).error.code).toBe(-32602);
});

test('a question is taken back when its task is asked to stop', async () => {
  const { open } = await openNewer();
  const { ask, begin, request } = await open();
  const { taskId } = await begin('confirm_delete', { filename: 'a' });
  let stopping: Promise<Loose> | undefined;
  const { frames } = await request('tasks/result', { taskId }, () => {
    stopping ??= ask('tasks/cancel', { taskId });
    return undefined;
  });
  expect((await stopping)?.result.status).toBe('cancelled');
  const [question, withdrawn, last] = frames as [Loose, Loose, Loose];
  expect(withdrawn).toMatchObject({ method: 'notifications/cancelled', params: { requestId: question.id } });
  expect(last.error.message).toBe('the task was cancelled and has no result');
});

test('the client that began tasks finds them in a list, and nobody else does', async () => {
  const people = async (token: string | undefined) => ({ ...VISITOR, id: token ?? 'nobody' });
  const { open } = await openNewer(people);
  const ada = await open(FORMS, { headers: { authorization: 'Bearer ada' } });
  const bob = await open(FORMS, { headers: { authorization: 'Bearer bob' } });
  const mine = [(await ada.begin('slow_compute')).taskId, (await ada.begin('greet')).taskId];
  const listed = async ({ ask }: typeof ada) =>
    (await ask('tasks/list')).result.tasks.map((task: Loose) => task.taskId);
  expect(await listed(ada)).toEqual(mine);
  expect(await listed(bob)).toEqual([]);
  for (const taskId of mine) expect((await bob.ask('tasks/get', { taskId })).error.code).toBe(-32602);
  expect((await ada.ask('tasks/list', { cursor: 'nowhere' })).error).toEqual({
    code: -32602,
    message: 'Invalid cursor',
  });
});

test('a tool that can only be a task is waited for on behalf of a client that wants none', async () => {
  const { open } = await openNewer();
  const { ask } = await open();
  const call = { name: 'confirm_delete', arguments: { filename: 'a' } };
  const { result } = await ask('tools/call', call, () => ({ result: YES }));
  expect(JSON.parse(result.content[0].text)).toEqual({ confirm: YES });
  expect(result._meta).toBeUndefined();
});

test('the SDK’s first line, as it is deployed, follows such a task to its end', async () => {
  const { url } = await openNewer();
  const { kinds, text } = await followedByV1(url, 'confirm_delete');
  expect(kinds).toEqual(['taskCreated', 'taskStatus', 'result']);
  expect(JSON.parse(text)).toEqual({ confirm: YES });
});
