/** A run from its creation to its end: what is answered, what is reported, and what may follow what. */
import { expect, test } from 'vitest';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import { latch, scriptedAgent, untilAborted } from '../../support/gateway/agents.ts';
import { openRuns } from '../../support/runs/gateway.ts';

const demo = () => createDemoAgent({ pause: async () => {} });
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('a run is created, worked on and reported to its end', async () => {
  const runs = await openRuns({ agents: [demo()] });
  const { status, body } = await runs.create('hello', { workspace_id: 'ws_engineering', subject_id: 'user_42' });
  expect(status).toBe(201);
  expect(body).toEqual({
    id: expect.stringMatching(/^run_/),
    workspace_id: 'ws_engineering',
    subject_id: 'user_42',
    status: 'queued',
    run_class: 'default',
    metadata: { created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' },
    event_payload: { redacted: true, value: null },
    replayed: false,
    request_id: expect.stringMatching(UUID),
  });
  const done = await runs.until(body.id, 'succeeded');
  expect(done).not.toHaveProperty('replayed');
  const reported = await runs.events(body.id);
  expect(reported.map(({ seq }) => seq)).toEqual(reported.map((_, at) => at + 1));
  expect(reported.map(({ type }) => type)).toEqual([
    'run.created',
    'run.worker.started',
    ...Array.from({ length: 6 }, () => 'step.progress'),
    'step.done',
    'run.worker.succeeded',
  ]);
  expect(reported[0].payload).toEqual({ redacted: true, value: { request_id: body.request_id } });
  expect(reported[1].payload).toEqual({
    redacted: false,
    value: { request_id: body.request_id, from_status: 'queued', to_status: 'running', reason_code: null },
  });
  expect(reported[2].payload.value).toMatchObject({ kind: 'content_delta', content_delta: 'Hello! I am ' });
  expect(reported.at(-2).payload.value).toMatchObject({
    content: 'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.',
    outcome: 'succeeded',
  });
});

test('a cancel stops the work, and nothing follows it', async () => {
  const begun = latch();
  const agent = scriptedAgent(async (_sink, _work, signal) => {
    begun.open();
    await untilAborted(signal);
    return { state: 'CANCELED' };
  });
  const runs = await openRuns({ agents: [agent] });
  const { body } = await runs.create('go');
  await begun.promise;
  const canceled = await runs.call('POST', `/v1/runs/${body.id}/cancel`);
  expect(canceled.status).toBe(200);
  expect(canceled.body).toMatchObject({ id: body.id, status: 'cancelled' });
  expect((await runs.events(body.id)).at(-1)).toMatchObject({
    type: 'run.cancelled',
    payload: { redacted: false, value: { from_status: 'running', to_status: 'cancelled' } },
  });
  for (const move of ['cancel', 'retry', 'resume']) {
    const again = await runs.call('POST', `/v1/runs/${body.id}/${move}`);
    expect(again, move).toMatchObject({
      status: 409,
      body: { error: 'conflict', reason_code: 'RUN_INVALID_STATE_TRANSITION' },
    });
  }
});

test('a retry is another attempt of the same run: a child task, numbers that go on', async () => {
  let tries = 0;
  const agent = scriptedAgent(async () => {
    tries += 1;
    if (tries === 1) return { state: 'FAILED', failure: { code: 'out_of_paper', message: 'no paper' } };
    return undefined;
  });
  const runs = await openRuns({ agents: [agent] });
  const { body } = await runs.create('print');
  await runs.until(body.id, 'failed');
  const retried = await runs.call('POST', `/v1/runs/${body.id}/retry`);
  expect(retried.status).toBe(200);
  expect(retried.body.id).toBe(body.id);
  expect(['queued', 'running', 'succeeded']).toContain(retried.body.status);
  await runs.until(body.id, 'succeeded');
  const reported = await runs.events(body.id);
  expect(reported.map(({ seq, type }) => `${seq} ${type}`)).toEqual([
    '1 run.created',
    '2 run.worker.started',
    '3 step.done',
    '4 run.worker.failed',
    '5 run.worker.retry_scheduled',
    '6 run.worker.started',
    '7 run.worker.succeeded',
  ]);
  expect(reported[3].payload.value).toMatchObject({ reason_code: 'out_of_paper', to_status: 'failed' });
  expect(reported[4].payload.value).toMatchObject({
    from_status: 'failed',
    to_status: 'queued',
    request_id: retried.body.request_id,
  });
  const first = `task_${body.id.slice(4)}`;
  const { data } = await runs.at.bridge.list(
    { id: 'ana', kind: 'person', scopes: ['*'] },
    { object: 'task', where: { parent_task_id: first } },
  );
  expect(data).toHaveLength(1);
  expect(await runs.call('POST', `/v1/runs/${body.id}/retry`)).toMatchObject({ status: 409 });
  // The second attempt is no run of its own.
  expect(await runs.call('GET', `/v1/runs/run_${data[0]!.id.slice(5)}`)).toMatchObject({ status: 404 });
});

test('tools are reported with what may be shown of them', async () => {
  const tools = createDemoTools();
  const runs = await openRuns({ agents: [demo()], tools: [tools], rules: READS });
  const { body } = await runs.create('read plan');
  await runs.until(body.id, 'succeeded');
  const reported = await runs.events(body.id);
  const kinds = reported.flatMap(({ type, payload }) => (type === 'step.progress' ? [payload.value.kind] : []));
  expect(kinds.slice(0, 2)).toEqual(['tool_call_start', 'tool_call_done']);
  const invoked = reported.find(({ type }) => type === 'run.tool.invoked').payload.value;
  expect(invoked).toEqual({
    tool_call_id: expect.stringMatching(/call1$/),
    tool_name: 'read_note',
    tool_outcome: 'succeeded',
    tool_input_summary: {
      schema_version: '1',
      preview: '{"name":"plan"}',
      highlights: [{ key: 'name', value: 'plan', redacted: false }],
      stats: { fields_total: 1, fields_redacted: 0, bytes_before_redaction: 15, bytes_after_redaction: 15 },
      truncated: false,
    },
    tool_output_summary: {
      schema_version: '1',
      preview: '{"text":"plan says: First look, then leap."}',
      highlights: [{ key: 'text', value: 'plan says: First look, then leap.', redacted: false }],
      stats: { fields_total: 1, fields_redacted: 0, bytes_before_redaction: 44, bytes_after_redaction: 44 },
      truncated: false,
    },
    policy_reason_code: null,
    duration_ms: 0,
    // For a gateway that gave the run: what its own receipt needs.
    tollbridge: {
      at: expect.any(String),
      by: 'cedar',
      reason: 'reading changes nothing',
      rule_id: 'reads',
      input_hash: expect.stringMatching(/^sha256:/),
      output_hash: expect.stringMatching(/^sha256:/),
    },
  });
});

test('what policy forbids is shown as denied, and the run goes on', async () => {
  const rules = '- {id: no-deleting, when: {tool: delete_note}, then: block, say: notes are kept}';
  const runs = await openRuns({ agents: [demo()], tools: [createDemoTools()], rules });
  const { body } = await runs.create('delete plan');
  await runs.until(body.id, 'succeeded');
  const reported = await runs.events(body.id);
  expect(reported.find(({ type }) => type === 'run.tool.invoked').payload.value).toMatchObject({
    tool_outcome: 'policy_denied',
    policy_reason_code: 'no-deleting',
  });
  expect(reported.find(({ type }) => type === 'run.coordination.decision').payload.value).toMatchObject({
    decision_type: 'continue',
    reason_code: 'no-deleting',
    role: 'judge',
    judge_decision: { decision: 'block', reason: 'notes are kept' },
  });
});

test('work policy does not let begin is forbidden, and says by whom', async () => {
  const rules = '- {id: no-work, when: {kind: prompt}, then: block, say: closed today}';
  const runs = await openRuns({ agents: [demo()], rules });
  expect(await runs.create('hello')).toMatchObject({
    status: 403,
    body: { error: 'forbidden', reason_code: 'POLICY_DENIED' },
  });
});

test('work that is put off is asked to come later', async () => {
  const rules = '- {id: later, when: {kind: prompt}, then: defer, retry_after: 30s, say: too busy}';
  const runs = await openRuns({ agents: [demo()], rules });
  expect(await runs.create('hello')).toMatchObject({
    status: 429,
    body: { error: 'rate_limited', reason_code: 'RATE_LIMITED' },
  });
});

test('a run whose events are no longer kept still stands; only what was reported is gone', async () => {
  let tries = 0;
  const agent = () =>
    scriptedAgent(async () => {
      tries += 1;
      if (tries === 1) return { state: 'FAILED', failure: { code: 'no', message: 'no' } };
      return undefined;
    });
  const runs = await openRuns({ agents: [agent()] });
  const { body } = await runs.create('go', {}, { 'idempotency-key': 'k' });
  await runs.until(body.id, 'failed');
  await runs.call('POST', `/v1/runs/${body.id}/retry`);
  await runs.until(body.id, 'succeeded');
  runs.at.clock.advance(60_000);
  expect((await runs.at.runtime.store.retain(runs.at.clock.now())).dropped).toBeGreaterThan(0);
  await runs.close();
  await runs.at.close();
  const later = await openRuns({ agents: [agent()], dir: runs.at.dir, clock: runs.at.clock });
  expect(await later.call('GET', `/v1/runs/${body.id}`)).toMatchObject({ status: 200, body: { status: 'succeeded' } });
  expect((await later.create('go', {}, { 'idempotency-key': 'k' })).body).toMatchObject({
    id: body.id,
    replayed: true,
  });
  for (const path of ['events', 'events/stream']) {
    expect(await later.call('GET', `/v1/runs/${body.id}/${path}`)).toMatchObject({
      status: 404,
      body: { error: 'not_found', reason_code: 'RUN_EVENTS_EXPIRED' },
    });
  }
});

const READS = '- {id: reads, when: {effect: read}, then: allow, say: reading changes nothing}';
