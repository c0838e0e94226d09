/**
 * The live matrix: every door before every backend, on real processes. `npm run matrix:live`, or a part of it: `-- --door mcp --backend
 * runs --story hello`. Prints one line for each cell that is not as declared, and writes what was seen to `--out <file>`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { aspectsOf, differences } from '../stories/aspects.ts';
import { readCore, readReceipts } from '../stories/story.ts';
import { BACKENDS, type Backend, openBackend } from './backends.ts';
import { performCell } from './cell.ts';
import { impossible } from './cells.ts';
import { DOORS, type Door } from './doors/index.ts';
import { liveStory, storyNames } from './stories.ts';

const { values } = parseArgs({
  options: {
    door: { type: 'string', multiple: true },
    backend: { type: 'string', multiple: true },
    story: { type: 'string', multiple: true },
    out: { type: 'string' },
    keep: { type: 'boolean' },
  },
});
const doors = (values.door ?? DOORS) as readonly Door[];
const backends = (values.backend ?? BACKENDS) as readonly Backend[];
const stories = values.story ?? storyNames();
const root = mkdtempSync(join(tmpdir(), 'tb-matrix-'));
const results: object[] = [];

function told(name: string) {
  const receipt = readReceipts(name)['receipt.json'];
  if (!receipt) throw new Error(`${name} has no receipt`);
  return aspectsOf(
    receipt,
    readCore(name).filter(({ task_id }) => task_id === receipt.subject.id),
  );
}

async function one(backend: Backend): Promise<void> {
  const setup = await openBackend(backend, join(root, backend));
  try {
    for (const name of stories) {
      const story = liveStory(name);
      await setup.rules(story.rules);
      for (const door of doors) {
        if (impossible(door, backend, name)) continue;
        const begun = performance.now();
        const cell = `${door} × ${backend} × ${name}`;
        try {
          const account = await performCell(setup, door, story);
          const differs = differences(account.aspects, told(name));
          const wrong =
            JSON.stringify(account.left) === JSON.stringify(story.leaves) ? [] : [JSON.stringify(account.left)];
          results.push({ door, backend, story: name, differs, ...account, wrong });
          process.stdout.write(
            `${cell}: ${Math.round(performance.now() - begun)} ms differs ${differs.join(',') || '-'} ${[...account.faults, ...account.missing, ...wrong].join('; ')} ${JSON.stringify(account.loss)}\n`,
          );
        } catch (cause) {
          results.push({ door, backend, story: name, failed: String(cause) });
          process.stdout.write(`${cell}: FAILED ${(cause as Error).message}\n`);
        }
      }
    }
  } finally {
    await setup.stop();
  }
}

await Promise.all(backends.map(one));
if (values.out) writeFileSync(values.out, `${JSON.stringify(results, undefined, 1)}\n`);
if (!values.keep) rmSync(root, { recursive: true, force: true });
else process.stdout.write(`${root}\n`);
