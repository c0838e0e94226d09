import { describe, expect, test } from 'vitest';
import { createOpenCalls } from '../../../adapters/ahp/server/open-calls.ts';
import { vendorEvent } from '../../../src/model/events.ts';
import type { Task } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Row } from '../../../src/ports/index.ts';
import { AGENT, event, openAgent, type Said } from '../../support/ahp/gateway.ts';

const RULES = '- { id: tools, when: { kind: tool, tool: [bash, read] }, then: allow }';
const T = '2026-05-01T00:00:00Z';
const call = (tool_name: string, args: object = {}) => ({ action_type: 'tool_call', tool_name, arguments: args });
const run = (status: string, more: object = {}) => ({
  run_id: 'run-1',
  session_id: 's',
  status,
  updated_at: T,
  ...more,
});

describe('a supervised run', () => {
  test('is a task we did not start, with a receipt that claims no more than was seen', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.tell('session_start', { model_provider: 'p', model_name: 'm' });
    await agent.ask('pre_prompt', { prompt: 'look' });
    await agent.tell('post_response', { response_text: 'looking', usage: { prompt_tokens: 5, completion_tokens: 2 } });
    await agent.ask('pre_action', call('bash', { command: 'ls' }));
    await agent.tell('post_action', {
      ...call('bash', { command: 'ls' }),
      result: { status: 'success', output: 'a', exit_code: 0 },
    });
    await agent.ask('pre_action', call('read', { path: '/a' }));
    await agent.tell('post_action', { ...call('grep', { q: 'x' }), result: { success: false, output: 'no' } });
    await agent.tell('session_end', {});

    const task: Said = await agent.task();
    expect(task).toMatchObject({ status: 'COMPLETED', assigned_agent_id: null, created_by: 'coder' });
    const [receipt] = (await agent.t.receipts(task.id)) as Said[];
    expect(
      receipt.side_effects.tool_calls.map(({ tool, metadata }: Said) => [tool, metadata.outcome, metadata.evidence]),
    ).toEqual([
      ['bash', 'succeeded', 'asked'],
      ['read', 'unknown', 'asked'],
      ['grep', 'failed', 'observed'],
    ]);
    expect(receipt.model_route.chosen_model).toMatchObject({ provider: 'p', model: 'm' });
    expect(receipt.metadata.evidence).toEqual({ asked: 2, held: 0, observed: 1 });
    expect(receipt.metadata.not_reported).toContain(
      'the work was done by a supervised agent: only its own report is known',
    );
    expect(receipt.metadata.not_reported.some((gap: string) => gap.startsWith('the outcome of read'))).toBe(true);
  });

  test('ends as failed when the last thing reported was an error', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.tell('session_start', {});
    await agent.tell('error', { error_type: 'llm', error_message: 'no model' });
    await agent.tell('session_end', {});
    expect(await agent.task()).toMatchObject({
      status: 'FAILED',
      failure: { code: 'agent_failed', message: 'no model' },
    });
  });

  test('of a sub-agent has the one above it as its parent, and the same ids of another credential are others', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.tell('session_start', {});
    const parent = await agent.task();
    await agent.tell('session_start', {}, { agent_id: 'sub', depth: 1 });
    expect(await agent.task()).toMatchObject({ parent_task_id: parent.id, session_id: parent.session_id });
    const other = { actor: { ...AGENT, id: 'outsider' }, gone: agent.caller.gone };
    await agent.ask('pre_prompt', { prompt: 'p' }, {}, other);
    const third = await agent.task();
    expect(third.session_id).not.toBe(parent.session_id);
    expect(third.created_by).toBe('outsider');
  });

  test('that a person canceled is answered with a block', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.tell('session_start', {});
    const { id } = await agent.task();
    await agent.t.send('task.cancel', { task_id: id, reason: 'enough' });
    expect(await agent.ask('pre_action', call('bash'))).toMatchObject({ decision: 'block' });
    expect(await agent.tell('post_action', { status: 'ok' })).toEqual({ kind: 'taken' });
  });

  test('whose agent leaves without a word has failed', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.ask('pre_action', call('bash'));
    await agent.harness.left(AGENT);
    expect(await agent.task()).toMatchObject({ status: 'FAILED', failure: { code: 'agent_left' } });
  });
});

