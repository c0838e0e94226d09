/** Work outside whose calls came through a process that is gone is sealed by the next, and nothing else of it is touched. */
import { describe, expect, test } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { openTestGateway, REAL_TIME } from '../../../support/gateway/test-gateway.ts';
import { needsFile } from '../../../support/gateway/test-store.ts';
import { MIXED } from '../../../support/policy/rules.ts';
import { openMortal, settings } from '../../../support/tasks/killable-gateway.ts';
import { scripted, stopped, toolbox } from '../../../support/tasks/script.ts';

needsFile();

const box = () => toolbox('box', { write: undefined, ask: undefined, slow: () => new Promise(() => {}) });

async function leaveBehind(served: object) {
  const gateway = await openMortal({ rules: MIXED, tools: [box()], settings });
  const { id } = await gateway.submit(await gateway.session(), { agent: 'none', served } as never);
  const call = (tool: string, tool_call_id: string) =>
    gateway.send('tool.call', { task_id: id, action: { kind: 'tool', tool, server: 'box', tool_call_id } });
  await call('write', 'done');
  void call('slow', 'running').catch(() => {});
  void call('ask', 'asked').catch(() => {});
  await gateway.ask(id);
  await eventually(
    async () => (await gateway.events(id)).filter(({ event }) => event === 'tool.requested').length === 3,
  );
  await gateway.die();
  return { gateway, id };
}

const outcomes = [
  { call_id: 'done', status: 'succeeded', metadata: { outcome: 'succeeded' } },
  {
    call_id: 'running',
    status: 'failed',
    metadata: { outcome: 'unknown', outcome_reason: expect.stringContaining('the process that ran it ended first') },
  },
  { call_id: 'asked', status: 'canceled', metadata: { outcome: 'canceled', stopped_while: 'waiting_for_approval' } },
];

describe('calls that came through a process that was killed', () => {
  test('are on one receipt, each as far as it is known', async () => {
    const { gateway, id } = await leaveBehind({});
    const next = await openTestGateway({ ...REAL_TIME, dir: gateway.dir, rules: MIXED, settings });
    expect(next.recovered).toEqual({ resumed: 0, started: 0, failed: 1 });
    expect(await next.task(id)).toMatchObject({ status: 'FAILED', failure: { code: 'interrupted' } });
    const receipt = await next.receipt(id);
    expect(receipt.metadata).toMatchObject({ interrupted: true });
    expect(receipt.side_effects.tool_calls).toMatchObject(outcomes);
    expect(await next.openAsks()).toEqual([]);
  });

  test('are sealed by a process that only visits, too', async () => {
    const { gateway, id } = await leaveBehind({});
    const next = await openTestGateway({
      ...REAL_TIME,
      dir: gateway.dir,
      rules: MIXED,
      settings: { ...settings, recoversOrphans: false },
    });
    expect((await next.receipt(id)).side_effects.tool_calls).toMatchObject(outcomes);
  });

  test('of an agent that may come back are left open for it, and belong to the process it comes back to', async () => {
    const { gateway, id } = await leaveBehind({ away_ms: 60_000 });
    const next = await openTestGateway({ ...REAL_TIME, dir: gateway.dir, rules: MIXED, settings });
    expect(next.recovered).toEqual({ resumed: 0, started: 0, failed: 0 });
    await next.send('task.resume', { task_id: id });
    await next.send('task.resume', { task_id: id });
    expect((await next.events(id)).filter(({ event }) => event === 'vendor.tollbridge.recovered')).toHaveLength(1);
    await next.send('task.report', { task_id: id, end: { state: 'COMPLETED' } });
    expect((await next.receipt(id)).side_effects.tool_calls[1]).toMatchObject({ metadata: { outcome: 'unknown' } });
  });

  test('of an agent that stays away are sealed in the end', async () => {
    const { gateway, id } = await leaveBehind({ away_ms: 100 });
    const next = await openTestGateway({ ...REAL_TIME, dir: gateway.dir, rules: MIXED, settings });
    await eventually(async () => (await next.task(id)).status === 'FAILED');
    expect(await next.task(id)).toMatchObject({ failure: { code: 'agent_left' } });
    expect((await next.receipt(id)).side_effects.tool_calls).toMatchObject(outcomes);
  });
});

test('work of an agent that cannot go on is ended by the gateway that finds it; work of one that can is left to its own gateway', async () => {
  const working = (name: string, resume: boolean) => ({
    ...scripted(name, async ({ sink, signal }) => {
      void sink.act({ kind: 'tool', tool: 'slow', tool_call_id: 'running' }).catch(() => {});
      await stopped(signal);
    }),
    abilities: { resume, evidence: 'asked' as const },
  });
  const gateway = await openMortal({
    tools: [box()],
    agents: [working('frail', false), working('sturdy', true)],
    settings,
  });
  const frail = await gateway.submit(await gateway.session(), { agent: 'frail' });
  const sturdy = await gateway.submit(await gateway.session(), { agent: 'sturdy' });
  for (const { id } of [frail, sturdy]) await gateway.seen(id, 'tool.requested');
  await gateway.die();
  const next = await openTestGateway({
    ...REAL_TIME,
    dir: gateway.dir,
    settings: { ...settings, recoversOrphans: false },
  });
  expect((await next.receipt(frail.id)).side_effects.tool_calls).toMatchObject([
    { call_id: 'running', metadata: { outcome: 'unknown' } },
  ]);
  expect((await next.task(sturdy.id)).status).toBe('WORKING');
});
