/** A watcher reports a file when it is written, not while it is being written. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { watchPaths } from '../../../src/policy/rules/watch.ts';

/** The content of the file each time the watcher reported it. */
async function watched() {
  const dir = await mkdtemp(join(tmpdir(), 'tb-watch-'));
  const file = join(dir, 'rules.yaml');
  await writeFile(file, 'one');
  const seen: string[] = [];
  const watching = watchPaths({
    paths: [file],
    debounceMs: 20,
    onEvent: () => void readFile(file, 'utf8').then((text) => seen.push(text)),
  });
  onTestFinished(async () => {
    watching.close();
    await rm(dir, { recursive: true, force: true });
  });
  return { file, seen };
}

test('a file that is emptied and then written is reported once it is written', async () => {
  const { file, seen } = await watched();
  await writeFile(file, '');
  await pause(300);
  expect(seen).toEqual([]);
  await writeFile(file, 'two');
  await expect.poll(() => seen, { timeout: 5_000 }).toContain('two');
  expect(seen).not.toContain('');
});

test('a file that stays empty is reported in the end', async () => {
  const { file, seen } = await watched();
  await writeFile(file, '');
  await expect.poll(() => seen, { timeout: 10_000 }).toContain('');
});
