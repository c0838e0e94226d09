/** Whether a frame may go on, as the adapter answers it: pure, both directions. */
import { expect, test } from 'vitest';
import {
  clientFrameTrouble,
  inputsTrouble,
  inputTrouble,
  serverFrameTrouble,
} from '../../../../adapters/mcp/frame-rules.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';

const frame = (method: string, more: { id?: string | number; params?: JsonObject } = {}) =>
  ({ jsonrpc: '2.0', method, ...more }) as const;
const code = (...input: Parameters<typeof frame>) => clientFrameTrouble(frame(...input))?.error.code;

test('a client’s frame in the wrong kind is an invalid request, in the wrong direction an unknown method', () => {
  expect(code('tools/call', { id: 1, params: { name: 'x' } })).toBeUndefined();
  expect(code('tools/call', { params: { name: 'x' } })).toBe(-32600);
  expect(code('notifications/initialized', { id: 1 })).toBe(-32600);
  expect(code('notifications/acme')).toBeUndefined();
  expect(code('acme/x')).toBe(-32600);
  expect(code('acme/x', { id: 1 })).toBeUndefined();
  expect(code('roots/list', { id: 1 })).toBe(-32601);
});

test('a method is a word of printable characters', () => {
  for (const method of ['', 'tools/call ', 'tools/call\u0000', 't\u043eols/call', 'x'.repeat(201)]) {
    expect([method, code(method, { id: 1 })]).toEqual([method, -32601]);
  }
});

test('members that decide what a request does are spelled as they are', () => {
  expect(code('tools/call', { id: 1, params: { name: 'a', Name: 'b' } })).toBe(-32602);
  expect(code('resources/read', { id: 1, params: { URI: 'b' } })).toBe(-32602);
  expect(code('tools/call', { id: 1, params: { name: 'a', 'argument\u017f': {} } })).toBe(-32602);
  expect(code('tools/call', { id: 1, params: { name: 'a', odd: 1 } })).toBeUndefined();
  expect(code('acme/x', { id: 1, params: { Name: 'b' } })).toBeUndefined();
});

test('a server asks what is in its rows, of clients that said they can be asked', () => {
  expect(serverFrameTrouble(frame('elicitation/create', { id: 1 }))).toBeUndefined();
  expect(serverFrameTrouble(frame('tools/call', { id: 1 }))).toBe(
    'tools/call is sent by the client, not by the server',
  );
  expect(serverFrameTrouble(frame('elicitation/create'))).toContain('needs an id');
  expect(serverFrameTrouble(frame('acme/x', { id: 1 }))).toBe('"acme/x" is no request to a client');
  expect(inputTrouble('sampling/createMessage', { elicitation: {} })).toContain('has not declared sampling');
  expect(inputTrouble('elicitation/create', { elicitation: {} })).toBeUndefined();
  expect(inputTrouble('constructor', {})).toBe('"constructor" is no request to a client');
  expect(inputTrouble('ping', {})).toBe('"ping" is no request to a client');
  expect(inputsTrouble({ a: 1 as never }, {})).toBe('a question is not a request');
  expect(inputsTrouble({ a: { method: 'tools/call' } }, { elicitation: {} })).toBe(
    '"tools/call" is no request to a client',
  );
});
