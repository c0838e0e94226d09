/** The suite that examines A2A agents, held against our own: every operation, binding and revision. */
import { expect, test } from 'vitest';
import { main } from '../../conformance/a2a.ts';

test('every operation on every binding in both revisions', { timeout: 60_000 }, async () => {
  const lines: string[] = [];
  expect(await main([], (line) => lines.push(line))).toBe(0);
  expect(lines).toEqual(['323 passed, 0 failed']);
});
