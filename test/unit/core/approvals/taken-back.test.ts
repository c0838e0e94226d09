/**
 * A question nobody waits for any more is closed for everyone: taken back by the caller, or because the work was
 * stopped.
 */
import { describe, expect, test } from 'vitest';
import type { Answer } from '../../../../src/model/asks.ts';
import type { ActResult, Sink } from '../../../../src/ports/index.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { latch, untilAborted } from '../../../support/gateway/agents.ts';
import { asking } from '../../../support/gateway/asking-work.ts';
import { of } from '../../../support/gateway/test-gateway.ts';
import { SEND } from '../../../support/gateway/tools.ts';

describe('the caller takes the question back', () => {
  const BACK = 'the client that asked took the question back';
  type Put = (sink: Sink, withdrawn: AbortSignal) => Promise<Answer | ActResult>;
  const ways: readonly (readonly [string, Put, object])[] = [
    [
      'an approval',
      (sink, withdrawn) => sink.ask({ kind: 'approval', action: { ...SEND, effect: 'send' }, withdrawn }),
      { kind: 'canceled', reason: BACK },
    ],
    [
      'a value',
      (sink, withdrawn) => sink.ask({ kind: 'input', key: 'k', question: 'which?', withdrawn }),
      { kind: 'canceled', reason: BACK },
    ],
    [
      'an act that runs through us',
      (sink, withdrawn) => sink.act(SEND, undefined, withdrawn),
      { kind: 'refused', reason: BACK, decision: { code: 'approval_withdrawn' } },
    ],
  ];

  test.each(ways)('%s: closed at once, on record, and the work goes on', async (_, put, answer) => {
    const back = new AbortController();
    const goOn = latch();
    const received: (Answer | ActResult)[] = [];
    const { t, task, tools } = await asking({
      script: async (sink) => {
        received.push(await put(sink, back.signal));
        await goOn.promise;
      },
    });
    const [ask] = await t.asks(task.id);
    back.abort();
    await t.seen(task.id, 'vendor.tollbridge.ask_closed');
    expect(await t.bridge.view(ana, 'ask', ask!.id)).toMatchObject({ state: 'canceled', answered_by: 'agent:agent' });
    expect(await t.bridge.view(ana, 'task', task.id)).toMatchObject({ status: 'WORKING' });
    expect(await t.refused('ask.answer', { ask_id: ask!.id, approved: false })).toMatchObject({ kind: 'conflict' });
    goOn.open();
    await t.until(task.id);
    expect(received).toMatchObject([answer]);
    expect(tools.calls).toEqual([]);
  });

  test('before it was put: it is not left open', async () => {
    const { t, task } = await asking({
      script: async (sink) => {
        await sink.ask({ kind: 'input', key: 'k', question: 'which?', withdrawn: AbortSignal.abort() });
      },
    });
    await t.until(task.id);
    expect(of(await t.events(task.id), 'vendor.tollbridge.ask_closed')).toMatchObject([
      { payload: { state: 'canceled', reason: BACK } },
    ]);
  });
});

test('a question is closed as soon as the work is asked to stop, however long it takes to stop', async () => {
  const mayStop = latch();
  const { t, task } = await asking({
    settings: { graceMs: 60_000 },
    script: async (sink, signal) => {
      void sink.act(SEND).catch(() => {});
      await untilAborted(signal);
      await mayStop.promise;
    },
  });
  const [ask] = await t.asks(task.id);
  const canceling = t.send('task.cancel', { task_id: task.id });
  await t.seen(task.id, 'vendor.tollbridge.ask_closed');
  expect(await t.bridge.view(ana, 'ask', ask!.id)).toMatchObject({
    state: 'canceled',
    reason: 'the work was canceled',
  });
  expect(await t.bridge.view(ana, 'task', task.id)).toMatchObject({ completed_at: null });
  mayStop.open();
  await canceling;
});

test('an agent asked to stop while it waits hears that nobody waits any more', async () => {
  const received: ActResult[] = [];
  const { t, task, tools } = await asking({
    script: async (sink, signal) => {
      received.push(await sink.act(SEND));
      await untilAborted(signal);
    },
  });
  await t.asks(task.id);
  await t.send('task.cancel', { task_id: task.id });
  await t.until(task.id);
  expect(received).toMatchObject([{ kind: 'refused', decision: { verdict: 'block', code: 'approval_withdrawn' } }]);
  expect(tools.calls).toEqual([]);
});
