/** Several gateways on one log: each notification is delivered by one of them, and by another when that one is gone. */
import { describe, expect, test } from 'vitest';
import { lateAgent, openPeer, openPeerOn, type Peer, wire } from '../../support/a2a/gateway.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import type { Body } from '../../support/harn/gateway.ts';
import { about, openHook } from '../../support/wire/webhook.ts';

/** A gateway whose agent waits for a word, a task a client follows, and another gateway that finds both there. */
async function two() {
  const hook = await openHook();
  const { gate, agent } = lateAgent();
  const options = { agents: [agent], config: { push: { allow: [hook.host], retry_ms: [1, 1] } } };
  const first = await openPeer(options);
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: hook.url, id: 'c1' } };
  const { task } = (await first.rpc('SendMessage', { ...wire('go'), configuration })).body.result;
  await hook.until(2);
  const second = await openPeerOn(await first.at.second(options), options);
  const reported = () => hook.got.map(({ body }) => about(body));
  return { hook, gate, first, second, task: task.id as string, reported };
}

const SYSTEM = { id: 's', kind: 'system', scopes: ['*'] } as const;
async function statuses({ at }: Peer): Promise<string[]> {
  const { data } = await at.bridge.list(SYSTEM, { object: 'connector' });
  return (data as Body[]).map(({ status }) => status);
}

const REPORTED = ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'Late.', 'TASK_STATE_COMPLETED'];

describe('two gateways on one log', () => {
  test('deliver each notification once', async () => {
    const { gate, first, second, task, reported } = await two();
    gate.open();
    await second.at.until(task);
    await expect.poll(() => statuses(first)).toEqual(['DISABLED']);
    await second.close();
    await first.close();
    expect(reported()).toEqual(REPORTED);
  });

  test('one goes on where the other stopped, and says nothing again', async () => {
    const { gate, first, second, reported } = await two();
    await first.close();
    await first.at.close();
    gate.open();
    await expect.poll(() => statuses(second)).toEqual(['DISABLED']);
    expect(reported()).toEqual(REPORTED);
  });

  test('only one of many takes over', async () => {
    const { hook, gate, first, second, reported } = await two();
    const options = { agents: [scriptedAgent(async () => undefined)], config: { push: { allow: [hook.host] } } };
    const others = [second];
    for (let more = 0; more < 3; more++) others.push(await openPeerOn(await first.at.second(options), options));
    // Its work goes on in its gateway; only its door is closed.
    await first.close();
    gate.open();
    await expect.poll(() => statuses(second)).toEqual(['DISABLED']);
    for (const other of others) await other.close();
    expect(reported()).toEqual(REPORTED);
  });

  test('what is removed at one is no longer delivered by the other', async () => {
    const { gate, first, second, task, reported } = await two();
    await second.rpc('DeleteTaskPushNotificationConfig', { taskId: task, id: 'c1' });
    gate.open();
    await first.at.until(task);
    await first.close();
    expect(reported()).toEqual(REPORTED.slice(0, 2));
    expect(await statuses(second)).toEqual([]);
    expect(first.logged).toEqual([]);
  });

  test('what is replaced at one is delivered there from then on', async () => {
    const { hook, gate, first, second, task, reported } = await two();
    await second.rpc('CreateTaskPushNotificationConfig', { taskId: task, id: 'c1', url: hook.url, token: 'new' });
    gate.open();
    await expect.poll(() => statuses(second)).toEqual(['DISABLED']);
    await first.close();
    expect(reported()).toEqual(REPORTED);
    expect(hook.got.map(({ headers }) => headers['x-a2a-notification-token'])).toEqual([
      undefined,
      undefined,
      'new',
      'new',
    ]);
  });
});
