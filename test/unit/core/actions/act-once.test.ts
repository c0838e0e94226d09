/** One call id, one act: repeats and retries have the one result, and another call under the same id is refused. */
import { describe, expect, test } from 'vitest';
import type { Fault } from '../../../../src/model/faults.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import type { ActResult } from '../../../../src/ports/index.ts';
import { latch } from '../../../support/gateway/agents.ts';
import { ALLOW, play } from '../../../support/gateway/scripted-run.ts';
import { of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools, SEND } from '../../../support/gateway/tools.ts';

describe('one call id, one act', () => {
  test('the same call again, while it runs or after, has the one result', async () => {
    const results: ActResult[] = [];
    const { t, tools, task } = await play(async (sink) => {
      results.push(...(await Promise.all([sink.act(SEND), sink.act(SEND)])));
      results.push(await sink.act(SEND));
    });
    await t.until(task.id);
    expect(tools.calls).toHaveLength(1);
    expect(results.map(({ kind }) => kind)).toEqual(['done', 'done', 'done']);
    expect(of(await t.events(task.id), 'tool.requested')).toHaveLength(1);
  });

  test('another call under the same id is refused', async () => {
    const received: Fault[] = [];
    const { t, tools, task } = await play(async (sink) => {
      await sink.act(SEND);
      await sink.act({ ...SEND, arguments: { to: 'eve' } }).catch((cause) => received.push(cause));
    });
    await t.until(task.id);
    expect(received).toMatchObject([{ kind: 'conflict', message: 'call id c1 was already used for a different call' }]);
    expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'bo' } }]);
  });

  test('whichever way the two come in', async () => {
    const over = latch();
    const { t, tools, task } = await play(async (sink) => {
      await sink.act(SEND);
      await over.promise;
    });
    await t.seen(task.id, 'tool.completed');
    const same = await t.send('tool.call', { task_id: task.id, action: SEND });
    expect(same.act).toEqual({ kind: 'done', result: { status: 'ok', output: { did: 'send' } } });
    const fault = await t.refused('tool.call', { task_id: task.id, action: { ...SEND, arguments: { to: 'eve' } } });
    expect(fault).toMatchObject({ kind: 'conflict', message: 'call id c1 was already used for a different call' });
    over.open();
    await t.until(task.id);
    expect(tools.calls).toHaveLength(1);
    expect(of(await t.events(task.id), 'tool.requested')).toHaveLength(1);
  });

  test('a call id means nothing in another task', async () => {
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestGateway({ rules: ALLOW, tools: [tools] });
    const room = await t.room();
    for (const to of ['bo', 'cy']) {
      const task = await room.task({ agent: 'none' });
      const { act } = await t.send('tool.call', { task_id: task.id, action: { ...SEND, arguments: { to } } });
      expect(act).toMatchObject({ kind: 'done' });
    }
    expect(tools.calls).toHaveLength(2);
  });

  test('a hundred retries of one keyed call run it once and all hear the result', async () => {
    const running = latch();
    const tools = countingTools({
      send: {
        effect: 'send',
        run: async () => {
          await running.promise;
          return { status: 'ok', output: { receipt: 42 } };
        },
      },
    });
    const t = await openTestGateway({ rules: ALLOW, tools: [tools] });
    const task = await (await t.room()).task({ agent: 'none' });
    const { tool_call_id: _, ...action } = SEND;
    const retries = Array.from({ length: 100 }, () =>
      t.send('tool.call', { task_id: task.id, action }, { idempotency: { key: 'k' } }),
    );
    await t.seen(task.id, 'tool.requested');
    running.open();
    const received = await Promise.all(retries);
    expect(tools.calls).toHaveLength(1);
    expect(new Set(received.map(({ act }) => JSON.stringify(act)))).toEqual(
      new Set(['{"kind":"done","result":{"status":"ok","output":{"receipt":42}}}']),
    );
    expect(received.filter(({ repeated }) => !repeated)).toHaveLength(1);
    expect(
      await t.refused(
        'tool.call',
        { task_id: task.id, action: { ...action, arguments: { to: 'eve' } } },
        { idempotency: { key: 'k' } },
      ),
    ).toMatchObject({
      kind: 'idempotency_key_reused',
    });
    const reopened = await t.reopen();
    const later = await reopened.send('tool.call', { task_id: task.id, action }, { idempotency: { key: 'k' } });
    expect(later).toMatchObject({ repeated: true, act: { kind: 'done', result: { output: { receipt: 42 } } } });
    expect(tools.calls).toHaveLength(1);
  });

  test('a keyed call that could not even begin can be tried again', async () => {
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestGateway({ rules: ALLOW, tools: [tools] });
    const task = await (await t.room()).task({ agent: 'none' });
    tools.redefine('send', undefined);
    const call = { task_id: task.id, action: { kind: 'tool' as const, tool: 'send', arguments: {} } };
    expect(await t.refused('tool.call', call, { idempotency: { key: 'k' } })).toMatchObject({ kind: 'not_found' });
    tools.redefine('send', 'sends again');
    expect(await t.send('tool.call', call, { idempotency: { key: 'k' } })).toMatchObject({ act: { kind: 'done' } });
    expect(tools.calls).toHaveLength(1);
  });

  test('a call that was refused is refused to its retries in the same words', async () => {
    const t = await openTestGateway({
      rules: '- { id: no, when: { kind: tool }, then: block, say: not today }',
      tools: [countingTools({ send: { effect: 'send' } })],
    });
    const task = await (await t.room()).task({ agent: 'none' });
    for (const repeated of [false, true]) {
      const received = await t.send('tool.call', { task_id: task.id, action: SEND }, { idempotency: { key: 'k' } });
      expect(received).toMatchObject({
        repeated,
        act: { kind: 'refused', reason: 'not today', decision: { rule_id: 'no' } },
      });
    }
    expect(
      of(await t.events(task.id), 'vendor.tollbridge.decided').filter(
        ({ payload }) => (payload.action as JsonObject).kind === 'tool',
      ),
    ).toHaveLength(1);
  });
});
