/** A watcher reports a file when it is written, not while it is being written. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
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
    onEvent: () => readFile(file, 'utf8').then((text) => seen.push(text)),
  });
  onTestFinished(async () => {
    watching.close();
    await rm(dir, { recursive: true, force: true });
  });
  return { file, seen, watching };
}

test('a file that is emptied and then written is reported once it is written', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { file, seen, watching } = await watched();
  await writeFile(file, '');
  const reported = watching.changed();
  // Many times the debounce, and less than an empty file has to be written.
  await vi.advanceTimersByTimeAsync(300);
  expect(seen).toEqual([]);
  await writeFile(file, 'two');
  await vi.advanceTimersByTimeAsync(20);
  await reported;
  expect(seen).toEqual(['two']);
});

test('a file that stays empty is reported in the end', async () => {
  const { file, seen } = await watched();
  await writeFile(file, '');
  await expect.poll(() => seen, { timeout: 10_000 }).toContain('');
});
