/** The common address: tools of all servers, agents to give work to, and tasks in the design each client knows. */
import { expect, onTestFinished, test } from 'vitest';
import { createDemoAgent } from '../../../../src/demo/agent.ts';
import { createDemoTools } from '../../../../src/demo/tools.ts';
import { openScene, outcome, type Scene, type SceneOptions } from '../../../support/mcp/one-server.ts';
import { type Loose, openUpstream, text } from '../../../support/mcp/upstream.ts';

const FORMS = { elicitation: { form: {} } };
const pause = async () => {};

async function openCommon(options: SceneOptions = {}): Promise<Scene> {
  return await openScene({
    ...options,
    common: true,
    gateway: { agents: [createDemoAgent({ pause })], ...options.gateway },
  });
}

test('tools of two servers are distinguished, in the same order every time; a call reaches the one it names', async () => {
  const other = await openUpstream({ tools: { echo: { call: () => text('from the other') } } });
  onTestFinished(() => other.close());
  const scene = await openCommon({ others: { v: { url: other.url } } });
  const { tools } = outcome(await scene.modern('tools/list')).result;
  expect(tools.map(({ name }: Loose) => name)).toEqual([
    'u__echo',
    'v__echo',
    'agent__demo',
    'task__status',
    'task__answer',
    'task__cancel',
  ]);
  const call = async (name: string) => outcome(await scene.modern('tools/call', { name, arguments: { text: 'hi' } }));
  expect((await call('v__echo')).result.content).toEqual([{ type: 'text', text: 'from the other' }]);
  expect((await call('u__echo')).result.content).toEqual([{ type: 'text', text: 'hi' }]);
  expect((await call('echo')).error).toEqual({ code: -32602, message: 'Unknown tool: "echo"' });
});

test('a tool that the rules refuse to a caller is not listed for that caller', async () => {
  const rules =
    '- { id: no, when: { tool: echo, principal: "person:visitor" }, then: block, say: no }\n- { id: all, when: {}, then: allow }';
  const { modern } = await openCommon({ rules });
  const names = outcome(await modern('tools/list')).result.tools.map(({ name }: Loose) => name);
  expect(names).not.toContain('u__echo');
  expect(outcome(await modern('tools/list')).result.cacheScope).toBe('private');
});

test('tools that know nothing of MCP are tools like any other, held at the same gate', async () => {
  const rules =
    '- { id: reads, when: { effect: read }, then: allow }\n- { id: no, when: { effect: delete }, then: block, say: kept }';
  const { modern } = await openCommon({ rules, gateway: { tools: [createDemoTools()] } });
  const call = async (name: string) =>
    outcome(await modern('tools/call', { name, arguments: { name: 'plan' } })).result;
  expect(await call('demo__read_note')).toEqual({
    resultType: 'complete',
    content: [{ type: 'text', text: '{"text":"plan says: First look, then leap."}' }],
    structuredContent: { text: 'plan says: First look, then leap.' },
  });
  const { tools } = outcome(await modern('tools/list')).result;
  expect(tools.map(({ name }: Loose) => name)).not.toContain('demo__delete_note');
});

test('work given to an agent answers when it is done', async () => {
  const { legacy, modern } = await openCommon();
  const client = await legacy();
  const { result } = outcome(
    await client.request('tools/call', { name: 'agent__demo', arguments: { message: 'hello' } }),
  );
  expect(result.content[0].text).toBe(
    'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.',
  );
  expect(result.structuredContent).toMatchObject({ status: 'COMPLETED' });
  const failed = outcome(
    await modern('tools/call', { name: 'agent__demo', arguments: { message: 'fail out_of_ink' } }),
  );
  expect(failed.result).toMatchObject({ isError: true, structuredContent: { status: 'FAILED' } });
});

