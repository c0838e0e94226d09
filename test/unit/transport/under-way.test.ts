/** What is under way is there until it is over, and then it is nowhere. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { InFlightMap } from '../../../src/transport/in-flight-map.ts';

test('what is under way is found by its name until it is over', () => {
  const calls = new InFlightMap<string, string>();
  calls.begin('a', 'first');
  calls.begin('b', 'second');
  expect(calls.get('a')).toBe('first');
  calls.over('a');
  calls.over('nobody');
  expect([calls.get('a'), calls.has('a'), calls.has('b'), calls.size]).toEqual([undefined, false, true, 1]);
});

test('all of them are reported in the order they began, also when they end while they are', () => {
  const calls = new InFlightMap<number, number>();
  for (const each of [3, 1, 2]) calls.begin(each, each);
  const reported: number[] = [];
  for (const each of calls.all()) {
    reported.push(each);
    calls.over(each);
  }
  expect([reported, calls.size]).toEqual([[3, 1, 2], 0]);
});

test('a name that is given again stands for the newer one', () => {
  const calls = new InFlightMap<string, string>();
  calls.begin('a', 'first');
  calls.begin('a', 'second');
  expect([calls.all(), calls.size]).toEqual([['second'], 1]);
});

test('what is over does not outlive a collection of young objects', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (how?: { type: 'minor' }) => void;
  const calls = new InFlightMap<number, object>();
  calls.begin(0, {});
  // From here on the table they stand in is an old one, and every one that replaces it is linked to it.
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let count = 1; count <= 4000; count += 1) {
    calls.begin(count, { bytes: new Array(1000).fill(count) });
    calls.over(count - 8);
  }
  collect({ type: 'minor' });
  const kept = process.memoryUsage().heapUsed - before;
  // All of them are 32 MB.
  expect(kept).toBeLessThan(8_000_000);
});
