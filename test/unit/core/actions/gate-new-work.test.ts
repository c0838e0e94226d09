/** New work and new sessions pass the gate too. */
import { describe, expect, test } from 'vitest';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { of, openTestGateway } from '../../../support/gateway/test-gateway.ts';

describe('new work and new sessions pass the gate too', () => {
  test('a prompt a rule blocks starts nothing, and the refusal stands in the log', async () => {
    const rules = '- { id: no-work, when: { kind: prompt }, then: block, say: closed today }';
    let started = 0;
    const agent = scriptedAgent(async () => {
      started += 1;
      return undefined;
    });
    const t = await openTestGateway({ rules, agents: [agent] });
    const room = await t.room();
    const fault = await t.refused('task.submit', { session_id: room.session, input: { a: 1 } });
    expect(fault).toMatchObject({ kind: 'policy_violation', message: 'closed today', details: { rule_id: 'no-work' } });
    const log = await t.all();
    expect(of(log, 'task.submitted')).toEqual([]);
    expect(of(log, 'vendor.tollbridge.decided').at(-1)?.payload.decision).toMatchObject({
      verdict: 'block',
      rule_id: 'no-work',
    });
    expect(started).toBe(0);
  });

  test('a prompt a rule defers is a rate limit that says when to come back', async () => {
    const rules = '- { id: slow, when: { kind: prompt }, then: defer, retry_after: 30s, say: one at a time }';
    const t = await openTestGateway({ rules, agents: [scriptedAgent(async () => undefined)] });
    const room = await t.room();
    expect(await t.refused('task.submit', { session_id: room.session, input: {} })).toMatchObject({
      kind: 'rate_limited',
      details: { retry_after_ms: 30_000 },
    });
  });

  test.each([
    [true, 'COMPLETED', 1],
    [false, 'FAILED', 0],
  ])('a prompt a rule asks about waits for a person (%s)', async (approved, state, times) => {
    const rules = '- { id: ask-work, when: { kind: prompt }, then: ask, say: is this wise }';
    let started = 0;
    const agent = scriptedAgent(async () => {
      started += 1;
      return undefined;
    });
    const t = await openTestGateway({ rules, agents: [agent] });
    const task = await (await t.room()).task();
    const [ask] = await t.asks(task.id);
    expect(started).toBe(0);
    await t.answer(ask!.id, { approved });
    expect(await t.until(task.id)).toMatchObject({ status: state });
    expect(started).toBe(times);
  });

  test('a session a rule forbids is not opened', async () => {
    const rules = '- { id: no-rooms, when: { kind: session.open }, then: block, say: no more rooms }';
    const t = await openTestGateway({ rules });
    const { resource } = await t.send('resource.create', {
      object: 'workspace',
      body: { name: 'w', root: 'file:///w' },
    });
    expect(await t.refused('session.create', { workspace_id: resource.id })).toMatchObject({
      kind: 'policy_violation',
      message: 'no more rooms',
    });
    expect(of(await t.all(), 'session.created')).toEqual([]);
  });
});
