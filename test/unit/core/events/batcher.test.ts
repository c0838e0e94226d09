/** Facts of one turn share a commit: all of them, in order, each answered when it is written, and none held back by another. */
import { expect, test } from 'vitest';
import { createBatcher } from '../../../../src/core/events/batcher.ts';
import type { EventDraft } from '../../../../src/model/events.ts';

const fact = (n: number): EventDraft => ({ event: 'x', resource: { object: 'task', id: 't' }, payload: { n } });

function scene(refuse?: Error) {
  const units: unknown[][] = [];
  const together = createBatcher(async (events) => {
    units.push(events.map(({ payload }) => payload.n));
    if (refuse) throw refuse;
  });
  return { units, together };
}

test('what is reported in one turn is one unit, in the order it was reported', async () => {
  const { units, together } = scene();
  await Promise.all([fact(1), fact(2), fact(3)].map((one) => together.write([one])));
  await together.write([fact(4)]);
  expect(units).toEqual([[1, 2, 3], [4]]);
});

test('what has to come first is not kept waiting for company', async () => {
  const { units, together } = scene();
  const before = together.write([fact(1)]);
  together.leave();
  expect(units).toEqual([[1]]);
  together.leave();
  await before;
  expect(units).toEqual([[1]]);
});

test('a unit does not grow without end', async () => {
  const { units, together } = scene();
  await Promise.all(Array.from({ length: 150 }, (_, n) => together.write([fact(n)])));
  expect(units.map((unit) => unit.length)).toEqual([64, 64, 22]);
  expect(units.flat()).toEqual(Array.from({ length: 150 }, (_, n) => n));
});

test('everyone in a unit that is refused hears why', async () => {
  const { together } = scene(new Error('ended'));
  const reported = [fact(1), fact(2)].map((one) => together.write([one]));
  for (const each of reported) await expect(each).rejects.toThrow('ended');
});
