/** Workers that fall silent: by the gateway's clock, written down, gone on with, or given up. */
import { describe, expect, test } from 'vitest';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { latch, scriptedAgent, untilAborted } from '../../support/gateway/agents.ts';
import { openRuns } from '../../support/runs/gateway.ts';

const MINUTE = 60_000;
const config = { stalled: { after_ms: 5 * MINUTE, sweep_ms: 10 }, stream: { linger_ms: 1 } };

/** Says one thing and then nothing more; taken up again it finishes, or does what it is asked. */
function silent({ resume }: { resume: boolean }) {
  const begun = latch();
  const wake = latch();
  let starts = 0;
  const agent = scriptedAgent(
    async (sink, { task, resumed }, signal) => {
      starts += 1;
      await sink.emit({ event: 'vendor.tollbridge.note', payload: { note: `start ${starts}` } });
      begun.open();
      if (!resumed && !task.parent_task_id) await Promise.race([wake.promise, untilAborted(signal)]);
      if (signal.aborted) throw new Error('let go');
      return undefined;
    },
    { resume },
  );
  return { agent, begun: begun.promise, wake: () => wake.open(), starts: () => starts };
}

const lines = (reported: { type: string; payload: { value: { from_status?: string; to_status?: string } } }[]) =>
  reported
    .filter(({ type }) => type.startsWith('run.'))
    .map(({ type, payload: { value } }) => `${type} ${value.from_status ?? ''}>${value.to_status ?? ''}`);

describe('a heartbeat', () => {
  test('is lost when the worker gives no sign for the configured time, and not before', async () => {
    const worker = silent({ resume: true });
    const runs = await openRuns({ agents: [worker.agent], config });
    const { body } = await runs.create('go');
    await worker.begun;
    runs.at.clock.advance(5 * MINUTE - 1);
    const still = runs.at.clock.now();
    expect((await runs.call('GET', `/v1/runs/${body.id}`)).body.status).toBe('running');
    runs.at.clock.advance(1);
    const stalled = await runs.until(body.id, 'stalled');
    expect(stalled.metadata.updated_at > still).toBe(true);
    const reported = await runs.events(body.id);
    expect(reported.at(-1)).toMatchObject({
      type: 'run.worker.stalled',
      payload: { value: { from_status: 'running', to_status: 'stalled', reason_code: 'heartbeat_lost' } },
    });
    // The task itself knows no such state: nobody has ended it.
    expect(await runs.at.runtime.store.get('task', `task_${body.id.slice(4)}`)).toMatchObject({ status: 'WORKING' });
    // It is said once, however often runs are checked: the check that finds another run stalled has looked at this one, too.
    const other = (await runs.create('wait')).body.id;
    await runs.seen(other, 'run.worker.started');
    runs.at.clock.advance(60 * MINUTE);
    await runs.until(other, 'stalled');
    expect((await runs.events(body.id)).length).toBe(reported.length);
  });

  test('is not expected of a run that waits for a person', async () => {
    const agent = scriptedAgent(async (sink, { task }, signal) => {
      const asks = JSON.stringify(task.input).includes('well?');
      if (asks) await sink.ask({ kind: 'input', key: 'k', question: 'well?', expires_ms: 24 * 60 * MINUTE });
      await untilAborted(signal);
      return { state: 'CANCELED' };
    });
    const runs = await openRuns({ agents: [agent], config });
    const { body } = await runs.create('well?');
    await runs.seen(body.id, 'run.awaiting_input');
    const other = (await runs.create('wait')).body.id;
    await runs.seen(other, 'run.worker.started');
    runs.at.clock.advance(60 * MINUTE);
    await runs.until(other, 'stalled');
    expect((await runs.call('GET', `/v1/runs/${body.id}`)).body.status).toBe('running');
  });

  test('that comes back by itself ends the stall', async () => {
    const worker = silent({ resume: false });
    const runs = await openRuns({ agents: [worker.agent], config });
    const { body } = await runs.create('go');
    await worker.begun;
    runs.at.clock.advance(5 * MINUTE);
    await runs.until(body.id, 'stalled');
    worker.wake();
    await runs.until(body.id, 'succeeded');
    expect(lines(await runs.events(body.id)).slice(-2)).toEqual([
      'run.resumed stalled>running',
      'run.worker.succeeded running>succeeded',
    ]);
  });
});

