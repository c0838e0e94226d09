/** Every limit a quota can name is counted and holds, at its edge, from several processes at once, and when it changes under running work. */
import { describe, expect, test } from 'vitest';
import { asFault } from '../../../../src/model/faults.ts';
import type { Quota, Task } from '../../../../src/model/resources.ts';
import { QUOTA_LIMITS } from '../../../../src/model/words.ts';
import type { Row, Sink } from '../../../../src/ports/index.ts';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';
import { ALLOW, limited, newQuota, SEND, usage, used } from '../../../support/policy/quotas.ts';

const settled = (work: Promise<Task>) => work.then(({ id }) => id, asFault);

/** Work that goes on until it is asked to stop, or let go. */
function held() {
  let release: () => void = () => {};
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { release, until };
}

/** An agent that works until its signal fires or it is let go. */
async function working(limits: Record<string, number>, options: Parameters<typeof limited>[2] = {}) {
  const { release, until } = held();
  const agent = scriptedAgent(async (_sink, _work, signal) => {
    await Promise.race([until, new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))]);
    return undefined;
  });
  const t = await openTestGateway({ rules: ALLOW, ...options, agents: [agent] });
  const quota = await newQuota(t, limits, options.quota);
  const room = await t.room({ workspace: { quota_id: quota } });
  const elsewhere = async () => {
    const { resource } = await t.send('session.create', { workspace_id: room.workspace });
    return { session_id: resource.id };
  };
  return { t, room, quota, release, elsewhere };
}

describe('what is accepted', () => {
  test('a limit nobody counts is refused when it is made, and when it is changed', async () => {
    const t = await openTestGateway();
    for (const limits of [{ letters: 3 }, { max_concurrency: 1 }, { tasks: -1 }, { __proto__x: 1 }]) {
      const fault = await t.refused('resource.create', { object: 'quota', body: { scope: 'workspace', limits } });
      expect(fault).toMatchObject({ kind: 'invalid_request', param: `/limits/${Object.keys(limits)[0]}` });
    }
    const id = await newQuota(t, { tasks: 1 });
    const change = { object: 'quota', id, body: { limits: { letters: 3 } } };
    expect(await t.refused('resource.update', change)).toMatchObject({ kind: 'invalid_request' });
  });

  test.each(['session', 'user', 'principal', 'global'])('a quota of scope %s is refused', async (scope) => {
    const t = await openTestGateway();
    const fault = await t.refused('resource.create', { object: 'quota', body: { scope, limits: { tasks: 1 } } });
    expect(fault).toMatchObject({ kind: 'invalid_request', param: '/scope' });
  });

  test.each(QUOTA_LIMITS)('%s at zero lets nothing begin', async (name) => {
    const begun: string[] = [];
    const { t, tools, room } = await limited({ [name]: 0 }, async (sink) => {
      begun.push('begun');
      await sink.act(SEND);
    });
    const first = await settled(room.task());
    if (name === 'tool_calls') {
      expect((await t.until(first as string)).status).toBe('COMPLETED');
    } else {
      expect(first).toMatchObject({ kind: expect.stringMatching(/policy_violation|rate_limited/) });
      expect(begun).toEqual([]);
    }
    expect(tools.calls).toEqual([]);
  });
});

describe('concurrency', () => {
  test('counts work that has not ended, from two processes at once, and gives it back at the end', async () => {
    const { t, room, quota, release, elsewhere } = await working({ concurrency: 2 });
    const other = await t.second();
    const sessions = await Promise.all(Array.from({ length: 8 }, elsewhere));
    const outcomes = await Promise.all(
      sessions.map((location, at) =>
        (at % 2 ? t : other)
          .send('task.submit', { ...location, input: { go: 1 } })
          .then(({ resource }) => resource.id, asFault),
      ),
    );
    const accepted = outcomes.filter((one) => typeof one === 'string');
    expect(accepted).toHaveLength(2);
    expect(outcomes.find((one) => typeof one !== 'string')).toMatchObject({
      kind: 'rate_limited',
      details: { retry_after_ms: expect.any(Number) },
    });
    expect((await used(t, quota)).concurrency).toBe(2);
    release();
    for (const id of accepted) await t.until(id);
    expect((await used(t, quota)).concurrency).toBe(0);
    const next = await room.task();
    expect((await t.until(next.id)).status).toBe('COMPLETED');
    await other.close();
  });

  test('survives a restart: work that a dead process left is counted until it is ended', async () => {
    const { t, quota, room } = await working({ concurrency: 1 });
    await room.task();
    const next = await t.reopen();
    await expect.poll(async () => (await used(next, quota)).concurrency).toBe(0);
    await next.runtime.store.rebuild();
    expect((await used(next, quota)).concurrency).toBe(0);
  });

  test('lowered under running work it stops nothing and lets nothing more in', async () => {
    const { t, room, quota, release, elsewhere } = await working({ concurrency: 3 });
    const task = await room.task();
    await t.send('resource.update', { object: 'quota', id: quota, body: { limits: { concurrency: 1 } } });
    const fault = await t.refused('task.submit', { ...(await elsewhere()), input: {} });
    expect(fault).toMatchObject({ kind: 'rate_limited' });
    release();
    expect((await t.until(task.id)).status).toBe('COMPLETED');
  });
});

