/** Tasks of a server of 2025-11-25, as a client of 2026-07-28 follows them: state with its result, questions and their answers. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createResponseTimeout } from '../../../../adapters/mcp/client/timeout.ts';
import type { McpRequestContext } from '../../../../adapters/mcp/request-context.ts';
import { createTaskEras } from '../../../../adapters/mcp/tasks/legacy-as-modern.ts';
import type { Loose } from '../../../support/mcp/fixture/asking.ts';
import { fixtureCommand, serveFixture } from '../../../support/mcp/fixture/server.ts';
import { type McpGateway, openMcpGateway } from '../../../support/mcp/gateway.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';

const PREFIX = 'io.modelcontextprotocol/';
const TASKS = { extensions: { [`${PREFIX}tasks`]: {} }, elicitation: { form: {} } };

async function openOlder() {
  const fixture = await serveFixture({ era: 'legacy', olderTasks: true });
  const gateway = await openMcpGateway({ upstreams: { u: { url: fixture.url } } });
  onTestFinished(async () => {
    await gateway.close();
    await fixture.close();
  });
  return asking(gateway);
}

function asking(gateway: McpGateway) {
  const ask = async (method: string, params: Loose = {}, capabilities: Loose = TASKS): Promise<Loose> => {
    const name = params.name ?? params.taskId;
    const { frames } = await exchange(gateway.at('u'), {
      headers: {
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(name !== undefined && { 'mcp-name': String(name) }),
      },
      body: {
        jsonrpc: '2.0',
        id: 1,
        method,
        params: {
          ...params,
          _meta: { [`${PREFIX}protocolVersion`]: '2026-07-28', [`${PREFIX}clientCapabilities`]: capabilities },
        },
      },
    });
    return frames.at(-1) as Loose;
  };
  const task = async (taskId: string, ...states: string[]): Promise<Loose> => {
    for (;;) {
      const { result } = await ask('tasks/get', { taskId });
      if (states.includes(result.status)) return result;
    }
  };
  return { ask, task };
}

test('the server is said to have tasks, in this era’s words; a call becomes one for the client that knows them', async () => {
  const { ask, task } = await openOlder();
  const { capabilities } = (await ask('server/discover')).result;
  expect([capabilities.extensions, capabilities.tasks]).toEqual([{ [`${PREFIX}tasks`]: {} }, undefined]);
  const call = { name: 'slow_compute', arguments: { seconds: 0.1 } };
  const { result } = await ask('tools/call', call);
  expect(result).toMatchObject({ resultType: 'task', status: 'working', ttlMs: 60_000, pollIntervalMs: 200 });
  expect([result.ttl, result.task]).toEqual([undefined, undefined]);
  const ended = await task(result.taskId, 'completed');
  expect(ended).toMatchObject({ resultType: 'complete', taskId: result.taskId });
  expect(ended.result).toEqual({ content: [{ type: 'text', text: 'computed' }] });
  // Stopping what has ended is no mistake in this era.
  expect((await ask('tasks/cancel', { taskId: result.taskId })).result).toEqual({ resultType: 'complete' });

  expect((await ask('tools/call', call, {})).result.content).toEqual([{ type: 'text', text: 'computed' }]);
  expect((await ask('tools/call', { name: 'failing_job' }, {})).error).toMatchObject({
    code: -32021,
    data: { requiredCapabilities: { extensions: { [`${PREFIX}tasks`]: {} } } },
  });
});

test('what a task asks is shown, all of it, and answered piece by piece', async () => {
  const { ask, task } = await openOlder();
  const { taskId } = (await ask('tools/call', { name: 'multi_input' })).result;
  const { inputRequests } = await task(taskId, 'input_required');
  const asked = Object.entries<Loose>(inputRequests);
  expect(asked.map(([, { method, params }]) => [method, params.message, params._meta])).toEqual([
    ['elicitation/create', 'One?', undefined],
    ['elicitation/create', 'Two?', undefined],
  ]);
  const yes = { action: 'accept', content: { confirm: true } };
  const [first, second] = asked.map(([key]) => key) as [string, string];
  const answer = (inputResponses: Loose) => ask('tasks/update', { taskId, inputResponses });
  expect((await answer({ [first]: yes, unknown: yes })).result).toEqual({ resultType: 'complete' });
  expect(Object.keys((await task(taskId, 'input_required')).inputRequests)).toEqual([second]);
  await answer({ [second]: yes });
  const { result } = await task(taskId, 'completed');
  expect(JSON.parse(result.content[0].text)).toEqual({ one: yes, two: yes });
});

test('a tool that failed has a result; one that broke has an error; one that was stopped has neither', async () => {
  const { ask, task } = await openOlder();
  const begun = async (name: string) => (await ask('tools/call', { name })).result.taskId as string;
  const failed = await task(await begun('failing_job'), 'completed', 'failed');
  expect([failed.status, failed.result.isError]).toEqual(['completed', true]);
  const broken = await task(await begun('protocol_error_job'), 'completed', 'failed');
  expect([broken.status, broken.error]).toEqual(['failed', { code: -32603, message: 'the job broke' }]);
  const slow = (await ask('tools/call', { name: 'slow_compute', arguments: { seconds: 60 } })).result.taskId;
  await ask('tasks/cancel', { taskId: slow });
  expect(await task(slow, 'cancelled')).not.toHaveProperty('result');
  expect((await ask('tasks/get', { taskId: 'never' })).error.code).toBe(-32602);
});

test('a task whose server is gone with us has failed, and says so', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-mcp-eras-'));
  const upstreams = { u: { command: [...fixtureCommand('--era', 'legacy', '--older-tasks')] } };
  const before = await openMcpGateway({ upstreams, dir });
  const call = { name: 'slow_compute', arguments: { seconds: 60 } };
  const { taskId } = (await asking(before).ask('tools/call', call)).result;
  await before.close();
  const after = await openMcpGateway({ upstreams, dir });
  onTestFinished(async () => {
    await after.close();
    await rm(dir, { recursive: true, force: true });
  });
  const { ask } = asking(after);
  const message = 'the server no longer knows this task, and what came of it is not known';
  expect((await ask('tasks/get', { taskId })).result).toMatchObject({
    resultType: 'complete',
    taskId,
    status: 'failed',
    error: { code: -32603, message },
    ttlMs: 60_000,
  });
  expect((await ask('tasks/cancel', { taskId })).result).toEqual({ resultType: 'complete' });
  expect((await ask('tasks/get', { taskId: 'never' })).error.code).toBe(-32602);
});

test('of two callers whose servers gave a task the same id, each is asked its own question and its own answer counts', async () => {
  const answered = new Map<string, Loose>();
  const peers = {
    async call(method: string, _: Loose, line: McpRequestContext) {
      if (method === 'tasks/get') return { result: { taskId: '1', status: 'input_required' } };
      const question = { method: 'elicitation/create', params: { message: `for ${line.principal}?` } };
      answered.set(line.principal, (await line.input({ theirs: question })).inputResponses);
      return { result: {} };
    },
  };
  const eras = createTaskEras(peers, () => 'optional');
  onTestFinished(() => eras.close());
  const about = { capabilities: { tasks: { requests: { tools: { call: {} } } } } };
  const ask = async (principal: string, method: string, params: Loose): Promise<Loose> => {
    const line = { era: 'modern', id: 1, params, principal, capabilities: TASKS, client: {}, notify() {} } as const;
    const input = () => Promise.reject(new Error('nobody is asked on this line'));
    const timeout = createResponseTimeout(new AbortController().signal, 10_000, 10_000);
    const outcome = await eras.answer(method, params, { ...line, input }, timeout, about);
    timeout.end();
    return (outcome as Loose).result;
  };
  const shown = async (who: string) => (await ask(who, 'tasks/get', { taskId: '1' })).inputRequests;
  expect(await shown('ana')).toEqual({ in_1: { method: 'elicitation/create', params: { message: 'for ana?' } } });
  expect(await shown('bo')).toEqual({ in_1: { method: 'elicitation/create', params: { message: 'for bo?' } } });
  await ask('bo', 'tasks/update', { taskId: '1', inputResponses: { in_1: { action: 'decline' } } });
  await expect.poll(() => [...answered]).toEqual([['bo', { theirs: { action: 'decline' } }]]);
});
