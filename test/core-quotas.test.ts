/** Limits on the real stack: checked before the work, exact however many come at once, and fed by what agents report. */
import { describe, expect, test } from 'vitest';
import type { Fact, ProposedAction } from '../src/model/commands.ts';
import { asFault } from '../src/model/faults.ts';
import type { Quota } from '../src/model/resources.ts';
import type { JsonObject } from '../src/model/schema.ts';
import type { ActResult, PolicyEngine, Row, Sink } from '../src/ports.ts';
import { latch, scriptedAgent } from './support/agents.ts';
import { of, openTestHouse, placeOf, type TestHouse, type TestHouseOptions } from './support/house.ts';
import { countingTools } from './support/tools.ts';

const ALLOW = '- { id: all, when: { kind: tool }, then: allow }';
const SEND: ProposedAction = { kind: 'tool', tool: 'send', arguments: {} };

async function newQuota(t: TestHouse, limits: Record<string, number>, more: JsonObject = {}): Promise<string> {
  const body = { scope: 'workspace', limits, ...more };
  return (await t.send('resource.create', { object: 'quota', body })).resource.id;
}

async function used(t: TestHouse, id: string): Promise<Quota['usage']> {
  return (await t.house.store.get<Quota & Row>('quota', id))!.usage;
}

/** One agent in a workspace with these limits. */
async function limited(
  limits: Record<string, number>,
  script: (sink: Sink) => Promise<void> = async () => {},
  { quota, ...options }: TestHouseOptions & { quota?: JsonObject } = {},
) {
  const tools = countingTools({ send: { effect: 'send' } });
  const agent = scriptedAgent(async (sink) => {
    await script(sink);
    return undefined;
  });
  const t = await openTestHouse({ rules: ALLOW, ...options, agents: [agent], tools: [tools] });
  const id = await newQuota(t, limits, quota);
  const room = await t.room({ workspace: { quota_id: id } });
  return { t, tools, room, quota: id };
}

const usage = (payload: JsonObject): Fact => ({ event: 'vendor.tollbridge.usage', payload });

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
    await t.house.idle();
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
    const t = await openTestHouse({ rules: ALLOW, tools: [tools] });
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
    const { t, tools, room, quota } = await limited({ tool_calls: 4, letters: 10 });
    const task = await room.task({ agent: 'none' });
    const call = (cost: Record<string, number>) => t.send('tool.call', { task_id: task.id, action: { ...SEND, cost } });
    await call({ tool_calls: 0, letters: 4 });
    await call({ tool_calls: 2 });
    expect(await used(t, quota)).toEqual({ tool_calls: 3, letters: 4, tasks: 1 });
    expect((await call({ letters: 7 })).act).toMatchObject({
      kind: 'refused',
      reason: `limit letters (10) of quota ${quota}: 4 used, this needs 7`,
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

  test('a soft limit is told and not enforced', async () => {
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
    const t = await openTestHouse({ rules: ALLOW, agents: [agent], tools: [tools] });
    const money = await newQuota(t, { usd_micros: 1_000_000 });
    const tokens = await newQuota(t, { tokens: 5000, input_tokens: 5000 });
    const room = await t.room({ workspace: { quota_id: tokens }, persona: { quota_id: money } });
    const task = await room.task();
    await t.until(task.id);

    expect(await used(t, money)).toMatchObject({ usd_micros: 1_500_000 });
    expect(await used(t, tokens)).toMatchObject({ tokens: 1100, input_tokens: 700, output_tokens: 400 });
    expect(results[0]).toMatchObject({ kind: 'done' });
    expect(results[1]).toMatchObject({
      kind: 'refused',
      reason: `limit usd_micros (1000000) of quota ${money}: 1500000 used, this needs more`,
      decision: { code: 'quota_exhausted' },
    });
    expect(tools.calls).toHaveLength(1);

    const log = await t.events(task.id);
    const [report] = of(log, 'vendor.tollbridge.usage');
    const charged = of(log, 'vendor.tollbridge.quota_used').filter((event) => placeOf(event) > placeOf(report!));
    expect(charged.map(placeOf)).toEqual([placeOf(report!) + 1, placeOf(report!) + 2]);
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
    const t = await openTestHouse({ rules: ALLOW, tools: [tools] });
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
    await t.house.idle();
    const [receipt] = await t.receipts(task.id);
    expect(receipt?.autonomy_budget.limit).toEqual({ usd: 2.5, tool_calls: 3, output_tokens: 70 });
  });

  test('stands no limit where none is enforced', async () => {
    const { t, room } = await limited({ tool_calls: 9 }, undefined, {
      quota: { hard_limit: false, soft_limit: true },
    });
    const task = await room.task();
    await t.house.idle();
    const [receipt] = await t.receipts(task.id);
    expect(receipt?.autonomy_budget).not.toHaveProperty('limit');
  });
});
