/** The cache of computed values: it stays small, and what is used stays in it. */
import { expect, test } from 'vitest';
import { Memo } from '../../../src/model/values/memo.ts';

test('a value that is used again and again stays, whatever else comes; the others go', () => {
  const memo = new Memo<string, number>(8);
  memo.set('used', 1);
  for (let count = 0; count < 100; count++) {
    expect(memo.get('used')).toBe(1);
    memo.set(`other ${count}`, count);
  }
  const left = Array.from({ length: 100 }, (_, count) => memo.get(`other ${count}`)).filter(
    (each) => each !== undefined,
  );
  expect(left.length).toBeLessThanOrEqual(8);
  expect(left).toContain(99);
});

test('a value that is set again is the new one', () => {
  const memo = new Memo<string, number>(4);
  memo.set('a', 1);
  for (const each of ['b', 'c']) memo.set(each, 0);
  memo.set('a', 2);
  expect(memo.get('a')).toBe(2);
});

test('a memo without room keeps nothing', () => {
  const memo = new Memo<string, number>(0);
  memo.set('a', 1);
  expect(memo.get('a')).toBeUndefined();
});
