/** What the configuration says about results holds for a call that became a task, however its client learns the result. */
import { expect, onTestFinished, test } from 'vitest';
import { createToolPolicy, type ResultRule } from '../../../../src/policy/tool-policy.ts';
import type { ExposeConfig } from '../../../../src/runtime/config/expose.ts';
import { openTaskServer } from '../../../support/mcp/fixture/announced-tasks.ts';
import type { Era, Loose } from '../../../support/mcp/fixture/asking.ts';
import { serveFixture } from '../../../support/mcp/fixture/server.ts';
import { openMcpGateway } from '../../../support/mcp/gateway.ts';
import { askModern, openLegacyClient, outcome } from '../../../support/mcp/one-server.ts';

const META = 'io.modelcontextprotocol/';
const TASKS = { extensions: { [`${META}tasks`]: {} } };
const REDACT: ResultRule = { server: 'u', find: ['comp*ted'], tools: ['slow_*', 'job'], then: 'redact' };
const BLOCK: ResultRule = { ...REDACT, then: 'block', say: 'not for agents' };
const WITHHELD = 'the call ran, and its result was withheld: not for agents';

async function open(url: string, rules: readonly ResultRule[], expose: ExposeConfig = {}, more: object = {}) {
  const gateway = await openMcpGateway({
    upstreams: { u: { url, trusted: true, ...more } },
    secrets: { 'u-visitor': 'the-token-of-the-visitor' },
    expose: { u: expose },
    engines: [createToolPolicy([], rules)],
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The answer to the request by which a client of this era fetches the result of a call that became a task. */
async function fetched(client: Era, server: Era, rules: readonly ResultRule[]): Promise<Loose> {
  const fixture = await serveFixture({ era: server, olderTasks: server === 'legacy' });
  onTestFinished(() => fixture.close());
  const at = (await open(fixture.url, rules)).at('u');
  const call = { name: 'slow_compute', arguments: { seconds: 0.05 } };
  if (client === 'legacy') {
    const { request } = await openLegacyClient(at);
    await request('tools/list');
    const { taskId } = outcome(await request('tools/call', { ...call, task: {} })).result.task;
    return outcome(await request('tasks/result', { taskId }));
  }
  const ask = async (method: string, params: Loose) =>
    outcome(await askModern(at, method, params, { capabilities: TASKS }));
  const { taskId } = (await ask('tools/call', call)).result;
  for (;;) {
    const state = await ask('tasks/get', { taskId });
    if (state.result?.status !== 'working') return state;
  }
}

const ERAS: readonly [Era, Era][] = [
  ['legacy', 'legacy'],
  ['legacy', 'modern'],
  ['modern', 'legacy'],
  ['modern', 'modern'],
];

test.each(ERAS)('redacted or withheld: a %s client, a %s server', async (client, server) => {
  const { result } = await fetched(client, server, [REDACT]);
  expect((result.result ?? result).content).toEqual([{ type: 'text', text: '[redacted]' }]);
  expect((await fetched(client, server, [BLOCK])).error.message).toBe(WITHHELD);
  expect((await fetched(client, server, [{ ...REDACT, server: 'v' }])).result).toBeDefined();
});

test('a result that is too long is not passed on, whichever request fetches it', async () => {
  const content = [{ type: 'text', text: 'long '.repeat(100) }];
  const server = await openTaskServer({ status: 'completed', result: { content } });
  onTestFinished(() => server.close());
  const at = (await open(server.url, [], { max_result: 400 })).at('u');
  await askModern(at, 'tools/call', { name: 'job' }, { capabilities: TASKS });
  const { request } = await openLegacyClient(at);
  await request('tools/list');
  await request('tools/call', { name: 'job', arguments: {}, task: {} });
  for (const answer of [
    outcome(await askModern(at, 'tasks/get', { taskId: 't1' }, { capabilities: TASKS })),
    outcome(await request('tasks/result', { taskId: 't1' })),
  ]) {
    expect(answer.error.message).toBe(
      'the call ran, and its result was not passed on: it holds more than 400 characters',
    );
  }
});

test('a notification of a task carries its result no further than a request does', async () => {
  const done = { status: 'completed', result: { content: [{ type: 'text', text: 'computed' }] } };
  const server = await openTaskServer(done);
  onTestFinished(() => server.close());
  const announced = async (rules: readonly ResultRule[]) => {
    const at = (await open(server.url, rules)).at('u');
    const able = { capabilities: TASKS };
    await askModern(at, 'tools/call', { name: 'job' }, able);
    const wish = { notifications: { taskIds: ['t1'] } };
    const { frames } = await askModern(at, 'subscriptions/listen', wish, able);
    expect(frames.map(({ method }) => method)).toEqual([
      'notifications/subscriptions/acknowledged',
      'notifications/tasks',
      undefined,
    ]);
    return frames[1]?.params;
  };
  expect((await announced([])).result).toEqual(done.result);
  expect((await announced([REDACT])).result.content[0].text).toBe('[redacted]');
  expect(await announced([BLOCK])).toMatchObject({ taskId: 't1', status: 'failed', error: { message: WITHHELD } });
  expect(await announced([BLOCK])).not.toHaveProperty('result');
});

test.each([
  ['for all callers', {}],
  ['with an account of each caller', { caller_tokens: 'u-{caller}' }],
])('resources and prompts of a server are looked at by rules that name no tool: %s', async (_, more) => {
  const fixture = await serveFixture();
  onTestFinished(() => fixture.close());
  const rule: ResultRule = { server: 'u', find: ['the same words'], then: 'block', say: 'not for agents' };
  const read = async (rules: readonly ResultRule[]) => {
    const { request } = await openLegacyClient((await open(fixture.url, rules, {}, more)).at('u'));
    return outcome(await request('resources/read', { uri: 'test://static-text' }));
  };
  expect((await read([{ ...rule, tools: ['*_text'] }])).result.contents).toHaveLength(1);
  expect((await read([rule])).error.message).toBe('the answer was withheld: not for agents');
});
