/** Our client against our own server, over broken lines and restarts on both sides. */

import { describe, expect, onTestFinished, test } from 'vitest';
import { createDemoTools } from '../../../../src/demo/tools.ts';
import { eventually } from '../../../support/eventually.ts';
import { of } from '../../../support/gateway/test-gateway.ts';
import { openDoor } from '../../../support/harn/gateway.ts';
import { demoAgent, openTwo, RULES, real, remoteAgent, said } from '../../../support/harn/two-gateways.ts';

describe('broken lines', () => {
  test('a stream that keeps breaking is taken up from its cursor: nothing lost, nothing twice', async () => {
    const two = await openTwo({ stepMs: 25 });
    two.relay.breakStreamsAfter(4000);
    const { id, session } = await two.give('wait 60');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual([Array.from({ length: 60 }, (_, n) => `step ${n + 1} of 60\n`).join('')]);
    const deltas = of(await two.near.events(id), 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text);
    expect(deltas).toEqual(Array.from({ length: 60 }, (_, n) => `step ${n + 1} of 60\n`));
    const resumed = two.relay.calls.filter(({ path, headers }) => path.endsWith('/stream') && headers['last-event-id']);
    expect(resumed.length).toBeGreaterThan(2);
  });

  test('without any stream it is polled', async () => {
    const two = await openTwo();
    two.relay.answerWith((request, response) => {
      if (!request.url?.includes('/stream')) return false;
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"code":"not_found"}}');
      return true;
    });
    const { id, session } = await two.give('read plan then hello');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toHaveLength(2);
    expect(of(await two.near.events(id), 'tool.completed')).toHaveLength(1);
  });

  test('a question survives a broken line', async () => {
    const two = await openTwo();
    const { id } = await two.give('ask which colour?');
    const [ask] = await two.near.asks(id);
    two.relay.cut();
    two.relay.to(undefined);
    const before = two.relay.calls.length;
    const answered = two.near.answer(ask!.id, { value: 'blue' });
    await eventually(() => two.relay.calls.length > before, 'an attempt over the broken line');
    two.relay.to(two.far.url);
    await answered;
    expect((await two.near.until(id)).status).toBe('COMPLETED');
  });

  test('out of reach for too long, the task has failed', async () => {
    const two = await openTwo({ client: { timeouts: { silence_ms: 600 } } });
    const { id } = await two.give('wait 10000');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    two.relay.to(undefined);
    two.relay.cut();
    const task = await two.near.until(id);
    expect([task.status, task.failure?.code]).toEqual(['FAILED', 'upstream_unavailable']);
  });

  test('a remote that is not there at all is a failure that says so', async () => {
    const two = await openTwo({ client: { timeouts: { silence_ms: 600 } } });
    two.relay.to(undefined);
    const { id } = await two.give('hello');
    const task = await two.near.until(id);
    expect([task.status, task.failure?.code]).toEqual(['FAILED', 'upstream_unavailable']);
  });

  test('events that are no longer kept are admitted to be missing', async () => {
    const two = await openTwo({ stepMs: 20 });
    let expired = false;
    two.relay.answerWith((request, response) => {
      if (expired || !request.url?.endsWith('/stream') || !request.headers['last-event-id']) return false;
      expired = true;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end('id: x\nevent: error\ndata: {"error":{"code":"cursor_expired","message":"gone"}}\n\n');
      return true;
    });
    const { id } = await two.give('wait 20');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    two.relay.cut();
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    const end = of(await two.near.events(id), 'task.completed')[0];
    expect(JSON.stringify(end?.payload.not_reported)).toContain('no longer kept');
  });
});

describe('restarts', () => {
  test('of the remote: its work goes on, and so do we', async () => {
    const two = await openTwo({ stepMs: 20 });
    const { id, session } = await two.give('wait 30 then hello');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    await two.far.close();
    await two.far.at.close();
    const again = await openDoor({
      agents: [demoAgent()],
      tools: [createDemoTools()],
      rules: RULES,
      clock: real,
      dir: two.far.at.dir,
    });
    two.relay.to(again.url);
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toHaveLength(2);
    const tasks = (await again.call('GET', '/v1/tasks')).body.data;
    expect(tasks).toHaveLength(1);
  });

  test('of ours: the remote is left at work and found again, and nothing is reported twice', async () => {
    const two = await openTwo({ stepMs: 30 });
    const { id, session } = await two.give('read plan then wait 30 then hello');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    const near = await two.near.reopen({ agents: [remoteAgent(two.relay.url)] });
    onTestFinished(() => near.close());
    expect((await near.until(id)).status).toBe('COMPLETED');
    expect(await said({ ...two, near }, session)).toHaveLength(3);
    const events = await near.events(id);
    expect(of(events, 'tool.requested')).toHaveLength(1);
    expect(of(events, 'tool.completed')).toHaveLength(1);
    const steps = of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => String(payload.text));
    expect(steps.filter((text) => text.startsWith('step'))).toEqual(
      Array.from({ length: 30 }, (_, n) => `step ${n + 1} of 30\n`),
    );
    expect(of(events, 'agent.handoff').map(({ payload }) => payload.status)).toEqual(['accepted', 'completed']);
    expect((await two.far.call('GET', '/v1/tasks')).body.data).toHaveLength(1);
  });

  test('of ours while a question is open: it is still the same question', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('ask which colour?');
    const [before] = await two.near.asks(id);
    const near = await two.near.reopen({ agents: [remoteAgent(two.relay.url)] });
    const [after] = await near.asks(id);
    expect(after?.id).toBe(before?.id);
    await near.answer(after!.id, { value: 'green' });
    expect((await near.until(id)).status).toBe('COMPLETED');
    expect(await said({ ...two, near }, session)).toEqual(['You said: green']);
  });
});
