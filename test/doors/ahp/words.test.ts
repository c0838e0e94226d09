/** Agents that obey `block` and nothing else: what they are answered, and what happens when they do not obey that either. */
import { describe, expect, test } from 'vitest';
import { OBEDIENT, openAgent } from '../../support/ahp/gateway.ts';

const RULES = `
- { id: shell, when: { tool: bash }, then: allow }
- { id: no-rm, when: { tool: rm }, then: block, say: nothing is deleted }
- { id: mail, when: { tool: send_mail }, then: ask, say: a person decides }
- { id: copies, when: { tool: cp }, then: modify, set: { to: backup }, say: copies go to the backup }
- { id: nightly, when: { tool: deploy }, then: defer, retry_after: 20m, say: only at night }
`;
const call = (tool_name: string, args: object = {}) => ({ action_type: 'tool_call', tool_name, arguments: args });
const ran = (tool_name: string, args: object = {}) => ({
  tool_name,
  arguments: args,
  result: { status: 'success', output: 'done' },
});

const handshake = (framework: string) => ({
  protocol_version: '2.4',
  agent_info: { framework, version: '1', capabilities: ['modify', 'defer', 'escalate'] },
  session_id: 's',
  agent_id: 'a',
});

describe('an agent of which nothing is known', () => {
  test('hears block instead of every word it might not obey, with the reason', async () => {
    const agent = await openAgent({ rules: RULES, config: { timeout_ms: 1000 } });
    await agent.tell('session_start', {});
    const mail = await agent.ask('pre_action', call('send_mail', { to: 'bo' }));
    const [ask] = await agent.t.asks((await agent.task()).id);
    expect(mail).toEqual({
      decision: 'block',
      reason: `a person decides (not answered yet; question ${ask!.id} stays open, ask again)`,
      metadata: { policy: 'mail', question: ask!.id },
    });
    expect(await agent.ask('pre_action', call('deploy'))).toEqual({
      decision: 'block',
      reason: 'only at night (put off; ask again in 1200000 ms)',
      metadata: { policy: 'nightly', retry_after_ms: 1_200_000 },
    });
    expect(await agent.ask('pre_action', call('cp', { from: 'a', to: 'b' }))).toMatchObject({
      decision: 'block',
      reason: expect.stringContaining('copies go to the backup'),
    });
    expect(await agent.ask('pre_action', call('bash'))).toMatchObject({ decision: 'allow' });
  });

  test('an approval given after the block is taken by the next question', async () => {
    const agent = await openAgent({ rules: RULES, config: { timeout_ms: 1000 } });
    const mail = call('send_mail', { to: 'bo' });
    const { metadata } = await agent.ask('pre_action', mail);
    await agent.t.answer(metadata.question, { approved: true });
    expect(await agent.ask('pre_action', mail)).toMatchObject({ decision: 'allow' });
    expect(await agent.ask('pre_action', mail)).toMatchObject({ decision: 'block' });
  });

  test('a confirmation nobody answers is rejected, and a plan is not rewritten', async () => {
    const agent = await openAgent({
      rules: '- { id: smaller, when: { kind: plan }, then: modify, set: { task_description: less } }',
      config: { timeout_ms: 1000 },
    });
    const sure = { session_id: 's', confirmation_type: 'safety_confirm', message: 'sure?' };
    expect(await agent.ask('confirmation', sure)).toMatchObject({ decision: 'reject' });
    const plan = { session_id: 's', task_description: 'all of it', available_strategies: [] };
    expect(await agent.ask('planning', plan)).toMatchObject({ decision: 'block' });
  });
});

describe('profiles', () => {
  const words = async (config: object, framework?: string) => {
    const agent = await openAgent({ rules: RULES, config: { timeout_ms: 1000, ...config } });
    if (framework) await agent.request('ahp/handshake', handshake(framework));
    const said = [call('cp'), call('deploy'), call('send_mail')].map((one) => agent.ask('pre_action', one));
    return (await Promise.all(said)).map(({ decision }) => decision);
  };

  test('what an agent says of itself in the handshake loosens nothing', async () => {
    expect(await words({}, 'tollbridge')).toEqual(['block', 'block', 'block']);
    expect(await words({}, '__proto__')).toEqual(['block', 'block', 'block']);
  });

  test('the configuration can say that agents honour more', async () => {
    expect(await words({ honours: ['modify', 'defer'] }, 'mine')).toEqual(['modify', 'defer', 'block']);
    expect(await words(OBEDIENT)).toEqual(['modify', 'defer', 'escalate']);
    expect(await words({ honours: ['escalate'] })).toEqual(['block', 'block', 'block']);
  });

  test('an agent that was seen not to obey hears block even then, unless it is named', async () => {
    expect(await words(OBEDIENT, 'a3s-ahp')).toEqual(['block', 'block', 'block']);
    const named = { ...OBEDIENT, agents: { 'a3s-ahp': { honours: ['defer' as const] } } };
    expect(await words(named, 'a3s-ahp')).toEqual(['block', 'defer', 'block']);
  });
});

