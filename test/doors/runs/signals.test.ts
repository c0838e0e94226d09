/** Questions of a run, answered from its own side and from every other: the same questions, answered once. */
import { describe, expect, test } from 'vitest';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { pulledDisk } from '../../support/gateway/failing-store.ts';
import { of } from '../../support/gateway/test-gateway.ts';
import { openRuns, pair, type RunsDoor } from '../../support/runs/gateway.ts';

const demo = () => createDemoAgent({ pause: async () => {} });
const signal = (runs: RunsDoor, id: string, body: unknown) => runs.call('POST', `/v1/runs/${id}/signal`, body);

async function waiting(text = 'send the plan to bo') {
  const tools = createDemoTools();
  const runs = await openRuns({ agents: [demo()], tools: [tools] });
  const { body } = await runs.create(text);
  const reported = await runs.seen(body.id, 'run.awaiting_input');
  return { runs, tools, id: body.id as string, reported };
}

describe('a run that waits for a yes', () => {
  test('says so in its events and on the run, which is still running', async () => {
    const { runs, id, reported } = await waiting();
    expect(reported.at(-1)).toMatchObject({
      type: 'run.awaiting_input',
      payload: {
        redacted: false,
        value: {
          input_kind: 'approval',
          tool_name: 'send_mail',
          question: expect.stringMatching(/^May agent:demo use send_mail on bo\?\n[\s\S]*\n {2}text: the plan$/),
          tool_input_summary: { preview: '{"to":"bo","text":"the plan"}' },
        },
      },
    });
    const { body } = await runs.call('GET', `/v1/runs/${id}`);
    expect(body).toMatchObject({ status: 'running', awaiting_input: { input_kind: 'approval' } });
  });

  test('goes on when it is approved', async () => {
    const { runs, tools, id } = await waiting();
    const said = await signal(runs, id, { action: 'approve', payload: { reason: 'Bo waits' } });
    expect(said).toMatchObject({ status: 200, body: { ok: true } });
    expect(Object.keys(said.body).sort()).toEqual(['ok', 'request_id']);
    await runs.until(id, 'succeeded');
    expect(tools.outbox).toEqual([{ to: 'bo', text: 'the plan' }]);
    const reported = await runs.events(id);
    expect(reported.find(({ type }) => type === 'run.signal_applied').payload.value).toMatchObject({
      action: 'approve',
    });
    const events = await runs.at.events(`task_${id.slice(4)}`);
    expect(of(events, 'user.tool_confirmation')[0]?.payload).toMatchObject({ approved: true, reason: 'Bo waits' });
    expect(await signal(runs, id, { action: 'approve' })).toMatchObject({
      status: 409,
      body: { error: 'conflict', reason_code: 'RUN_NOT_AWAITING_INPUT' },
    });
  });

  test('fails when it is rejected: the no is on record, nothing is sent, and it may be tried again', async () => {
    const { runs, tools, id } = await waiting();
    expect((await signal(runs, id, { action: 'reject', payload: 'not today' })).status).toBe(200);
    await runs.until(id, 'failed');
    expect(tools.outbox).toEqual([]);
    const reported = await runs.events(id);
    expect(reported.map(({ type }) => type).slice(-6)).toEqual([
      'run.signal_applied',
      'step.progress',
      'run.tool.invoked',
      'step.done',
      'run.coordination.decision',
      'run.worker.failed',
    ]);
    expect(reported.at(-6).payload.value.action).toBe('reject');
    expect(reported.at(-1).payload.value).toMatchObject({ reason_code: 'rejected_by_signal', to_status: 'failed' });
    const [receipt] = await runs.at.receipts(`task_${id.slice(4)}`);
    expect(receipt?.lifecycle.final_state).toBe('FAILED');
    expect(receipt?.approvals).toMatchObject([{ decision: 'denied', actor: 'ana' }]);
    expect((await runs.call('POST', `/v1/runs/${id}/retry`)).status).toBe(200);
    await runs.seen(id, 'run.awaiting_input', () => true);
  });

  test('a no at another door denies the act, and the run goes on', async () => {
    const { runs, tools, id } = await waiting();
    const [ask] = await runs.at.asks(`task_${id.slice(4)}`);
    await runs.at.answer(ask!.id, { approved: false, reason: 'not finished' });
    await runs.until(id, 'succeeded');
    expect(tools.outbox).toEqual([]);
    const reported = await runs.events(id);
    expect(reported.some(({ type }) => type === 'run.signal_applied')).toBe(false);
    const decisions = reported.filter(({ type }) => type === 'run.coordination.decision');
    expect(decisions.at(-1).payload.value).toMatchObject({
      decision_type: 'continue',
      reason_code: 'approval_denied',
      judge_decision: { decision: 'denied', reason: 'not finished' },
    });
    expect(reported.find(({ type }) => type === 'run.tool.invoked').payload.value.tool_outcome).toBe('policy_denied');
  });

  test('a yes at another door is a signal here', async () => {
    const { runs, id } = await waiting();
    const [ask] = await runs.at.asks(`task_${id.slice(4)}`);
    await runs.at.answer(ask!.id);
    await runs.until(id, 'succeeded');
    const reported = await runs.events(id);
    expect(reported.find(({ type }) => type === 'run.signal_applied').payload.value.action).toBe('approve');
  });
});

