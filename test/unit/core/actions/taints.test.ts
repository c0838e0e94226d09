/** A session that has read what others wrote is marked in the log, for good: whatever it wants next can be judged by that. */
import { expect, test } from 'vitest';
import type { Skill } from '../../../../src/model/resources.ts';
import type { ToolBackend } from '../../../../src/ports/index.ts';
import { openTestGateway } from '../../../support/gateway/test-gateway.ts';

const RULES =
  '- { id: tainted, when: { tool: send, attributes: { tainted: true } }, then: block, say: it has read what others wrote }\n- { id: all, when: {}, then: allow, say: fine }';

function skill(name: string): Skill {
  const at = '2026-05-04T09:00:00.000Z';
  return {
    id: `skill_${name}`,
    object: 'skill',
    created_at: at,
    updated_at: at,
    metadata: {},
    name,
    description: name,
    input_schema: { type: 'object' },
    output_schema: null,
  };
}

/** Two servers: one whose words are anybody's, and one that knows nothing of it. */
function servers(): ToolBackend[] {
  return [
    {
      name: 'web',
      list: async () => [skill('read')],
      call: async () => ({ status: 'ok', output: 'do as I say', taint: { server: 'web', what: 'read' } }),
      pass: async () => ({ result: 'do as I say' }),
      taints: ({ method }) => method === 'get',
    },
    { name: 'mail', list: async () => [skill('send')], call: async () => ({ status: 'ok', output: 'sent' }) },
  ];
}

const use = (tool: string) => ({ kind: 'tool' as const, tool });
const REFUSED = { kind: 'refused', reason: 'it has read what others wrote' };

test('what came from elsewhere marks the session once, with where it came from; a caller’s word does not unmark it', async () => {
  const t = await openTestGateway({ tools: servers(), rules: RULES });
  const room = await t.room();
  const task = await room.task({ agent: 'none' });
  const call = async (tool: string, attributes = {}) =>
    (await t.send('tool.call', { task_id: task.id, action: { ...use(tool), attributes } })).act;
  expect(await call('send')).toMatchObject({ kind: 'done' });
  await call('read');
  await call('read');
  expect(await call('send')).toMatchObject(REFUSED);
  expect(await call('send', { tainted: false })).toMatchObject(REFUSED);
  const reported = (await t.events(task.id)).map(({ event, payload }) => [event, payload.name ?? payload.what]);
  const marks = reported.filter(([event]) => event === 'vendor.tollbridge.tainted' || event === 'tool.completed');
  expect(marks).toEqual([
    ['tool.completed', 'send'],
    ['tool.completed', 'read'],
    ['vendor.tollbridge.tainted', 'read'],
    ['tool.completed', 'read'],
  ]);
  const mark = (await t.events(task.id)).find(({ event }) => event === 'vendor.tollbridge.tainted');
  expect(mark).toMatchObject({
    session_id: room.session,
    payload: { server: 'web', what: 'read', tool_call_id: expect.stringMatching(/^call_/) },
  });
  // Another session has read nothing.
  const other = await (await t.room()).task({ agent: 'none' });
  expect((await t.send('tool.call', { task_id: other.id, action: use('send') })).act).toMatchObject({ kind: 'done' });
});

test('the mark outlives the process, is seen by others on the same log, and goes along into a fork', async () => {
  const t = await openTestGateway({ tools: servers(), rules: RULES });
  const room = await t.room();
  const task = await room.task({ agent: 'none' });
  const second = await t.second({ tools: servers(), rules: RULES });
  const send = async (runtime: typeof t, task_id: string) =>
    (await runtime.send('tool.call', { task_id, action: use('send') })).act;
  expect(await send(second, task.id)).toMatchObject({ kind: 'done' });
  await t.send('tool.call', { task_id: task.id, action: use('read') });
  expect(await send(second, task.id)).toMatchObject(REFUSED);
  await second.close();

  const again = await t.reopen({ tools: servers(), rules: RULES });
  const next = await again.send('task.submit', { session_id: room.session, agent: 'none', input: { text: 'x' } });
  expect(await send(again, next.resource.id)).toMatchObject(REFUSED);
  const fork = await again.send('session.fork', { session_id: room.session });
  const forked = await again.send('task.submit', { session_id: fork.resource.id, agent: 'none', input: { text: 'x' } });
  expect(await send(again, forked.resource.id)).toMatchObject(REFUSED);
  // The same again when everything is added up from the log alone.
  await again.runtime.store.rebuild();
  expect(await again.runtime.store.get('taint', fork.resource.id)).toMatchObject({
    from: { server: 'web', what: 'read' },
  });
});

test('a request that brings content marks the session before the content is handed out; others do not', async () => {
  const t = await openTestGateway({ tools: servers(), rules: RULES });
  const { workspace, session } = await t.room();
  const ask = (method: string) =>
    t.send('passthrough', {
      protocol: 'foo',
      server: 'web',
      method,
      target: 'page',
      workspace_id: workspace,
      session_id: session,
    });
  const marks = async () => (await t.all()).filter(({ event }) => event === 'vendor.tollbridge.tainted');
  await ask('list');
  expect(await marks()).toEqual([]);
  await ask('get');
  await ask('get');
  expect((await marks()).map(({ resource, payload }) => [resource, payload])).toEqual([
    [
      { object: 'session', id: session },
      { server: 'web', what: 'get', target: 'page' },
    ],
  ]);
  const decided = (await t.all()).filter(({ event }) => event === 'vendor.tollbridge.decided').at(-1);
  expect(decided?.payload.action).toMatchObject({ attributes: { tainted: true } });
});

test('content of a second source is recorded once, too; a third one adds nothing', async () => {
  const from = (name: string, tool: string): ToolBackend => ({
    name,
    list: async () => [skill(tool)],
    call: async () => ({ status: 'ok', output: 'do as I say', taint: { server: name, what: tool } }),
  });
  const tools = [from('web', 'read'), from('feed', 'poll'), from('post', 'fetch')];
  const t = await openTestGateway({ tools, rules: RULES });
  const room = await t.room();
  const task = await room.task({ agent: 'none' });
  for (const tool of ['read', 'read', 'poll', 'read', 'fetch', 'poll'])
    await t.send('tool.call', { task_id: task.id, action: use(tool) });
  const marks = (await t.events(task.id)).filter(({ event }) => event === 'vendor.tollbridge.tainted');
  expect(marks.map(({ payload }) => payload.what)).toEqual(['read', 'poll']);
  expect(await t.runtime.store.get('taint', room.session)).toMatchObject({ from: { what: 'read' }, several: true });
});
