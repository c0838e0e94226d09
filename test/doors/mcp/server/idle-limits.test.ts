/** A client that is connected and calls nothing takes no room and no time from anyone. */
import { expect, test } from 'vitest';
import type { Quota, Task, Workspace } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { latch } from '../../../support/gateway/agents.ts';
import { VISITOR } from '../../../support/mcp/gateway.ts';
import { openScene, outcome, type Scene } from '../../../support/mcp/one-server.ts';
import { text } from '../../../support/mcp/upstream.ts';

async function limitedScene(limits: Record<string, number>, call: () => unknown = () => text('done')) {
  const scene = await openScene({ tools: { work: { call } as never } });
  const { bridge, store } = scene.gateway.runtime;
  const body = { object: 'quota' as const, body: { scope: 'workspace', limits } };
  const { resource } = await bridge.submit({ kind: 'resource.create', actor: VISITOR, body });
  const [workspace] = (await bridge.list<Workspace & Row>(VISITOR, { object: 'workspace', limit: 1 })).data;
  const change = { object: 'workspace' as const, id: workspace!.id, body: { quota_id: resource.id } };
  await bridge.submit({ kind: 'resource.update', actor: VISITOR, body: change });
  const usage = async () => (await store.get<Quota & Row>('quota', resource.id))!.usage;
  return { scene, usage };
}

const WORK = { name: 'work', arguments: {} };
const tasksOf = ({ gateway }: Scene) => gateway.runtime.store.list<Task & Row>({ object: 'task', limit: 50 });

test('an idle client does not count: under a limit of one a second client is served, and refused only while a call runs', async () => {
  const began = latch<void>();
  const release = latch<void>();
  let calls = 0;
  const { scene, usage } = await limitedScene({ concurrency: 1 }, async () => {
    calls += 1;
    if (calls === 3) {
      began.open();
      await release.promise;
    }
    return text('done');
  });
  const [one, other] = [await scene.legacy(), await scene.legacy()];
  for (const client of [one, other])
    expect(outcome(await client.request('tools/call', WORK)).result.content).toEqual([{ type: 'text', text: 'done' }]);
  expect((await usage()).concurrency).toBe(0);

  const slow = one.request('tools/call', WORK);
  await began.promise;
  expect((await usage()).concurrency).toBe(1);
  const refused = outcome(await other.request('tools/call', WORK));
  expect(JSON.stringify(refused)).toContain('concurrency');
  expect(calls).toBe(3);
  release.open();
  expect(outcome(await slow).result.content).toEqual([{ type: 'text', text: 'done' }]);
  expect((await usage()).concurrency).toBe(0);
  expect((await tasksOf(scene)).map(({ status }) => status)).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED']);
});

test('an idle client burns no time', async () => {
  const { scene, usage } = await limitedScene({ wall_time_ms: 60_000 });
  const client = await scene.legacy();
  await client.request('tools/call', WORK);
  expect((await tasksOf(scene)).map(({ status }) => status)).toEqual(['COMPLETED']);
  await expect.poll(async () => (await usage()).wall_time_ms).toBeLessThan(3000);
});

test('calls one after the other and at once are all served under a limit of one', async () => {
  const { scene, usage } = await limitedScene({ concurrency: 1 });
  const client = await scene.legacy();
  for (let round = 0; round < 3; round += 1) {
    const all = await Promise.all(Array.from({ length: 5 }, () => client.request('tools/call', WORK)));
    for (const one of all) expect(outcome(one).result.content).toEqual([{ type: 'text', text: 'done' }]);
  }
  expect((await usage()).concurrency).toBe(0);
});
