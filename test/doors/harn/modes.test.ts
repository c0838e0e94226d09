/** Modes of a session: each narrows what its work may do by itself, none widens it, and what cannot be held to is refused. */
import { describe, expect, test } from 'vitest';
import { createDemoTools } from '../../../src/demo/tools.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { type DoorOptions, expectFault, openDoor, text } from '../../support/harn/gateway.ts';
import { demoAgent } from '../../support/harn/two-gateways.ts';

const newer = { 'harn-agents-protocol-version': 'agents-protocol-2026-10-11' };
const ALL = '[{ id: all, then: allow }]';

async function runtime(more: DoorOptions = {}) {
  const tools = createDemoTools();
  const door = await openDoor({ agents: [demoAgent()], tools: [tools], rules: ALL, ...more });
  const { workspace } = await door.room();
  const open = async (body: object, headers: Record<string, string> = newer) =>
    await door.call('POST', '/v1/sessions', { workspace_id: workspace, ...body }, headers);
  const give = async (session: string, said: string, agent?: string) =>
    await door.call('POST', `/v1/sessions/${session}/tasks`, { input: text(said), ...(agent && { agent }) }, newer);
  /** What becomes of a mail that the rules would let through. */
  const mail = async (session: string) => {
    const { id } = (await give(session, 'send the plan to bo')).body;
    const { status } = await door.at.until(id, 'AUTH_REQUIRED', 'COMPLETED');
    if (status === 'AUTH_REQUIRED') return 'asked';
    return tools.outbox.length > 0 ? 'sent' : 'refused';
  };
  return { ...door, workspace, tools, open, give, mail };
}

describe('a session in a mode', () => {
  test.each([
    ['code', 'sent', 'act_auto'],
    ['ask', 'asked', 'act_with_approval'],
    ['architect', 'asked', 'suggest'],
    ['shadow', 'refused', 'shadow'],
  ])('%s: a mail that the rules allow is %s', async (mode_id, becomes, tier) => {
    const { open, mail, call, tools } = await runtime();
    const { body: session } = await open({ mode_id });
    expect(session).toMatchObject({ mode_id, autonomy_tier: tier });
    expect((await call('GET', `/v1/sessions/${session.id}`, undefined, newer)).body.mode_id).toBe(mode_id);
    expect((await call('GET', `/v1/sessions/${session.id}`)).body).not.toHaveProperty('mode_id');
    expect(await mail(session.id)).toBe(becomes);
    expect(tools.outbox).toHaveLength(becomes === 'sent' ? 1 : 0);
  });

  test('reads are asked about in architect and not in ask', async () => {
    const { open, give, at } = await runtime();
    const states = await Promise.all(
      ['ask', 'architect'].map(async (mode_id) => {
        const { body } = await give((await open({ mode_id })).body.id, 'read plan');
        return (await at.until(body.id, 'AUTH_REQUIRED', 'COMPLETED')).status;
      }),
    );
    expect(states).toEqual(['COMPLETED', 'AUTH_REQUIRED']);
  });

  test('without one, what was configured holds, and code does not go beyond it', async () => {
    const plain = await runtime();
    expect((await plain.open({})).body).not.toHaveProperty('mode_id');
    expect((await plain.open({ mode_id: null, model_policy: null })).body).not.toHaveProperty('mode_id');
    const { open, mail, call } = await runtime();
    const persona = {
      name: 'careful',
      version: '1',
      entry_workflow: 'demo',
      description: 'asks first',
      autonomy_tier: 'act_with_approval',
      receipt_policy: 'optional',
    };
    const { body } = await call('POST', '/v1/personas', persona, newer);
    expect(await mail((await open({ mode_id: 'code', persona_id: body.id })).body.id)).toBe('asked');
  });

  test('a fork is in the mode of the session it left, and the receipt says how far the work could go', async () => {
    const { open, call, give, at } = await runtime();
    const { body: session } = await open({ mode_id: 'shadow' });
    const { body: fork } = await call('POST', `/v1/sessions/${session.id}/fork`, {}, newer);
    expect(fork.mode_id).toBe('shadow');
    const { body: task } = await give(fork.id, 'read plan');
    const { receipt_id } = await at.until(task.id, 'COMPLETED');
    const { body: receipt } = await call('GET', `/v1/receipts/${receipt_id}`, undefined, newer);
    expect(receipt.wire.payload.trust).toMatchObject({ start_tier: 'shadow', end_tier: 'shadow' });
  });
});

describe('what cannot be held to', () => {
  test('a mode in which nothing acts unasked is refused for an agent that only reports what it did', async () => {
    const far = { ...scriptedAgent(async () => undefined), name: 'far' };
    const agents = [demoAgent(), { ...far, abilities: { ...far.abilities, evidence: 'observed' as const } }];
    const { open, give } = await runtime({ agents });
    for (const mode_id of ['architect', 'shadow']) {
      const { body: session } = await open({ mode_id });
      const refused = await give(session.id, 'go', 'far');
      expectFault(refused, 422, 'policy_violation', 'permission_error');
      expect(refused.body.error.message).toContain('agent far acts by itself');
      expect((await give(session.id, 'hello', 'demo')).status).toBe(202);
    }
    for (const mode_id of ['ask', 'code']) {
      expect((await give((await open({ mode_id })).body.id, 'go', 'far')).status).toBe(202);
    }
  });

  test('a mode nobody knows and a model that no agent would use are refused, and name why', async () => {
    const { open, call } = await runtime();
    expectFault(await open({ mode_id: 'yolo' }), 400, 'invalid_request', 'request_error');
    const model_policy = { provider: 'anthropic', model: 'm' };
    const refused = await open({ model_policy });
    expectFault(refused, 400, 'invalid_request', 'request_error');
    expect(refused.body.error).toMatchObject({ param: 'model_policy' });
    expect(refused.body.error.message).toContain('(demo)');
    const { body: session } = await open({});
    const changed = await call('PATCH', `/v1/sessions/${session.id}`, { model_policy, summary: 's' }, newer);
    expectFault(changed, 400, 'invalid_request', 'request_error');
    expect((await call('GET', `/v1/sessions/${session.id}`, undefined, newer)).body.summary ?? null).toBeNull();
    const wrong = await open({ model_policy: { ...model_policy, preset: 'friendly' } });
    expectFault(wrong, 400, 'invalid_request', 'request_error');
  });

  test('the older revision has neither: its sessions open as they always did', async () => {
    const { open } = await runtime();
    const { status, body } = await open({ mode_id: 'shadow', model_policy: { provider: 'p', model: 'm' } }, {});
    expect([status, body.autonomy_tier]).toEqual([201, undefined]);
  });
});
