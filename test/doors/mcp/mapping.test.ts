/** The table of MCP, and the pure middle built on it: literal words in, literal words out. */
import { expect, test } from 'vitest';
import { toLegacyTask } from '../../../adapters/mcp/agents/result.ts';
import {
  toDiscoverResult,
  toInitializeResult,
  toLegacyOutcome,
  toModernOutcome,
  wantedCapabilities,
} from '../../../adapters/mcp/compat/convert.ts';
import { outcomeOf } from '../../../adapters/mcp/frames.ts';
import { headerValue, readHeader } from '../../../adapters/mcp/header-values.ts';
import { exposedName, promptOf, uriOf } from '../../../adapters/mcp/server/aggregate/names.ts';
import { distinct, toWireOutcome } from '../../../adapters/mcp/translate.ts';
import { effectOf, faults, frames, inputRow, methodRow, taskState } from '../../../mappings/mcp.ts';
import { FAULT_KINDS, Fault } from '../../../src/model/faults.ts';
import { TASK_STATES } from '../../../src/model/words.ts';

test('every frame stands once, belongs to an era, and only a call is an act', () => {
  const names = frames.rows.map(({ from, frame, method }) => `${from} ${frame} ${method}`);
  expect(new Set(names).size).toBe(names.length);
  expect(frames.rows.filter(({ handling }) => handling === 'act').map(({ method }) => method)).toEqual(['tools/call']);
  expect(frames.rows.filter(({ eras }) => eras.length === 0)).toEqual([]);
  expect(methodRow('initialize')?.eras).toEqual(['legacy']);
  expect(methodRow('server/discover')?.eras).toEqual(['modern']);
  expect(methodRow('unheard/of')).toBeUndefined();
  expect([inputRow('elicitation/create')?.capability, inputRow('tools/call')]).toEqual(['elicitation', undefined]);
});

test.each([
  ['client', 'request', 'tools/call', 'act'],
  ['client', 'notification', 'tools/call', 'refuse'],
  ['client', 'request', 'acme/deploy', 'act'],
  ['client', 'notification', 'acme/deploy', 'refuse'],
  ['client', 'notification', 'notifications/acme', 'pass'],
  ['client', 'request', 'notifications/acme', 'refuse'],
  ['client', 'request', 'notifications/initialized', 'refuse'],
  ['client', 'request', 'sampling/createMessage', 'refuse'],
  ['client', 'notification', 'notifications/message', 'refuse'],
  ['client', 'request', '__proto__', 'act'],
  ['client', 'notification', 'constructor', 'refuse'],
  ['server', 'request', 'tools/call', 'refuse'],
  ['server', 'notification', 'tools/call', 'refuse'],
  ['server', 'request', 'roots/list', 'pass'],
  ['server', 'notification', 'roots/list', 'refuse'],
  ['server', 'request', 'ping', 'answer'],
  ['server', 'notification', 'notifications/initialized', 'refuse'],
] as const)('a %s’s %s of %s: %s', (from, frame, method, handling) => {
  expect(frames.judge(from, frame, method).handling).toBe(handling);
});

test('every state of a task has a word, and every word a state', () => {
  expect(TASK_STATES.map((state) => taskState.toWire(state))).toEqual([
    'working',
    'working',
    'input_required',
    'input_required',
    'completed',
    'failed',
    'cancelled',
  ]);
  const words = ['working', 'input_required', 'completed', 'failed', 'cancelled'];
  expect(words.map((word) => taskState.toCore(word))).toEqual([
    'WORKING',
    'INPUT_REQUIRED',
    'COMPLETED',
    'FAILED',
    'CANCELED',
  ]);
  expect(taskState.toCore('done')).toBeUndefined();
  const task = { id: 'task_1', status: 'AUTH_REQUIRED', created_at: 'a', updated_at: 'b' };
  expect(toLegacyTask(task as never)).toEqual({
    taskId: 'task_1',
    status: 'input_required',
    statusMessage: 'waits for permission',
    createdAt: 'a',
    lastUpdatedAt: 'b',
    ttl: null,
    pollInterval: 1000,
  });
});

test('every fault has a code, and none of those the protocol keeps for itself', () => {
  expect(FAULT_KINDS.filter((kind) => faults[kind] === undefined)).toEqual([]);
  const own = Object.values(faults).filter((code) => code < -32_000 && code > -32_600 && code !== -32_022);
  expect(own).toEqual([]);
  expect(outcomeOf(new Fault('not_found', 'nothing here'))).toEqual({
    error: { code: -32602, message: 'nothing here', data: { code: 'not_found' } },
  });
  expect(outcomeOf(new Error('a secret path'))).toEqual({
    error: { code: -32603, message: 'something went wrong inside the bridge', data: { code: 'internal' } },
  });
});

test('what is unsaid about a tool counts as the worst of it', () => {
  expect(effectOf({})).toBe('delete');
  expect(effectOf({ destructiveHint: false })).toBe('write');
  expect(effectOf({ readOnlyHint: true })).toBe('read');
  expect(effectOf({ readOnlyHint: 'true' })).toBe('delete');
});