describe('wall_time_ms', () => {
  test('work is stopped at the limit, fails with quota_exceeded, and the receipt says so', async () => {
    const { t, room, quota } = await working({ wall_time_ms: 300 });
    const task = await room.task();
    const ended = await t.until(task.id);
    expect(ended).toMatchObject({
      status: 'FAILED',
      failure: { code: 'quota_exceeded', details: { limit: 'wall_time_ms' } },
    });
    const [receipt] = await t.receipts(task.id);
    expect(receipt!.autonomy_budget.limit).toEqual({ wall_time_ms: 300 });
    expect(receipt!.lifecycle.failure).toMatchObject({ code: 'quota_exceeded' });
    expect((await used(t, quota)).wall_time_ms).toBe(300);
    expect(await t.refused('task.submit', { session_id: room.session, input: {} })).toMatchObject({
      kind: 'policy_violation',
      details: { code: 'quota_exhausted' },
    });
  });

  test('tasks at once share the time there is', async () => {
    const { t, quota, elsewhere } = await working({ wall_time_ms: 600 });
    const began = performance.now();
    const tasks = await Promise.all(
      Array.from(
        { length: 4 },
        async () => (await t.send('task.submit', { ...(await elsewhere()), input: {} })).resource,
      ),
    );
    for (const { id } of tasks) expect(await t.until(id)).toMatchObject({ failure: { code: 'quota_exceeded' } });
    expect((await used(t, quota)).wall_time_ms).toBe(600);
    expect(performance.now() - began).toBeLessThan(600 + 2000);
  });

  test('time that was not used is given back', async () => {
    const { t, room, quota, release } = await working({ wall_time_ms: 60_000 });
    release();
    const task = await room.task();
    await t.until(task.id);
    await expect.poll(async () => (await used(t, quota)).wall_time_ms).toBeLessThan(3000);
  });

  test('lowered under running work it stops that work', async () => {
    const { t, room, quota } = await working({ wall_time_ms: 3_600_000 });
    const task = await room.task();
    await t.seen(
      task.id,
      'vendor.tollbridge.quota_used',
      ({ payload }) => 'wall_time_ms' in (payload.amounts as object),
    );
    await t.send('resource.update', { object: 'quota', id: quota, body: { limits: { wall_time_ms: 1 } } });
    expect(await t.until(task.id)).toMatchObject({ failure: { code: 'quota_exceeded' } });
  });

  test('work done outside is ended too', async () => {
    const { t, room } = await working({ wall_time_ms: 200 });
    const task = await room.task({ agent: 'none' });
    expect(await t.until(task.id)).toMatchObject({ status: 'FAILED', failure: { code: 'quota_exceeded' } });
  });
});

describe('wall_time_ms of work outside, after a restart', () => {
  const outsideFor = async (limit: number) => {
    const { t, room, quota } = await working({ wall_time_ms: limit });
    const task = await room.task({ agent: 'none' });
    const bought = (await used(t, quota)).wall_time_ms!;
    return { t, quota, task, bought };
  };

  test('the time in between counts, and it is counted on', async () => {
    const { t, quota, task, bought } = await outsideFor(3_600_000);
    await t.close();
    t.clock.advance(bought + 60_000);
    const next = await t.reopen();
    await expect.poll(async () => (await used(next, quota)).wall_time_ms).toBeGreaterThan(bought + 60_000);
    expect((await next.runtime.store.get<Task & Row>('task', task.id))?.status).toBe('WORKING');
    const counted = (await used(next, quota)).wall_time_ms!;
    await next.runtime.store.rebuild();
    expect((await used(next, quota)).wall_time_ms).toBe(counted);
  });

  test('work whose time ran out in between is ended', async () => {
    const { t, task, quota, bought } = await outsideFor(10_000);
    await t.close();
    t.clock.advance(bought + 60_000);
    const next = await t.reopen();
    expect(await next.until(task.id)).toMatchObject({ status: 'FAILED', failure: { code: 'quota_exceeded' } });
    expect((await used(next, quota)).wall_time_ms).toBe(bought + 60_000);
  });

  test('a second process that begins meanwhile counts nothing twice', async () => {
    const { t, quota, bought } = await outsideFor(3_600_000);
    const other = await t.second();
    expect((await used(other, quota)).wall_time_ms).toBe(bought);
    await other.close();
  });
});

