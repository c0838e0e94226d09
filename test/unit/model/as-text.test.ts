/** Values from outside become text without being asked how. */
import { expect, test } from 'vitest';
import { asText, beginning } from '../../../src/model/values/as-text.ts';

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

test.each([
  ['a short text', 'abc', 'abc'],
  ['one as long', 'abcd', 'abcd'],
  ['a longer one', 'abcdef', 'abcd'],
  ['one that would be cut in a character', 'abc\u{1f600}', 'abc'],
  ['one that brings half a character itself', 'a\ud800bcd', 'a\ud800bc'],
])('the beginning of %s', (_, text, first) => {
  expect(beginning(text, 4)).toBe(first);
});
