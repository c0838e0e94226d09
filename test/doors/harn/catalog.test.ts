/** The provider catalog: what the agents behind the gateway report, and nothing beyond it. */
import { expect, test } from 'vitest';
import type { AgentBackend } from '../../../src/ports/index.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { openDoor, text } from '../../support/harn/gateway.ts';
import { demoAgent, remoteAgent } from '../../support/harn/two-gateways.ts';

const newer = { 'harn-agents-protocol-version': 'agents-protocol-2026-10-11' };
const anthropic = { id: 'anthropic', display_name: 'Anthropic' };
const local = { id: 'local', display_name: 'Local' };

function reporting(name: string, catalog: object): AgentBackend {
  return { ...scriptedAgent(async () => undefined), name, about: { catalog: catalog as never } };
}

test('entries of all agents stand once each, with the names of those who report them', async () => {
  const agents = [
    reporting('one', { providers: [anthropic], models: [{ id: 'm1', provider: 'anthropic' }], junk: 1 }),
    reporting('two', { providers: [anthropic, local, 'nonsense', null], models: 'none' }),
    { ...scriptedAgent(async () => undefined), name: 'three' },
  ];
  const { call } = await openDoor({ agents });
  const { status, body } = await call('GET', '/v1/provider-catalog', undefined, newer);
  expect(status).toBe(200);
  expect(body).toMatchObject({ schema_version: 6, schema: 'https://harnlang.com/schemas/provider-catalog.v6.json' });
  expect(body.providers).toEqual([
    { ...anthropic, agents: ['one', 'two'] },
    { ...local, agents: ['two'] },
  ]);
  expect(body.models).toEqual([{ id: 'm1', provider: 'anthropic', agents: ['one'] }]);
  expect(body).not.toHaveProperty('junk');
});

test('a gateway behind this one reports what its agents report', async () => {
  const far = await openDoor({ agents: [{ ...demoAgent(), about: { catalog: { providers: [local] } } }] });
  const near = await openDoor({ agents: [remoteAgent(far.url)], rules: '[{ id: all, then: allow }]' });
  const { session } = await near.room();
  const read = async () => (await near.call('GET', '/v1/provider-catalog', undefined, newer)).body.providers;
  expect(await read()).toEqual([]);
  const { body: task } = await near.call('POST', `/v1/sessions/${session}/tasks`, { input: text('hello') }, newer);
  await near.at.until(task.id);
  await expect.poll(read, { timeout: 5000 }).toMatchObject([{ id: 'local' }]);
});