describe('a run that waits for a value', () => {
  test('takes it, whatever it is', async () => {
    const { runs, id, reported } = await waiting('ask which colour?');
    expect(reported.at(-1).payload.value).toMatchObject({ input_kind: 'payload', reason_code: 'input_required' });
    expect((await signal(runs, id, { action: 'approve' })).body.reason_code).toBe('RUN_NOT_AWAITING_INPUT');
    expect((await signal(runs, id, { action: 'submit_input', payload: 'blue' })).status).toBe(200);
    await runs.until(id, 'succeeded');
    const all = await runs.events(id);
    expect(all.find(({ type }) => type === 'run.input_received').payload.value).toMatchObject({
      action: 'submit_input',
    });
    expect(all.find(({ type }) => type === 'step.done').payload.value.content).toBe('You said: blue');
  });

  test('can be rejected instead', async () => {
    const { runs, id } = await waiting('ask which colour?');
    expect((await signal(runs, id, { action: 'reject' })).status).toBe(200);
    await runs.until(id, 'failed');
  });

  test('with several questions open, a signal answers the oldest it can', async () => {
    const values: unknown[] = [];
    const agent = scriptedAgent(async (sink) => {
      const one = sink.ask({ kind: 'input', key: 'one', question: 'one?' });
      const two = sink.ask({ kind: 'input', key: 'two', question: 'two?' });
      for (const answer of await Promise.all([one, two]))
        values.push(answer.kind === 'value' ? answer.value : answer.kind);
      return undefined;
    });
    const runs = await openRuns({ agents: [agent] });
    const { body } = await runs.create('go');
    await runs.at.asks(`task_${body.id.slice(4)}`, 2);
    const asked = (await runs.at.asks(`task_${body.id.slice(4)}`, 2)).map(({ question }) => question);
    await signal(runs, body.id, { action: 'submit_input', payload: { first: true } });
    await signal(runs, body.id, { action: 'submit_input', payload: { first: false } });
    await runs.until(body.id, 'succeeded');
    expect(values).toHaveLength(2);
    expect(values[asked[0] === 'one?' ? 0 : 1]).toEqual({ first: true });
  });
});

describe('a signal', () => {
  test.each([
    ['no object', []],
    ['no action', { payload: 1 }],
    ['an unknown action', { action: 'shrug' }],
    ['a key that is no text', { action: 'approve', idempotency_key: 7 }],
    ['an empty key', { action: 'approve', idempotency_key: '' }],
    ['input without any', { action: 'submit_input' }],
    ['no JSON', '{'],
  ])('%s is refused before anything else is looked at', async (_what, body) => {
    const { runs, id } = await waiting();
    expect(await signal(runs, id, body)).toMatchObject({
      status: 400,
      body: { error: 'bad_request', reason_code: 'SIGNAL_PAYLOAD_INVALID' },
    });
  });

  test('with a key is applied once; another one under the same key is refused', async () => {
    const { runs, tools, id } = await waiting('send a to bo then send b to bo');
    const first = { action: 'approve', idempotency_key: 'k1' };
    expect((await signal(runs, id, first)).status).toBe(200);
    await runs.seen(id, 'run.tool.invoked');
    await runs.at.asks(`task_${id.slice(4)}`);
    expect(await signal(runs, id, first)).toMatchObject({ status: 200, body: { ok: true } });
    expect(tools.outbox).toHaveLength(1);
    expect(await signal(runs, id, { action: 'reject', idempotency_key: 'k1' })).toMatchObject({
      status: 409,
      body: { reason_code: 'IDEMPOTENCY_KEY_REUSED' },
    });
    expect((await signal(runs, id, { action: 'approve', idempotency_key: 'k2' })).status).toBe(200);
    await runs.until(id, 'succeeded');
    expect(tools.outbox).toHaveLength(2);
    // Also when the run is over.
    expect((await signal(runs, id, first)).status).toBe(200);
  });

  test('a key belongs to its run', async () => {
    const { runs, id } = await waiting();
    const other = (await runs.create('send x to bo')).body.id;
    await runs.seen(other, 'run.awaiting_input');
    const body = { action: 'approve', idempotency_key: 'same' };
    expect((await signal(runs, id, body)).status).toBe(200);
    expect((await signal(runs, other, body)).status).toBe(200);
    await Promise.all([runs.until(id, 'succeeded'), runs.until(other, 'succeeded')]);
  });

  test('that cannot be written down is our fault, and says so', async () => {
    const disk = pulledDisk();
    const runs = await openRuns({ agents: [demo()], tools: [createDemoTools()], store: disk.wrap });
    const { body } = await runs.create('send the plan to bo');
    await runs.seen(body.id, 'run.awaiting_input');
    disk.down = true;
    expect(await signal(runs, body.id, { action: 'approve' })).toMatchObject({
      status: 500,
      body: { error: 'internal_error', reason_code: 'SIGNAL_SERVICE_UNAVAILABLE' },
    });
    disk.down = false;
    expect((await signal(runs, body.id, { action: 'approve' })).status).toBe(200);
    await runs.until(body.id, 'succeeded');
  });
});

test('the scopes the page names are enough for a whole run', async () => {
  const runs = await openRuns({ agents: [demo()], tools: [createDemoTools()] });
  await runs.at.send('resource.create', { object: 'workspace', body: { name: 'w', root: 'file:///w' } });
  const as = { authorization: pair('modest') };
  const { status, body } = await runs.create('send the plan to bo', {}, as);
  expect(status).toBe(201);
  await runs.seen(body.id, 'run.awaiting_input');
  const answer = { action: 'reject', idempotency_key: 'k' };
  expect((await runs.call('POST', `/v1/runs/${body.id}/signal`, answer, as)).status).toBe(200);
  await runs.until(body.id, 'failed');
  expect((await runs.call('POST', `/v1/runs/${body.id}/retry`, undefined, as)).status).toBe(200);
  expect((await runs.call('POST', `/v1/runs/${body.id}/cancel`, undefined, as)).body.status).toBe('cancelled');
  expect((await runs.call('GET', `/v1/runs/${body.id}/events`, undefined, as)).status).toBe(200);
});
