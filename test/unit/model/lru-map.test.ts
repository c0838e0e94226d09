/** The one bounded cache: what was used last stays. */
import { expect, test } from 'vitest';
import { LruMap } from '../../../src/model/values/lru-map.ts';

test('the entry that was used least recently goes first', () => {
  const map = new LruMap<string, number>(2);
  map.set('a', 1).set('b', 2);
  expect(map.get('a')).toBe(1);
  map.set('c', 3);
  expect([...map]).toEqual([
    ['a', 1],
    ['c', 3],
  ]);
});

test('an entry that is set again is new, and takes no second place', () => {
  const map = new LruMap<string, number>(2);
  map.set('a', 1).set('b', 2).set('a', 3).set('c', 4);
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4],
  ]);
});

test('a map without room keeps nothing', () => {
  expect(new LruMap<string, number>(0).set('a', 1).size).toBe(0);
});
