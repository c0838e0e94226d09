/**
 * Acts that are cut short: calls that broke off are not tried again, and nothing new begins once work is asked to stop.
 */
import { describe, expect, test } from 'vitest';
import type { ToolResult } from '../../../../src/model/actions.ts';
import type { ProposedAction } from '../../../../src/model/commands.ts';
import type { Fault } from '../../../../src/model/faults.ts';
import type { ActResult, PolicyEngine, Sink } from '../../../../src/ports/index.ts';
import { latch, scriptedAgent, untilAborted } from '../../../support/gateway/agents.ts';
import { pulledDisk } from '../../../support/gateway/failing-store.ts';
import { ALLOW, play, sha256 } from '../../../support/gateway/scripted-run.ts';
import { kinds, of, openTestGateway, states } from '../../../support/gateway/test-gateway.ts';
import { countingTools, SEND } from '../../../support/gateway/tools.ts';

describe('a call that broke off', () => {
  /** Tries until the log takes it. */
  async function stubborn(sink: Sink, call: ProposedAction): Promise<ActResult> {
    for (;;) {
      try {
        return await sink.act(call);
      } catch (cause) {
        if ((cause as Fault).kind !== 'unavailable') throw cause;
      }
    }
  }

  test.each([
    ['before anything was written', 'tool.requested'],
    ['when its approval was to be spent', 'vendor.tollbridge.ask_used'],
  ])('%s goes on from there when it is tried again', async (_when, event) => {
    const disk = pulledDisk();
    disk.fails = event;
    const { t, tools, task } = await play(
      async (sink) => {
        await stubborn(sink, SEND);
      },
      { rules: '- { id: ask, when: { tool: send, kind: tool }, then: ask }', store: disk.wrap },
    );
    const [ask] = await t.asks(task.id);
    await t.answer(ask!.id);
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(disk.fails).toBe(undefined);
    expect(tools.calls).toHaveLength(1);
    const log = await t.events(task.id);
    expect(of(log, 'tool.requested')).toHaveLength(1);
    expect(of(log, 'vendor.tollbridge.ask_opened')).toHaveLength(1);
    expect(of(log, 'vendor.tollbridge.ask_used')).toHaveLength(1);
  });

  test('is not taken for another one after a restart', async () => {
    const received: Fault[] = [];
    let to = 'bo';
    const agent = scriptedAgent(
      async (sink, { resumed }, signal) => {
        const call = { ...SEND, arguments: { to } };
        await sink.act(call).catch((cause) => received.push(cause));
        if (!resumed) await untilAborted(signal);
        return undefined;
      },
      { resume: true },
    );
    const tools = countingTools({ send: { effect: 'send' } });
    const t = await openTestGateway({ rules: ALLOW, agents: [agent], tools: [tools] });
    const task = await (await t.room()).task();
    await t.seen(task.id, 'tool.completed');
    to = 'eve';
    const later = await t.reopen();
    await later.until(task.id);
    expect(received).toMatchObject([{ kind: 'conflict', message: 'call id c1 was already used for a different call' }]);
    expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'bo' } }]);
  });
});

test('a call that was only asked about may be asked about otherwise after a restart, and the receipt says what ran', async () => {
  let to = 'bo';
  const agent = scriptedAgent(
    async (sink) => {
      await sink.act({ ...SEND, arguments: { to } });
      return undefined;
    },
    { resume: true },
  );
  const tools = countingTools({ send: { effect: 'send' } });
  const t = await openTestGateway({ agents: [agent], tools: [tools] });
  const task = await (await t.room()).task();
  const [first] = await t.asks(task.id);
  to = 'cy';
  const later = await t.reopen();
  const asks = await later.asks(task.id, 2);
  const second = asks.find(({ id }) => id !== first!.id);
  expect(second).toMatchObject({ tool_call_id: 'c1', action: { arguments: { to: 'cy' } } });
  await later.answer(second!.id);
  await later.until(task.id);
  expect(tools.calls).toEqual([{ tool: 'send', id: 'c1', arguments: { to: 'cy' } }]);
  const [call] = (await later.receipts(task.id))[0]!.side_effects.tool_calls;
  expect(call).toMatchObject({ call_id: 'c1', status: 'succeeded', input_hash: sha256('{"to":"cy"}') });
});

describe('work that is asked to stop', () => {
  test('a tool that is allowed after the stop is not called', async () => {
    const deciding = latch();
    const asked = latch();
    const engine: PolicyEngine = {
      name: 'slow',
      decide: async ({ kind }) => {
        if (kind === 'tool') {
          asked.open();
          await deciding.promise;
        }
        return { verdict: 'allow', reason: 'fine', engine: 'slow' };
      },
    };
    const { t, tools, task } = await play(
      async (sink, signal) => {
        const action = sink.act(SEND);
        await untilAborted(signal);
        deciding.open();
        await action;
      },
      { engines: [engine] },
    );
    await asked.promise;
    await t.send('task.cancel', { task_id: task.id });
    expect(await t.until(task.id)).toMatchObject({ status: 'CANCELED' });
    expect(tools.calls).toEqual([]);
    expect((await t.receipts(task.id))[0]?.side_effects.tool_calls).toMatchObject([
      { call_id: 'c1', status: 'canceled' },
    ]);
  });

  test('nothing new is begun after it', async () => {
    const received: Fault[] = [];
    const { t, tools, task } = await play(async (sink, signal) => {
      await untilAborted(signal);
      await sink.act(SEND).catch((cause) => received.push(cause));
    });
    await t.send('task.cancel', { task_id: task.id });
    await t.until(task.id);
    expect(received).toMatchObject([{ kind: 'client_closed' }]);
    expect(tools.calls).toEqual([]);
    expect(of(await t.events(task.id), 'tool.requested')).toEqual([]);
  });

  test('what comes in after the end is a note beside it, marked as late in every part', async () => {
    const running = latch();
    const finish = latch();
    const recorded = latch();
    const late: ToolResult = {
      status: 'ok',
      output: { done: true },
      artifacts: [{ kind: 'file', mime_type: 'text/plain', bytes: Buffer.from('late') }],
      effects: [{ type: 'network', destination: 'mail.example', purpose: 'deliver' }],
      usage: { usd_micros: 1 },
    };
    const { t, task } = await play(
      async (sink) => {
        await sink.act(SEND);
        recorded.open();
      },
      {
        specs: {
          send: {
            effect: 'send',
            run: async () => {
              running.open();
              await finish.promise;
              return late;
            },
          },
        },
        settings: { graceMs: 20 },
      },
    );
    await running.promise;
    await t.send('task.cancel', { task_id: task.id, reason: 'changed my mind' });
    expect(await t.until(task.id)).toMatchObject({ status: 'CANCELED' });
    finish.open();
    await recorded.promise;
    const log = await t.events(task.id);
    const end = log.findIndex(({ event }) => event === 'task.canceled');
    const after = log.slice(end + 1);
    expect(kinds(after)).toEqual([
      'artifact.created',
      'vendor.tollbridge.side_effect',
      'vendor.tollbridge.usage',
      'tool.completed',
    ]);
    expect(after.every(({ payload }) => payload.after_end === true)).toBe(true);
    expect(states(log)).toEqual(['SUBMITTED', 'WORKING', 'CANCELED']);
    expect(await t.receipts(task.id)).toMatchObject([{ metadata: { still_running: true } }]);
  });
});
