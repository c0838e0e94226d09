/** What counts as too large, and what becomes of a result that is. */
import { describe, expect, test } from 'vitest';
import { boundedResult, excess } from '../../src/core/actions/calls/result-size.ts';
import { scriptedAgent } from '../support/gateway/agents.ts';
import { openTestGateway } from '../support/gateway/test-gateway.ts';
import { countingTools } from '../support/gateway/tools.ts';

const LIMITS = { size: 10, values: 5 };

describe('a value', () => {
  test.each([
    ['short text', 'abc', undefined],
    ['a text at the limit', 'x'.repeat(10), undefined],
    ['a text beyond it', 'x'.repeat(11), 'more than 10 characters'],
    ['names count', { abcdef: 'ghijk' }, 'more than 10 characters'],
    ['few values', [1, null, false, 'a'], undefined],
    ['a list of too many', Array.from({ length: 6 }, () => null), 'more than 5 values'],
    ['nested too many', [[[[[[1]]]]]], 'more than 5 values'],
    ['nothing', undefined, undefined],
    ['null', null, undefined],
    ['a member called __proto__', JSON.parse('{"__proto__":"x"}'), undefined],
  ])('%s', (_, value, expected) => {
    expect(excess(value, LIMITS)).toBe(expected);
  });

  test('a list of millions is not gone through to the end', () => {
    const list = new Proxy([], {
      get: (_, name) => (name === 'length' ? 1e9 : name === Symbol.iterator ? endless : undefined),
    });
    function* endless() {
      for (let at = 0; at < 1e9; at += 1) yield at;
    }
    expect(excess(list, LIMITS)).toBe('more than 5 values');
  });
});

test('a result within the limits stays the same object', () => {
  const result = { status: 'ok', output: { text: 'a' } } as const;
  expect(boundedResult(result, LIMITS)).toBe(result);
});

test('a result beyond them is on record as a call that ran and failed to bring it back', async () => {
  const tools = countingTools({
    look: { effect: 'read', run: () => ({ status: 'ok', output: 'x'.repeat(5_000_000) }) },
  });
  const agent = scriptedAgent(async (sink) => {
    await sink.act({ kind: 'tool', tool: 'look', tool_call_id: 'c1', arguments: {} });
    return undefined;
  });
  const t = await openTestGateway({
    agents: [agent],
    tools: [tools],
    rules: '- { id: a, when: { tool: look }, then: allow }',
  });
  const task = await (await t.room()).task();
  await t.until(task.id);
  const ended = (await t.events(task.id)).find(({ event }) => event === 'tool.failed');
  expect(ended?.payload).toMatchObject({ code: 'result_too_large', output: null });
  expect(String(ended?.payload.error)).toContain('the call ran, and its result was not passed on');
});
