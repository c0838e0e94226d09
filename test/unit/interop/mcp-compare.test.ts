/** What the comparison of transcripts lets pass is what it declares, where it declares it, and nothing else. */
import { expect, test } from 'vitest';
import { differences, type Transcript } from '../../interop/mcp-compare.ts';

const SERVER = { name: 's', version: '1' };
const DIRECT = {
  opened: { protocolVersion: '2025-11-25', serverInfo: SERVER, capabilities: { tools: {}, tasks: { list: {} } } },
  tools: { tools: [{ name: 'a', inputSchema: {}, execution: { taskSupport: 'optional' } }] },
  called: { content: [{ type: 'text', text: 'hi' }], _meta: { own: 1 } },
  unknown: { code: -32602, message: 'Unknown tool: x' },
};
const info = { 'io.modelcontextprotocol/serverInfo': SERVER };
const CONVERTED = {
  opened: {
    protocolVersion: '2026-07-28',
    serverInfo: SERVER,
    capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
  },
  tools: {
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
    tools: [{ name: 'a', inputSchema: {} }],
    _meta: info,
  },
  called: { resultType: 'complete', content: [{ type: 'text', text: 'hi' }], _meta: { own: 1, ...info } },
  unknown: { code: -32602, message: 'Unknown tool: x' },
};

const changed = (transcript: Transcript, part: string, more: object): Transcript => ({
  ...transcript,
  [part]: { ...(transcript[part] as object), ...more },
});

test('the same, and the newest revision for an older server', () => {
  expect(differences(DIRECT, DIRECT)).toEqual([]);
  expect(differences(DIRECT, CONVERTED)).toEqual([]);
});

test.each([
  ['opened', { serverInfo: { name: 'tollbridge', version: '1' } }],
  ['opened', { instructions: 'more' }],
  ['opened', { capabilities: { tools: {}, extensions: { another: {} } } }],
  ['tools', { tools: [{ name: 'a', inputSchema: {}, title: 'A' }] }],
  ['tools', { ttlMs: 1 }],
  ['tools', { cacheScope: 'public' }],
  ['tools', { nextCursor: 'x' }],
  ['called', { resultType: 'incomplete' }],
  ['called', { ttlMs: 0 }],
  ['called', { isError: false }],
  ['called', { _meta: { own: 1, 'io.modelcontextprotocol/serverInfo': { name: 'tollbridge' } } }],
  ['unknown', { message: 'Unknown tool: "x"' }],
  ['unknown', { code: -32603 }],
])('any other member or value is a difference: %s %j', (part, more) => {
  expect(differences(DIRECT, changed(CONVERTED, part, more))).toEqual([part]);
  expect(differences(DIRECT, changed(DIRECT, part, more))).toEqual([part]);
});

test('what the newest revision adds is a difference where nothing was converted, and so is a part that is missing', () => {
  const { opened } = DIRECT;
  expect(differences(DIRECT, { ...CONVERTED, opened })).toEqual(['tools', 'called']);
  const { called: _, ...without } = CONVERTED;
  expect(differences(DIRECT, without)).toEqual(['called']);
});
