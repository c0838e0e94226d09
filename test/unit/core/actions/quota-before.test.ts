/** Limits are checked before the work, and exact however many come at once. */
import { describe, expect, test } from 'vitest';
import type { ProposedAction } from '../../../../src/model/commands.ts';
import { asFault } from '../../../../src/model/faults.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import type { ActResult } from '../../../../src/ports/index.ts';
import { of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';
import { ALLOW, limited, newQuota, SEND, used } from '../../../support/policy/quotas.ts';

describe('counted before the work', () => {
  test('a hundred tasks at once, room for three', async () => {
    const { t, room, quota } = await limited({ tasks: 3 });
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, () =>
        room.task().then(
          ({ id }) => id,
          (cause) => asFault(cause),
        ),
      ),
    );
    const refused = outcomes.filter((one) => typeof one !== 'string');
    expect(refused).toHaveLength(97);
    for (const fault of refused) {
      expect(fault).toMatchObject({
        kind: 'policy_violation',
        message: `limit tasks (3) of quota ${quota}: 3 used, this needs 1`,
      });
    }
    await t.runtime.idle();
    expect(await used(t, quota)).toEqual({ tasks: 3 });
    expect(of(await t.all(), 'task.submitted')).toHaveLength(3);
  });

  test('a hundred calls at once, from two processes, room for five', async () => {
    const { t, tools, room, quota } = await limited({ tool_calls: 5 });
    const task = await room.task({ agent: 'none' });
    const other = await t.second();
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        (index % 2 ? t : other)
          .send('tool.call', { task_id: task.id, action: SEND })
          .then(({ act }) => act as ActResult),
      ),
    );
    expect(results.filter(({ kind }) => kind === 'done')).toHaveLength(5);
    expect(tools.calls).toHaveLength(5);
    const refusal = results.find((act) => act.kind === 'refused');
    expect(refusal).toMatchObject({
      reason: `limit tool_calls (5) of quota ${quota}: 5 used, this needs 1`,
      decision: { verdict: 'block', code: 'quota_exhausted', engine: 'quota' },
    });
    expect(await used(t, quota)).toEqual({ tool_calls: 5, tasks: 1 });
    const log = await t.events(task.id);
    expect(of(log, 'vendor.tollbridge.quota_used')).toHaveLength(6);
    expect(of(log, 'tool.denied').every(({ payload }) => payload.code === 'quota_exhausted')).toBe(true);
    expect(of(log, 'tool.denied')).toHaveLength(95);
    await other.close();
  });

  test('persona and workspace are both charged, and the tighter one decides', async () => {
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestGateway({ rules: ALLOW, tools: [tools] });
    const wide = await newQuota(t, { tool_calls: 10, tasks: 10 });
    const tight = await newQuota(t, { tool_calls: 2 });
    const room = await t.room({ workspace: { quota_id: wide }, persona: { quota_id: tight } });
    const task = await room.task({ agent: 'none' });
    const kinds: (string | undefined)[] = [];
    for (let i = 0; i < 4; i += 1) {
      kinds.push((await t.send('tool.call', { task_id: task.id, action: SEND })).act?.kind);
    }
    expect(kinds).toEqual(['done', 'done', 'refused', 'refused']);
    expect(await used(t, wide)).toEqual({ tool_calls: 2, tasks: 1 });
    expect(await used(t, tight)).toMatchObject({ tool_calls: 2 });
  });

  test('a caller cannot make a call cost less than a call, only more', async () => {
    const { t, tools, room, quota } = await limited({ tool_calls: 4, output_tokens: 10 });
    const task = await room.task({ agent: 'none' });
    const call = (cost: Record<string, number>) => t.send('tool.call', { task_id: task.id, action: { ...SEND, cost } });
    await call({ tool_calls: 0, output_tokens: 4 });
    await call({ tool_calls: 2 });
    expect(await used(t, quota)).toEqual({ tool_calls: 3, output_tokens: 4, tasks: 1 });
    expect((await call({ output_tokens: 7 })).act).toMatchObject({
      kind: 'refused',
      reason: `limit output_tokens (10) of quota ${quota}: 4 used, this needs 7`,
    });
    expect(tools.calls).toHaveLength(2);
  });

  test('what is not counted as an act costs nothing', async () => {
    const { t, room, quota } = await limited({ tool_calls: 1 });
    const task = await room.task({ agent: 'none' });
    for (let i = 0; i < 3; i += 1) {
      const action: ProposedAction = { kind: 'fs.read', tool: 'read', effect: 'read' };
      expect(await t.send('action.propose', { task_id: task.id, action })).toMatchObject({
        decision: { verdict: 'allow' },
      });
    }
    expect(await used(t, quota)).toEqual({ tool_calls: 0, tasks: 1 });
  });

  test('a soft limit is reported and not enforced', async () => {
    const { t, tools, room, quota } = await limited({ tool_calls: 1 }, undefined, {
      quota: { hard_limit: false, soft_limit: true },
    });
    const task = await room.task({ agent: 'none' });
    for (let i = 0; i < 2; i += 1) await t.send('tool.call', { task_id: task.id, action: SEND });
    expect(tools.calls).toHaveLength(2);
    expect(await used(t, quota)).toEqual({ tool_calls: 2, tasks: 1 });
    const decision = of(await t.events(task.id), 'vendor.tollbridge.decided').at(-1)?.payload.decision as JsonObject;
    expect(decision).toMatchObject({ verdict: 'allow' });
    expect(decision.reason).toContain(`soft limit tool_calls (1) of quota ${quota}: 1 used, this needs 1`);
  });

  test('a rate that opens again shortly makes new work wait instead of failing', async () => {
    const { t, tools, room } = await limited(
      { tool_calls: 1 },
      async (sink) => {
        await sink.act(SEND);
        await sink.act(SEND);
      },
      {
        quota: { reset_at: '2026-01-01T00:00:30.000Z', metadata: { window_ms: 30_000 } },
        settings: { deferCapMs: 20, deferTries: 500 },
      },
    );
    const task = await room.task();
    await t.seen(
      task.id,
      'vendor.tollbridge.decided',
      ({ payload }) => (payload.decision as JsonObject).verdict === 'defer',
    );
    expect(tools.calls).toHaveLength(1);
    t.clock.advance(30_000);
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(2);
  });

  test('how much is used is not known: people are asked, and a rewriting survives the asking', async () => {
    const { t, tools, room } = await limited(
      { tool_calls: 5 },
      async (sink) => {
        await sink.act({ ...SEND, tool_call_id: 'c1', arguments: { to: 'bo' } });
      },
      { rules: '- { id: to-cy, when: { kind: tool }, then: modify, set: { to: cy } }', quota: { usage: {} } },
    );
    const task = await room.task();
    const [prompt] = await t.asks(task.id);
    expect(prompt).toMatchObject({ action: { kind: 'prompt' }, reason: expect.stringContaining('is not known') });
    await t.answer(prompt!.id);
    await t.seen(task.id, 'tool.approval_required', ({ payload }) => payload.tool_call_id === 'c1');
    const [ask] = await t.asks(task.id);
    expect(ask).toMatchObject({ action: { kind: 'tool', arguments: { to: 'cy' } } });
    await t.answer(ask!.id);
    await t.until(task.id);
    expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'cy' } }]);
    expect(of(await t.events(task.id), 'tool.approved').at(-1)?.payload.input).toEqual({ to: 'cy' });
  });
});
