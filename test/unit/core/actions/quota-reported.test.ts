/** What agents report having used is charged, exactly once. */
import { describe, expect, test } from 'vitest';
import type { ActResult } from '../../../../src/ports/index.ts';
import { latch, scriptedAgent } from '../../../support/gateway/agents.ts';
import { locationOf, of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';
import { ALLOW, limited, newQuota, SEND, usage, used } from '../../../support/policy/quotas.ts';

describe('what agents report is charged', () => {
  test('to persona and workspace, in the commit that records it, and then nothing more may start', async () => {
    const results: ActResult[] = [];
    const tools = countingTools({ send: { effect: 'send' } });
    const agent = scriptedAgent(async (sink) => {
      results.push(await sink.act(SEND));
      await sink.emit(
        usage({ provider: 'p', model: 'm', usd_micros: 1_500_000, input_tokens: 700, output_tokens: 400 }),
      );
      results.push(await sink.act(SEND));
      return undefined;
    });
    const t = await openTestGateway({ rules: ALLOW, agents: [agent], tools: [tools] });
    const money = await newQuota(t, { usd_micros: 1_000_000 });
    const tokens = await newQuota(t, { tokens: 5000, input_tokens: 5000 });
    const room = await t.room({ workspace: { quota_id: tokens }, persona: { quota_id: money } });
    const task = await room.task();
    const ended = await t.until(task.id);

    expect(await used(t, money)).toMatchObject({ usd_micros: 1_500_000 });
    expect(await used(t, tokens)).toMatchObject({ tokens: 1100, input_tokens: 700, output_tokens: 400 });
    expect(results[0]).toMatchObject({ kind: 'done' });
    expect(results[1]).toBeUndefined();
    expect(ended).toMatchObject({
      status: 'FAILED',
      failure: {
        code: 'quota_exceeded',
        message: `limit usd_micros (1000000) of quota ${money} is used up: 1500000 used`,
      },
    });
    expect(tools.calls).toHaveLength(1);

    const log = await t.events(task.id);
    const [report] = of(log, 'vendor.tollbridge.usage');
    const charged = of(log, 'vendor.tollbridge.quota_used').filter((event) => locationOf(event) > locationOf(report!));
    expect(charged.map(locationOf)).toEqual([locationOf(report!) + 1, locationOf(report!) + 2]);
    expect(charged.map(({ payload }) => payload.quota_id)).toEqual([money, tokens]);

    expect(await t.refused('task.submit', { session_id: room.session, input: {} })).toMatchObject({
      kind: 'policy_violation',
      message: `limit usd_micros (1000000) of quota ${money}: 1500000 used, this needs more`,
    });
  });

  test('a limit in dollars is as exact as one in millionths', async () => {
    const { t, room, quota } = await limited({ usd: 1 }, async (sink) => {
      for (let i = 0; i < 10; i += 1) await sink.emit(usage({ usd_micros: 100_000 }));
    });
    const task = await room.task();
    await t.until(task.id);
    expect(await used(t, quota)).toEqual({ usd: 1, usd_micros: 1_000_000, tasks: 1 });
    expect(await t.refused('task.submit', { session_id: room.session, input: {} })).toMatchObject({
      message: `limit usd (1) of quota ${quota}: 1 used, this needs more`,
    });
  });

  test('what is no amount is not counted, and nothing is given back', async () => {
    const { t, room, quota } = await limited({ usd_micros: 1000, tokens: 1000 }, async (sink) => {
      await sink.emit(usage({ usd_micros: 100, input_tokens: 10 }));
      await sink.emit(usage({ usd_micros: -100, input_tokens: -10, output_tokens: -5 }));
      await sink.emit(usage({ usd_micros: 'free', input_tokens: null, output_tokens: true }));
      await sink.emit(usage({}));
    });
    await t.until((await room.task()).id);
    expect(await used(t, quota)).toEqual({ usd_micros: 100, tokens: 10, input_tokens: 10, tasks: 1 });
  });

  test('what a call used up is charged with the call', async () => {
    const tools = countingTools({
      send: { effect: 'send', run: () => ({ status: 'ok', output: null, usage: { usd_micros: 300 } }) },
    });
    const t = await openTestGateway({ rules: ALLOW, tools: [tools] });
    const quota = await newQuota(t, { usd_micros: 500 });
    const task = await (await t.room({ workspace: { quota_id: quota } })).task({ agent: 'none' });
    const kinds: (string | undefined)[] = [];
    for (let i = 0; i < 3; i += 1)
      kinds.push((await t.send('tool.call', { task_id: task.id, action: SEND })).act?.kind);
    expect(kinds).toEqual(['done', 'done', 'refused']);
    expect(await used(t, quota)).toMatchObject({ usd_micros: 600 });
  });

  test('what is reported from outside is charged too, all of a report at once', async () => {
    const { t, room, quota } = await limited({ usd_micros: 1000 });
    const task = await room.task({ agent: 'none' });
    const facts = [usage({ usd_micros: 300 }), usage({ usd_micros: -250 }), usage({ usd_micros: 400 })];
    await t.send('task.report', { task_id: task.id, facts }, { idempotency: { key: 'k' } });
    await t.send('task.report', { task_id: task.id, facts }, { idempotency: { key: 'k' } });
    expect(await used(t, quota)).toMatchObject({ usd_micros: 700 });
  });

  test('reports from many tasks at once add up', async () => {
    const begun = latch();
    const { t, quota, room } = await limited({ input_tokens: 1_000_000 }, async (sink) => {
      await begun.promise;
      await Promise.all(Array.from({ length: 20 }, () => sink.emit(usage({ input_tokens: 7 }))));
    });
    const sessions = await Promise.all(
      Array.from({ length: 5 }, () => t.send('session.create', { workspace_id: room.workspace })),
    );
    const tasks = await Promise.all(sessions.map(({ resource }) => room.task({ session_id: resource.id })));
    begun.open();
    await Promise.all(tasks.map(({ id }) => t.until(id)));
    expect(await used(t, quota)).toMatchObject({ input_tokens: 700 });
  });

  test('a replay uses nothing up', async () => {
    const { t, room, quota } = await limited({ usd_micros: 1000, tool_calls: 10 }, async (sink) => {
      await sink.act({ ...SEND, tool_call_id: 'c1' });
      await sink.emit(usage({ usd_micros: 300 }));
    });
    const task = await room.task();
    await t.until(task.id);
    const before = await used(t, quota);
    expect(before).toMatchObject({ usd_micros: 300, tool_calls: 1 });
    const { resource: replay } = await t.send('task.replay', { task_id: task.id });
    expect(await t.until(replay.id)).toMatchObject({ status: 'COMPLETED' });
    expect(await used(t, quota)).toEqual(before);
  });
});
