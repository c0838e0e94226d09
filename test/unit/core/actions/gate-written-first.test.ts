/** Nothing acts that was not decided and written down first; where nothing can be written, nothing acts. */
import { describe, expect, test } from 'vitest';
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { ActResult } from '../../../../src/ports/index.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { latch, scriptedAgent } from '../../../support/gateway/agents.ts';
import { pulledDisk } from '../../../support/gateway/failing-store.ts';
import { ALLOW_SEND, act, lastDecision } from '../../../support/gateway/one-decision.ts';
import { kinds, locationOf, of, openTestGateway, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';

describe('decide, write down, then act', () => {
  test('a tool that reads the log finds its own decision there', async () => {
    const found: (CoreEvent | undefined)[] = [];
    let t: TestGateway | undefined;
    const tools = countingTools({
      send: {
        effect: 'send',
        run: async (_args, { task_id }) => {
          // Through a reader of its own, so that it sees only what is on disk.
          const reader = await t!.second({ started: false, agents: [], tools: [] });
          found.push(lastDecision(await reader.events(String(task_id))));
          await reader.close();
          return { status: 'ok', output: null };
        },
      },
    });
    const agent = scriptedAgent(async (sink) => {
      await sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {} });
      return undefined;
    });
    t = await openTestGateway({ agents: [agent], tools: [tools], rules: ALLOW_SEND });
    const task = await (await t.room()).task();
    await t.until(task.id);
    expect(found[0]?.payload).toMatchObject({
      action: { tool_call_id: 'c1' },
      decision: { verdict: 'allow', rule_id: 'may-send', engine: 'cedar' },
    });
  });

  test('an approval is spent in the log before the tool it was given for is called', async () => {
    const atCall: string[][] = [];
    let t: TestGateway | undefined;
    const tools = countingTools({
      send: {
        effect: 'send',
        run: async (_args, { task_id }) => {
          atCall.push(kinds(await t!.events(String(task_id))));
          return { status: 'ok', output: null };
        },
      },
    });
    const agent = scriptedAgent(async (sink) => {
      await sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {} });
      return undefined;
    });
    t = await openTestGateway({ agents: [agent], tools: [tools] });
    const task = await (await t.room()).task();
    const [ask] = await t.asks(task.id);
    await t.answer(ask!.id);
    await t.until(task.id);
    expect(atCall).toHaveLength(1);
    expect(atCall[0]).toContain('vendor.tollbridge.decided');
    expect(atCall[0]).toContain('vendor.tollbridge.ask_used');
    expect(atCall[0]).not.toContain('tool.completed');
  });

  test('the request, the decision and the end of a call stand in that order', async () => {
    const { log } = await act({ rules: ALLOW_SEND });
    const [request] = of(log, 'tool.requested');
    const [end] = of(log, 'tool.completed');
    expect(locationOf(request!)).toBeLessThan(locationOf(lastDecision(log)));
    expect(locationOf(lastDecision(log))).toBeLessThan(locationOf(end!));
  });
});

describe('a log that cannot be written', () => {
  test('nothing acts, everyone hears why, and work goes on when it can be written again', async () => {
    const disk = pulledDisk();
    const tools = countingTools({ send: { effect: 'send' } });
    const received: unknown[] = [];
    const begun = latch();
    const pulled = latch();
    const back = latch();
    const agent = scriptedAgent(async (sink) => {
      begun.open();
      await pulled.promise;
      await sink
        .act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {} })
        .catch((cause) => received.push(cause));
      await sink
        .emit({ event: 'agent.message', payload: { message: { role: 'assistant', parts: [] } } })
        .catch((cause) => received.push(cause));
      await back.promise;
      await sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {} });
      return undefined;
    });
    const t = await openTestGateway({ agents: [agent], tools: [tools], rules: ALLOW_SEND, store: disk.wrap });
    const room = await t.room();
    const task = await room.task();
    await begun.promise;

    disk.down = true;
    pulled.open();
    const fault = await t.refused('task.submit', { session_id: room.session, input: {} });
    expect(fault).toMatchObject({ kind: 'unavailable' });
    expect(fault.message).toContain('free some disk space');
    await expect.poll(() => received.length).toBe(2);
    expect(received).toMatchObject([{ kind: 'unavailable' }, { kind: 'unavailable' }]);
    expect(tools.calls).toEqual([]);
    // Reading is not writing.
    expect(await t.bridge.view(ana, 'task', task.id)).toMatchObject({
      status: 'WORKING',
    });

    disk.down = false;
    expect(await t.send('session.create', { workspace_id: room.workspace })).toMatchObject({ repeated: false });
    back.open();
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(1);
  });

  test('what a tool did while the log was away is written down when it is back', async () => {
    const disk = pulledDisk();
    const tools = countingTools({
      send: {
        effect: 'send',
        run: () => {
          disk.down = true;
          setTimeout(() => {
            disk.down = false;
          }, 150);
          return { status: 'ok', output: { sent: 1 } };
        },
      },
    });
    const results: ActResult[] = [];
    const agent = scriptedAgent(async (sink) => {
      results.push(await sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {} }));
      return undefined;
    });
    const t = await openTestGateway({ agents: [agent], tools: [tools], rules: ALLOW_SEND, store: disk.wrap });
    const task = await (await t.room()).task();
    await t.until(task.id);
    expect(disk.refused).toBeGreaterThan(0);
    expect(tools.calls).toHaveLength(1);
    expect(results).toMatchObject([{ kind: 'done', result: { status: 'ok' } }]);
    expect(of(await t.events(task.id), 'tool.completed').map(({ payload }) => payload.output)).toEqual([{ sent: 1 }]);
  });
});
