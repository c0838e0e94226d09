/** Which caller may give work to which agent, and agents that take none: the same words whether they are hidden or not there. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listAgents } from '../../../src/cli/commands/agents/agents.ts';
import type { Row } from '../../../src/ports/index.ts';
import { startGateway } from '../../../src/runtime/gateway.ts';
import { openAgentSwitches } from '../../../src/runtime/mounts/agent-switches.ts';
import { openPeer, wire } from '../../support/a2a/gateway.ts';
import { ana } from '../../support/gateway/actors.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { says } from '../../support/gateway/test-gateway.ts';
import { aDirectory, typed } from '../../support/process/cli.ts';
import { configIn } from '../../support/process/config-in.ts';

const agents = ['first', 'second'].map((name) => scriptedAgent(async () => undefined, { name }));
const people = { lim: { ...ana, id: 'lim', agents: ['second'] } };
const CARD = '/.well-known/agent-card.json';
const asLim = { authorization: 'Bearer lim' };
const sending = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: wire('hi') };

test('an agent that a key may not call looks like one that is not there', async () => {
  const peer = await openPeer({ agents, people });
  const at = async (name: string) =>
    await Promise.all([
      peer.call('POST', `/a2a/${name}`, sending, asLim),
      peer.call('POST', `/a2a/${name}`, sending, { ...asLim, 'a2a-version': '' }),
      peer.call('POST', `/a2a/${name}/message:send`, wire('hi'), asLim),
      peer.call('GET', `/a2a/${name}/tasks`, undefined, asLim),
      peer.call('GET', `/a2a/${name}${CARD}`, undefined, asLim),
    ]);
  const seen = (answers: Awaited<ReturnType<typeof at>>) =>
    answers.map(({ status, headers, body }) => [status, headers.get('content-type'), body]);
  expect(seen(await at('first'))).toEqual(seen(await at('nobody')));
  expect((await at('second')).map(({ status }) => status)).not.toContain(404);
  // To readers that do not say who they are the card is public.
  expect((await peer.call('GET', `/a2a/first${CARD}`, undefined, { authorization: '' })).status).toBe(200);
});

test('at every other door, too: core lists only what the key may call, and takes work for nothing else', async () => {
  const { at } = await openPeer({ agents, people });
  const actor = people.lim;
  expect((await at.bridge.agents(actor)).map(({ name, default: first }) => [name, first])).toEqual([['second', true]]);
  const room = await at.room({ actor });
  const named = await at.refused(
    'task.submit',
    { session_id: room.session, agent: 'first', input: says('hi') },
    { actor },
  );
  const absent = await at.refused(
    'task.submit',
    { session_id: room.session, agent: 'gone', input: says('hi') },
    { actor },
  );
  expect([named.kind, named.message]).toEqual([absent.kind, absent.message.replace('gone', 'first')]);
  // Work that names no agent goes to the first it may call.
  const task = await room.task({ input: says('hi') }, { actor });
  expect(task.assigned_agent_id).toBe('second');
});

test('an agent that the configuration switches off refuses new work, and says why', async () => {
  const peer = await openPeer({ agents, terms: new Map([['first', { off: 'being repaired' }]]) });
  const { body } = await peer.rpc('SendMessage', wire('hi'));
  expect(body.result.task.status.state).toBe('TASK_STATE_REJECTED');
  expect(body.result.task.status.message.parts[0].text).toBe('agent first is switched off: being repaired');
  expect(await peer.at.receipts(body.result.task.id)).toHaveLength(1);
  const room = await peer.at.room();
  const fault = await peer.at.refused('task.submit', { session_id: room.session, agent: 'first', input: says('hi') });
  expect([fault.kind, fault.message]).toEqual(['policy_violation', 'agent first is switched off: being repaired']);
});

test('a person switches it off and on under a running gateway; a file that cannot be read switches everything off', async () => {
  const { at } = await openPeer({ agents });
  const room = await at.room();
  const give = async () =>
    await at.send('task.submit', { session_id: room.session, agent: 'first', input: says('hi') });
  const switches = openAgentSwitches(at.dir);
  await give();
  expect(await switches.set('first', { reason: 'too dear', by: 'ana', at: '2026-11-18T00:00:00.000Z' })).toBe(true);
  await expect(give()).rejects.toThrow('agent first is switched off: too dear');
  await at.send('task.submit', { session_id: room.session, agent: 'second', input: says('hi') });
  expect(await switches.set('first', undefined)).toBe(true);
  expect(await switches.set('first', undefined)).toBe(false);
  await give();
  await writeFile(join(at.dir, 'agents', 'switches.json'), '{', { mode: 0o600 });
  await expect(give()).rejects.toThrow('cannot be read');
});

test('work that waits for its turn is refused when the agent is off by then: decided, written down, then ended', async () => {
  const turns: (() => void)[] = [];
  const first = scriptedAgent(() => new Promise((resolve) => turns.push(() => resolve(undefined))), { name: 'first' });
  const { at } = await openPeer({ agents: [first] });
  const room = await at.room();
  const [running, waiting, later] = [await room.task(), await room.task(), await room.task()];
  expect([running.status, waiting.status]).toEqual(['WORKING', 'SUBMITTED']);
  const switches = openAgentSwitches(at.dir);
  await switches.set('first', { reason: 'too dear', by: 'ana', at: '2026-11-18T00:00:00.000Z' });
  await expect.poll(() => turns).toHaveLength(1);
  turns[0]?.();
  expect((await at.until(running.id)).status).toBe('COMPLETED');
  for (const { id } of [waiting, later]) {
    const message = 'agent first is switched off: too dear';
    const details = { begun: false, rule_id: null, code: 'agent_off' };
    const ended = await at.until(id);
    expect(ended).toMatchObject({ status: 'FAILED', failure: { code: 'policy_violation', message, details } });
    const written = (await at.events(id)).map(({ event, payload }) => [
      event,
      (payload.decision as { verdict?: string } | undefined)?.verdict,
    ]);
    expect(written.slice(-3)).toEqual([
      ['vendor.tollbridge.decided', 'block'],
      ['receipt.issued', undefined],
      ['task.failed', undefined],
    ]);
    expect((await at.receipts(id)).map(({ subject }) => subject.id)).toEqual([id]);
  }
  // Switched on again before its turn comes, it is as if nothing had been.
  await switches.set('first', undefined);
  const [next, last] = [await room.task(), await room.task()];
  await switches.set('first', { reason: 'again', by: 'ana', at: '2026-11-18T00:00:00.000Z' });
  await switches.set('first', undefined);
  await expect.poll(() => turns).toHaveLength(2);
  turns[1]?.();
  await at.until(next.id);
  await expect.poll(() => turns).toHaveLength(3);
  turns[2]?.();
  expect((await at.until(last.id)).status).toBe('COMPLETED');
});

test('all work of an agent counts against its quota, from every client', async () => {
  const peer = await openPeer({ agents, terms: new Map([['first', { quota_id: 'quota_first' }]]) });
  const limits = { tasks: 1 };
  const body = { scope: 'persona', limits, hard_limit: true, soft_limit: false, metadata: {} };
  await peer.at.send('resource.create', { object: 'quota', id: 'quota_first', body });
  const room = await peer.at.room();
  const give = async (agent: string) =>
    await peer.at.send('task.submit', { session_id: room.session, agent, input: says('hi') });
  await give('first');
  await expect(give('first')).rejects.toThrow(/quota_first/);
  await give('second');
  const quota = await peer.at.bridge.view<Row & { usage: object }>(ana, 'quota', 'quota_first');
  expect(quota.usage).toMatchObject({ tasks: 1 });
});

test('an agent is listed with what its quota allows and what of it is used, also before any gateway ran', async () => {
  const dir = await aDirectory();
  const [config, data] = [join(dir, 'tollbridge.yaml'), join(dir, 'data')];
  const configured = {
    writer: { acp: { command: ['my-agent'] }, quota: 'daily' },
    draft: { acp: { command: ['x'] }, off: 'tired' },
  };
  const quotas = { daily: { limits: { tasks: 100, usd: 5 }, per: '1d' } };
  await writeFile(config, JSON.stringify({ agents: configured, quotas }));
  const shown = async () => (await typed(() => listAgents({ config, data }))).out;
  const expected = 'writer  acp  on  tasks 0 of 100, usd 0 of 5\ndraft  acp  off: tired\n';
  expect(await shown()).toBe(expected);
  const gateway = await startGateway(await configIn(dir, { data, port: 0 }));
  await gateway.close();
  expect(await shown()).toBe(expected);
  const { out } = await typed(() => listAgents({ config, data, json: true }));
  expect(JSON.parse(out.split('\n')[0] ?? '')).toEqual({
    name: 'writer',
    protocol: 'acp',
    off: null,
    quota: 'quota_daily',
    limits: { tasks: 100, usd: 5 },
    usage: { tasks: 0, usd: 0 },
  });
});