test('an agent’s question is a form at the client, in both eras', async () => {
  const { legacy, modern } = await openCommon();
  const client = await legacy(FORMS);
  const give = { name: 'agent__demo', arguments: { message: 'ask which colour?' } };
  const asked: Loose[] = [];
  const received = await client.request('tools/call', give, (frame) => {
    asked.push(frame.params);
    return { result: { action: 'accept', content: { value: 'blue' } } };
  });
  expect(asked.map(({ message }) => message)).toEqual(['which colour?']);
  expect(outcome(received).result.content[0].text).toContain('blue');

  const first = outcome(await modern('tools/call', give, { capabilities: FORMS })).result;
  expect(first.resultType).toBe('input_required');
  const [key] = Object.keys(first.inputRequests) as [string];
  const inputResponses = { [key]: { action: 'accept', content: { value: 'red' } } };
  const back = { ...give, requestState: first.requestState, inputResponses };
  expect(outcome(await modern('tools/call', back, { capabilities: FORMS })).result.content[0].text).toContain('red');
});

test('long work is a task of 2025-11-25 for a client that asks for one', async () => {
  const { legacy } = await openCommon();
  const client = await legacy(FORMS);
  const { result } = outcome(
    await client.request('tools/call', {
      name: 'agent__demo',
      arguments: { message: 'ask how much?' },
      task: { ttl: 60_000 },
    }),
  );
  const { taskId } = result.task;
  expect(result.task).toMatchObject({ status: 'working', ttl: null });
  const asked: Loose[] = [];
  const received = await client.request('tasks/result', { taskId }, (frame) => {
    asked.push(frame.params);
    return { result: { action: 'accept', content: { value: '7' } } };
  });
  expect(asked[0]._meta).toEqual({ 'io.modelcontextprotocol/related-task': { taskId } });
  expect(outcome(received).result).toMatchObject({
    structuredContent: { task_id: taskId, status: 'COMPLETED' },
    _meta: { 'io.modelcontextprotocol/related-task': { taskId } },
  });
  expect(outcome(await client.request('tasks/get', { taskId })).result.status).toBe('completed');
  expect(outcome(await client.request('tasks/cancel', { taskId })).error.code).toBe(-32602);
  expect(outcome(await client.request('tasks/list')).result.tasks.map((task: Loose) => task.taskId)).toEqual([taskId]);
});

test('and a task of the extension for a client that has it', async () => {
  const { modern } = await openCommon();
  const able = { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } };
  const input = { name: 'agent__demo', arguments: { message: 'ask how much?' } };
  const { result } = outcome(await modern('tools/call', input, able));
  expect(result).toMatchObject({ resultType: 'task', ttlMs: null });
  const { taskId } = result;
  let task: Loose = {};
  while (task.status !== 'input_required') task = outcome(await modern('tasks/get', { taskId }, able)).result;
  const [key] = Object.keys(task.inputRequests) as [string];
  expect(task.inputRequests[key].params.message).toBe('how much?');
  const inputResponses = { [key]: { action: 'accept', content: { value: '7' } } };
  expect(outcome(await modern('tasks/update', { taskId, inputResponses }, able)).result).toEqual({
    resultType: 'complete',
  });
  while (task.status !== 'completed') task = outcome(await modern('tasks/get', { taskId }, able)).result;
  expect(task.result.structuredContent).toMatchObject({ task_id: taskId, status: 'COMPLETED' });
  expect(outcome(await modern('tasks/cancel', { taskId }, able)).result).toEqual({ resultType: 'complete' });
});

test('a task is there for the client that gave it; to any other it is as absent as one that never was', async () => {
  const people: Record<string, Loose> = {
    ana: { id: 'ana', kind: 'person', scopes: ['*'] },
    bo: { id: 'bo', kind: 'person', scopes: ['*'] },
  };
  const authenticate = async (token: string | undefined) => people[token ?? 'ana'];
  const { modern } = await openCommon({ gateway: { authenticate } });
  const able = { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } };
  const { result } = outcome(
    await modern('tools/call', { name: 'agent__demo', arguments: { message: 'hello' } }, able),
  );
  const other = { ...able, headers: { authorization: 'Bearer bo' } };
  const absent = { code: -32602, message: 'Task not found' };
  expect(outcome(await modern('tasks/get', { taskId: result.taskId }, other)).error).toEqual(absent);
  expect(outcome(await modern('tasks/get', { taskId: 'task_nope' }, other)).error).toEqual(absent);
});