describe('an agent that never says how its calls went', () => {
  test('is not waited for without end: what was let through and not seen is written down as that', async () => {
    const agent = await openAgent({ rules: RULES });
    for (let n = 0; n < 1_000; n += 100) {
      const events = Array.from({ length: 100 }, (_, at) => event('pre_action', call('bash', { n: n + at })));
      const { decisions } = await agent.request('ahp/batch', { events });
      expect(decisions.every(({ decision }: Said) => decision === 'allow')).toBe(true);
    }
    // Still reported about: the youngest. Long given up: the first.
    await agent.tell('post_action', { ...call('bash', { n: 999 }), result: { status: 'success', output: 'late' } });
    const ends = (await agent.t.all()).filter(({ event }) => event === 'tool.completed' || event === 'tool.failed');
    expect(ends.length).toBeGreaterThanOrEqual(1_000 - 256);
    expect(ends[0]?.payload).toMatchObject({
      status: 'error',
      code: 'outcome_unknown',
      outcome: 'unknown',
      error: 'it was let through, and its outcome was not seen',
    });
    expect(ends.at(-1)?.payload).toMatchObject({ status: 'ok', output: 'late' });

    await agent.tell('session_end', {});
    const { id } = await agent.task();
    const [receipt] = (await agent.t.receipts(id)) as Said[];
    const statuses = receipt.side_effects.tool_calls.map(({ status }: Said) => status);
    expect(statuses).toEqual([...Array(999).fill('failed'), 'succeeded']);
    const gaps: string[] = receipt.metadata.not_reported.filter((gap: string) => gap.startsWith('the outcome of '));
    const summed = Number(/of (\d+) calls before those/.exec(gaps.at(-1) ?? '')?.[1]);
    expect(gaps.length - 1 + summed).toBe(999);
  });

  test('is remembered for a day, and no longer', () => {
    const calls = createOpenCalls();
    calls.add('print', { id: 'old', tool: 'bash' }, 0);
    calls.add('print', { id: 'new', tool: 'bash' }, 1);
    expect(calls.giveUp(24 * 60 * 60 * 1000)).toEqual([]);
    expect(calls.giveUp(24 * 60 * 60 * 1000 + 1)).toMatchObject([{ id: 'old' }]);
    expect(calls.take('print')).toMatchObject({ id: 'new' });
    expect(calls.size).toBe(0);
  });

  test('takes up as little room after many calls as after a few', () => {
    const calls = createOpenCalls();
    let most = 0;
    for (let n = 0; n < 10_000; n += 1) {
      calls.add(`print ${n}`, { id: `call ${n}`, tool: 'bash' }, n);
      calls.giveUp(n);
      most = Math.max(most, calls.size);
    }
    expect(most).toBe(256);
    expect(calls.all().at(-1)).toMatchObject({ id: 'call 9999' });
  });
});

