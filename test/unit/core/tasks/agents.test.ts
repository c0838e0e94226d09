/** The agents behind the bridge: who they are to a door, and when they may let go of what they keep for a session. */
import { expect, test } from 'vitest';
import type { AgentBackend } from '../../../../src/ports/index.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { openTestGateway } from '../../../support/gateway/test-gateway.ts';

test('a door sees who is mounted, in order, what they say of themselves, and who is the default', async () => {
  const writer: AgentBackend = {
    ...scriptedAgent(async () => undefined, { name: 'writer' }),
    about: { description: 'writes', skills: [{ id: 'w', name: 'write', description: 'writes a page' }] },
  };
  const reader = scriptedAgent(async () => undefined, { name: 'reader', resume: true });
  const { bridge } = await openTestGateway({ agents: [writer, reader], settings: { defaultAgent: 'reader' } });
  expect(await bridge.agents(ana)).toEqual([
    {
      name: 'writer',
      default: false,
      abilities: { resume: false, evidence: 'held' },
      about: { description: 'writes', skills: [{ id: 'w', name: 'write', description: 'writes a page' }] },
    },
    { name: 'reader', default: true, abilities: { resume: true, evidence: 'held' }, about: {} },
  ]);
  await expect(bridge.agents({ ...ana, scopes: ['tasks:write'] })).rejects.toThrow('skills:read');
});

test('an agent is notified once when a session is over, and one that stumbles over it changes nothing', async () => {
  const released: string[] = [];
  const tidy: AgentBackend = {
    ...scriptedAgent(async () => undefined, { name: 'tidy' }),
    release: async (id) => void released.push(id),
  };
  const clumsy: AgentBackend = {
    ...scriptedAgent(async () => undefined, { name: 'clumsy' }),
    release: async () => {
      throw new Error('dropped it');
    },
  };
  const { send, room } = await openTestGateway({ agents: [clumsy, tidy] });
  const first = await room();
  const second = await room();
  const close = { session_id: first.session };
  const closed = await send('session.close', close, { idempotency: { key: 'k' } });
  expect(closed.resource).toMatchObject({ id: first.session, state: 'CLOSED' });
  await send('session.close', close, { idempotency: { key: 'k' } });
  expect(released).toEqual([first.session]);
  expect(released).not.toContain(second.session);
});
