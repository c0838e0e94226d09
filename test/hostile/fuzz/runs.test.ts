import { expect, test } from 'vitest';
import { fuzzRuns } from '../../fuzz/runs.ts';

test('2,000 frames made wrong, in both directions: nothing runs that the log had not allowed, everything is answered or ends', async () => {
  const { frames, violations } = await fuzzRuns({ frames: 2_000, seed: 20260425 });
  expect(violations).toEqual([]);
  expect(frames).toBeGreaterThanOrEqual(2_000);
}, 300_000);
