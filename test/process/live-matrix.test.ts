/**
 * A fixed part of the live matrix, on built gateways: every door and every backend is in it, and no cell of it comes out otherwise than
 * `fixtures/stories/cells.json` declares. All cells: `npm run matrix:live`.
 */
import { expect, test } from 'vitest';
import { BACKENDS } from '../matrix/backends.ts';
import type { Cell } from '../matrix/cells.ts';
import { impossible } from '../matrix/cells.ts';
import { DOORS } from '../matrix/doors/index.ts';
import { performCells } from '../matrix/perform.ts';
import { storyNames } from '../matrix/stories.ts';

const possible: readonly Cell[] = BACKENDS.flatMap((backend) =>
  storyNames().flatMap((story) => DOORS.map((door) => ({ door, backend, story }))),
).filter((cell) => !impossible(cell));

test('a tenth of the cells is as declared', { timeout: 600_000 }, async () => {
  const cells = possible.filter((_, at) => at % 10 === 4);
  expect(new Set(cells.map(({ door }) => door))).toEqual(new Set(DOORS));
  expect(new Set(cells.map(({ backend }) => backend))).toEqual(new Set(BACKENDS));
  expect(new Set(cells.map(({ story }) => story))).toEqual(new Set(storyNames()));
  const results = await performCells(cells, { concurrency: 2 });
  expect(results.filter(({ surprises }) => surprises.length > 0).map(({ account: _, ...result }) => result)).toEqual(
    [],
  );
  expect(results).toHaveLength(cells.length);
});
