/** Three tools instead of two hundred: found by words, described, and called, with the same decisions as at the common address. */
import { expect, test } from 'vitest';
import { openLegacyClient, openScene, outcome } from '../../../support/mcp/one-server.ts';
import { echo, type Loose } from '../../../support/mcp/upstream.ts';

const RULES = '- { id: all, when: {}, then: allow }\n- { id: no, when: { tool: wipe }, then: block, say: not that }';
const withText = (description: string) => ({ ...echo, definition: { description } });

test.each([
  ['by path', '/mcp/_search', {}],
  ['by configuration', '/mcp', { tool_search: true }],
])('a client that asks for it sees three tools, and reaches those it may call: %s', async (_, path, door) => {
  const { gateway, upstream, events } = await openScene({
    rules: RULES,
    tools: {
      read_file: withText('Reads a note'),
      list_dir: withText('Lists files'),
      wipe: withText('Removes every file'),
    },
    gateway: { door: { agents: false, ...door } },
  });
  const client = await openLegacyClient(`${gateway.url}${path}`);
  const { tools } = outcome(await client.request('tools/list')).result;
  expect(tools.map(({ name }: Loose) => name)).toEqual(['search_tools', 'describe_tools', 'call_tool']);
  const call = async (name: string, args: Loose) =>
    outcome(await client.request('tools/call', { name, arguments: args }));
  const found = async (query: string) =>
    (await call('search_tools', { query })).result.structuredContent.tools.map(({ name }: Loose) => name);
  expect(await found('file')).toEqual(['u__read_file', 'u__list_dir']);
  expect(await found('NOTE')).toEqual(['u__read_file']);
  expect(await found('remove')).toEqual([]);
  const described = (await call('describe_tools', { names: ['u__read_file', 'u__wipe'] })).result.structuredContent;
  expect(described).toMatchObject({
    tools: [{ name: 'u__read_file', description: 'Reads a note' }],
    unknown: ['u__wipe'],
  });
  expect(described.tools[0].inputSchema.type).toBe('object');

  const done = await call('call_tool', { name: 'u__read_file', arguments: { text: 'hi' } });
  expect(done.result.content).toEqual([{ type: 'text', text: 'hi' }]);
  expect((await call('call_tool', { name: 'u__wipe', arguments: { text: 'hi' } })).error.message).toContain(
    'Unknown tool',
  );
  expect((await call('call_tool', { name: 'call_tool' })).result.isError).toBe(true);
  expect(upstream.count('tools/call')).toBe(1);
  const decided = (await events()).flatMap(({ event, payload }) =>
    event === 'vendor.tollbridge.decided' && payload.action.kind === 'tool' ? [payload.action.tool] : [],
  );
  expect(decided).toEqual(['read_file']);
});

test('a client of the modern era searches and calls as well', async () => {
  const { modern } = await openScene({
    tools: { read_file: withText('Reads a note') },
    common: true,
    gateway: { door: { agents: false, tool_search: true } },
  });
  const call = async (name: string, args: Loose) =>
    outcome(await modern('tools/call', { name, arguments: args }, { headers: { 'mcp-name': name } })).result;
  const { structuredContent } = await call('search_tools', { query: 'note' });
  expect(structuredContent).toEqual({ tools: [{ name: 'u__read_file', description: 'Reads a note' }], found: 1 });
  expect((await call('call_tool', { name: 'u__read_file', arguments: { text: 'hi' } })).content).toEqual([
    { type: 'text', text: 'hi' },
  ]);
});
