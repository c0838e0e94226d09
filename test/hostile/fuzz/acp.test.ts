/** Two thousand frames of every kind, spoiled in every way, in both directions: no act without its allow. */
import { expect, test } from 'vitest';
import { spoiledFrames } from '../../fuzz/acp/frames.ts';
import { fuzzAcp } from '../../fuzz/acp.ts';
import { readings } from '../../fuzz/json-readings.ts';

test('two thousand spoiled frames carry no act that was not allowed', async () => {
  expect(await fuzzAcp({ frames: 2_000, seed: 17 })).toEqual({ frames: 2_000, violations: [] });
}, 120_000);

test('the frames are of both sides, and most are spoiled', () => {
  const frames = spoiledFrames(500, 1);
  const sides = new Set(frames.map(({ from }) => from));
  expect([...sides].sort()).toEqual(['agent', 'editor']);
  const whole = frames.filter(({ bytes }) => readings(bytes.toString('utf8')).length === 1);
  expect(whole.length).toBeGreaterThan(100);
  expect(whole.length).toBeLessThan(450);
});

test('a reader finds every act that a line could be taken for', () => {
  expect(readings('{"method":"a","method":"b"}')).toEqual([{ method: 'a' }, { method: 'b' }]);
  expect(readings('{"a":\r{"method":"x"}\r}')).toEqual([{ a: { method: 'x' } }, { method: 'x' }]);
  expect(readings('\ufeff{"method":"x"}{"method":"y"}')).toEqual([{ method: 'x' }, { method: 'y' }]);
  expect(readings('[{"method":"x"},[{"method":"y"}]]')).toEqual([{ method: 'x' }, { method: 'y' }]);
  expect(readings('words')).toEqual([]);
});
