/** A call that waits for a person says so while it waits, and takes its question with it when nobody waits for the call. */
import { expect, test } from 'vitest';
import type { AskRecord } from '../../../../src/model/asks.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { VISITOR } from '../../../support/mcp/gateway.ts';
import { openScene, outcome, type Scene, type SceneOptions } from '../../../support/mcp/one-server.ts';
import { echo, type Loose } from '../../../support/mcp/upstream.ts';

const RULES = '- { id: ask, when: { tool: echo }, then: ask }';
const _meta = { progressToken: 'mine' };
const CALL = { name: 'echo', arguments: { text: 'hi' }, _meta };

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

/** How a client calls the tool, at each address. */
const ADDRESSES: readonly (readonly [string, SceneOptions, Loose])[] = [
  ['the server’s own', {}, CALL],
  ['the common', { common: true }, { ...CALL, name: 'u__echo' }],
  [
    'the searching',
    { common: true, gateway: { door: { tool_search: true } } },
    { name: 'call_tool', arguments: { name: 'u__echo', arguments: CALL.arguments }, _meta },
  ],
];

test.each(ADDRESSES)(
  'a call reports that it waits, until it is answered, in every era: %s address',
  async (_, more, call) => {
    const scene = await openScene({ rules: RULES, tools: { echo }, ...more });
    const client = await scene.legacy();
    // Where its client can show no form.
    const calls = [() => client.request('tools/call', call), () => scene.modern('tools/call', call, { meta: _meta })];
    for (const begin of calls) {
      const called = begin();
      let ask: AskRecord | undefined;
      await eventually(async () => {
        [ask] = await scene.asks();
        return ask !== undefined;
      }, 'the question');
      await answer(scene, String(ask?.id));
      const { frames } = await called;
      const progress = frames.filter(({ method }) => method === 'notifications/progress');
      expect(progress[0]?.params).toEqual({
        progressToken: 'mine',
        progress: 0,
        message: expect.stringContaining(`tollbridge approve ${ask?.id}`),
      });
      expect(frames.at(-1)).toMatchObject({ result: { content: [{ text: 'hi' }] } });
    }
  },
);

test.each(ADDRESSES)(
  'a canceled call closes its question, and a late yes is told that nothing ran: %s address',
  async (_, more, call) => {
    const scene = await openScene({ rules: RULES, tools: { echo }, ...more });
    const client = await scene.legacy();
    void client.request('tools/call', call).catch(() => {});
    const [ask] = await scene.asks();
    const id = String(ask?.id);
    await client.post({ method: 'notifications/cancelled', params: { requestId: 1 } });
    await eventually(async () => (await stateOf(scene, id)) === 'canceled', 'the question to be closed');
    await expect(answer(scene, id)).rejects.toThrow('nothing ran');
    expect(scene.upstream.count('tools/call')).toBe(0);
  },
);

test('a modern client that is shown a form and never returns closes the question of its call', async () => {
  const scene = await openScene({ rules: RULES, tools: { echo }, gateway: { door: { park_ms: 100 } } });
  const capabilities = { elicitation: { form: {} } };
  const { result } = outcome(await scene.modern('tools/call', CALL, { capabilities }));
  expect(result.resultType).toBe('input_required');
  const asks = await scene.gateway.runtime.bridge.list<AskRecord & Row>(VISITOR, { object: 'ask', where: {} });
  const id = String(asks.data[0]?.id);
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
