/** Two thousand mutated frames of MCP, both directions. `npm run fuzz` sends a hundred thousand. */
import { expect, test } from 'vitest';
import { fuzzMcp } from '../../fuzz/mcp.ts';

test('no mutated frame reaches a server, or a client, without leave', { timeout: 300_000 }, async () => {
  expect(await fuzzMcp({ frames: 2_000, seed: 20_261_117 })).toEqual({ frames: 2_000, violations: [] });
});
