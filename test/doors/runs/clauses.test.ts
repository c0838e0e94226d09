/** What the runs API promises beyond shapes: who plans, what a class allows, what silence does, and what an agent gets that no log holds. */
import { describe, expect, test } from 'vitest';
import type { RunsConfig } from '../../../adapters/runs/config.ts';
import { createRunRenderer } from '../../../adapters/runs/server/render/events.ts';
import { summarize } from '../../../adapters/runs/server/render/summary.ts';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { openRuns } from '../../support/runs/gateway.ts';

const ofType = (events: readonly JsonObject[], type: string) =>
  events.filter((event) => event.type === type).map((event) => (event.payload as { value: JsonObject }).value);

describe('tagged input', () => {
  const KEY = 'sk-live-0123456789';

  test('reaches the agent as it came, and neither log nor receipt nor events have it, though the agent repeats it', async () => {
    const input: unknown[] = [];
    const agent = scriptedAgent(async (sink, work) => {
      input.push(work.task.input);
      const parts = [{ type: 'text', text: `your key ${KEY} is fine`, visibility: 'public' }];
      await sink.emit({ event: 'agent.message', payload: { message: { role: 'assistant', parts } as never } });
      return undefined;
    });
    const runs = await openRuns({ agents: [agent] });
    const { body } = await runs.create(
      { user_query: 'Review this API key', api_token: KEY, pin: { code: 77123456 } },
      {
        sensitivity_tags: [
          { path: '$.input.api_token', classification: 'credential' },
          { path: '$.input.pin', classification: 'pii', redaction: 'drop' },
        ],
      },
    );
    await runs.until(body.id, 'succeeded');
    expect(JSON.stringify(input)).toContain(KEY);
    expect(JSON.stringify(input)).toContain('77123456');
    const log = JSON.stringify(await runs.at.all());
    expect(log).not.toContain(KEY);
    expect(log).not.toContain('77123456');
    expect(JSON.stringify(await runs.events(body.id))).not.toContain(KEY);
  });
});

describe('planning', () => {
  const plans = scriptedAgent(async (sink, work) => {
    const asked = JSON.stringify(work.task.input).includes('Plan first');
    if (asked) await sink.emit({ event: 'vendor.tollbridge.plan', payload: { entries: [{ content: 'look' }] } });
    if (asked) await sink.emit({ event: 'vendor.tollbridge.plan', payload: { entries: [{ content: 'look twice' }] } });
    return undefined;
  });

  test.each([
    [
      'require_planning',
      ['continue planner planner_first_step', 'continue worker plan_ready', 'replan planner plan_changed'],
    ],
    ['skip_planning', ['continue worker worker_first_step']],
    [undefined, []],
  ])('%s decides who takes the first step', async (routing_hint, wanted) => {
    const runs = await openRuns({ agents: [plans] });
    const { body } = await runs.create('hello', { ...(routing_hint && { routing_hint }) });
    await runs.until(body.id, 'succeeded');
    const decisions = ofType(await runs.events(body.id), 'run.coordination.decision');
    expect(decisions.map(({ decision_type: type, role, reason_code: why }) => `${type} ${role} ${why}`)).toEqual(
      wanted,
    );
  });
});

describe('steps that fail', () => {
  test('a failing run says fail_run, with what was said until then, before it fails', async () => {
    const agent = scriptedAgent(async (sink) => {
      const payload = { message_id: 'm1', role: 'assistant', text: 'as far as I came' };
      await sink.emit({ event: 'vendor.tollbridge.message_delta', payload });
      throw new Error('broken');
    });
    const runs = await openRuns({ agents: [agent] });
    const { body } = await runs.create('hello');
    await runs.until(body.id, 'failed');
    const events = await runs.events(body.id);
    expect(ofType(events, 'step.done')).toMatchObject([
      { task_id: 'm1', content: 'as far as I came', outcome: 'fail_run', reason_code: 'agent_failed' },
    ]);
    const order = events.map(({ type }) => type);
    expect(order.indexOf('step.done')).toBeLessThan(order.indexOf('run.worker.failed'));
  });

  test('work that is taken up again after its process died says retry_step', () => {
    const rendition = createRunRenderer();
    const event = (name: string, payload: object) =>
      rendition.render({ event: name, created_at: '2026-01-01T00:00:00.000Z', payload } as unknown as CoreEvent);
    event('task.submitted', { task: { id: 'task_1', input: {}, metadata: {} } });
    event('task.started', {});
    event('vendor.tollbridge.message_delta', { message_id: 'm1', role: 'assistant', text: 'half' });
    const reported = event('vendor.tollbridge.recovered', {});
    expect(reported.map(({ type }) => type)).toEqual(['run.worker.stalled', 'step.done', 'run.resumed']);
    expect(reported[1]?.payload.value).toMatchObject({
      outcome: 'retry_step',
      content: 'half',
      reason_code: 'worker_lost',
    });
  });
});

