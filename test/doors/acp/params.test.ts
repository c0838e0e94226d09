/** The params of a request are held against the SDK's published schema, and are handed on as they came. */
import { expect, test } from 'vitest';
import { requireSoundParams } from '../../../adapters/acp/server/params.ts';

test.each([
  ['session/new', { cwd: 5 }, '/cwd must be string'],
  ['session/prompt', { sessionId: ['a'], prompt: [] }, '/sessionId must be string'],
  ['session/prompt', { sessionId: 'a', prompt: 'hello' }, '/prompt must be array'],
  ['session/set_mode', { sessionId: 'a', modeId: {} }, '/modeId must be string'],
  ['initialize', { protocolVersion: 1, clientInfo: { name: 7, version: '1' } }, '/clientInfo/name must be string'],
])('%s with %j is refused: %s', (method, params, message) => {
  expect(() => requireSoundParams(method, params)).toThrow(message);
});

test.each([
  ['session/new', {}],
  ['session/new', { cwd: '/', mcpServers: [{ type: 'newer', any: 1 }], _meta: { x: [1] }, unknown: true }],
  ['session/prompt', { sessionId: 'a', prompt: [{ type: 'newer', any: 1 }, 'strange'] }],
  ['session/fork', { sessionId: 5 }],
  ['_vendor/anything', { a: 1 }],
])('%s with %j is the door to judge', (method, params) => {
  const before = structuredClone(params);
  expect(() => requireSoundParams(method, params)).not.toThrow();
  expect(params).toEqual(before);
});
