import { expect, test } from 'vitest';
import { checks as receipts } from '../conformance/receipts.ts';
import { type Check, runSuite, suiteNames } from '../conformance/run.ts';

async function run(checks: Iterable<Check> | AsyncIterable<Check>) {
  const lines: string[] = [];
  const failed = await runSuite({ checks }, (line) => lines.push(line));
  return { failed, lines };
}

const good: Check = { name: 'good', run: () => {} };
const bad: Check = {
  name: 'bad',
  run: () => {
    throw new Error('two\nlines');
  },
};
const worse: Check = { name: 'worse', run: () => Promise.reject('no') };

test('only what failed is shown, with its reason, and both are counted', async () => {
  expect(await run([good, bad, worse, good])).toEqual({
    failed: 2,
    lines: ['FAIL bad\n     two\n     lines', 'FAIL worse\n     no', '2 passed, 2 failed'],
  });
});

test('checks may come one by one', async () => {
  async function* stream() {
    yield good;
    yield good;
  }
  expect(await run(stream())).toEqual({ failed: 0, lines: ['2 passed, 0 failed'] });
});

test('the suites are the files there are', () => {
  expect(suiteNames()).toContain('model');
  expect(suiteNames()).not.toContain('run');
});

test('receipts are what the format says they are', async () => {
  expect(receipts.length).toBeGreaterThan(15);
  expect(await run(receipts)).toEqual({ failed: 0, lines: [`${receipts.length} passed, 0 failed`] });
});
