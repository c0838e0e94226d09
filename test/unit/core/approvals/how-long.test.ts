/** How long a question lasts: until its time is up, and past the process that asked. */
import { describe, expect, test } from 'vitest';
import { ana, bo } from '../../../support/gateway/actors.ts';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { asking, HOUR, outside } from '../../../support/gateway/asking-work.ts';
import { of, states } from '../../../support/gateway/test-gateway.ts';
import { SEND } from '../../../support/gateway/tools.ts';

describe('time', () => {
  test('nobody answers: the act is denied and says so', async () => {
    const { t, tools, task, results } = await asking({ settings: { askExpiresMs: HOUR } });
    await t.asks(task.id);
    t.clock.advance(HOUR);
    await t.until(task.id);
    expect(tools.calls).toEqual([]);
    expect(results).toMatchObject([
      {
        kind: 'refused',
        reason: 'nobody answered in time',
        decision: { verdict: 'block', code: 'approval_timed_out' },
      },
    ]);
    const log = await t.events(task.id);
    expect(of(log, 'tool.denied')[0]?.payload).toMatchObject({ code: 'approval_timed_out', by: 'bridge' });
    expect(states(log)).toEqual(['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'WORKING', 'COMPLETED']);
    expect((await t.receipts(task.id))[0]?.approvals).toMatchObject([{ decision: 'timeout' }]);
  });

  test('a rule says for how long and whom', async () => {
    const rules = '- { id: ask, when: { tool: send }, then: ask, to: [cy, security], expires: 10m, say: careful }';
    const { t, task } = await asking({ rules });
    const [ask] = await t.asks(task.id);
    expect(ask).toMatchObject({
      to: ['cy', 'security'],
      rule_id: 'ask',
      reason: 'careful',
      created_at: '2026-01-01T00:00:00.000Z',
      expires_at: '2026-01-01T00:10:00.000Z',
    });
  });

  test('an answer that comes too late is a conflict, and the act stays denied', async () => {
    const { t, task, propose } = await outside({ settings: { askExpiresMs: HOUR, sweepMs: HOUR } });
    const { details } = await propose();
    t.clock.advance(HOUR);
    const fault = await t.refused('ask.answer', { ask_id: String(details?.ask_id), approved: true });
    expect(fault).toMatchObject({
      kind: 'conflict',
      message: `question ${details?.ask_id} expired at 2026-01-01T01:00:00.000Z`,
      details: { state: 'expired', decided_by: 'bridge' },
    });
    expect(of(await t.events(task.id), 'tool.denied')[0]?.payload).toMatchObject({ code: 'approval_timed_out' });
    expect(await propose()).toMatchObject({ decision: { verdict: 'block', code: 'approval_timed_out' } });
  });

  test('what expired while the gateway was closed is denied when it opens', async () => {
    const { t, task, propose } = await outside();
    await propose();
    await t.close();
    t.clock.advance(2 * HOUR);
    const later = await t.reopen();
    expect(await later.runtime.store.list({ object: 'ask', where: { task_id: task.id } })).toMatchObject([
      { state: 'expired' },
    ]);
    expect(states(await later.events(task.id))).toEqual(['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'WORKING']);
  });

  test.each([Number.NaN, -1, 1e300, Number.POSITIVE_INFINITY])(
    'an agent that wants %s ms has the usual time',
    async (expires_ms) => {
      const { t, task } = await asking({
        script: async (sink) => {
          await sink.ask({ kind: 'input', key: 'k', question: 'which?', expires_ms });
        },
      });
      const [ask] = await t.asks(task.id);
      expect(ask?.expires_at).toBe('2026-01-01T01:00:00.000Z');
      await t.send('task.cancel', { task_id: task.id });
    },
  );
});

describe('questions outlive the process that asked', () => {
  test('a restart joins the open question, and a yes given afterwards runs the act once', async () => {
    const { t, tools, task } = await asking({ resume: true });
    const [before] = await t.asks(task.id);
    const later = await t.reopen();
    await later.seen(task.id, 'vendor.tollbridge.recovered');
    await later.until(task.id, 'AUTH_REQUIRED');
    const [after] = await later.asks(task.id);
    expect(after?.id).toBe(before?.id);
    await later.answer(after!.id);
    expect(await later.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(1);
    const log = await later.events(task.id);
    expect(of(log, 'tool.requested')).toHaveLength(1);
    expect(of(log, 'vendor.tollbridge.ask_opened')).toHaveLength(1);
    expect(of(log, 'vendor.tollbridge.ask_used')).toHaveLength(1);
  });

  test('a yes given while nobody was there to hear it is taken up after the restart', async () => {
    const { t, tools, task } = await asking({ resume: true });
    const [ask] = await t.asks(task.id);
    await t.close();
    const away = await t.reopen({ agents: [], started: false });
    await away.answer(ask!.id);
    const later = await away.reopen({
      agents: [
        scriptedAgent(
          async (sink) => {
            await sink.act(SEND);
            return undefined;
          },
          { resume: true },
        ),
      ],
      started: true,
    });
    expect(await later.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(1);
  });

  test('another gateway on the same log answers, and the first one goes on', async () => {
    const { t, tools, task } = await asking();
    const [ask] = await t.asks(task.id);
    const elsewhere = await t.second({ agents: [] });
    expect(await elsewhere.answer(ask!.id, { approved: true }, bo)).toMatchObject({
      state: 'approved',
      answered_by: 'bo',
    });
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(1);
    await elsewhere.close();
  });

  test('the end of a task withdraws its questions', async () => {
    const { t, task } = await asking();
    const [ask] = await t.asks(task.id);
    await t.send('task.cancel', { task_id: task.id });
    await t.until(task.id);
    expect(await t.bridge.view(ana, 'ask', ask!.id)).toMatchObject({ state: 'canceled' });
    expect(await t.refused('ask.answer', { ask_id: ask!.id, approved: true })).toMatchObject({
      kind: 'conflict',
      details: { state: 'canceled' },
    });
  });
});
