/**
 * The live matrix: every door before every backend, on real processes. `npm run matrix:live`, or a part of it: `-- --door mcp --backend
 * runs --story hello`. Prints each cell that is not as `fixtures/stories/cells.json` declares it, and then exits with 1; `--out FILE`
 * writes what was seen of every cell, with the list of what could not be carried.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { BACKENDS, type Backend } from './backends.ts';
import { DOORS, type Door } from './doors/index.ts';
import { performCells } from './perform.ts';
import { storyNames } from './stories.ts';

const { values } = parseArgs({
  options: {
    door: { type: 'string', multiple: true },
    backend: { type: 'string', multiple: true },
    story: { type: 'string', multiple: true },
    concurrency: { type: 'string', default: '2' },
    out: { type: 'string' },
    verbose: { type: 'boolean' },
  },
});
const stories = values.story ?? storyNames();
const cells = ((values.backend ?? BACKENDS) as readonly Backend[]).flatMap((backend) =>
  stories.flatMap((story) => ((values.door ?? DOORS) as readonly Door[]).map((door) => ({ door, backend, story }))),
);
const results = await performCells(cells, {
  concurrency: Number(values.concurrency),
  tell({ door, backend, story, ms, surprises, account }) {
    const cell = `${door} before ${backend}, ${story}`;
    for (const each of surprises) process.stdout.write(`NOT AS DECLARED  ${cell}: ${each.slice(0, 600)}\n`);
    if (values.verbose) process.stdout.write(`${cell}: ${ms} ms ${account?.loss.map(({ aspect }) => aspect) ?? ''}\n`);
  },
});
const wrong = results.filter(({ surprises }) => surprises.length > 0).length;
const impossible = cells.length - results.length;
process.stdout.write(
  `${cells.length} cells: ${results.length - wrong} as declared, ${wrong} not, ${impossible} impossible\n`,
);
if (values.out) writeFileSync(values.out, `${JSON.stringify(results, undefined, 1)}\n`);
process.exitCode = wrong > 0 ? 1 : 0;