describe('a stalled run', () => {
  test('is gone on with by a worker started again from the log', async () => {
    const worker = silent({ resume: true });
    const runs = await openRuns({ agents: [worker.agent], config });
    const { body } = await runs.create('go');
    await worker.begun;
    expect(await runs.call('POST', `/v1/runs/${body.id}/resume`)).toMatchObject({
      status: 409,
      body: { reason_code: 'RUN_INVALID_STATE_TRANSITION' },
    });
    runs.at.clock.advance(5 * MINUTE);
    await runs.until(body.id, 'stalled');
    const resumed = await runs.call('POST', `/v1/runs/${body.id}/resume`);
    expect(resumed.status).toBe(200);
    expect(['running', 'succeeded']).toContain(resumed.body.status);
    await runs.until(body.id, 'succeeded');
    expect(worker.starts()).toBe(2);
    expect(lines(await runs.events(body.id))).toEqual([
      'run.created >',
      'run.worker.started queued>running',
      'run.worker.stalled running>stalled',
      'run.resumed stalled>running',
      'run.worker.succeeded running>succeeded',
    ]);
  });

  test('whose worker cannot start again is running until it falls silent again', async () => {
    const worker = silent({ resume: false });
    const runs = await openRuns({ agents: [worker.agent], config });
    const { body } = await runs.create('go');
    await worker.begun;
    runs.at.clock.advance(5 * MINUTE);
    await runs.until(body.id, 'stalled');
    expect((await runs.call('POST', `/v1/runs/${body.id}/resume`)).body.status).toBe('running');
    expect(worker.starts()).toBe(1);
    runs.at.clock.advance(5 * MINUTE);
    await runs.until(body.id, 'stalled');
    worker.wake();
    await runs.until(body.id, 'succeeded');
  });

  test('can be cancelled', async () => {
    const worker = silent({ resume: true });
    const runs = await openRuns({ agents: [worker.agent], config });
    const { body } = await runs.create('go');
    await worker.begun;
    runs.at.clock.advance(5 * MINUTE);
    await runs.until(body.id, 'stalled');
    expect((await runs.call('POST', `/v1/runs/${body.id}/cancel`)).body.status).toBe('cancelled');
    expect(lines(await runs.events(body.id)).at(-1)).toBe('run.cancelled stalled>cancelled');
  });

  test('is given up where that is configured, and may then be tried again', async () => {
    const worker = silent({ resume: true });
    const giving = { ...config, stalled: { ...config.stalled, give_up_ms: 10 * MINUTE } };
    const runs = await openRuns({ agents: [worker.agent], config: giving });
    const { body } = await runs.create('go');
    await worker.begun;
    runs.at.clock.advance(5 * MINUTE);
    await runs.until(body.id, 'stalled');
    runs.at.clock.advance(10 * MINUTE);
    await runs.until(body.id, 'failed');
    expect((await runs.events(body.id)).at(-1).payload.value).toMatchObject({
      from_status: 'stalled',
      to_status: 'failed',
      reason_code: 'heartbeat_lost',
    });
    expect((await runs.call('POST', `/v1/runs/${body.id}/retry`)).status).toBe(200);
    await runs.until(body.id, 'succeeded');
  });
});

test('a gateway that restarts under a run had lost its heartbeat and taken it up: that is reported the same way', async () => {
  const pauses: (() => void)[] = [];
  const agent = () =>
    createDemoAgent({
      pause: (_ms, signal) =>
        new Promise<void>((resolve) => {
          pauses.push(resolve);
          signal.addEventListener('abort', () => resolve(), { once: true });
        }),
    });
  const runs = await openRuns({ agents: [agent()], config });
  const { body } = await runs.create('wait 1 then hello');
  await runs.seen(body.id, 'run.worker.started');
  await runs.close();
  await runs.at.close();
  const quick = createDemoAgent({ pause: async () => {} });
  const later = await openRuns({ agents: [quick], dir: runs.at.dir, clock: runs.at.clock, config });
  await later.until(body.id, 'succeeded');
  const reported = lines(await later.events(body.id)).filter((line) => !line.startsWith('run.coordination'));
  expect(reported.slice(1, 5)).toEqual([
    'run.worker.started queued>running',
    'run.worker.stalled running>stalled',
    'run.resumed stalled>running',
    'run.worker.succeeded running>succeeded',
  ]);
});