describe('requests_per_minute', () => {
  test('a request too many is refused with a retry time, leaves nothing in the log, and a minute later there is room', async () => {
    const { t, room, quota } = await limited({ requests_per_minute: 2 });
    const ids = [(await room.task()).id, (await room.task()).id];
    for (const id of ids) await t.until(id);
    const before = (await t.all()).length;
    const fault = await t.refused('task.submit', { session_id: room.session, input: {} });
    expect(fault).toMatchObject({ kind: 'rate_limited', details: { retry_after_ms: expect.any(Number) } });
    expect(Number(fault.details?.retry_after_ms)).toBeLessThanOrEqual(60_000);
    expect((await t.all()).length).toBe(before);
    expect((await used(t, quota)).requests_per_minute).toBe(2);
    t.clock.advance(60_000);
    const next = await room.task();
    expect((await t.until(next.id)).status).toBe('COMPLETED');
    expect((await used(t, quota)).requests_per_minute).toBe(1);
  });

  test('calls of tools and new tasks share it, from two processes at once', async () => {
    const { t, tools, room } = await limited({ requests_per_minute: 6 });
    const task = await room.task({ agent: 'none' });
    const other = await t.second();
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        at % 4 === 0
          ? other.send('task.submit', { session_id: room.session, input: {} }).then(() => 'ok', asFault)
          : (at % 2 ? t : other).send('tool.call', { task_id: task.id, action: SEND }).then(() => 'ok', asFault),
      ),
    );
    expect(results.filter((one) => one === 'ok')).toHaveLength(6);
    for (const one of results) if (one !== 'ok') expect(one).toMatchObject({ kind: 'rate_limited' });
    expect(tools.calls.length).toBeLessThanOrEqual(6);
    await other.close();
  });

  test('what an agent does by itself is no request', async () => {
    const { t, tools, room } = await limited({ requests_per_minute: 1 }, async (sink) => {
      for (let at = 0; at < 3; at += 1) await sink.act({ ...SEND, tool_call_id: `c${at}` });
    });
    const task = await room.task();
    await t.until(task.id);
    expect(tools.calls).toHaveLength(3);
  });
});

describe('tokens and money', () => {
  const spends = (payload: Record<string, number>) => async (sink: Sink) => {
    await sink.emit(usage(payload));
    await sink.act(SEND);
  };

  test.each([
    ['tokens', { input_tokens: 60, output_tokens: 60 }],
    ['input_tokens', { input_tokens: 101 }],
    ['output_tokens', { output_tokens: 101 }],
    ['usd_micros', { usd_micros: 101 }],
    ['usd', { usd_micros: 100_000_001 }],
  ])('work that reports more than %s allows is stopped, whatever it says next', async (name, payload) => {
    const { t, tools, room } = await limited({ [name]: 100 }, spends(payload));
    const task = await room.task();
    expect(await t.until(task.id)).toMatchObject({
      status: 'FAILED',
      failure: { code: 'quota_exceeded', details: { limit: name, allowed: 100 } },
    });
    expect(tools.calls).toEqual([]);
  });

  test('exactly as much as is allowed is allowed, and then nothing more', async () => {
    const { t, room, tools } = await limited({ tokens: 100 }, spends({ input_tokens: 40, output_tokens: 60 }));
    const task = await room.task();
    expect((await t.until(task.id)).status).toBe('COMPLETED');
    expect(tools.calls).toEqual([]);
    expect(await t.refused('task.submit', { session_id: room.session, input: {} })).toMatchObject({
      kind: 'policy_violation',
    });
  });

  test('reported from outside, with its end: it has failed', async () => {
    const { t, room } = await limited({ tokens: 10 });
    const task = await room.task({ agent: 'none' });
    const facts = [usage({ input_tokens: 11 })];
    await t.send('task.report', { task_id: task.id, facts, end: { state: 'COMPLETED' } });
    expect(await t.until(task.id)).toMatchObject({ status: 'FAILED', failure: { code: 'quota_exceeded' } });
  });

  test('lowered below what is used, running work stops', async () => {
    const { t, room, quota } = await limited({ tokens: 1000 }, async (sink) => {
      await sink.emit(usage({ input_tokens: 500 }));
      await sink.ask({ kind: 'input', key: 'k', question: 'go on?' });
    });
    const task = await room.task();
    await t.asks(task.id);
    await t.send('resource.update', { object: 'quota', id: quota, body: { limits: { tokens: 400 } } });
    expect(await t.until(task.id)).toMatchObject({ failure: { code: 'quota_exceeded' } });
  });
});

