/** The adapter on the page about adding a protocol fits the ports it is written for: the compiler reads it as it stands there. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { PROJECT } from '../../support/process/project.ts';

/** What the compiler says about each of these files, in one run. */
async function mistakesIn(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-sample-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const {
    compilerOptions: { rootDir: _, incremental: __, tsBuildInfoFile: ___, ...compilerOptions },
  } = JSON.parse(await readFile(join(PROJECT, 'tsconfig.json'), 'utf8'));
  // The types that the package ships, under the names that package.json gives them: what a writer of an adapter has.
  const { exports } = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'));
  const paths = {
    tollbridge: [join(PROJECT, exports['.'].types)],
    'tollbridge/gateway': [join(PROJECT, exports['./gateway'].types)],
  };
  const typeRoots = [join(PROJECT, 'node_modules/@types')];
  await writeFile(
    join(dir, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: { ...compilerOptions, allowJs: true, checkJs: true, paths, typeRoots },
      files: Object.keys(files),
    }),
  );
  for (const [name, code] of Object.entries(files)) await writeFile(join(dir, name), code);
  const tsc = join(PROJECT, 'node_modules/.bin/tsc');
  const { stdout } = await promisify(execFile)(tsc, ['-p', dir, '--pretty', 'false'], { cwd: dir }).catch(
    (failed: { stdout: string }) => failed,
  );
  return stdout.split('\n').filter((line) => line.includes('error TS'));
}

test('the sample has the types of the ports; with a command that does not exist it would not', async () => {
  const page = await readFile(join(PROJECT, 'docs/add-a-protocol.md'), 'utf8');
  const sample = /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  expect(sample).toContain('http.claim(');
  const wrong = sample.replace("kind: 'task.submit'", "kind: 'task.begin'");
  const mistakes = await mistakesIn({ 'shout.mjs': sample, 'wrong.mjs': wrong });
  expect(mistakes.filter((line) => !line.startsWith('wrong.mjs'))).toEqual([]);
  expect(mistakes.some((line) => line.includes('"task.begin"'))).toBe(true);
}, 300_000);
