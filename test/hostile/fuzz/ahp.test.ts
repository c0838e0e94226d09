import { expect, test } from 'vitest';
import { fuzzAhp } from '../../fuzz/ahp.ts';

test('2,000 frames made wrong: nothing runs that the log had not allowed, everything is answered', async () => {
  expect(await fuzzAhp({ frames: 2_000, seed: 20260425 })).toEqual({ frames: 2_000, violations: [] });
}, 300_000);
