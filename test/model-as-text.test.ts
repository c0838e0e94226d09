/** Values from outside become text without being asked how. */
import { expect, test } from 'vitest';
import { asText } from '../src/model/as-text.ts';

test.each([
  ['a text', 'a', 'a'],
  ['a number', 7, '7'],
  ['nothing', undefined, 'undefined'],
  ['null', null, 'null'],
  ['a list', [1, 'a'], '[1,"a"]'],
  ['an object', { a: 1 }, '{"a":1}'],
  ['one that says how, and cannot', JSON.parse('{"toString":1,"valueOf":2}'), '{"toString":1,"valueOf":2}'],
  ['one that would be asked by JSON', JSON.parse('{"toJSON":1}'), '{"toJSON":1}'],
  ['one without a prototype', Object.create(null), '{}'],
  ['an address', new URL('http://a.example/b'), 'http://a.example/b'],
  ['an error', new Error('why'), 'Error: why'],
  ['bytes', Buffer.from('abc'), 'abc'],
])('%s', (_, value, text) => {
  expect(asText(value)).toBe(text);
});
