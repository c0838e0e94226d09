/** Performs a part of the live matrix, backend by backend, and says of each cell in what it is not as declared. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Backend, openBackend } from './backends.ts';
import { type Account, performCell } from './cell.ts';
import { answeredThere, type Cell, impossible, surprises } from './cells.ts';
import type { DoorClient } from './doors/door.ts';
import { DOOR_CLIENTS } from './doors/index.ts';
import { liveStory } from './stories.ts';

export interface Result extends Cell {
  readonly ms: number;
  /** Not there where the cell could not be performed. */
  readonly account?: Account;
  readonly surprises: readonly string[];
}

/** Cells of one backend, one after the other: effects are told apart by when they happen. */
async function performBackend(backend: Backend, cells: readonly Cell[], dir: string, tell: (result: Result) => void) {
  const setup = await openBackend(backend, dir);
  try {
    for (const name of new Set(cells.map(({ story }) => story))) {
      const story = liveStory(name);
      await setup.rules(story.rules);
      for (const cell of cells.filter((each) => each.story === name)) {
        const begun = performance.now();
        const result = await performCell(setup, cell.door, story, answeredThere(cell)).then(
          (account) => ({ account, surprises: surprises(cell, account) }),
          (cause: unknown) => ({ surprises: [String(cause)] }),
        );
        tell({ ...cell, ...result, ms: Math.round(performance.now() - begun) });
      }
    }
  } finally {
    await Promise.all(Object.values(DOOR_CLIENTS).map((client: DoorClient) => client.leave?.(setup.near)));
    await setup.stop();
  }
}

export async function performCells(
  cells: readonly Cell[],
  { concurrency, tell = () => {} }: { readonly concurrency: number; tell?(result: Result): void },
): Promise<readonly Result[]> {
  const possible = cells.filter((cell) => !impossible(cell));
  const waiting = [...new Set(possible.map(({ backend }) => backend))];
  const dir = mkdtempSync(join(tmpdir(), 'tb-matrix-'));
  const results: Result[] = [];
  const next = async (): Promise<void> => {
    for (let backend = waiting.shift(); backend; backend = waiting.shift()) {
      const own = possible.filter((cell) => cell.backend === backend);
      await performBackend(backend, own, join(dir, backend), (result) => {
        results.push(result);
        tell(result);
      });
    }
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, next));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return results;
}
