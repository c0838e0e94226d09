/** A call that waits for a person says so while it waits, and takes its question with it when nobody waits for the call. */
import { expect, test } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { VISITOR } from '../../../support/mcp/gateway.ts';
import { openScene, outcome, type Scene } from '../../../support/mcp/one-server.ts';
import { echo } from '../../../support/mcp/upstream.ts';

const RULES = '- { id: ask, when: { tool: echo }, then: ask }';
const CALL = { name: 'echo', arguments: { text: 'hi' }, _meta: { progressToken: 'mine' } };

const answer = (scene: Scene, ask_id: string) =>
  scene.gateway.runtime.bridge.submit({
    kind: 'ask.answer',
    actor: { id: 'boss', kind: 'person', scopes: ['*'] },
    body: { ask_id, approved: true },
  });

const stateOf = async (scene: Scene, id: string) => {
  const ask = await scene.gateway.runtime.bridge.view<never>(VISITOR, 'ask', id);
  return (ask as { state: string }).state;
};

test('a legacy call reports that it waits, until it is answered', async () => {
  const scene = await openScene({ rules: RULES, tools: { echo } });
  const client = await scene.legacy();
  const called = client.request('tools/call', CALL);
  const [ask] = await scene.asks();
  await answer(scene, String(ask?.id));
  const { frames } = await called;
  const progress = frames.filter(({ method }) => method === 'notifications/progress');
  expect(progress[0]?.params).toEqual({
    progressToken: 'mine',
    progress: 0,
    message: expect.stringContaining(`tollbridge approve ${ask?.id}`),
  });
  expect(frames.at(-1)).toMatchObject({ result: { content: [{ text: 'hi' }] } });
});

test('a modern call reports it on its stream, where its client can show no form', async () => {
  const scene = await openScene({ rules: RULES, tools: { echo } });
  const called = scene.modern('tools/call', CALL, { meta: { progressToken: 'mine' } });
  const [ask] = await scene.asks();
  await answer(scene, String(ask?.id));
  const { frames } = await called;
  expect(frames[0]).toMatchObject({ method: 'notifications/progress', params: { progressToken: 'mine' } });
  expect(frames.at(-1)).toMatchObject({ result: { content: [{ text: 'hi' }] } });
});

test('a canceled call closes its question, and a late yes is told that nothing ran', async () => {
  const scene = await openScene({ rules: RULES, tools: { echo } });
  const client = await scene.legacy();
  void client.request('tools/call', CALL).catch(() => {});
  const [ask] = await scene.asks();
  const id = String(ask?.id);
  await client.post({ method: 'notifications/cancelled', params: { requestId: 1 } });
  await eventually(async () => (await stateOf(scene, id)) === 'canceled', 'the question to be closed');
  await expect(answer(scene, id)).rejects.toThrow('nothing ran');
  expect(scene.upstream.count('tools/call')).toBe(0);
});

test('a modern client that hangs up closes the question of its call', async () => {
  const scene = await openScene({ rules: RULES, tools: { echo } });
  const hangup = new AbortController();
  void scene.modern('tools/call', CALL, { signal: hangup.signal }).catch(() => {});
  const [ask] = await scene.asks();
  hangup.abort();
  await eventually(async () => (await stateOf(scene, String(ask?.id))) === 'canceled', 'the question to be closed');
  expect(scene.upstream.count('tools/call')).toBe(0);
});

test('a legacy session that ends closes the questions of its calls', async () => {
  const scene = await openScene({ rules: RULES, tools: { echo } });
  const client = await scene.legacy();
  void client.request('tools/call', CALL).catch(() => {});
  const [ask] = await scene.asks();
  const headers = { 'mcp-session-id': client.session };
  await fetch(scene.gateway.at('u'), { method: 'DELETE', headers });
  await eventually(async () => (await stateOf(scene, String(ask?.id))) === 'canceled', 'the question to be closed');
  expect(outcome(await scene.modern('tools/list')).result.tools).toHaveLength(1);
});
