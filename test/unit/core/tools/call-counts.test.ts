/** Calls are counted by server, tool and outcome, and shown to operators. */
import { expect, test } from 'vitest';
import { createMetrics } from '../../../../adapters/harn/server/metrics.ts';
import { createCallCounts } from '../../../../src/core/tools/call-counts.ts';
import type { ToolBackend } from '../../../../src/ports/index.ts';
import { openTestGateway } from '../../../support/gateway/test-gateway.ts';

test('calls that ran, failed and were refused are counted apart', async () => {
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
  const tools: ToolBackend = {
    name: 'box',
    list: async () => [skill('look'), skill('wipe')],
    call: async ({ arguments: { fail } }) =>
      fail ? { status: 'error', output: null, error: 'no' } : { status: 'ok', output: 'seen' },
  };
  const rules = '- { id: all, when: {}, then: allow }\n- { id: no, when: { tool: wipe }, then: block, say: no }';
  const t = await openTestGateway({ tools: [tools], rules });
  const task = await (await t.room()).task({ agent: 'none' });
  const call = (tool: string, args = {}) =>
    t.send('tool.call', { task_id: task.id, action: { kind: 'tool', tool, arguments: args } });
  for (const args of [{}, {}, { fail: true }]) await call('look', args);
  await call('wipe');
  expect(t.bridge.toolCalls()).toMatchObject([
    { server: 'box', tool: 'look', outcome: 'ok', calls: 2 },
    { server: 'box', tool: 'look', outcome: 'error', calls: 1 },
    { server: 'box', tool: 'wipe', outcome: 'refused', calls: 1, seconds: 0 },
  ]);
  expect(createMetrics().text(t.bridge.toolCalls(), [], [])).toContain(
    'tollbridge_tool_calls_total{server="box",tool="look",outcome="ok"} 2\n',
  );
});

test('a server with endless tools has a bounded number of counts, and odd names stay one label', () => {
  const counts = createCallCounts();
  for (let at = 0; at < 2_100; at += 1) counts.note({ server: 's', tool: `t${at}` }, 'ok', 0);
  expect(counts.all()).toHaveLength(2_001);
  expect(counts.all().at(-1)).toMatchObject({ tool: '(others)', calls: 100 });
  const odd = [{ server: 's', tool: 'a"b\\c', outcome: 'ok' as const, calls: 1, seconds: 0 }];
  expect(createMetrics().text(odd, [], [])).toContain('{server="s",tool="a\\"b\\\\c",outcome="ok"} 1');
});
