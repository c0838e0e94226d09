/** The check itself: a folder with too many files is named, and one that is allowed more is held to that number. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { largeFolders } from './folders.ts';

test('a folder with more than sixteen files is reported, and other kinds of file do not count', async () => {
  const root = await mkdtemp(join(tmpdir(), 'tb-folders-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  for (const [folder, count] of [
    ['src/full', 16],
    ['src/large', 17],
    ['adapters/x/server', 18],
  ] as const) {
    await mkdir(join(root, folder), { recursive: true });
    await writeFile(join(root, folder, 'README.md'), '');
    for (let at = 0; at < count; at += 1) await writeFile(join(root, folder, `${at}.${at % 2 ? 'ts' : 'tsx'}`), '');
  }
  expect(largeFolders(root, { 'src/large': 17 })).toEqual([{ folder: 'adapters/x/server', files: 18, most: 16 }]);
  expect(largeFolders(root, {}).map(({ folder }) => folder)).toEqual(['src/large', 'adapters/x/server']);
});