test('results keep what nobody has a name for, on the way into either era', () => {
  const about = { serverInfo: { name: 's', version: '1', odd: 1 } };
  const legacy = { result: { tools: [{ name: 't', odd: 2, execution: { taskSupport: 'optional' } }], odd: 3 } };
  expect(toModernOutcome('tools/list', legacy, about)).toEqual({
    result: {
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      odd: 3,
      tools: [{ name: 't', odd: 2 }],
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 's', version: '1', odd: 1 } },
    },
  });
  const modern = {
    result: {
      resultType: 'complete',
      ttlMs: 5,
      cacheScope: 'public',
      contents: [{ odd: 4 }],
      _meta: { 'io.modelcontextprotocol/serverInfo': {}, 'x/y': 5 },
    },
  };
  expect(toLegacyOutcome(modern)).toEqual({ result: { contents: [{ odd: 4 }], _meta: { 'x/y': 5 } } });
  const absent = { error: { code: -32002, message: 'no', data: { uri: 'u' } } };
  expect(toModernOutcome('resources/read', absent, about)).toEqual({
    error: { code: -32602, message: 'no', data: { uri: 'u' } },
  });
});

test('a server’s opening words in the other era', () => {
  const discovered = {
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true }, extensions: { x: {} } },
    instructions: 'be kind',
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 's', version: '1' } },
  };
  const opened = {
    protocolVersion: '2025-06-18',
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 's', version: '1' },
    instructions: 'be kind',
  };
  expect(toInitializeResult(discovered, '2025-06-18')).toEqual(opened);
  expect(toInitializeResult(discovered, '1999-01-01').protocolVersion).toBe('2025-11-25');
  expect(toDiscoverResult({ ...opened, capabilities: { tools: {}, tasks: {} } })).toEqual({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {} },
    instructions: 'be kind',
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 's', version: '1' } },
  });
});

test('a modern caller hears the log it asked for', () => {
  const said = (level: string) => ({ jsonrpc: '2.0' as const, method: 'notifications/message', params: { level } });
  const level = { 'io.modelcontextprotocol/logLevel': 'warning' };
  expect([
    wantedCapabilities(said('error'), level),
    wantedCapabilities(said('info'), level),
    wantedCapabilities(said('error'), {}),
  ]).toEqual([true, false, false]);
  expect(wantedCapabilities({ jsonrpc: '2.0', method: 'notifications/progress' }, {})).toBe(true);
});

test('values in headers come back as they were', () => {
  for (const value of ['plain', ' outer blanks ', 'Grüße', '=?base64?eA==?=', '', 'a\nb']) {
    expect(readHeader(headerValue(value))).toBe(value);
  }
  expect(headerValue('plain')).toBe('plain');
  expect(headerValue('Grüße')).toBe('=?base64?R3LDvMOfZQ==?=');
  expect([readHeader('=?base64?eA?='), readHeader('\u00e9'), readHeader('=?base64?/w==?=')]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test('names at the common address', () => {
  expect(exposedName('files', 'read_file')).toBe('files__read_file');
  expect(exposedName('files', 'a.b/c')).toBe('files__a_b_c');
  const long = exposedName('files', 'x'.repeat(100));
  expect([long.length, long.slice(0, 10), /_[0-9a-f]{8}$/.test(long)]).toEqual([64, 'files__xxx', true]);
  expect(promptOf('a__b__c', ['a', 'z'])).toEqual({ server: 'a', name: 'b__c' });
  expect(promptOf('a__b__c', ['a', 'a__b'])).toBeUndefined();
  expect(uriOf('mcp+files:file:///x')).toEqual({ server: 'files', uri: 'file:///x' });
  expect(uriOf('file:///x')).toBeUndefined();
});

test('tools that can be distinguished', () => {
  const { tools: reported, refused } = distinct([
    { name: 'a' },
    { name: 'B' },
    { name: 'b' },
    { name: 'p\u0430y' },
    { name: 7 },
    'x',
  ]);
  expect(reported.map(({ name }) => name)).toEqual(['a']);
  expect(refused).toEqual(['B', 'b', 'p\u0430y', '7', '']);
});

test('what became of a call', () => {
  const decision = { verdict: 'block' as const, reason: 'no', engine: 'e', rule_id: 'r' };
  expect(toWireOutcome({ kind: 'refused', reason: 'no', decision }, false)).toEqual({
    result: { content: [{ type: 'text', text: 'no' }], isError: true },
  });
  const error = { code: -32602, message: 'Unknown tool', data: { odd: 1 } };
  const thrown = { status: 'error', output: null, error: 'Unknown tool', ext: { mcp: { error } } };
  expect(toWireOutcome({ kind: 'done', result: thrown }, false)).toEqual({ error });
  expect(toWireOutcome({ kind: 'done', result: { status: 'ok', output: { n: 1 } } }, false)).toEqual({
    result: { content: [{ type: 'text', text: '{"n":1}' }], structuredContent: { n: 1 } },
  });
});
