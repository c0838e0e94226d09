/** A new kind of event does not compile until every reader that lists kinds says what it does with it. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { PROJECT } from '../support/process/project.ts';

const KIND = 'vendor.tollbridge.brand_new';

test('a kind that is only in the map fails at each reader, by name', async () => {
  const copy = await mkdtemp(join(tmpdir(), 'tollbridge-kinds-'));
  onTestFinished(() => rm(copy, { recursive: true, force: true }));
  for (const name of ['src', 'adapters', 'mappings', 'package.json']) {
    await cp(join(PROJECT, name), join(copy, name), { recursive: true });
  }
  await symlink(join(PROJECT, 'node_modules'), join(copy, 'node_modules'));
  // What the compiler remembers of this tree is not what it is to remember of the copy.
  const {
    compilerOptions: { incremental: _, tsBuildInfoFile: __, ...compilerOptions },
  } = JSON.parse(await readFile(join(PROJECT, 'tsconfig.json'), 'utf8'));
  await writeFile(
    join(copy, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['src', 'adapters', 'mappings'] }),
  );
  await insert(join(copy, 'src/model/words.ts'), 'export const OWN_EVENT_KINDS = {', `\n  '${KIND}': 'a test',`);
  await insert(join(copy, 'src/model/payloads.ts'), 'export const EVENT_PAYLOADS = {', `\n  '${KIND}': OpenObject,`);

  const tsc = join(PROJECT, 'node_modules/.bin/tsc');
  const { stdout } = await promisify(execFile)(tsc, ['-p', copy, '--noEmit', '--pretty', 'false'], {
    cwd: copy,
    maxBuffer: 1 << 24,
  }).catch((failed: { stdout: string }) => failed);
  // An error and the indented lines that explain it.
  const about = stdout.split(/\n(?! )/).filter((error) => error.includes(KIND));
  const files = new Set(about.map((error) => error.slice(0, error.indexOf('('))));
  expect([...files].toSorted()).toEqual([
    'adapters/a2a/server/render-events.ts',
    'adapters/acp/server/render-events.ts',
    'adapters/ahp/client/event-notices.ts',
    'adapters/runs/server/render/events.ts',
    'src/cli/output/event-lines.ts',
    'src/core/events/projector.ts',
    'src/model/task-view/evolve.ts',
    'src/receipt/build/reducers.ts',
  ]);
}, 300_000);

async function insert(file: string, after: string, text: string): Promise<void> {
  const source = await readFile(file, 'utf8');
  expect(source).toContain(after);
  await writeFile(file, source.replace(after, after + text));
}
