/** Reports of a supervised agent, early, late, repeated or about a refused call, are recorded once and as they were. */
import { describe, expect, test } from 'vitest';
import type { Task } from '../../../src/model/resources.ts';
import type { Row } from '../../../src/ports/index.ts';
import { type Agent, openAgent, type Said } from '../../support/ahp/gateway.ts';

const RULES =
  '- { id: tools, when: { kind: tool, tool: [bash, read] }, then: allow }\n- { id: no-rm, when: { kind: tool, tool: rm }, then: block, say: never }';
const call = (tool_name: string, args: object = {}) => ({ action_type: 'tool_call', tool_name, arguments: args });
const done = { status: 'success', output: 'x', exit_code: 0 };
const SUB = { agent_id: 'sub', depth: 1 };
const run = (status: string, run_id = 'run-1') => ({
  run_id,
  session_id: 's',
  status,
  updated_at: '2026-05-01T00:00:00Z',
});

const tasks = async ({ t, caller }: Agent) =>
  (await t.bridge.list<Task & Row>(caller.actor, { object: 'task', limit: 50 })).data as Said[];
const outcomes = async ({ t }: Agent, taskId: string) => {
  const [receipt] = (await t.receipts(taskId)) as Said[];
  return receipt?.side_effects.tool_calls.map(({ tool, metadata }: Said) => [tool, metadata.outcome]);
};

describe('a sub-agent that said how it ended', () => {
  test.each([
    [
      'before its parent did',
      async (agent: Agent) => {
        await agent.tell('run_lifecycle', run('completed', 'run-sub'), SUB);
        await agent.tell('session_end', {});
      },
    ],
    [
      'in the moment after',
      async (agent: Agent) => {
        const ended = agent.tell('session_end', {});
        await agent.tell('run_lifecycle', run('completed', 'run-sub'), SUB);
        await ended;
      },
    ],
    [
      'before its parent, which ended by its run',
      async (agent: Agent) => {
        await agent.tell('run_lifecycle', run('completed', 'run-sub'), SUB);
        await agent.tell('run_lifecycle', run('completed'));
        await agent.harness.left(agent.caller.actor);
      },
    ],
  ])('%s is sealed so', async (_, end) => {
    const agent = await openAgent({ rules: RULES, config: { settle_ms: 400 } });
    await agent.tell('session_start', {});
    await agent.tell('run_lifecycle', run('executing', 'run-sub'), SUB);
    await agent.ask('pre_action', call('bash', { command: 'ls' }), SUB);
    await agent.tell('post_action', { ...call('bash', { command: 'ls' }), result: done }, SUB);
    await end(agent);
    const sub = (await tasks(agent)).find(({ metadata }) => metadata.ahp.agent_id === 'sub');
    await expect
      .poll(async () => ((await agent.t.receipts(sub.id)) as Said[])[0]?.lifecycle.final_state)
      .toBe('SUCCEEDED');
    expect(await outcomes(agent, sub.id)).toEqual([['bash', 'succeeded']]);
  });

  test('one that never did is canceled with the session, and its open call may have run', async () => {
    const agent = await openAgent({ rules: RULES, config: { settle_ms: 20 } });
    await agent.tell('session_start', {});
    await agent.ask('pre_action', call('bash', { command: 'ls' }), SUB);
    await agent.tell('session_end', {});
    const sub = (await tasks(agent)).find(({ metadata }) => metadata.ahp.agent_id === 'sub');
    expect(sub.status).toBe('CANCELED');
    expect(await outcomes(agent, sub.id)).toEqual([['bash', 'unknown']]);
  });
});