describe('scopes that nobody names', () => {
  test.each(['tenant', 'organization'])('a limit of scope %s holds for all work', async (scope) => {
    const { t, room } = await limited({});
    const id = await newQuota(t, { tasks: 1 }, { scope });
    await t.until((await room.task()).id);
    expect(await settled(room.task())).toMatchObject({
      kind: 'policy_violation',
      message: expect.stringContaining(id),
    });
    await t.send('resource.delete', { object: 'quota', id });
    await t.until((await room.task()).id);
  });

  test('a tenant\u2019s limit holds for that tenant alone; the installation\u2019s for all', async () => {
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestGateway({ rules: ALLOW, tools: [tools] });
    const red = { id: 'red', kind: 'person', scopes: ['*'], tenant_id: 'red', interactive: true } as const;
    const blue = { ...red, id: 'blue', tenant_id: 'blue' } as const;
    const rooms = { red: await t.room({ actor: red }), blue: await t.room({ actor: blue }) };
    await t.send(
      'resource.create',
      { object: 'quota', body: { scope: 'tenant', limits: { tasks: 0 } } },
      { actor: red },
    );
    const give = (who: 'red' | 'blue') =>
      settled(rooms[who].task({ agent: 'none' }, { actor: who === 'red' ? red : blue }));
    expect(await give('red')).toMatchObject({ kind: 'policy_violation' });
    expect(await give('blue')).toEqual(expect.any(String));
    await newQuota(t, { tasks: 0 }, { scope: 'organization' });
    expect(await give('blue')).toMatchObject({ kind: 'policy_violation' });
  });

  test('a limit that changes its scope no longer holds where it held', async () => {
    const { t, room } = await limited({});
    const id = await newQuota(t, { tasks: 0 }, { scope: 'organization' });
    expect(await settled(room.task())).toMatchObject({ kind: 'policy_violation' });
    await t.send('resource.update', { object: 'quota', id, body: { scope: 'persona' } });
    await t.until((await room.task()).id);
    await t.runtime.store.rebuild();
    await t.until((await room.task()).id);
  });
});

describe('what receipts and events say', () => {
  test('limits that were lowered below what was done are named as exceeded', async () => {
    const { t, room, quota } = await limited({ tool_calls: 5, concurrency: 4 }, async (sink) => {
      for (let at = 0; at < 3; at += 1) await sink.act({ ...SEND, tool_call_id: `c${at}` });
      await sink.ask({ kind: 'input', key: 'k', question: 'go on?' });
    });
    const task = await room.task();
    const [ask] = await t.asks(task.id);
    await t.send('resource.update', {
      object: 'quota',
      id: quota,
      body: { limits: { tool_calls: 1, concurrency: 4 } },
    });
    await t.answer(ask!.id, { value: 'yes' });
    await t.until(task.id);
    const [receipt] = await t.receipts(task.id);
    expect(receipt).toMatchObject({
      autonomy_budget: { limit: { tool_calls: 1 }, consumed: { tool_calls: 3 } },
      metadata: { limits: { concurrency: 4 }, limits_exceeded: ['tool_calls'] },
    });
  });

  test('a soft limit warns once when it is passed, and stops nothing', async () => {
    const { t, tools, room, quota } = await limited(
      { tool_calls: 1, tokens: 10, concurrency: 5, wall_time_ms: 1 },
      async (sink) => {
        for (let at = 0; at < 3; at += 1) await sink.act({ ...SEND, tool_call_id: `c${at}` });
        await sink.emit(usage({ input_tokens: 11 }));
      },
      { quota: { hard_limit: false, soft_limit: true } },
    );
    const task = await room.task();
    expect((await t.until(task.id)).status).toBe('COMPLETED');
    expect(tools.calls).toHaveLength(3);
    const warned = of(await t.events(task.id), 'vendor.tollbridge.quota_warned').map(({ payload }) => payload);
    expect(warned).toEqual([
      { quota_id: quota, limit: 'wall_time_ms', allowed: 1, used: expect.any(Number) },
      { quota_id: quota, limit: 'tool_calls', allowed: 1, used: 2 },
      { quota_id: quota, limit: 'tokens', allowed: 10, used: 11 },
    ]);
    const [receipt] = await t.receipts(task.id);
    expect(receipt!.autonomy_budget).not.toHaveProperty('limit');
  });

  test('the count of a quota is the same when it is made anew from the log', async () => {
    const { t, room, quota } = await limited({
      tasks: 9,
      concurrency: 3,
      requests_per_minute: 9,
      wall_time_ms: 60_000,
    });
    for (let at = 0; at < 3; at += 1) await t.until((await room.task()).id);
    await t.runtime.idle();
    await expect.poll(async () => (await used(t, quota)).wall_time_ms).toBeLessThan(3000);
    const before = await t.runtime.store.get<Quota & Row>('quota', quota);
    await t.runtime.store.rebuild();
    expect(await t.runtime.store.get('quota', quota)).toEqual(before);
    expect(before?.usage).toMatchObject({ tasks: 3, concurrency: 0, requests_per_minute: 3 });
  });
});