describe('an act that was not let through and is reported as run', () => {
  async function alarmsAfter(tool: string, config: object = {}, reported: object = ran(tool)) {
    const agent = await openAgent({ rules: RULES, config: { timeout_ms: 1000, ...config } });
    await agent.ask('pre_action', call(tool));
    await agent.tell('post_action', reported);
    const { id } = await agent.task();
    const alarms = (await agent.t.events(id)).filter(({ event }) => event === 'vendor.tollbridge.alarm');
    return { agent, id, alarms: alarms.map(({ payload }) => payload) };
  }

  test.each([
    ['rm', 'refused', 'rm was refused and is reported as run'],
    ['cp', 'refused', 'cp was refused and is reported as run'],
    ['deploy', 'deferred', 'deploy was put off and is reported as run'],
    ['send_mail', 'waiting_for_approval', 'send_mail was waiting for an approval and is reported as run'],
  ])('%s raises an alarm', async (tool, state, message) => {
    const { alarms, agent, id } = await alarmsAfter(tool);
    expect(alarms).toMatchObject([{ alarm: 'ran_though_refused', name: tool, state, message, evidence: 'asked' }]);
    const calls = (await agent.t.events(id)).filter(({ event }) => event === 'tool.requested');
    expect(calls).toHaveLength(1);
  });

  test('the alarm is counted in the receipt, and every further run of it raises another', async () => {
    const { agent, id } = await alarmsAfter('rm');
    await agent.tell('post_action', { ...ran('rm'), result: { status: 'success', output: 'done again' } });
    await agent.tell('session_end', {});
    const [receipt] = await agent.t.receipts(id);
    // The second report is of another act: one refusal covers no run at all.
    expect(receipt!.metadata).toMatchObject({ alarms: 2 });
    expect(receipt!.side_effects.tool_calls[0]!.metadata).toMatchObject({ denied: true, ran_though_denied: true });
  });

  test('so does the same act after a restart, and under any other id', async () => {
    const { agent } = await alarmsAfter('rm', {}, ran('bash'));
    const later = await openAgent({ rules: RULES, dir: agent.t.dir, config: { workspace: agent.workspace } });
    await later.tell('post_action', ran('rm'));
    const { id } = await later.task();
    const alarms = (await later.t.events(id)).filter(({ event }) => event === 'vendor.tollbridge.alarm');
    expect(alarms.map(({ payload }) => payload)).toMatchObject([
      { name: 'rm', alarm: 'ran_though_refused', tool_call_id: expect.any(String) },
    ]);
  });

  test('an agent that honours modify and runs its own arguments all the same raises one too', async () => {
    const agent = await openAgent({ rules: RULES, config: OBEDIENT });
    await agent.ask('pre_action', call('cp', { to: 'b' }));
    await agent.tell('post_action', ran('cp', { to: 'b' }));
    const { id } = await agent.task();
    const alarms = (await agent.t.events(id)).filter(({ event }) => event === 'vendor.tollbridge.alarm');
    expect(alarms.map(({ payload }) => payload)).toMatchObject([{ name: 'cp', state: 'rewritten' }]);
  });

  test('a refused call that is reported as failed raises none, nor does one that was let through', async () => {
    const failed = { tool_name: 'rm', arguments: {}, result: { success: false, output: 'blocked by the harness' } };
    expect((await alarmsAfter('rm', {}, failed)).alarms).toEqual([]);
    expect((await alarmsAfter('bash')).alarms).toEqual([]);
    expect((await alarmsAfter('cp', OBEDIENT, ran('cp', { to: 'backup' }))).alarms).toEqual([]);
  });
});

test('a question that expires while the reply is held is answered as expired, then and there', async () => {
  const rules = '- { id: mail, when: { tool: send_mail }, then: ask, expires: 1s, say: a person decides }';
  const agent = await openAgent({ rules });
  const asked = agent.ask('pre_action', call('send_mail'));
  await expect.poll(async () => (await agent.task())?.status).toBe('AUTH_REQUIRED');
  agent.t.clock.advance(2_000);
  expect(await asked).toMatchObject({ decision: 'block', reason: 'nobody answered in time' });
}, 7_000);