describe('a refused call', () => {
  test.each([
    ['with its arguments', { ...call('rm', { path: '/a' }), result: { success: false, error: 'blocked' } }],
    ['without them', { tool_name: 'rm', result: { success: false, error: 'blocked' } }],
    ['in one piece', { tool_name: 'rm', success: false, error: 'blocked', status: 'denied' }],
  ])('that its agent reports %s is that call and no other', async (_, report) => {
    const agent = await openAgent({ rules: RULES });
    for (const path of ['/a', '/b']) {
      expect(await agent.ask('pre_action', call('rm', { path }))).toMatchObject({ decision: 'block' });
    }
    await agent.tell('post_action', report);
    await agent.tell('session_end', {});
    const all = await tasks(agent);
    expect(all).toHaveLength(1);
    expect(await outcomes(agent, all[0].id)).toEqual([
      ['rm', 'refused'],
      ['rm', 'refused'],
    ]);
    const ended = (await agent.t.events(all[0].id)).filter(({ event }) => event === 'tool.failed');
    expect(ended.map(({ payload }) => payload.outcome)).toEqual(['refused']);
  });

  test('that is reported as run raises the alarm, also under no name of ours, also after the end', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.ask('pre_action', call('rm', { path: '/a' }));
    await agent.tell('session_end', {});
    await agent.tell('post_action', { ...call('rm', { path: '/a' }), result: done });
    const all = await tasks(agent);
    expect(all).toHaveLength(1);
    const alarms = (await agent.t.events(all[0].id)).filter(({ event }) => event === 'vendor.tollbridge.alarm');
    expect(alarms.map(({ payload }) => payload)).toMatchObject([{ alarm: 'ran_though_refused', after_end: true }]);
  });
});

describe('reports', () => {
  test('that are sent twice are one; two calls with one report each are two', async () => {
    const agent = await openAgent({ rules: RULES });
    const report = { ...call('bash', { command: 'ls' }), result: done };
    await agent.ask('pre_action', call('bash', { command: 'ls' }));
    await agent.ask('pre_action', call('bash', { command: 'ls' }));
    for (let sent = 0; sent < 4; sent += 1) await agent.tell('post_action', report);
    await agent.tell('session_end', {});
    const [task] = await tasks(agent);
    expect(await outcomes(agent, task.id)).toEqual([
      ['bash', 'succeeded'],
      ['bash', 'succeeded'],
    ]);
  });

  test('that come after the end open no task, and stand beside the receipt under their call', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.ask('pre_action', call('bash', { command: 'ls' }));
    await agent.tell('session_end', {});
    await agent.tell('post_action', { ...call('bash', { command: 'ls' }), result: done });
    await agent.tell('post_response', { response_text: 'bye' });
    await agent.tell('heartbeat', {});
    const all = await tasks(agent);
    expect(all).toHaveLength(1);
    expect(await outcomes(agent, all[0].id)).toEqual([['bash', 'unknown']]);
    const [asked] = (await agent.t.events(all[0].id)).filter(({ event }) => event === 'tool.requested');
    const late = (await agent.t.events(all[0].id)).filter(({ event }) => event === 'tool.completed');
    expect(late.map(({ payload }) => payload)).toMatchObject([
      { tool_call_id: asked?.payload.tool_call_id, outcome: 'succeeded', after_end: true },
    ]);
    // What begins something is work of its own.
    await agent.ask('pre_action', call('bash', { command: 'pwd' }));
    expect(await tasks(agent)).toHaveLength(2);
  });

  test('of one response in two kinds of event count its tokens once', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.tell('session_start', { model_provider: 'p', model_name: 'm' });
    const usage = { prompt_tokens: 5, completion_tokens: 2 };
    for (const text of ['one', 'two']) {
      await agent.ask('pre_prompt', { prompt: text });
      await agent.tell('post_action', { response_text: text, usage });
      await agent.tell('post_response', { response_text: text, usage });
    }
    await agent.tell('session_end', {});
    const [task] = await tasks(agent);
    const [receipt] = (await agent.t.receipts(task.id)) as Said[];
    expect(receipt.autonomy_budget.consumed).toMatchObject({ input_tokens: 10, output_tokens: 4 });
  });

  test('after a restart find the calls they are about', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.ask('pre_action', call('bash', { command: 'ls' }));
    await agent.ask('pre_action', call('read', { path: '/a' }));
    await agent.ask('pre_action', call('rm', { path: '/a' }));
    await agent.tell('post_action', { ...call('read', { path: '/a' }), result: done });
    const later = await openAgent({ rules: RULES, dir: agent.t.dir, config: { workspace: agent.workspace } });
    await later.tell('post_action', { ...call('rm', { path: '/a' }), result: { success: false, error: 'blocked' } });
    await later.tell('post_action', { ...call('bash', { command: 'ls' }), result: done });
    await later.tell('session_end', {});
    const all = await tasks(later);
    expect(all).toHaveLength(1);
    expect(await outcomes(later, all[0].id)).toEqual([
      ['bash', 'succeeded'],
      ['read', 'succeeded'],
      ['rm', 'refused'],
    ]);
  });
});
