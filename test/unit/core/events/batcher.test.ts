/** Facts of one turn share a commit: all of them, in order, each answered when it is written, and none held back by another. */
import { expect, test } from 'vitest';
import { createBatcher } from '../../../../src/core/events/batcher.ts';
import { type EventDraft, vendorEvent } from '../../../../src/model/events.ts';

const fact = (n: number): EventDraft => ({
  event: vendorEvent('x'),
  resource: { object: 'task', id: 't' },
  payload: { n },
});

function scene(refuse?: Error) {
  const units: unknown[][] = [];
  const batcher = createBatcher(async (events) => {
    units.push(events.map(({ payload }) => payload.n));
    if (refuse) throw refuse;
  });
  return { units, batcher: batcher };
}

test('what is reported in one turn is one unit, in the order it was reported', async () => {
  const { units, batcher } = scene();
  await Promise.all([fact(1), fact(2), fact(3)].map((one) => batcher.write([one])));
  await batcher.write([fact(4)]);
  expect(units).toEqual([[1, 2, 3], [4]]);
});

test('what has to come first is not kept waiting for company', async () => {
  const { units, batcher } = scene();
  const before = batcher.write([fact(1)]);
  batcher.leave();
  expect(units).toEqual([[1]]);
  batcher.leave();
  await before;
  expect(units).toEqual([[1]]);
});

test('a unit does not grow without end', async () => {
  const { units, batcher } = scene();
  await Promise.all(Array.from({ length: 150 }, (_, n) => batcher.write([fact(n)])));
  expect(units.map((unit) => unit.length)).toEqual([64, 64, 22]);
  expect(units.flat()).toEqual(Array.from({ length: 150 }, (_, n) => n));
});

test('everyone in a unit that is refused hears why', async () => {
  const { batcher } = scene(new Error('ended'));
  const reported = [fact(1), fact(2)].map((one) => batcher.write([one]));
  for (const each of reported) await expect(each).rejects.toThrow('ended');
});