describe('run contracts', () => {
  test('become the state, the plan and the outcome of the task', async () => {
    const agent = await openAgent({ rules: RULES, config: { settle_ms: 200 } });
    await agent.ask('pre_action', call('bash'));
    const implicit = await agent.task();
    await agent.tell('run_lifecycle', run('executing', { prompt: 'fix the tests' }));
    await agent.tell('task_list', {
      run_id: 'run-1',
      session_id: 's',
      updated_at: T,
      tasks: [
        { id: '1', title: 'look', status: 'completed' },
        { id: '2', title: 'fix', status: 'failed' },
      ],
    });
    expect((await agent.task()).metadata.plan).toMatchObject([
      { content: 'look', status: 'completed' },
      { content: 'failed: fix', status: 'completed' },
    ]);
    await agent.tell('run_lifecycle', run('completed', { result_summary: 'all green' }));
    const file = { id: 'art', kind: 'log', path: 'x.log', sha256: 'a'.repeat(64), size_bytes: 3 };
    await agent.tell('verification', {
      run_id: 'run-1',
      session_id: 's',
      status: 'needs_review',
      updated_at: T,
      checks: [{ id: 'c', subject: 'tests', status: 'passed', command: 'make test', artifacts: [file] }],
      residual_risks: ['flaky'],
    });
    const task = await agent.task();
    expect(task.id).toBe(implicit.id);
    expect(task.status).toBe('COMPLETED');
    const [outcome] = (
      await agent.t.bridge.list(
        { ...AGENT, scopes: ['*'], sees: 'internal' },
        { object: 'outcome', where: { task_id: task.id } },
      )
    ).data as Said[];
    expect(outcome).toMatchObject({
      status: 'SUCCEEDED',
      summary: 'all green',
      metrics: {
        verification: { status: 'needs_review', residual_risks: ['flaky'], checks: [{ id: 'c', status: 'passed' }] },
      },
    });
    expect(outcome.artifacts).toMatchObject([
      { kind: 'log', uri: 'file:x.log', visibility: 'internal', sha256: 'a'.repeat(64) },
    ]);
  });

  test('after the end are kept beside the receipt and change nothing', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.tell('run_lifecycle', run('executing'));
    await agent.tell('run_lifecycle', run('cancelled', { error: 'enough' }));
    const { id } = await agent.task();
    expect(await agent.tell('run_lifecycle', run('completed'))).toEqual({ kind: 'taken' });
    expect(await agent.task()).toMatchObject({ id, status: 'CANCELED' });
    const kept = (await agent.t.all()).filter(({ event }) => event === 'vendor.tollbridge.passthrough');
    expect(kept.map(({ payload }) => payload.method)).toEqual(['ignored run_lifecycle']);
  });

  test('with another name are another task', async () => {
    const agent = await openAgent({ rules: RULES });
    await agent.tell('run_lifecycle', run('executing'));
    await agent.tell('run_lifecycle', { ...run('executing'), run_id: 'run-2' });
    const { data } = await agent.t.bridge.list(AGENT, { object: 'task' });
    expect(data).toHaveLength(2);
  });

  test('that do not fit are turned away', async () => {
    const agent = await openAgent();
    expect(await agent.tell('run_lifecycle', { status: 'executing' })).toMatchObject({
      kind: 'rejected',
      code: -32603,
    });
    expect(
      await agent.request('ahp/batch', {
        events: [{ event_type: 'task_list', session_id: 's', agent_id: 'a', timestamp: T, depth: 0, payload: {} }],
      }),
    ).toMatchObject({ error: { code: -32602 } });
    expect(await agent.t.bridge.list(AGENT, { object: 'task' })).toMatchObject({ data: [] });
  });
});

test('a heartbeat is kept once a minute', async () => {
  const agent = await openAgent();
  const beat = { uptime_ms: 1, total_events_processed: 1, current_state: 'active' };
  for (let count = 0; count < 3; count += 1) await agent.tell('heartbeat', beat);
  agent.t.clock.advance?.(61_000);
  await agent.tell('heartbeat', beat);
  const beats = (await agent.t.all()).filter(({ event }) => event === vendorEvent('vendor.ahp.heartbeat'));
  expect(beats).toHaveLength(2);
});

test('work of an agent that is never seen again is ended, and its session closed; one that speaks is left alone', async () => {
  const { t, ask, tell } = await openAgent({ rules: RULES, config: { away_ms: 1500 } });
  const tasks = async () => {
    const { data } = await t.bridge.list<Task & Row>(AGENT, { object: 'task', limit: 10 });
    return Object.fromEntries(data.map((task) => [String((task.metadata.ahp as JsonObject).agent_id), task]));
  };
  const lively = { session_id: 'other', agent_id: 'lively' };
  await ask('pre_action', call('bash'), { session_id: 'gone', agent_id: 'silent' });
  await expect
    .poll(
      async () => {
        await tell('heartbeat', { status: 'running' }, lively);
        return (await tasks()).silent;
      },
      { timeout: 20_000, interval: 50 },
    )
    .toMatchObject({ status: 'FAILED', failure: { code: 'agent_left' } });
  expect((await tasks()).lively).toMatchObject({ status: 'WORKING' });
  const silent = (await tasks()).silent as Task;
  await expect.poll(() => t.bridge.view(AGENT, 'session', silent.session_id)).toMatchObject({ state: 'CLOSED' });
  // It may come back, to a session and work of its own.
  await ask('pre_action', call('bash'), { session_id: 'gone', agent_id: 'silent' });
  const { data } = await t.bridge.list<Task & Row>(AGENT, { object: 'task', newestFirst: true, limit: 1 });
  expect(data[0]).toMatchObject({ status: 'WORKING' });
  expect(data[0]?.session_id).not.toBe(silent.session_id);
});
