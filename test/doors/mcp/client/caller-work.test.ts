/** The work of an agent uses the accounts of the principal that gave it; one that has to sign in first is asked in the task. */
import { expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { AskRecord } from '../../../../src/model/asks.ts';
import type { Task } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { linkIn, openCallers, person } from '../../../support/mcp/callers.ts';

const ANN: Actor = { id: 'ann', kind: 'person', scopes: ['*'] };

test('a task waits in AUTH_REQUIRED for its principal, and goes on with that account', async () => {
  const received: unknown[] = [];
  const agent = scriptedAgent(async (sink) => {
    const act = await sink.act({ kind: 'tool', tool: 'whoami', server: 'github', tool_call_id: 'c1', arguments: {} });
    received.push(act.kind === 'done' ? act.result.output : act);
    return undefined;
  });
  const callers = await openCallers(() => ({ sign_in: { per: 'caller' } }), { agents: [agent] });
  const { bridge } = callers.gateway.runtime;
  const [workspace] = (await bridge.list<Row>(ANN, { object: 'workspace' })).data;
  const session = { workspace_id: workspace?.id as string };
  const input = { role: 'user', parts: [{ type: 'text', text: 'go', visibility: 'public' }] };
  const body = { session, agent: 'agent', input };
  const { resource: task } = await bridge.submit({ kind: 'task.submit', actor: ANN, body });
  const state = async () => (await bridge.view<Task & Row>(ANN, 'task', task.id)).status;
  await eventually(async () => (await state()) === 'AUTH_REQUIRED', 'AUTH_REQUIRED');
  const [ask] = (await bridge.list<AskRecord & Row>(ANN, { object: 'ask', where: { state: 'open' } })).data;
  expect(ask).toMatchObject({ kind: 'input', to: ['ann'], question: expect.stringContaining('/connect/github/') });

  const { code } = await person('ann@github').signsIn(linkIn(ask?.question ?? ''));
  const answer = (actor: Actor) =>
    bridge.submit({ kind: 'ask.answer', actor, body: { ask_id: ask?.id as string, value: code } });
  // Nobody else answers for ann.
  await expect(answer({ ...ANN, id: 'bob' })).rejects.toThrow();
  await answer(ANN);
  await eventually(async () => (await state()) === 'COMPLETED', 'COMPLETED');
  expect(received).toEqual([expect.objectContaining({ content: [{ type: 'text', text: 'ann@github' }] })]);
  expect(await callers.call('ann', 'whoami')).toBe('ann@github');
});
