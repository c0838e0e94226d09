/** Limits that run out, change or go away between the question and the act; and how far a receipt says the work might have gone. */
import { describe, expect, test } from 'vitest';
import type { ActResult, PolicyEngine } from '../../../../src/ports/index.ts';
import { latch } from '../../../support/gateway/agents.ts';
import { of } from '../../../support/gateway/test-gateway.ts';
import { limited, newQuota, SEND, used } from '../../../support/policy/quotas.ts';

describe('limits that run out while people are asked', () => {
  const ASK = '- { id: ask, when: { tool: send, kind: tool }, then: ask }';

  test('a budget: the approved act is refused, says why, and is not called', async () => {
    const results: ActResult[] = [];
    const { t, tools, room, quota } = await limited(
      { tool_calls: 1 },
      async (sink) => {
        results.push(...(await Promise.all([sink.act(SEND), sink.act({ ...SEND, arguments: { n: 2 } })])));
      },
      { rules: ASK },
    );
    const task = await room.task();
    for (const ask of await t.asks(task.id, 2)) await t.answer(ask.id);
    await t.until(task.id);
    expect(tools.calls).toHaveLength(1);
    expect(results.map(({ kind }) => kind).toSorted()).toEqual(['done', 'refused']);
    expect(results.find(({ kind }) => kind === 'refused')).toMatchObject({
      reason: `limit tool_calls (1) of quota ${quota}: 1 used, this needs 1`,
      decision: { verdict: 'block', code: 'quota_exhausted' },
    });
    expect(of(await t.events(task.id), 'vendor.tollbridge.ask_used')).toHaveLength(2);
    expect(await used(t, quota)).toEqual({ tool_calls: 1, tasks: 1 });
  });

  test('a rate: the yes is kept until there is room', async () => {
    const { t, tools, room } = await limited(
      { tool_calls: 1 },
      async (sink) => {
        await Promise.all([sink.act(SEND), sink.act({ ...SEND, arguments: { n: 2 } })]);
      },
      {
        rules: ASK,
        quota: { reset_at: '2026-01-01T00:00:30.000Z', metadata: { window_ms: 30_000 } },
        settings: { deferCapMs: 20, deferTries: 500 },
      },
    );
    const task = await room.task();
    for (const ask of await t.asks(task.id, 2)) await t.answer(ask.id);
    await t.seen(task.id, 'tool.completed');
    expect(tools.calls).toHaveLength(1);
    t.clock.advance(30_000);
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(2);
    const log = await t.events(task.id);
    expect(of(log, 'vendor.tollbridge.ask_opened')).toHaveLength(2);
    expect(of(log, 'vendor.tollbridge.ask_used')).toHaveLength(2);
    expect(of(log, 'tool.denied')).toEqual([]);
  });
});

test('the quota stands as it was at the moment of the charge, not of the question', async () => {
  const deciding = latch();
  let asked = 0;
  const engine: PolicyEngine = {
    name: 'slow',
    decide: async ({ kind }) => {
      if (kind === 'tool') {
        asked += 1;
        await deciding.promise;
      }
      return { verdict: 'allow', reason: 'fine', engine: 'slow' };
    },
  };
  const { t, tools, room, quota } = await limited({ tool_calls: 1 }, undefined, { engines: [engine] });
  const task = await room.task({ agent: 'none' });
  const both = [1, 2].map(() => t.send('tool.call', { task_id: task.id, action: SEND }));
  await expect.poll(() => asked).toBe(2);
  deciding.open();
  const kinds = (await Promise.all(both)).map(({ act }) => act?.kind);
  expect(kinds.toSorted()).toEqual(['done', 'refused']);
  expect(tools.calls).toHaveLength(1);
  expect(await used(t, quota)).toEqual({ tool_calls: 1, tasks: 1 });
});

test('a quota that is withdrawn does not lift its limit: what acts is asked about', async () => {
  const results: ActResult[] = [];
  const { t, room, quota, tools } = await limited({ tool_calls: 1 }, async (sink) => {
    results.push(await sink.act({ ...SEND, tool_call_id: 'c1' }));
  });
  await t.send('resource.delete', { object: 'quota', id: quota });
  const task = await room.task();
  const [ask] = await t.asks(task.id);
  expect(tools.calls).toEqual([]);
  await t.answer(ask!.id, { approved: false, reason: 'no more' });
  await t.until(task.id);
  expect(results[0]).toMatchObject({ kind: 'refused' });
});

describe('on the receipt', () => {
  test('stands how far the work might have gone: of each limit the least that is enforced', async () => {
    const { t, quota: wide } = await limited({ usd_micros: 2_500_000, tool_calls: 9, tokens: 100, tasks: 4 });
    const tight = await newQuota(t, { tool_calls: 3, output_tokens: 70 });
    const room = await t.room({ workspace: { quota_id: wide }, persona: { quota_id: tight } });
    const task = await room.task();
    await t.runtime.idle();
    const [receipt] = await t.receipts(task.id);
    expect(receipt?.autonomy_budget.limit).toEqual({ usd: 2.5, tool_calls: 3, output_tokens: 70 });
  });

  test('stands no limit where none is enforced', async () => {
    const { t, room } = await limited({ tool_calls: 9 }, undefined, {
      quota: { hard_limit: false, soft_limit: true },
    });
    const task = await room.task();
    await t.runtime.idle();
    const [receipt] = await t.receipts(task.id);
    expect(receipt?.autonomy_budget).not.toHaveProperty('limit');
  });
});
