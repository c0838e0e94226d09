/** Work that brings its own session: both begin in one commit, or neither does. */
import { expect, test } from 'vitest';
import { ana } from '../../../support/gateway/actors.ts';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { kinds, openTestGateway, type TestGateway } from '../../../support/gateway/test-gateway.ts';

const input = { role: 'user', parts: [{ type: 'text', text: 'begin', visibility: 'public' }] };

async function runtime(rules?: string): Promise<{ t: TestGateway; workspace: string }> {
  const t = await openTestGateway({ agents: [scriptedAgent(async () => undefined)], ...(rules && { rules }) });
  const { workspace } = await t.room();
  return { t, workspace };
}
const sessions = async (t: TestGateway) => (await t.bridge.list(ana, { object: 'session' })).data.length;

test('the session is opened in the commit that accepts the work', async () => {
  const { t, workspace } = await runtime();
  const before = (await t.all()).length;
  const session = { workspace_id: workspace, metadata: { a: 1 } };
  const { resource } = await t.send('task.submit', { session, input });
  const task = await t.until(resource!.id);
  const log = (await t.all()).slice(before);
  expect(kinds(log).slice(0, 5)).toEqual([
    'session.created',
    'user.message',
    'session.message_appended',
    'task.submitted',
    'vendor.tollbridge.decided',
  ]);
  const [created, , , submitted] = log;
  expect(created!.resource).toEqual({ object: 'session', id: task.session_id });
  expect(created!.created_at).toBe(submitted!.created_at);
  const seen = await t.bridge.view<never>(ana, 'session', task.session_id);
  expect(seen).toMatchObject({ workspace_id: workspace, metadata: { a: 1 }, state: 'IDLE', persona_id: null });
  // It is a session like any other: the next piece of work goes there.
  const next = await t.send('task.submit', { session_id: task.session_id, input });
  expect((await t.until(next.resource!.id)).session_id).toBe(task.session_id);
});

test.each([
  ['a rule about opening', '- { id: shut, when: { kind: session.open }, then: block, say: closed for today }'],
  ['a rule about work', '- { id: shut, when: { kind: prompt }, then: block, say: closed for today }'],
])('%s that says no leaves no session behind', async (_, rules) => {
  let inForce = '- { id: any, when: { kind: prompt }, then: allow }';
  const agents = [scriptedAgent(async () => undefined)];
  const t = await openTestGateway({ agents, load: async () => ({ rules: inForce, files: [] }) });
  const { workspace } = await t.room();
  const before = await sessions(t);
  inForce = rules;
  await t.runtime.policy.reload();
  const fault = await t.refused('task.submit', { session: { workspace_id: workspace }, input });
  expect(fault).toMatchObject({ kind: 'policy_violation', message: 'closed for today' });
  expect(await sessions(t)).toBe(before);
  const decided = (await t.all()).at(-1)!;
  expect(decided).toMatchObject({ event: 'vendor.tollbridge.decided', session_id: null });
  expect(decided.resource).toEqual({ object: 'workspace', id: workspace });
});

test('a repeat is the same work in the same session', async () => {
  const { t, workspace } = await runtime();
  const before = await sessions(t);
  const body = { session: { workspace_id: workspace }, input };
  const all = await Promise.all([1, 2, 3].map(() => t.send('task.submit', body, { idempotency: { key: 'k' } })));
  expect(new Set(all.map(({ resource }) => resource!.id)).size).toBe(1);
  expect(all.filter(({ repeated }) => !repeated)).toHaveLength(1);
  expect(await sessions(t)).toBe(before + 1);
});

test('one of the two is wanted, and what may be used must be seen', async () => {
  const { t, workspace } = await runtime();
  const session = { workspace_id: workspace };
  const neither = 'task.submit: a session_id or a session to open, one of them';
  expect(await t.refused('task.submit', { input })).toMatchObject({ kind: 'invalid_request', message: neither });
  expect(await t.refused('task.submit', { input, session_id: 'session_x', session })).toMatchObject({
    kind: 'invalid_request',
    message: neither,
  });
  expect(await t.refused('task.submit', { input, session: { workspace_id: 'workspace_x' } })).toMatchObject({
    kind: 'not_found',
  });
  const clerk = { ...ana, scopes: ['tasks:write', 'tasks:read'] };
  expect(await t.refused('task.submit', { input, session }, { actor: clerk })).toMatchObject({
    kind: 'permission_denied',
    message: 'ana does not have the scope sessions:write',
  });
});
