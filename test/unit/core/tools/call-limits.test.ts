/** Limits of calls are counted in the log: by caller and tool, in all processes together, until the window reopens. */
import { expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { Fault } from '../../../../src/model/faults.ts';
import type { ToolBackend } from '../../../../src/ports/index.ts';
import { openTestGateway, type TestGateway } from '../../../support/gateway/test-gateway.ts';

const RULES =
  '- { id: no, when: { arguments: { bad: true } }, then: block, say: no }\n- { id: all, when: {}, then: allow }';
const ana: Actor = { id: 'ana', kind: 'person', scopes: ['*'] };
const ben: Actor = { id: 'ben', kind: 'person', scopes: ['*'] };

function box(calls: number, perMs = 3_600_000) {
  const skill = (name: string) => ({
    id: name,
    object: 'skill' as const,
    created_at: '',
    updated_at: '',
    metadata: {},
    name,
    description: name,
    input_schema: null,
    output_schema: null,
  });
  let ran = 0;
  const tools: ToolBackend = {
    name: 'box',
    list: async () => [skill('look'), skill('peek')],
    limit: () => ({ calls, perMs }),
    async call() {
      ran += 1;
      return { status: 'ok', output: 'seen' };
    },
  };
  return { tools, ran: () => ran };
}

/** `ran`, or why not. */
async function callIn(t: TestGateway) {
  const task = await (await t.room()).task({ agent: 'none' });
  return async (actor: Actor, tool = 'look', args = {}) => {
    const action = { kind: 'tool' as const, tool, arguments: args };
    return await t.bridge.submit({ kind: 'tool.call', actor, body: { task_id: task.id, action } }).then(
      ({ act }) => (act?.kind === 'refused' ? act.reason : 'ran'),
      ({ kind, message }: Fault) => `${kind}: ${message}`,
    );
  };
}

const OVER = expect.stringContaining('rate_limited: look of box may be called 2 times in 3600 s by one caller');

test('two processes on one log share the count of a caller; other callers and tools have their own', async () => {
  const { tools, ran } = box(2);
  const settings = { deferTries: 0 };
  const t = await openTestGateway({ tools: [tools], rules: RULES, settings });
  const other = await t.second({ tools: [tools], rules: RULES, settings });
  const [here, there] = [await callIn(t), await callIn(other)];
  expect(await here(ana)).toBe('ran');
  expect(await there(ana)).toBe('ran');
  expect(await here(ana)).toEqual(OVER);
  expect(await there(ana)).toEqual(OVER);
  expect(await here(ana, 'peek')).toBe('ran');
  expect(await there(ben)).toBe('ran');
  expect(ran()).toBe(4);
});

test('calls at the same moment do not pass together, and refused calls are not counted', async () => {
  const { tools, ran } = box(2);
  const t = await openTestGateway({ tools: [tools], rules: RULES, settings: { deferTries: 0 } });
  const call = await callIn(t);
  expect(await call(ana, 'look', { bad: true })).toBe('no');
  const all = await Promise.all(Array.from({ length: 6 }, () => call(ana)));
  expect(all.filter((each) => each === 'ran')).toHaveLength(2);
  expect(ran()).toBe(2);
});

test('the count costs no commit of its own, and survives a restart', async () => {
  const { tools } = box(3);
  const t = await openTestGateway({ tools: [tools], rules: RULES, settings: { deferTries: 0 } });
  const call = await callIn(t);
  await call(ana);
  await call(ana);
  const events = await t.all();
  const counted = events.filter(({ event }) => event === 'vendor.tollbridge.quota_used');
  expect(counted).toHaveLength(2);
  // In the commit of the decision: nothing was written between the two.
  const at = events.lastIndexOf(counted[1]!);
  expect(events.slice(0, at).at(-1)?.event).toBe('vendor.tollbridge.decided');
  const again = await callIn(await t.reopen({ tools: [tools], rules: RULES, settings: { deferTries: 0 } }));
  expect(await again(ana)).toBe('ran');
  expect(await again(ana)).toContain('may be called 3 times');
});

test('the window reopens', async () => {
  const t = await openTestGateway({ tools: [box(1, 60_000).tools], rules: RULES, settings: { deferTries: 0 } });
  const call = await callIn(t);
  expect(await call(ana)).toBe('ran');
  expect(await call(ana)).toContain('may be called 1 times in 60 s');
  t.clock.advance(60_000);
  expect(await call(ana)).toBe('ran');
});

test('another limit in the configuration counts from then on', async () => {
  const t = await openTestGateway({ tools: [box(1).tools], rules: RULES, settings: { deferTries: 0 } });
  const call = await callIn(t);
  expect(await call(ana)).toBe('ran');
  expect(await call(ana)).toContain('may be called 1 times');
  const wider = await callIn(await t.reopen({ tools: [box(2).tools], rules: RULES, settings: { deferTries: 0 } }));
  expect(await wider(ana)).toBe('ran');
  expect(await wider(ana)).toContain('may be called 2 times');
});