describe('no signal in time', () => {
  async function unanswered(config: RunsConfig) {
    const agents = [createDemoAgent({ pause: async () => {} })];
    const runs = await openRuns({ agents, tools: [createDemoTools()], settings: { askExpiresMs: 60 }, config });
    const { body } = await runs.create('send the plan to bo');
    return { runs, id: body.id as string };
  }

  test('the run fails, judged so, and nothing was sent', async () => {
    const { runs, id } = await unanswered({});
    await runs.seen(id, 'run.awaiting_input');
    runs.at.clock.advance(61);
    await runs.until(id, 'failed');
    const events = await runs.events(id);
    expect(ofType(events, 'run.worker.failed')).toMatchObject([{ reason_code: 'signal_timed_out' }]);
    expect(ofType(events, 'run.coordination.decision').at(-1)).toMatchObject({ decision_type: 'stop', role: 'judge' });
    expect(ofType(events, 'run.coordination.decision').map(({ decision_type }) => decision_type)).not.toContain(
      'replan',
    );
  });

  test('where so configured the agent plans without it', async () => {
    const { runs, id } = await unanswered({ unanswered: 'replan' });
    await runs.seen(id, 'run.awaiting_input');
    runs.at.clock.advance(61);
    await runs.until(id, 'succeeded');
    expect(ofType(await runs.events(id), 'run.coordination.decision').at(-1)).toMatchObject({
      decision_type: 'replan',
      role: 'planner',
      reason_code: 'approval_timed_out',
    });
  });
});

describe('a class', () => {
  const endless = () =>
    scriptedAgent(async (_sink, _work, signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return undefined;
    });

  test('gives a run its time: a short one is stopped where a long one goes on', async () => {
    const config = { stalled: { sweep_ms: 20 }, classes: { short: { time_ms: 1000 }, long: {} } };
    const runs = await openRuns({ agents: [endless()], config });
    const short = (await runs.create('a', { run_class: 'short' })).body.id as string;
    const long = (await runs.create('b', { run_class: 'long' })).body.id as string;
    await runs.seen(short, 'run.worker.started');
    await runs.seen(long, 'run.worker.started');
    runs.at.clock.advance(1000);
    await runs.until(short, 'failed');
    const events = await runs.events(short);
    expect(events.map(({ type }) => type)).toContain('run.limit_exceeded');
    expect(ofType(events, 'run.worker.failed')).toMatchObject([{ reason_code: 'run_class_limit_exceeded' }]);
    expect((await runs.call('GET', `/v1/runs/${long}`)).body).toMatchObject({ status: 'running' });
  });
});

test('highlights are texts, whatever they are of', () => {
  const { highlights } = summarize({ amount: 5, flag: true, password: 'hunter22', note: null, text: 'x', list: [1] });
  expect(highlights).toEqual([
    { key: 'amount', value: '5', redacted: false },
    { key: 'flag', value: 'true', redacted: false },
    { key: 'password', value: '[redacted]', redacted: true },
    { key: 'note', value: 'null', redacted: false },
    { key: 'text', value: 'x', redacted: false },
    { key: 'list[0]', value: '1', redacted: false },
  ]);
});

test('an approver changes the arguments with a signal, and exactly those run', async () => {
  const tools = createDemoTools();
  const runs = await openRuns({ agents: [createDemoAgent({ pause: async () => {} })], tools: [tools] });
  const { body } = await runs.create('send the plan to bo');
  await runs.seen(body.id, 'run.awaiting_input');
  const signal = (payload: object) => runs.call('POST', `/v1/runs/${body.id}/signal`, { action: 'approve', payload });
  expect(await signal({ arguments: 'cy' })).toMatchObject({
    status: 400,
    body: { reason_code: 'SIGNAL_PAYLOAD_INVALID' },
  });
  expect(await signal({ arguments: { to: 'cy', text: 'another' } })).toMatchObject({ status: 200 });
  await runs.until(body.id, 'succeeded');
  const [invoked] = ofType(await runs.events(body.id), 'run.tool.invoked');
  expect(invoked).toMatchObject({
    tool_outcome: 'succeeded',
    tool_input_summary: { preview: '{"to":"cy","text":"another"}' },
  });
});
